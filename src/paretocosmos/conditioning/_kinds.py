"""What a layer that nobody here wrote is: what it reads and gives, and whether it can learn."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from paretocosmos.conditioning._pieces import gives_pieces
from paretocosmos.layers.norms import StandIn
from paretocosmos.runtime.torch_private import BatchOrInstanceNorm, Convolution

__all__ = [
    "OPAQUE",
    "Width",
    "base_of",
    "end_of",
    "is_closed",
    "is_conv1d",
    "is_hidden",
    "is_norm",
    "is_recurrent",
    "passes_gradients",
    "reads_weights",
    "width_of",
]

# They compute with their layers' weights and, at times or always, do not call the layers.
OPAQUE = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
CLOSED = (StandIn, *OPAQUE)
# What those who write low-rank adapters call the layer that is adapted, in what is put around it.
ADAPTED = ("base_layer", "base", "linear", "conv", "layer", "original", "org_module")


class Width(NamedTuple):
    """How many channels a module gives, and on which axis."""

    channels: int
    leads: bool
    """Whether outputs of three dimensions have their channels on axis 1, as convolutions do."""
    images: bool
    """Whether outputs of more dimensions have."""
    like: Tensor
    """A weight of the layer it is known from, for its device and type."""


def base_of(module: nn.Module) -> nn.Module:
    """The layer inside a low-rank adapter, or the layer itself.

    An adapter is known by children whose names begin with `lora`, beside the layer that it adapts,
    or by what `peft` calls that layer in all of its own.
    """
    children = dict(module.named_children())
    if "base_layer" in children and type(module).__module__.startswith("peft."):
        return children["base_layer"]
    if any(name.lower().startswith("lora") for name in children):
        named = (children[name] for name in ADAPTED if name in children)
        return next(named, module)
    return module


def is_conv1d(layer: nn.Module) -> bool:
    """Whether a layer is the `Conv1D` of `transformers`, known without importing that."""
    kind = type(layer)
    return kind.__name__ == "Conv1D" and kind.__module__.startswith("transformers.")


def is_recurrent(module: nn.Module) -> bool:
    """Whether a layer gives its outputs and its last state, as torch's LSTM, GRU and RNN do."""
    sizes = (getattr(module, name, None) for name in ("hidden_size", "num_layers"))
    return isinstance(module, nn.RNNBase) or (
        all(isinstance(size, int) for size in sizes)
        and isinstance(getattr(module, "bidirectional", None), bool)
    )


def passes_gradients(module: nn.Module) -> bool:
    """Whether gradients pass through a layer: not through torch's own in whole numbers."""
    return not type(module).__module__.startswith("torch.ao.nn.quantized")


def is_closed(module: nn.Module) -> bool:
    """Whether a module is one layer to us, whatever it is made of."""
    return (
        isinstance(module, CLOSED)
        or base_of(module) is not module
        or is_parametrized(module)
        or is_recurrent(module)
        or not passes_gradients(module)
    )


def is_norm(module: nn.Module) -> bool:
    """Whether a layer normalises: torch's own, or any that only has a vector of weights."""
    if isinstance(module, StandIn):
        module = module.layer
    if isinstance(module, BatchOrInstanceNorm | nn.GroupNorm | nn.LayerNorm | nn.RMSNorm):
        return True
    return type(module).__name__.endswith("Norm") and not reads_weights(module)


def reads_weights(module: nn.Module) -> bool:
    """Whether a layer multiplies by a matrix or more of its own: linear, convolution, embedding."""
    own = module.parameters(recurse=is_closed(module))
    return any(weight.ndim > 1 for weight in own) or _packed(module)


def _packed(module: nn.Module) -> bool:
    """Whether a layer keeps its weights in another form than parameters, as quantised ones do."""
    width = getattr(module, "out_features", getattr(module, "hidden_size", None))
    return isinstance(width, int) and next(module.parameters(), None) is None


def is_hidden(module: nn.Module) -> bool:
    """Whether a layer multiplies what it is given by weights: linear, convolution, recurrent."""
    known = (nn.Linear, Convolution, nn.RNNCellBase)
    base = base_of(module)
    listed = isinstance(base, known) or is_recurrent(module) or is_conv1d(base)
    return listed or isinstance(getattr(base, "out_features", None), int)


def width_of(module: nn.Module) -> Width | None:
    """The channels a module gives: those of the layer it ends in.

    Where that is not certain, those of the last layer written in it.
    """
    parts = [base_of(part) for part in _inner(module)]
    known = [part for part in parts if _channels(part) is not None]
    written = [part for part in known if is_hidden(part)] or known
    ends = end_of(module) or next(reversed(written), None)
    channels = None if ends is None else _channels(ends)
    if ends is None or channels is None:
        return None
    images = any(isinstance(part, Convolution | BatchOrInstanceNorm) for part in parts)
    leads = isinstance(ends, Convolution | BatchOrInstanceNorm | nn.GroupNorm)
    weights = [*ends.parameters(), *module.parameters(), *module.buffers()]
    like = next((one for one in weights if one.is_floating_point()), torch.empty(0))
    return Width(channels, leads, images or leads, like)


def end_of(module: nn.Module) -> nn.Module | None:
    """The layer that a module's channels are those of; `None` where that is not certain.

    It is the last linear layer or convolution written in it, but for gates, or, where there is none
    or what is inside it puts pieces together, the normalisation layer after that.
    """
    base = base_of(module)
    if _channels(base) is not None:
        return base
    if gives_pieces(module):
        return None
    norm = None
    for child in reversed(list(module.children())):
        if all(_channels(base_of(part)) is None for part in _inner(child)):
            continue
        end = end_of(child)
        if end is None:
            return norm
        if _channels(end) == 1:  # a gate, which all channels are multiplied by
            continue
        if is_hidden(end):
            return end
        norm = norm or end
    return norm


def _inner(module: nn.Module) -> Iterator[nn.Module]:
    """A module and its parts, without those of adapters and of parametrised layers."""
    yield module
    if not is_parametrized(module) and base_of(module) is module:
        for part in module.children():
            yield from _inner(part)


def _channels(layer: nn.Module) -> int | None:
    if isinstance(layer, nn.Linear):
        return layer.out_features
    if isinstance(layer, Convolution):
        return layer.out_channels
    if isinstance(layer, BatchOrInstanceNorm):
        return layer.num_features
    if isinstance(layer, nn.GroupNorm):
        return layer.num_channels
    if isinstance(layer, nn.LayerNorm | nn.RMSNorm):
        return layer.normalized_shape[-1]
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
        return layer.embedding_dim
    if is_conv1d(layer):
        given: Any = layer
        return int(given.nf)
    if is_recurrent(layer):
        rnn: Any = layer
        width: int = getattr(rnn, "proj_size", 0) or rnn.hidden_size
        return 2 * width if rnn.bidirectional else width
    if isinstance(layer, nn.RNNCellBase):
        return layer.hidden_size
    named = getattr(layer, "out_features", None)
    if isinstance(named, int):
        return named
    weight = getattr(layer, "weight", None)
    return weight.numel() if is_norm(layer) and isinstance(weight, Tensor) else None
