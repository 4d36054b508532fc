"""Looking into a network nobody here wrote: which layer its input enters, what its blocks are."""

from collections import Counter
from collections.abc import Iterator

from torch import nn

from paretocosmos.conditioning._base import heads_of, inside
from paretocosmos.conditioning._kinds import (
    OPAQUE,
    base_of,
    end_of,
    is_closed,
    is_hidden,
    is_norm,
    is_recurrent,
    passes_gradients,
    reads_weights,
)
from paretocosmos.errors import ConfigurationError
from paretocosmos.layers.norms import StandIn
from paretocosmos.runtime.torch_private import Convolution

__all__ = [
    "all_quantised",
    "blocks_of",
    "check_called",
    "enters",
    "has_weights",
    "matrices_of",
    "uncalled",
]

BLOCKS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
# Layers that keep their input's channels, by the modules of torch's that hold them.
KEEPING = tuple(f"torch.nn.modules.{kind}" for kind in ("activation", "pooling", "dropout"))
# Layers that multiply by one matrix, whose `forward` is known.
MATRICES = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def has_weights(network: nn.Module) -> bool:
    """Whether any layer of a network has weights."""
    return any(reads_weights(module) for _, module in leaves(network))


def all_quantised(network: nn.Module) -> bool:
    """Whether the last layer with weights passes no gradients, so that no ray can be learned."""
    last = [module for _, module in leaves(network) if reads_weights(module)][-1:]
    return any(not passes_gradients(module) for module in last)


def leaves(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The innermost modules that are called, by dotted names, in the order they were written."""
    for name, module in _walk(network):
        if is_closed(module) or next(module.children(), None) is None:
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
    """Refuse a layer that may never be called, and one that no gradients come back to."""
    around = uncalled(network, name)
    if around is not None:
        raise ConfigurationError(
            f"a conditioned layer must be called, but `{name}` is not always called: it is inside "
            f"a {type(network.get_submodule(around)).__name__}, which uses its weights directly; "
            "name a layer outside it, or the whole module for `film`"
        )
    if name not in _reached(network, [name]):
        raise ConfigurationError(
            f"no gradient reaches `{name}`, because a layer after it is quantised to whole "
            "numbers; name a layer after the last quantised one, or quantise the network after "
            "training"
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
    layers = [name for name, module in every if is_hidden(module)]
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
        if not is_closed(part) or isinstance(part, BLOCKS)
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
    """Whether a module is made of layers, is called, and gives channels that are known."""
    hidden = isinstance(module, StandIn) or (is_closed(module) and not isinstance(module, BLOCKS))
    if hidden or isinstance(module, nn.ModuleList | nn.ModuleDict):
        return False
    return next(module.children(), None) is not None and end_of(module) is not None


def _walk(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Modules by dotted names, without the inner life of those that hide it."""
    yield prefix, module
    if not is_closed(module):
        for name, part in module.named_children():
            yield from _walk(part, _join(prefix, name))


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
