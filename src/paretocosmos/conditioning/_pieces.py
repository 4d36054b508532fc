"""Whether what a module gives is put together of pieces, read off its source code.

The channels of a block are those of the layer it ends in, unless its `forward` concatenates:
then they are a sum that no layer knows. Nor has a list of tensors a number of channels.
"""

import ast
import inspect
import textwrap
from functools import cache
from typing import Any

from torch import nn

__all__ = ["gives_pieces", "source_of"]

JOINS = {"cat", "concat", "concatenate", "hstack", "dstack", "column_stack"}
SEVERAL = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set)


@cache
def source_of(kind: type) -> str:
    """What a class does in its own methods but the constructor; nothing where it is not known."""
    if kind.__module__.startswith("torch.nn."):
        return ""
    texts = []
    for name, method in vars(kind).items():
        if name != "__init__":
            try:
                texts.append(inspect.getsource(method))
            except (OSError, TypeError):
                continue
    return "\n".join(texts)


def gives_pieces(module: nn.Module) -> bool:
    """Whether a module gives a concatenation, a list or a dictionary."""
    own: Any = vars(module).get("forward")  # a method it chose when it was made
    chosen = own.__name__ if getattr(own, "__self__", None) is module else "forward"
    kind: Any = type(module)
    return _pieces_of(kind, chosen)


@cache
def _pieces_of(kind: type, method: str) -> bool:
    """Whether a method of a class does."""
    found: Any = getattr(kind, method, None)
    if found is None or kind.__module__.startswith("torch.nn."):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(found)))
    except (OSError, TypeError, SyntaxError):
        return False
    reader = _Reader(kind, method)
    reader.visit(tree)
    return reader.returned


class _Reader(ast.NodeVisitor):
    """Goes through a method in the order it is written, and keeps which names hold pieces."""

    def __init__(self, kind: type, method: str) -> None:
        self._kind, self._method = kind, method
        self._joined: set[str] = set()
        self.returned = False

    def visit_Assign(self, node: ast.Assign) -> None:
        joined = self._pieces(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                (self._joined.add if joined else self._joined.discard)(target.id)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name) and node.value is not None:
            joined = self._pieces(node.value)
            (self._joined.add if joined else self._joined.discard)(node.target.id)

    def visit_Return(self, node: ast.Return) -> None:
        self.returned |= node.value is not None and self._pieces(node.value)

    def _pieces(self, value: ast.expr) -> bool:
        """Whether an expression is put together of pieces; a layer that is called mends them."""
        if isinstance(value, SEVERAL):
            return True
        if isinstance(value, ast.Name):
            return value.id in self._joined
        if isinstance(value, ast.Call):
            return self._called(value)
        if isinstance(value, ast.Attribute | ast.Subscript):
            return self._pieces(value.value)
        if isinstance(value, ast.IfExp):
            return self._pieces(value.body) or self._pieces(value.orelse)
        if isinstance(value, ast.Tuple):  # the first is what is scaled
            return bool(value.elts) and self._pieces(value.elts[0])
        if isinstance(value, ast.BinOp):
            return self._pieces(value.left) or self._pieces(value.right)
        return False

    def _called(self, call: ast.Call) -> bool:
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        name = function.id if isinstance(function, ast.Name) else name
        if name in JOINS:
            return True
        of_self = isinstance(function, ast.Attribute) and (
            isinstance(function.value, ast.Name) and function.value.id == "self"
        )
        if of_self:  # a method of its own, or a layer
            own = callable(getattr(self._kind, name, None)) and name != self._method
            return own and _pieces_of(self._kind, name)
        inner = [function.value] if isinstance(function, ast.Attribute) else []
        return any(self._pieces(one) for one in [*inner, *call.args])
