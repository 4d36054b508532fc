"""Looking into a network nobody here wrote: which layer its input enters, what its blocks are."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._base import heads_of, inside
from paretocosmos.errors import ConfigurationError
from paretocosmos.layers.wrapper import StandIn
from paretocosmos.runtime.torch_private import BatchOrInstanceNorm, Convolution

__all__ = [
    "Width",
    "blocks_of",
    "check_called",
    "enters",
    "matrices_of",
    "uncalled",
    "width_of",
]

# They compute with their layers' weights and, at times or always, do not call the layers.
OPAQUE = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
CLOSED = (StandIn, *OPAQUE)
BLOCKS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
# Layers that keep their input's channels, by the modules of torch's that hold them.
KEEPING = tuple(f"torch.nn.modules.{kind}" for kind in ("activation", "pooling", "dropout"))
# Layers that multiply by one matrix, whose `forward` is known.
MATRICES = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class Width(NamedTuple):
    """How many channels a module gives, and on which axis."""

    channels: int
    leads: bool
    """Whether outputs of three dimensions have their channels on axis 1, as convolutions do."""
    images: bool
    """Whether outputs of more dimensions have."""
    like: Tensor
    """A weight of the layer it is known from, for its device and type."""


def is_norm(module: nn.Module) -> bool:
    """Whether a layer normalises: torch's own, or any that only has a vector of weights."""
    if isinstance(module, StandIn):
        module = module.layer
    if isinstance(module, BatchOrInstanceNorm | nn.GroupNorm | nn.LayerNorm | nn.RMSNorm):
        return True
    return type(module).__name__.endswith("Norm") and not reads_weights(module)


def reads_weights(module: nn.Module) -> bool:
    """Whether a layer multiplies by a matrix or more of its own: linear, convolution, embedding."""
    return any(weight.ndim > 1 for weight in module.parameters(recurse=isinstance(module, CLOSED)))


def leaves(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The innermost modules that are called, by dotted names, in the order they were written."""
    for name, module in _walk(network):
        if isinstance(module, CLOSED) or next(module.children(), None) is None:
            yield name, module


def enters(network: nn.Module) -> tuple[str, nn.Module] | None:
    """The layer the input enters: what the network says it is, else the first with weights."""
    named = getattr(network, "first_layer", None)
    if isinstance(named, str) and named in dict(network.named_modules()):
        return named, network.get_submodule(named)
    with_weights = (leaf for leaf in leaves(network) if reads_weights(leaf[1]))
    return next(with_weights, None)


def uncalled(network: nn.Module, name: str) -> str | None:
    """The module around a layer that may compute without calling it, if there is one."""
    parents = name.split(".")
    for depth in range(len(parents)):
        around = ".".join(parents[:depth])
        if name and isinstance(network.get_submodule(around), OPAQUE):
            return around
    return None


def check_called(network: nn.Module, name: str) -> None:
    """Refuse a layer that may never be called."""
    around = uncalled(network, name)
    if around is not None:
        raise ConfigurationError(
            f"a layer that hears a ray must be called, and `{name}` is not always: it is inside a "
            f"{type(network.get_submodule(around)).__name__}, which computes with its weights; "
            f"name a layer outside it, or that as a whole for `film`"
        )


def blocks_of(network: nn.Module) -> list[str]:
    """After what a scale and a shift belong, by dotted names.

    Repeated blocks (residual stages, transformer layers), the outermost; where there are none,
    normalisation layers; where there are none, the hidden convolutions and linear layers, or what
    a convolution is activated and pooled in.
    """
    heads = heads_of(network)

    def shared(names: list[str]) -> list[str]:
        return [name for name in names if not inside(name, heads)]

    repeated = shared(_repeated(network, ""))
    if repeated:
        last = next(reversed(list(network.named_children())), ("", network))[0]
        gives = isinstance(network, nn.Sequential) and repeated[-1] == last != repeated[0]
        return repeated[:-1] if gives else repeated
    norms = shared([name for name, module in leaves(network) if is_norm(module)])
    if norms:
        return norms
    kinds = (nn.Linear, Convolution)
    layers = [name for name, module in leaves(network) if isinstance(module, kinds)]
    hidden = shared(layers)
    if len(hidden) == len(layers):
        hidden = hidden[:-1]  # the last one gives the outputs
    return list(dict.fromkeys(_around(network, name) for name in hidden))


def matrices_of(network: nn.Module) -> list[str]:
    """The linear layers and convolutions, heads too, that are called and multiply by one matrix.

    Not those of grouped channels, whose matrix is mostly zero, nor those with a `forward` of their
    own, which may do more.
    """
    found: dict[nn.Module, str] = {}
    for name, module in leaves(network):
        kind = next((kind for kind in MATRICES if isinstance(module, kind)), None)
        plain = kind is not None and type(module).forward is kind.forward
        if plain and getattr(module, "groups", 1) == 1:
            found.setdefault(module, name)  # used in several places it is still one
    return list(found.values())


def width_of(module: nn.Module) -> Width | None:
    """The channels a module gives: those of the last linear layer or convolution written in it.

    Where there is none, those of the last normalisation layer.
    """
    parts = list(module.modules())
    images = any(isinstance(part, Convolution | BatchOrInstanceNorm) for part in parts)
    known = [(part, channels) for part in parts if (channels := _channels(part)) is not None]
    if not known:
        return None
    part, channels = next(
        (pair for pair in reversed(known) if isinstance(pair[0], nn.Linear | Convolution)),
        known[-1],
    )
    leads = isinstance(part, Convolution | BatchOrInstanceNorm | nn.GroupNorm)
    like = next(part.parameters(recurse=False), torch.empty(0))
    return Width(channels, leads, images or leads, like)


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
    if isinstance(layer, nn.Embedding):
        return layer.embedding_dim
    weight = getattr(layer, "weight", None)
    return weight.numel() if is_norm(layer) and isinstance(weight, Tensor) else None


def _repeated(module: nn.Module, prefix: str) -> list[str]:
    """The outermost blocks: those of a list of modules, or several of one class in a sequence."""
    if isinstance(module, BLOCKS):
        return [prefix]
    parts = [(_join(prefix, name), part) for name, part in module.named_children()]
    blocks = [(name, part) for name, part in parts if _composite(part)]
    if isinstance(module, nn.ModuleList) and blocks:
        return [name for name, _ in blocks]
    if isinstance(module, nn.Sequential) and blocks:
        kind, count = Counter(_kind(part) for _, part in blocks).most_common(1)[0]
        if count > 1:
            return [name for name, part in blocks if _kind(part) == kind]
    return [
        found
        for name, part in parts
        if not isinstance(part, CLOSED) or isinstance(part, BLOCKS)
        for found in _repeated(part, name)
    ]


def _around(network: nn.Module, name: str) -> str:
    """The outermost module that holds one convolution, activated or pooled; else the layer."""
    parents = name.split(".")
    for depth in range(1, len(parents)):
        around = ".".join(parents[:depth])
        if _activates(network.get_submodule(around)):
            return around
    return name


def _activates(module: nn.Module) -> bool:
    """Whether a module is one convolution and, after it, what keeps its channels.

    A plain sequence shows all it does; a class of its own may do the rest in its `forward`.
    """
    inner = [leaf for _, leaf in leaves(module)]
    convolutions = [at for at, leaf in enumerate(inner) if isinstance(leaf, Convolution)]
    if len(convolutions) != 1 or isinstance(module, nn.ModuleList | nn.ModuleDict):
        return False
    rest = [leaf for leaf in inner if not isinstance(leaf, Convolution)]
    keeps = all(type(leaf).__module__ in KEEPING and not reads_weights(leaf) for leaf in rest)
    return keeps and (type(module) is not nn.Sequential or convolutions[0] < len(inner) - 1)


def _kind(block: nn.Module) -> object:
    """What blocks of one kind share: their class, or, being plain sequences, their layers'."""
    if type(block) is not nn.Sequential:
        return type(block)
    return frozenset(type(leaf) for _, leaf in leaves(block) if reads_weights(leaf))


def _composite(module: nn.Module) -> bool:
    """Whether a module is made of layers and gives a number of channels that is known."""
    inner = next(module.children(), None) is not None and not isinstance(module, StandIn)
    return inner and width_of(module) is not None


def _walk(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Modules by dotted names, without the inner life of those that hide it."""
    yield prefix, module
    if not isinstance(module, CLOSED):
        for name, part in module.named_children():
            yield from _walk(part, _join(prefix, name))


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
