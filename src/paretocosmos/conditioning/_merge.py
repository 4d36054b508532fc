"""Folding a ray into the weights of a network, where that is exact.

A listener in the network knows what the ray amounts to in its place while the network hears one
(`Conditioning.hearing`). Where that is a matrix or a bias of a layer, it is added to the layer's
own, and the layer takes its place again.
"""

import copy
from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.conditioning._kinds import base_of, is_conv1d
from paretocosmos.conditioning._listening import Listener, ListeningConditioning
from paretocosmos.conditioning._low_rank import LowRank
from paretocosmos.conditioning._modulated import Modulated
from paretocosmos.conditioning._split import SplitLinear
from paretocosmos.conditioning.hypernet import Hypernet
from paretocosmos.conditioning.none import Unconditioned
from paretocosmos.errors import ConfigurationError
from paretocosmos.runtime.torch_private import BatchOrInstanceNorm

__all__ = ["merged"]

# Layers of one matrix, or of one scale and shift, per channel of what they give.
MATRICES = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (BatchOrInstanceNorm, nn.LayerNorm, nn.GroupNorm)


def merged(model: Conditioning, ray: Tensor) -> nn.Module:
    """A copy of the network with one ray ``[J]`` in its own weights.

    Raises:
        ConfigurationError: where the outputs would not be those of the model at that ray.
    """
    if isinstance(model, Hypernet):
        return model.network_at(ray)
    whole = copy.deepcopy(model)
    with torch.no_grad():
        if not isinstance(whole, ListeningConditioning | Unconditioned):
            raise _refused(f"{type(model).__name__} does not enter the network by its weights")
        network: nn.Module = whole.hearing(ray, _folded)
    return network


def _refused(reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"`merge` must fold the ray into the weights exactly, but {reason}: use `at(ray)` "
        "without `merge`"
    )


def _folded(network: nn.Module) -> nn.Module:
    """The network without its listeners, the innermost first."""
    places = [(name, part) for name, part in network.named_modules() if isinstance(part, Listener)]
    for name, listener in reversed(places):  # what is inside another comes after it
        layer = _fold(network, name, listener)
        every = network.named_modules(remove_duplicate=False)
        for place in [place for place, part in every if part is listener]:
            if place == "":
                network = layer
            else:
                network.set_submodule(place, layer)
    return network


def _fold(network: nn.Module, place: str, listener: Listener) -> nn.Module:
    """The listener's layer, changed as the ray that is heard changes it."""
    heard = listener.heard()[0]
    layer: nn.Module = listener.layer
    if isinstance(listener, LowRank):
        own = base_of(layer)  # of an adapter: what it adds stays beside it
        _check_own(network, place, own)
        rank = listener.writes.shape[1] // len(heard)
        scales = heard.to(listener.writes).repeat_interleave(rank)
        added = (listener.writes * scales) @ listener.reads.weight.flatten(1)
        _add(own, added, None if listener.shifts is None else heard @ listener.shifts)
    elif isinstance(listener, SplitLinear):
        _check_own(network, place, layer)
        _add(layer, None, listener.ray.weight @ heard)
    elif isinstance(listener, Modulated):
        last = _last(layer)
        if not _scalable(last):
            raise _refused(
                f"the scale and shift at `{place}` come after {type(layer).__name__}, which does "
                "not end in a linear layer, a convolution, or a normalisation with a bias"
            )
        _check_own(network, place, last)
        scale, shift = heard.chunk(2)
        _scale(last, 1 + scale, shift)
    else:
        raise _refused(f"what the ray adds at `{place}` is no weight of {type(layer).__name__}")
    return layer


def _check_own(network: nn.Module, place: str, layer: nn.Module) -> None:
    """Refuse a layer whose weight something else reads too, or that is computed from others."""
    if parametrize.is_parametrized(layer):
        raise _refused(f"the weight at `{place}` is computed by a parametrisation")
    holders = Counter(
        parameter for part in network.modules() for parameter in part.parameters(recurse=False)
    )
    if holders[layer.weight] > 1:  # type: ignore[index]
        raise _refused(f"the weight at `{place}` is shared with another layer")


def _add(layer: Any, weight: Tensor | None, bias: Tensor | None) -> None:
    """Add to a layer's weight ``[O, ...]``, given as ``[O, I]``, and to its bias ``[O]``."""
    if weight is not None:
        layer.weight.add_(weight.T if is_conv1d(layer) else weight.view_as(layer.weight))
    if bias is None:
        return
    if layer.bias is None:
        layer.bias = nn.Parameter(bias.to(layer.weight), requires_grad=layer.weight.requires_grad)
    else:
        layer.bias.add_(bias)


def _last(layer: nn.Module) -> nn.Module:
    """The layer that gives what a plain sequence gives."""
    while type(layer) is nn.Sequential and len(layer):
        layer = layer[-1]
    return layer


def _scalable(layer: nn.Module) -> bool:
    """Whether a layer's outputs can be scaled and shifted by its own weights."""
    kind = next((kind for kind in (*MATRICES, *NORMS) if isinstance(layer, kind)), None)
    if kind is None:
        return is_conv1d(layer)
    if kind in NORMS:
        flat = not isinstance(layer, nn.LayerNorm) or len(layer.normalized_shape) == 1
        return flat and getattr(layer, "bias", None) is not None
    return type(layer).forward is kind.forward


def _scale(layer: Any, scale: Tensor, shift: Tensor) -> None:
    """Multiply what a layer gives by ``[C]`` and add ``[C]``."""
    along = (-1,) if is_conv1d(layer) else (-1, *[1] * (layer.weight.ndim - 1))
    layer.weight.mul_(scale.to(layer.weight).view(along))
    if layer.bias is not None:
        layer.bias.mul_(scale.to(layer.bias))
    _add(layer, None, shift)
