"""How a network that nobody here wrote becomes one that takes a ray."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from paretocosmos import registry
from paretocosmos.conditioning._base import Conditioning
from paretocosmos.conditioning._layers import (
    all_quantised,
    blocks_of,
    enters,
    has_weights,
    matrices_of,
    uncalled,
)
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.layers.norms import Norm, with_norm
from paretocosmos.registry import Spec

__all__ = ["conditioned"]

ROOM = "conditioning"
KEYS = re.compile(r"(^|[._])(k|keys?)([._]|$)")
SPLITS: dict[type[nn.Module], str] = {nn.Linear: "concat", nn.Conv2d: "transposed_conv"}


def conditioned(
    module: nn.Module,
    objectives: int,
    *,
    how: str,
    layer: str | Sequence[str] | None,
    norm: Norm | None,
    settings: Mapping[str, Any],
    usual: Mapping[str, Any],
) -> Conditioning:
    """A conditioning around a network, whose own parameters of the ray start at zero.

    Args:
        module: any network.
        objectives: entries in a ray, J.
        how: ``"auto"``, ``"input"``, or a conditioning.
        layer: where the ray enters; found by itself if `None`.
        norm: what becomes of batch normalisation.
        settings: of the conditioning, by name.
        usual: settings that a conditioning has if it takes them and no other were given.
    """
    _check_network(module)
    if how == "auto":
        how = _chosen(module, layer)
    if how == "input":
        how, layer = _by_layer(module, layer)
    elif ":" not in how and how not in registry.names(ROOM):
        raise unknown("`how`", how, ["auto", "input", *registry.names(ROOM)])
    takes = registry.parameters(registry.find(ROOM, how))
    given = {key: value for key, value in ({"zero": True} | dict(usual)).items() if key in takes}
    if how == "film" and not matrices_of(module):
        given["rank"] = 0  # which a caller may ask for all the same, and is told why not
    if layer is not None:
        if "layer" not in takes:
            raise ConfigurationError(
                f"`{how}` takes the whole network, found `layer` {layer!r}: leave it out"
            )
        names = (layer,) if isinstance(layer, str) else tuple(layer)
        given["layer"] = names[0] if len(names) == 1 else names
    spec = Spec(how, given | dict(settings))
    network = with_norm(module, norm, depth=2)
    built = registry.build(ROOM, spec, backbone=network, objectives=objectives)
    if not isinstance(built, Conditioning):
        raise ConfigurationError(
            f"`how` must name a conditioning; `{how}` gives {type(built).__name__}"
        )
    return built


def _check_network(module: object) -> None:
    if not isinstance(module, nn.Module):
        found = f"the class {module.__name__}" if isinstance(module, type) else repr(module)
        raise ConfigurationError(
            f"`module` must be a network (nn.Module), found {found}: build it first"
        )
    if isinstance(module, Conditioning):
        raise ConfigurationError(
            f"`module` must not be conditioned already, found {type(module).__name__}: "
            "use it as it is, or condition the network it was made from"
        )


def _chosen(module: nn.Module, layer: str | Sequence[str] | None) -> str:
    """``"film"`` where a network has something inside to scale and shift, else ``"input"``."""
    if layer is not None or blocks_of(module):
        return "film"
    if not has_weights(module):
        raise ConfigurationError(
            f"a conditioned network needs weights, found none in {type(module).__name__}: "
            "condition the part that has weights"
        )
    if all_quantised(module):
        raise ConfigurationError(
            f"no gradient passes through the last layers of {type(module).__name__}, which are "
            "quantised to whole numbers, so a ray cannot be learned: condition and train the "
            "network first and quantise it afterwards, or keep its last two "
            "layers in floating point"
        )
    return "input"


def _by_layer(module: nn.Module, layer: str | Sequence[str] | None) -> tuple[str, str]:
    """The conditioning for the layer the input enters, and that layer's name."""
    if layer is None:
        first = enters(module)
        if first is None:
            raise ConfigurationError(
                'how="input" looked for the linear layer or 2d convolution that the input enters, '
                f"found no layer with weights in {type(module).__name__}: condition the part that "
                "has weights, or use another `how`"
            )
        name, entered = first
    else:
        several = (layer,) if isinstance(layer, str) else tuple(layer)
        if len(several) != 1:
            raise ConfigurationError(
                f'how="input" splits one layer, found {len(several)} in `layer`: name one, or use '
                'how="film"'
            )
        name = several[0]
        try:
            entered = module.get_submodule(name)
        except AttributeError as error:
            raise ConfigurationError(
                f"the network has no layer `{name}`: {_ways_out(module)}"
            ) from error
    for kind, how in SPLITS.items():
        if isinstance(entered, kind):
            return how, name
    raise ConfigurationError(
        'how="input" needs a linear layer or a 2d convolution, by default the one the input '
        f"enters, found {type(entered).__name__} at `{name}`: {_ways_out(module)}"
    )


def _ways_out(module: nn.Module) -> str:
    every = [name for name, part in module.named_modules() if isinstance(part, tuple(SPLITS))]
    called = [name for name in every if uncalled(module, name) is None]
    # something added to keys cancels in the softmax; added to the outputs it only shifts them
    names = [name for name in called if not KEYS.search(name) and name != every[-1]] or called
    if not names:
        return 'use how="film"; there is no linear layer or 2d convolution to name'
    some = ", ".join(names[:4]) + ", ..." * (len(names) > 4)
    return f'use how="film", or name one, as in layer="{names[0]}" (there are: {some})'
