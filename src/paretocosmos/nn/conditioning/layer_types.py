"""Classify layers of somebody else's network: weights, channels, gradients, concatenations.

The channels of a block are those of the layer it ends in, unless its `forward` concatenates (read
off its source code): then they are a sum that no layer knows.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from paretocosmos.nn.norms import StandIn
from paretocosmos.runtime.torch_private import BatchOrInstanceNorm, Convolution

# They compute with the weights of their layers, some always and some on a fast path, without
# calling the layers: no hook or replacement would take effect there.
OPAQUE = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
CLOSED = (StandIn, *OPAQUE)
# Attribute names of the adapted layer in low-rank adapters of different libraries.
ADAPTED = ("base_layer", "base", "linear", "conv", "layer", "original", "org_module")


class Width(NamedTuple):
    """The number of channels that a module gives, and their axis."""

    channels: int
    channels_first: bool
    """True if outputs of three dimensions have their channels on axis 1, as convolutions do."""
    images_channels_first: bool
    """True if outputs of more dimensions have them there."""
    like: Tensor
    """A weight of the layer that gives them, for its device and type."""


def get_base_layer(module: nn.Module) -> nn.Module:
    """Return the layer inside a low-rank adapter, or the layer itself.

    An adapter is recognised by children whose names begin with `lora`, beside the layer that it
    adapts, or by what `peft` calls that layer.
    """
    children = dict(module.named_children())
    if "base_layer" in children and type(module).__module__.startswith("peft."):
        return children["base_layer"]
    if any(name.lower().startswith("lora") for name in children):
        named = (children[name] for name in ADAPTED if name in children)
        return next(named, module)
    return module


def is_conv1d(layer: nn.Module) -> bool:
    """Return True if a layer is the `Conv1D` of `transformers`, known without importing that."""
    kind = type(layer)
    return kind.__name__ == "Conv1D" and kind.__module__.startswith("transformers.")


def is_recurrent(module: nn.Module) -> bool:
    """Return True if a layer gives outputs and its last state, as torch's LSTM, GRU and RNN do."""
    # by attributes: quantized and third-party cells do not derive from torch's base class
    sizes = (getattr(module, name, None) for name in ("hidden_size", "num_layers"))
    return isinstance(module, nn.RNNBase) or (
        all(isinstance(size, int) for size in sizes)
        and isinstance(getattr(module, "bidirectional", None), bool)
    )


def is_differentiable(module: nn.Module) -> bool:
    """Return True unless a layer is one of torch's quantized ones, which pass no gradients."""
    return not type(module).__module__.startswith("torch.ao.nn.quantized")


def is_closed(module: nn.Module) -> bool:
    """Return True if a module counts as one layer, whatever it is made of."""
    return (
        isinstance(module, CLOSED)
        or get_base_layer(module) is not module
        or is_parametrized(module)
        or is_recurrent(module)
        or not is_differentiable(module)
    )


def is_norm(module: nn.Module) -> bool:
    """Return True for torch's normalisation layers, and others with only a vector of weights."""
    if isinstance(module, StandIn):
        module = module.layer
    if isinstance(module, BatchOrInstanceNorm | nn.GroupNorm | nn.LayerNorm | nn.RMSNorm):
        return True
    # such as the RMSNorm that each language model of `transformers` defines for itself
    return type(module).__name__.endswith("Norm") and not has_weight_matrix(module)


def has_weight_matrix(module: nn.Module) -> bool:
    """Return True if a layer has a weight matrix: linear, convolution, embedding."""
    if any(weight.ndim > 1 for weight in module.parameters(recurse=is_closed(module))):
        return True
    # those of quantized layers are no parameters
    width = getattr(module, "out_features", getattr(module, "hidden_size", None))
    return isinstance(width, int) and next(module.parameters(), None) is None


def is_weighted_layer(module: nn.Module) -> bool:
    """Return True if a layer multiplies its inputs by weights: linear, convolution, recurrent."""
    classes = (nn.Linear, Convolution, nn.RNNCellBase)
    base = get_base_layer(module)
    listed = isinstance(base, classes) or is_recurrent(module) or is_conv1d(base)
    return listed or isinstance(getattr(base, "out_features", None), int)


def find_width(module: nn.Module) -> Width | None:
    """Return the channels of a module: those of the layer that it ends in.

    If that is not certain, those of the last layer in its source.
    """
    layers = [get_base_layer(submodule) for submodule in _iter_parts(module)]
    with_channels = [layer for layer in layers if count_channels(layer) is not None]
    weighted = [layer for layer in with_channels if is_weighted_layer(layer)] or with_channels
    ends = find_end_layer(module) or next(reversed(weighted), None)
    channels = None if ends is None else count_channels(ends)
    if ends is None or channels is None:
        return None
    # a block of images may end in a layer that also serves sequences, such as a LayerNorm
    images = any(isinstance(layer, Convolution | BatchOrInstanceNorm) for layer in layers)
    channels_first = isinstance(ends, Convolution | BatchOrInstanceNorm | nn.GroupNorm)
    weights = [*ends.parameters(), *module.parameters(), *module.buffers()]
    like = next((weight for weight in weights if weight.is_floating_point()), torch.empty(0))
    return Width(channels, channels_first, images or channels_first, like)


def find_end_layer(module: nn.Module) -> nn.Module | None:
    """Return the layer that determines a module's number of channels; `None` if not certain.

    It is the last linear layer or convolution in its source, except gates. Where there is none, or
    where a child concatenates, it is the normalisation layer after that.
    """
    base = get_base_layer(module)
    if count_channels(base) is not None:
        return base
    if _read_returns(*_get_forward(module)):  # a concatenation, a list or a dictionary
        return None
    norm = None
    for name, child in reversed(list(module.named_children())):
        if all(count_channels(get_base_layer(layer)) is None for layer in _iter_parts(child)):
            continue
        end = find_end_layer(child)
        if end is None:  # a concatenation: only a norm after it would know the sum
            return norm
        # a gate, which all channels are multiplied by, unless its outputs are the module's, perhaps
        # activated; in a sequence they are: the child is the last with weights
        if count_channels(end) == 1 and not isinstance(module, nn.Sequential):
            children = module.named_children()
            passing = frozenset(n for n, c in children if next(c.parameters(), None) is None)
            if not _read_returns(*_get_forward(module), name, passing):
                continue
        if is_weighted_layer(end):
            return end
        norm = norm or end
    return norm


def _iter_parts(module: nn.Module) -> Iterator[nn.Module]:
    """Yield a module and its parts, without those of adapters and of parametrised layers."""
    yield module
    if not is_parametrized(module) and get_base_layer(module) is module:
        for submodule in module.children():
            yield from _iter_parts(submodule)


# Layers with the attribute that is the number of channels that they give.
CHANNELS: tuple[tuple[Any, str], ...] = (
    (nn.Linear, "out_features"),
    (Convolution, "out_channels"),
    (BatchOrInstanceNorm, "num_features"),
    (nn.GroupNorm, "num_channels"),
    (nn.Embedding | nn.EmbeddingBag, "embedding_dim"),
    (nn.RNNCellBase, "hidden_size"),
)


def count_channels(layer: nn.Module) -> int | None:
    """Return the number of channels that a layer gives, if it is known."""
    for kind, attribute in CHANNELS:
        if isinstance(layer, kind):
            return int(getattr(layer, attribute))
    if isinstance(layer, nn.LayerNorm | nn.RMSNorm):
        return layer.normalized_shape[-1]
    if is_conv1d(layer):
        conv1d: Any = layer
        return int(conv1d.nf)
    if is_recurrent(layer):
        rnn: Any = layer
        width: int = getattr(rnn, "proj_size", 0) or rnn.hidden_size
        return 2 * width if rnn.bidirectional else width
    # quantized layers and those of other libraries that are called alike
    out_features = getattr(layer, "out_features", None)
    if isinstance(out_features, int):
        return out_features
    weight = getattr(layer, "weight", None)
    return weight.numel() if is_norm(layer) and isinstance(weight, Tensor) else None


CONCATENATIONS = {"cat", "concat", "concatenate", "hstack", "dstack", "column_stack"}
CONTAINERS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set)


@cache
def get_method_sources(kind: type) -> str:
    """Return the source of a class's own methods but the constructor; empty if not available."""
    if kind.__module__.startswith("torch.nn."):
        return ""
    texts = []
    for name, method in vars(kind).items():
        if name != "__init__":
            try:
                texts.append(inspect.getsource(method))
            except (OSError, TypeError):  # compiled, or typed into an interpreter; no method
                continue
    return "\n".join(texts)


def _get_forward(module: nn.Module) -> tuple[Any, str]:
    """Return a module's class and the name of the method that is its `forward`."""
    # `self.forward = self._slow_forward` in a constructor shows in the instance only
    forward: Any = vars(module).get("forward")  # another method, chosen by the constructor
    chosen = forward.__name__ if getattr(forward, "__self__", None) is module else "forward"
    return type(module), chosen


@cache
def _read_returns(
    kind: Any, method: str, child: str = "", passing: frozenset[str] = frozenset()
) -> bool:
    """Return True if a method of a class returns a concatenation, or what a child gives.

    Args:
        kind: the class.
        method: the method's name.
        child: the attribute of `self` that is looked for instead of concatenations.
        passing: attributes of `self` that keep channels as they are.
    """
    function: Any = getattr(kind, method, None)
    if function is None or kind.__module__.startswith("torch.nn."):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return False
    visitor = _ReturnVisitor(kind, method, child, passing)
    visitor.visit(tree)
    return visitor.returned


class _ReturnVisitor(ast.NodeVisitor):
    """Reads a method statement by statement, and tracks which names hold what is looked for."""

    def __init__(self, kind: type, method: str, child: str, passing: frozenset[str]) -> None:
        self._kind, self._method, self._child, self._passing = kind, method, child, passing
        self._names: set[str] = set()
        self._self = "self"
        self.returned = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name == self._method and node.args.args:
            self._self = node.args.args[0].arg
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._track(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._track(node.target, node.value)

    def visit_Return(self, node: ast.Return) -> None:
        self.returned |= node.value is not None and self._matches(node.value)

    def _track(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            (self._names.add if self._matches(value) else self._names.discard)(target.id)

    def _matches(self, value: ast.expr) -> bool:
        """Return True if an expression is what is looked for, and no later layer consumes it."""
        if isinstance(value, CONTAINERS):
            return not self._child
        if isinstance(value, ast.Name):
            return value.id in self._names
        if isinstance(value, ast.Call):
            return self._is_matching_call(value)
        if isinstance(value, ast.Attribute | ast.Subscript):
            return self._matches(value.value)
        if isinstance(value, ast.IfExp):
            return self._matches(value.body) or self._matches(value.orelse)
        if isinstance(value, ast.Tuple):  # FiLM scales the first and passes the others on
            return bool(value.elts) and self._matches(value.elts[0])
        if isinstance(value, ast.BinOp):  # a child's product with something else is a gate's
            return not self._child and (self._matches(value.left) or self._matches(value.right))
        return False

    def _is_matching_call(self, call: ast.Call) -> bool:
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        name = function.id if isinstance(function, ast.Name) else name
        if name in CONCATENATIONS:
            return not self._child
        on_self = isinstance(function, ast.Attribute) and (
            isinstance(function.value, ast.Name) and function.value.id == self._self
        )
        if on_self and name not in self._passing:
            # a method is read too, but not one that calls itself; a layer consumes
            is_method = callable(getattr(self._kind, name, None)) and name != self._method
            read = is_method and _read_returns(self._kind, name, self._child, self._passing)
            return read or name == self._child
        # any other function, as in `torch.relu(torch.cat(...))` and `x.flatten()`, passes it on
        inner = [function.value] if isinstance(function, ast.Attribute) else []
        return any(self._matches(node) for node in [*inner, *call.args])
