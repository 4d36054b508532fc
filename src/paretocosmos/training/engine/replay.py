"""A recorded graph as one straight-line Python function.

torch.fx can run its graphs too, but looks every operation up by its dotted name and goes through a
Python frame to call it, which a small network feels in every step. Here the operations are bound
once.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, fx

from paretocosmos.runtime.torch_private import bare

__all__ = ["straight_line"]


def straight_line(graph: fx.Graph) -> Callable[..., list[Tensor]]:
    """A function of the graph's placeholders, in order, that gives its output.

    Intermediate results are released after their last use.
    """
    scope: dict[str, Any] = {}
    bound: dict[Any, str] = {}

    def name_of(value: Any) -> str:
        """A value's name in the function; what Python cannot spell is bound under one."""
        if isinstance(value, fx.Node):
            return value.name
        if isinstance(value, list | tuple):
            return f"[{', '.join(name_of(item) for item in value)}]"
        if value is None or isinstance(value, bool | int | str):
            return repr(value)
        # floats too: repr(inf) is no Python
        scope[f"constant_{len(scope)}"] = value
        return f"constant_{len(scope) - 1}"

    last_use = {used: node for node in graph.nodes for used in node.all_input_nodes}
    lines = []
    for node in graph.nodes:
        if node.op == "call_function":
            if node.target not in bound:
                bound[node.target] = f"operation_{len(bound)}"
                scope[bound[node.target]] = bare(node.target)
            given = [name_of(value) for value in node.args]
            given += [f"{key}={name_of(value)}" for key, value in node.kwargs.items()]
            lines.append(f"{node.name} = {bound[node.target]}({', '.join(given)})")
            done = [
                used.name
                for used in node.all_input_nodes
                if last_use[used] is node and used.op != "get_attr"
            ]
            lines += [f"del {', '.join(done)}"] if done else []
        elif node.op == "get_attr":  # a constant the trace lifted out
            scope[node.name] = _attribute(graph, node.target)
        elif node.op == "output":
            lines.append(f"return {name_of(node.args[0])}")
        elif node.op != "placeholder":
            raise NotImplementedError(f"a recorded graph has no `{node.op}`")
    placeholders = [node.name for node in graph.nodes if node.op == "placeholder"]
    body = "".join(f"    {line}\n" for line in lines)
    exec(f"def replay({', '.join(placeholders)}):\n{body}", scope)
    replay: Callable[..., list[Tensor]] = scope["replay"]
    return replay


def _attribute(graph: fx.Graph, path: str) -> Any:
    found: Any = graph.owning_module
    for part in path.split("."):
        found = getattr(found, part)
    return found
