"""Search somebody else's network: the layer that the input enters, its blocks, its matrices."""

from collections import Counter
from collections.abc import Iterator

from torch import nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.base import find_heads, is_inside
from paretocosmos.nn.conditioning.layer_types import (
    OPAQUE,
    count_channels,
    find_end_layer,
    get_base_layer,
    has_weight_matrix,
    is_closed,
    is_differentiable,
    is_norm,
    is_recurrent,
    is_weighted_layer,
)
from paretocosmos.nn.norms import StandIn
from paretocosmos.runtime.torch_private import Convolution

BLOCKS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
# The modules of torch whose layers keep their input's channels.
CHANNEL_PRESERVING = tuple(
    f"torch.nn.modules.{kind}" for kind in ("activation", "pooling", "dropout")
)
# Layers that multiply by one matrix, whose `forward` is known.
MATRICES = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def iter_leaves(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield the innermost modules that are called, by dotted names, in the order of the source."""
    children = [] if is_closed(module) else list(module.named_children())
    if not children:
        yield prefix, module
    for name, child in children:
        yield from iter_leaves(child, f"{prefix}.{name}".removeprefix("."))


def find_input_layer(network: nn.Module) -> tuple[str, nn.Module] | None:
    """Return the layer that the input enters: `first_layer`, else the first with weights."""
    named = getattr(network, "first_layer", None)
    if isinstance(named, str) and named in dict(network.named_modules()):
        return named, network.get_submodule(named)
    with_weights = (leaf for leaf in iter_leaves(network) if has_weight_matrix(leaf[1]))
    return next(with_weights, None)


def find_opaque_parent(network: nn.Module, name: str) -> str | None:
    """Return the outermost module around a layer that may use its weights without calling it."""
    parents = name.split(".")
    for depth in range(len(parents)):
        parent = ".".join(parents[:depth])
        if name and isinstance(network.get_submodule(parent), OPAQUE):
            return parent
    return None


def check_is_called(network: nn.Module, name: str) -> None:
    """Raise if a layer may never be called, or if no gradient reaches it."""
    parent = find_opaque_parent(network, name)
    if parent is not None:
        raise ConfigurationError(
            f"a conditioned layer must be called, but `{name}` is not always called: it is inside "
            f"a {type(network.get_submodule(parent)).__name__}, which uses its weights directly; "
            "name a layer outside it, or the whole module for `film`"
        )
    if name not in _drop_before_quantized(network, [name]):
        raise ConfigurationError(
            f"no gradient reaches `{name}`, because a layer after it is quantised to whole "
            "numbers; name a layer after the last quantised one, or quantise the network after "
            "training"
        )


def find_blocks(network: nn.Module) -> list[str]:
    """Return the modules after which to scale and shift, by dotted names.

    Repeated blocks (residual stages, transformer layers), the outermost; where there are none,
    normalisation layers; where there are none, the hidden layers: convolutions, linear and
    recurrent ones, or what a convolution is activated and pooled in; where there are none,
    embeddings; where there are none, the one layer. None of them before a layer that passes no
    gradients back.
    """
    heads = find_heads(network)
    leaves = list(iter_leaves(network))

    def drop_heads(names: list[str]) -> list[str]:
        return [
            name for name in _drop_before_quantized(network, names) if not is_inside(name, heads)
        ]

    repeated = drop_heads(_find_repeated_blocks(network, ""))
    if repeated:
        last_child = next(reversed(list(network.named_children())), ("", network))[0]
        # in a plain sequence a last block like the others gives the outputs
        is_head = isinstance(network, nn.Sequential) and repeated[-1] == last_child != repeated[0]
        return repeated[:-1] if is_head else repeated
    norms = drop_heads([name for name, module in leaves if is_norm(module)])
    if norms:
        return norms
    layers = [name for name, module in leaves if is_weighted_layer(module)]
    hidden = drop_heads(layers)
    # the last layer gives the outputs, unless heads are declared or it is recurrent
    if [name for name in layers if not is_inside(name, heads)] == layers:
        hidden = [name for name in hidden if name != layers[-1] or is_recurrent(leaves[-1][1])]
    blocks = list(dict.fromkeys(_find_activation_block(network, name) for name in hidden))
    tables = [name for name, module in leaves if isinstance(module, nn.Embedding | nn.EmbeddingBag)]
    # embeddings of width 1 are weights of a linear model, with no features to scale
    wide = [n for n in drop_heads(tables) if network.get_submodule(n).embedding_dim != 1]
    last = [n for n in layers[-1:] if is_differentiable(network.get_submodule(n))]
    return blocks or wide or last


def _drop_before_quantized(network: nn.Module, names: list[str]) -> list[str]:
    """Drop the modules that no gradient reaches, those before a quantized layer."""
    order = [name for name, _ in network.named_modules()]
    quantized = [name for name, module in iter_leaves(network) if not is_differentiable(module)]
    if not quantized:
        return names
    boundary = order.index(quantized[-1])

    def last_index(name: str) -> int:
        # of the module and of all inside it: a block that ends after the boundary does count
        return max(
            index for index, other in enumerate(order) if is_inside(other, (name,)) or name == ""
        )

    return [name for name in names if last_index(name) >= boundary]


def find_matrix_layers(network: nn.Module) -> list[str]:
    """Return linear layers and convolutions, heads too, that are called and multiply by one matrix.

    Not those of grouped channels, whose matrix is mostly zero, nor those with a `forward` of their
    own, which may do more.
    """
    names: dict[nn.Module, str] = {}
    for name, module in iter_leaves(network):
        base = get_base_layer(module)
        kind = next((kind for kind in MATRICES if isinstance(base, kind)), None)
        plain = kind is not None and type(base).forward is kind.forward
        if plain and getattr(base, "groups", 1) == 1:
            names.setdefault(module, name)  # used in several places it is still one
    return _drop_before_quantized(network, list(names.values()))


def _find_repeated_blocks(module: nn.Module, prefix: str) -> list[str]:
    """Return the outermost blocks: of a list of modules, or several of one class in a sequence."""
    if isinstance(module, BLOCKS):
        return [prefix]
    children = [
        (f"{prefix}.{name}".removeprefix("."), child) for name, child in module.named_children()
    ]
    blocks = [(name, child) for name, child in children if _is_composite_block(child)]
    if isinstance(module, nn.ModuleList) and blocks:
        return [name for name, _ in blocks]
    if isinstance(module, nn.Sequential) and blocks:
        # stages of a residual network differ in class or layers from its stem and its head
        kind, count = Counter(_get_kind(child) for _, child in blocks).most_common(1)[0]
        if count > 1:
            return [name for name, child in blocks if _get_kind(child) == kind]
    return [
        block
        for name, child in children
        if not is_closed(child) or isinstance(child, BLOCKS)
        for block in _find_repeated_blocks(child, name)
    ]


def _find_activation_block(network: nn.Module, name: str) -> str:
    """Return the outermost module of one convolution, activated or pooled; else the layer.

    A plain sequence shows all it does; a class of its own may do the rest in its `forward`.
    """
    parents = name.split(".")
    for depth in range(1, len(parents)):
        parent = ".".join(parents[:depth])
        module = network.get_submodule(parent)
        inner = [leaf for _, leaf in iter_leaves(module)]
        convolutions = [index for index, leaf in enumerate(inner) if isinstance(leaf, Convolution)]
        if len(convolutions) != 1 or isinstance(module, nn.ModuleList | nn.ModuleDict):
            continue
        keeps = all(
            type(leaf).__module__ in CHANNEL_PRESERVING and not has_weight_matrix(leaf)
            for leaf in inner
            if not isinstance(leaf, Convolution)
        )
        if keeps and (type(module) is not nn.Sequential or convolutions[0] < len(inner) - 1):
            return parent
    return name


def _get_kind(block: nn.Module) -> object:
    """Return the class of a block, or the classes of the layers in a plain sequence."""
    if type(block) is not nn.Sequential:
        return type(block)
    return frozenset(type(leaf) for _, leaf in iter_leaves(block) if has_weight_matrix(leaf))


def _is_composite_block(module: nn.Module) -> bool:
    """Return True if a module is made of layers, called, and gives a known number of channels."""
    opaque = isinstance(module, StandIn) or (is_closed(module) and not isinstance(module, BLOCKS))
    if opaque or isinstance(module, nn.ModuleList | nn.ModuleDict):
        return False
    end = None if next(module.children(), None) is None else find_end_layer(module)
    # one channel is an output, as of an expert or a tower: what is to be scaled lies inside
    return end is not None and count_channels(end) != 1
