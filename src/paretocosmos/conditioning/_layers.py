"""Looking into a network nobody here wrote: which layer its input enters, what its blocks are."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from paretocosmos.conditioning._base import heads_of, inside
from paretocosmos.errors import ConfigurationError
from paretocosmos.layers.wrapper import StandIn
from paretocosmos.runtime.torch_private import BatchOrInstanceNorm, Convolution

__all__ = [
    "Width",
    "all_quantised",
    "base_of",
    "blocks_of",
    "check_called",
    "enters",
    "has_weights",
    "is_recurrent",
    "matrices_of",
    "passes_gradients",
    "uncalled",
    "width_of",
]

# They compute with their layers' weights and, at times or always, do not call the layers.
OPAQUE = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
CLOSED = (StandIn, *OPAQUE)
BLOCKS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
# Layers that keep their input's channels, by the modules of torch's that hold them.
KEEPING = tuple(f"torch.nn.modules.{kind}" for kind in ("activation", "pooling", "dropout"))
# What those who write low-rank adapters call the layer that is adapted, in what is put around it.
ADAPTED = ("base_layer", "base", "linear", "conv", "layer", "original", "org_module")
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


def base_of(module: nn.Module) -> nn.Module:
    """The layer inside a low-rank adapter, or the layer itself.

    An adapter is known by children whose names begin with `lora`, beside the layer that it adapts.
    """
    children = dict(module.named_children())
    if any(name.lower().startswith("lora") for name in children):
        named = (children[name] for name in ADAPTED if name in children)
        return next(named, module)
    return module


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


def has_weights(network: nn.Module) -> bool:
    """Whether any layer of a network has weights."""
    return any(reads_weights(module) for _, module in leaves(network))


def all_quantised(network: nn.Module) -> bool:
    """Whether the last layer with weights passes no gradients, so that no ray can be learned."""
    last = [module for _, module in leaves(network) if reads_weights(module)][-1:]
    return any(not passes_gradients(module) for module in last)


def _closed(module: nn.Module) -> bool:
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
    own = module.parameters(recurse=_closed(module))
    return any(weight.ndim > 1 for weight in own) or _packed(module)


def _packed(module: nn.Module) -> bool:
    """Whether a layer keeps its weights in another form than parameters, as quantised ones do."""
    width = getattr(module, "out_features", getattr(module, "hidden_size", None))
    return isinstance(width, int) and next(module.parameters(), None) is None


def leaves(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The innermost modules that are called, by dotted names, in the order they were written."""
    for name, module in _walk(network):
        if _closed(module) or next(module.children(), None) is None:
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
    normalisation layers; where there are none, the hidden layers: convolutions, linear and
    recurrent ones, or what a convolution is activated and pooled in; where there are none,
    embeddings. None of them before a layer that passes no gradients back.
    """
    heads = heads_of(network)
    every = list(leaves(network))

    def shared(names: list[str]) -> list[str]:
        return [name for name in _reached(network, names) if not inside(name, heads)]

    repeated = shared(_repeated(network, ""))
    if repeated:
        last = next(reversed(list(network.named_children())), ("", network))[0]
        gives = isinstance(network, nn.Sequential) and repeated[-1] == last != repeated[0]
        return repeated[:-1] if gives else repeated
    norms = shared([name for name, module in every if is_norm(module)])
    if norms:
        return norms
    layers = [name for name, module in every if _is_hidden(module)]
    hidden = shared(layers)
    if [name for name in layers if not inside(name, heads)] == layers:
        hidden = [name for name in hidden if name != layers[-1] or is_recurrent(every[-1][1])]
    found = list(dict.fromkeys(_around(network, name) for name in hidden))
    tables = [name for name, module in every if isinstance(module, nn.Embedding | nn.EmbeddingBag)]
    return found or [n for n in shared(tables) if network.get_submodule(n).embedding_dim != 1]


def _reached(network: nn.Module, names: list[str]) -> list[str]:
    """Those modules that gradients come back to: none before a layer that passes none."""
    order = [name for name, _ in network.named_modules()]
    cut = [name for name, module in leaves(network) if not passes_gradients(module)]
    if not cut:
        return names
    behind = order.index(cut[-1])

    def last(name: str) -> int:
        return max(at for at, other in enumerate(order) if inside(other, (name,)) or name == "")

    return [name for name in names if last(name) >= behind]


def _is_hidden(module: nn.Module) -> bool:
    """Whether a layer multiplies what it is given by weights: linear, convolution, recurrent."""
    known = (nn.Linear, Convolution, nn.RNNCellBase)
    listed = isinstance(base_of(module), known) or is_recurrent(module)
    return listed or isinstance(getattr(base_of(module), "out_features", None), int)


def matrices_of(network: nn.Module) -> list[str]:
    """The linear layers and convolutions, heads too, that are called and multiply by one matrix.

    Not those of grouped channels, whose matrix is mostly zero, nor those with a `forward` of their
    own, which may do more.
    """
    found: dict[nn.Module, str] = {}
    for name, module in leaves(network):
        base = base_of(module)
        kind = next((kind for kind in MATRICES if isinstance(base, kind)), None)
        plain = kind is not None and type(base).forward is kind.forward
        if plain and getattr(base, "groups", 1) == 1:
            found.setdefault(module, name)  # used in several places it is still one
    return _reached(network, list(found.values()))


def width_of(module: nn.Module) -> Width | None:
    """The channels a module gives: those of the last linear layer or convolution written in it.

    Where there is none, those of the last normalisation layer.
    """
    parts = [base_of(part) for part in _inner(module)]
    images = any(isinstance(part, Convolution | BatchOrInstanceNorm) for part in parts)
    known = [(part, channels) for part in parts if (channels := _channels(part)) is not None]
    if not known:
        return None
    part, channels = next(
        (pair for pair in reversed(known) if _is_hidden(pair[0])),
        known[-1],
    )
    leads = isinstance(part, Convolution | BatchOrInstanceNorm | nn.GroupNorm)
    weights = [*part.parameters(), *module.parameters(), *module.buffers()]
    like = next((one for one in weights if one.is_floating_point()), torch.empty(0))
    return Width(channels, leads, images or leads, like)


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
    if is_recurrent(layer):
        rnn: Any = layer
        return (getattr(rnn, "proj_size", 0) or rnn.hidden_size) * (1 + rnn.bidirectional)
    if isinstance(layer, nn.RNNCellBase):
        return layer.hidden_size
    named = getattr(layer, "out_features", None)
    if isinstance(named, int):
        return named
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
        if not _closed(part) or isinstance(part, BLOCKS)
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
    hidden = isinstance(module, StandIn) or (_closed(module) and not isinstance(module, BLOCKS))
    inner = next(module.children(), None) is not None and not hidden
    return inner and width_of(module) is not None


def _walk(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Modules by dotted names, without the inner life of those that hide it."""
    yield prefix, module
    if not _closed(module):
        for name, part in module.named_children():
            yield from _walk(part, _join(prefix, name))


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
