"""What a recorded graph can do without."""

import operator
from typing import Any

import torch
from torch import fx

from paretocosmos.runtime.torch_private import gives_views

__all__ = ["simplified"]

aten = torch.ops.aten

# Where the tensor an operation works on is never read again, the result can take its place.
IN_PLACE: dict[Any, Any] = {
    aten.add.Tensor: aten.add_.Tensor,
    aten.relu.default: aten.relu_.default,
}


def simplified(graph: fx.GraphModule, *, in_place: bool) -> fx.GraphModule:
    """The same numbers from fewer operations and less memory.

    Aliases and transposes of transposes, which only autograd needed, are left out.

    Args:
        graph: changed, and returned.
        in_place: do an addition or a ReLU of something nobody else reads in its place: on a CPU a
            tensor not written is time saved.
    """
    for node in list(graph.graph.nodes):
        if node.target is aten.detach.default:
            node.replace_all_uses_with(node.args[0])
        elif node.target is aten.t.default and node.args[0].target is aten.t.default:
            node.replace_all_uses_with(node.args[0].args[0])
    graph.graph.eliminate_dead_code()
    for node in graph.graph.nodes if in_place else ():
        if node.target in IN_PLACE and not node.kwargs and _own(node.args[0], node):
            node.target = IN_PLACE[node.target]
    graph.recompile()
    return graph


def _own(tensor: Any, result: fx.Node) -> bool:
    """Whether the graph itself made a tensor like the result, for this one reader."""
    if not isinstance(tensor, fx.Node) or not _alike(tensor, result):
        return False
    while tensor.op == "call_function" and len(tensor.users) == 1:
        maker = tensor.args[0] if tensor.target is operator.getitem else tensor
        assert isinstance(maker, fx.Node)
        if not gives_views(maker.target):
            # an expanded tensor has more numbers than places to write them to
            return bool(tensor.meta["val"].numel() == result.meta["val"].numel())
        tensor = tensor.args[0]
    return False


def _alike(one: fx.Node, two: fx.Node) -> bool:
    kinds = [getattr(node.meta.get("val"), "dtype", None) for node in (one, two)]
    shapes = [getattr(node.meta.get("val"), "shape", None) for node in (one, two)]
    return None not in shapes and kinds[0] == kinds[1] and shapes[0] == shapes[1]
