"""Integrations with other libraries.

Training loops: `lightning.ParetoModule` and `transformers.ParetoTrainer`. They share the classes
here: `LossWeighting` draws the rays and weights the losses of a batch, `FrontEvaluator` computes
fronts. Loggers of a training: `loggers.TensorBoard`, `loggers.WandB` and `loggers.MLflow`.
Conditioned networks in folders: `pretrained`. Each needs the extra of its name, and everything is
imported when it is first asked for, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paretocosmos.integrations.batches import to_batch
    from paretocosmos.integrations.fronts import FrontEvaluator, Tallies
    from paretocosmos.integrations.weighting import LossWeighting, import_base

_MODULES = {
    "FrontEvaluator": "fronts",
    "LossWeighting": "weighting",
    "Tallies": "fronts",
    "import_base": "weighting",
    "to_batch": "batches",
}


def __getattr__(name: str) -> object:
    """Import a shared class or function when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
