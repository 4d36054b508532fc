"""The zoo: trained networks that come with this package."""

import dataclasses
from pathlib import Path

from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import Run

__all__ = ["MODELS", "load"]

FOLDER = Path(__file__).with_name("models")
MODELS = ("adult", "compas", "default_credit")
"""Their names, which are those of the problems they were trained on."""


def load(name: str, *, device: str = "cpu") -> Run:
    """A trained network that comes with this package, ready to predict at any preference.

    There is one for each of the tables `adult`, `compas` and `default_credit`, trained with the
    default preset: the front trades cross-entropy for equal selection rates of men and women. They
    are meant for trying things out and for teaching, not for decisions about people. The folder
    `load(name).folder` also holds the network as ONNX, with a model card, in ``export/``.

    Args:
        name: one of the three; a run folder of your own is read by `load_run`.
        device: where the model goes.

    Returns:
        The run. Nothing is written into its folder, which is part of the package: `explore` and
        `export` write elsewhere.

    >>> from paretocosmos import load
    >>> run = load("adult")
    >>> run.front.names
    ('binary_cross_entropy', 'demographic_parity')
    >>> len(run.front)
    25
    """
    if name not in MODELS:
        if Path(name).is_dir():
            raise ConfigurationError(
                f"`load` takes the name of a model that comes with paretocosmos, "
                f"{', '.join(MODELS)}; found the folder `{name}`: open it with `load_run`"
            )
        raise unknown("model", name, MODELS)
    return dataclasses.replace(load_run(FOLDER / name, device=device), saved=False)
