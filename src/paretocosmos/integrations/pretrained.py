"""Conditioned networks in folders: weights in safetensors, what they are in JSON, a model card.

No file is a pickle, and a folder names only conditionings of this package. The network itself is
handed over by the caller; that of one of `transformers` can be built from the `config.json`.
"""

import copy
import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos import registry
from paretocosmos._version import __version__
from paretocosmos.config.settings import get_spec_name
from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.export.card import render_network_card
from paretocosmos.io.files import (
    make_folder,
    read_json,
    to_json_value,
    user_path,
    write_bytes,
    write_json,
)
from paretocosmos.nn.conditioning import Conditioning, PerRayEnsemble, is_inside
from paretocosmos.pareto.front import Front
from paretocosmos.registry import Spec, check_names, check_trust
from paretocosmos.runs.checkpoint import check_count, load_tensors, save_tensors
from paretocosmos.runtime.weights import describe_misfit

KIND = "conditioning"
ABOUT, WEIGHTS, CARD, CONFIG = "conditioning.json", "model.safetensors", "README.md", "config.json"
FORMAT = 1


def save_pretrained(
    model: Conditioning, folder: str | Path, *, whole: bool = True, front: Front | None = None
) -> Path:
    """Write a conditioned network to a folder that `from_pretrained` reads.

    Args:
        model: a network that `condition` made.
        folder: made if it is missing; what this function wrote there before is replaced.
        whole: write all weights; otherwise leave out the frozen ones, such as those below `lora`,
            which the network handed to `from_pretrained` must then have.
        front: what the card reports: objectives, preferences and values.

    Returns:
        The folder.
    """
    if not isinstance(model, Conditioning):
        raise ConfigurationError(
            f"`model` must be a conditioned network, found {type(model).__name__}: make one with "
            "`condition`; a network at a ray has its own `save_pretrained`"
        )
    if isinstance(model, PerRayEnsemble):
        raise ConfigurationError(
            f"a folder can hold only one network, found {type(model).__name__}, which has several: "
            "save them one by one"
        )
    path = user_path(folder)
    # never over weights that somebody else put there
    if (path / WEIGHTS).exists() and not (path / ABOUT).exists():
        raise ConfigurationError(
            f"`{path}` already has a `{WEIGHTS}` from something else: choose another folder"
        )
    state = model.state_dict()
    # with duplicates: a shared weight has an entry in the state under each of its names
    named = model.named_parameters(remove_duplicate=False)
    frozen = {
        name: state[name]
        for name, parameter in named
        if not whole and is_inside(name, ("backbone",)) and not parameter.requires_grad
    }
    stored = {name: tensor for name, tensor in state.items() if name not in frozen}
    with make_folder(path):
        save_tensors(path / WEIGHTS, stored, {}, hashed=True)
        write_description(model, path, left_out=frozen, front=front)
    return path


def write_description(
    model: Conditioning,
    path: Path,
    *,
    left_out: Mapping[str, Tensor] | None = None,
    front: Front | None = None,
) -> None:
    """Write what `from_pretrained` reads beside the weights of a conditioned network.

    Args:
        model: the network.
        path: the folder.
        left_out: the weights that are not in the folder.
        front: what the card reports.
    """
    network: Any = model.backbone
    about = {
        "format": FORMAT,
        "paretocosmos": __version__,
        "conditioning": get_spec_name(KIND, type(model)),
        "objectives": model.objectives,
        "settings": to_json_value(model.settings, _raise_not_json),
        "network": type(network).__name__,
        "left_out": _compute_digest(left_out) if left_out else None,
    }
    # a network of `transformers` has a configuration from which it can be built again
    if type(network).__module__.startswith("transformers.") and hasattr(network, "config"):
        config = copy.deepcopy(network.config)
        config.architectures = [type(network).__name__]
        write_bytes(path / CONFIG, config.to_json_string().encode())
    write_bytes(path / CARD, render_network_card(model, about, front).encode())
    write_json(path / ABOUT, about)  # last: without it the folder is not read


def from_pretrained(
    folder: str | Path,
    network: nn.Module,
    *,
    trust: Collection[str] = (),
) -> Conditioning:
    """Read a conditioned network from a folder of `save_pretrained` or of a `ParetoTrainer`.

    Args:
        folder: what was written, also by the Trainer's `save_model`, or one of its checkpoints.
        network: one built as the conditioned one was; its weights count only where the folder
            left frozen ones out.
        trust: packages whose conditionings the folder may name; this one's own always.
    """
    path = user_path(folder)
    about = read_json(path / ABOUT)
    name, objectives, settings = (about.get(k) for k in (KIND, "objectives", "settings"))
    if about.get("format") != FORMAT:
        raise RunError(
            f"`{path / ABOUT}` has format {about.get('format')!r}, this version reads {FORMAT}: "
            "install the version of paretocosmos that wrote it"
        )
    if not isinstance(name, str) or not isinstance(settings, dict):
        raise RunError(
            f"`{path / ABOUT}` is damaged: it does not name a conditioning and its settings"
        )
    # before anything that the file names is imported
    check_names([(KIND, name)], file=path / ABOUT, trust=check_trust(trust))
    # JSON has lists for tuples: settings are converted to the types that the constructor declares
    takes = registry.parameters(registry.find(KIND, name))
    if not settings.keys() <= takes.keys():
        raise RunError(f"`{path / ABOUT}` is damaged: `{name}` has no such settings")
    typed = {k: registry.convert(k, v, takes[k].annotation) for k, v in settings.items()}
    built = registry.build(KIND, Spec(name, typed), backbone=network, objectives=objectives)
    if not isinstance(built, Conditioning):
        raise RunError(f"`{path / ABOUT}` names `{name}`, which is not a conditioning")
    _load_weights(built, path, about.get("left_out"))
    return built


def _load_weights(model: Conditioning, path: Path, left_out: object) -> None:
    """Load weights from a folder; frozen ones that it leaves out must be those of the model."""
    state = model.state_dict()
    # the header alone, before tensors that do not fit are read
    check_count(path / WEIGHTS, model, partial=True)
    tensors, _ = load_tensors(path / WEIGHTS)  # a Trainer writes no hash
    missing = {name: state[name] for name in state if name not in tensors}
    if left_out is not None:  # the frozen weights must be those that the others were trained with
        if _compute_digest(missing) != left_out:
            raise RunError(
                f"`{path / WEIGHTS}` does not contain the frozen weights, and those of `network` "
                "are different: pass the network that was conditioned, with its pretrained weights"
            )
        tensors |= missing
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise RunError(
            f"`{path / WEIGHTS}` does not fit `network`: "
            f"{describe_misfit(model, tensors, error)}; pass a network built in the same way"
        ) from error
    model.eval()


def _compute_digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of tensors with their names."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        values = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        # as bytes: numpy has no bfloat16
        digest.update(values.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _raise_not_json(value: object) -> Any:
    """Raise for a setting that JSON cannot hold."""
    raise ConfigurationError(
        f"settings must be JSON, found {value!r}: build the conditioning with strings and numbers"
    )
