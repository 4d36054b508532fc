"""`condition`: turn any network into one that takes a ray."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from paretocosmos import registry
from paretocosmos.config.presets import CONDITIONINGS, get_loop_settings
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.nn.conditioning import Conditioning
from paretocosmos.nn.conditioning.layer_search import (
    find_blocks,
    find_input_layer,
    find_opaque_parent,
)
from paretocosmos.nn.norms import Norm, with_norm
from paretocosmos.registry import Spec

SUBPACKAGE = "conditioning"
# Names of attention keys: something added to them cancels in the softmax.
KEYS = re.compile(r"(^|[._])(k|keys?)([._]|$)")
# Layers whose weights can be split into those for the input and those for the ray.
SPLITS: dict[type[nn.Module], str] = {nn.Linear: "concat", nn.Conv2d: "transposed_conv"}


def condition(
    module: nn.Module,
    objectives: int,
    *,
    how: str | None = None,
    layer: str | Sequence[str] | None = None,
    norm: Norm | None = None,
    settings: Mapping[str, Any] | None = None,
    preset: str = "default",
) -> Conditioning:
    """Turn any network into one that takes a ray: ``forward(inputs, ray)``.

    The network is copied. What reads the ray starts at zero (but for `hypernet`), so that training
    starts from the network as it is, its pretrained weights untouched. Inputs are a tensor, or a
    mapping, passed on as keywords, or as one argument to a ``forward(batch: dict)``; a ray is
    ``[J]``, ``[G, J]`` or ``[B, J]``; outputs are those of the network.

    Args:
        module: any network.
        objectives: entries in a ray, J.
        how: ``"film"``: a scale and a shift after each block, and weights that move with the ray
            by its `rank`; ``"input"``: beside the input, in the layer it enters, `concat` where
            that is linear and `transposed_conv` where it is a 2d convolution; any other name of a
            conditioning, or `package.module:Class`; the preset's if `None`.
        layer: the dotted name of the layer the ray enters; for ``"film"`` one or several; found
            by itself if `None`.
        norm: what becomes of batch normalisation, whose statistics mix samples under all rays:
            ``"group"`` makes it group normalisation with the same scale and shift, ``"frozen"``
            keeps the running statistics as they are, ``"keep"`` leaves it; `None` leaves it and
            warns.
        settings: further settings of the conditioning, by name.
        preset: ``"default"``: ``"film"`` with rank 1; ``"paper"``: ``"input"``, and ``"film"`` as
            published, with rank 0.

    >>> import torch
    >>> network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> model = condition(network, objectives=2)
    >>> x = torch.randn(4, 3)
    >>> torch.equal(model(x, torch.tensor([0.5, 0.5])), network(x))
    True
    """
    preset_settings = get_loop_settings(preset)  # also checks the name of the preset
    network: object = module  # whatever its annotation says
    if not isinstance(network, nn.Module):
        shown = f"the class {network.__name__}" if isinstance(network, type) else repr(network)
        raise ConfigurationError(
            f"`module` must be a network (nn.Module), found {shown}: build it first"
        )
    if isinstance(module, Conditioning):
        raise ConfigurationError(
            f"`module` must not be conditioned already, found {type(module).__name__}: "
            "use it as it is, or condition the network it was made from"
        )
    how = CONDITIONINGS[preset] if how is None else how
    if how == "input":
        how, layer = _choose_by_layer(module, layer)
    elif ":" not in how and how not in registry.names(SUBPACKAGE):
        raise unknown("`how`", how, ["input", *registry.names(SUBPACKAGE)])
    parameters = registry.parameters(registry.find(SUBPACKAGE, how))
    # zero=True: the first forward pass gives what the network gave before
    defaults = {"zero": True} | preset_settings
    arguments = {key: value for key, value in defaults.items() if key in parameters}
    if layer is not None:
        if "layer" not in parameters:
            raise ConfigurationError(
                f"`{how}` takes the whole network, found `layer` {layer!r}: leave it out"
            )
        # a single name as text, which conditionings of one layer expect
        names = (layer,) if isinstance(layer, str) else tuple(layer)
        arguments["layer"] = names[0] if len(names) == 1 else names
    spec = Spec(how, arguments | dict(settings or {}))
    backbone = with_norm(module, norm, depth=1)
    built = registry.build(SUBPACKAGE, spec, backbone=backbone, objectives=objectives)
    # `how` may name code from outside
    if not isinstance(built, Conditioning):
        raise ConfigurationError(
            f"`how` must name a conditioning; `{how}` gives {type(built).__name__}"
        )
    return built


def _choose_by_layer(module: nn.Module, layer: str | Sequence[str] | None) -> tuple[str, str]:
    """Return the conditioning for the layer that the input enters, and that layer's name."""
    if layer is None:
        first = find_input_layer(module)
        if first is None:
            raise ConfigurationError(
                'how="input" looked for the linear layer or 2d convolution that the input enters, '
                f"found no layer with weights in {type(module).__name__}: condition the part that "
                "has weights"
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
                f"the network has no layer `{name}`: {_suggest_layers(module)}"
            ) from error
    for kind, how in SPLITS.items():
        if isinstance(entered, kind):
            return how, name
    raise ConfigurationError(
        'how="input" needs a linear layer or a 2d convolution, by default the one the input '
        f"enters, found {type(entered).__name__} at `{name}`: {_suggest_layers(module)}"
    )


def _suggest_layers(module: nn.Module) -> str:
    """Return the end of an error message with layers that can be named."""
    layers = [name for name, child in module.named_modules() if isinstance(child, tuple(SPLITS))]
    reachable = [name for name in layers if find_opaque_parent(module, name) is None]
    # something added to the outputs only shifts them
    names = [name for name in reachable if not KEYS.search(name) and name != layers[-1]]
    names = names or reachable  # better a poor suggestion than none
    other = "film" if find_blocks(module) else "hypernet"
    if not names:
        return f'use how="{other}"; there is no linear layer or 2d convolution to name'
    some = ", ".join(names[:4]) + ", ..." * (len(names) > 4)
    return f'use how="{other}", or name one, as in layer="{names[0]}" (there are: {some})'
