"""Recorded graphs after simplification: the same numbers, and nobody's tensor but their own."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from paretocosmos.training.engine import IN_PLACE, compile_straight_line, simplify_graph

aten = torch.ops.aten


def _in_place(function: Callable[[Tensor], Tensor], given: Tensor) -> int:
    """How many operations became in-place ones; the numbers and the input stay what they were."""
    graph = simplify_graph(make_fx(lambda x: [function(x)])(given), in_place=True)
    replay, before, expected = compile_straight_line(graph.graph), given.clone(), function(given)
    for _ in range(2):
        (found,) = replay(given)
        assert torch.equal(found, expected)
        assert torch.equal(given, before)
    return sum(node.target in IN_PLACE.values() for node in graph.graph.nodes)


def _read_again(x: Tensor) -> Tensor:
    doubled = x * 2
    return F.relu(doubled) + doubled  # the ReLU must leave it alone, the sum may take the ReLU


def _view_read_again(x: Tensor) -> Tensor:
    doubled = x * 2
    return F.relu(doubled.flatten()).reshape(x.shape) - doubled


def _promoted(x: Tensor) -> Tensor:
    return (x > 0).to(torch.int64) + x  # float out of an int


def _pooled(x: Tensor) -> Tensor:
    return F.relu(F.max_pool2d((x * 3)[None], 2, return_indices=True)[0])


CASES: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "own": (lambda x: F.relu(x * 2), 1),
    "a view of its own": (lambda x: (x * 2).movedim(0, -1) + 1.5 * x.movedim(0, -1), 1),
    "the input": (F.relu, 0),
    "a view of the input": (lambda x: F.relu(x.flatten()), 0),
    "read again": (_read_again, 1),
    "a view of what is read again": (_view_read_again, 0),
    "expanded": (lambda x: (x[:, :1] * 2).expand_as(x) + x, 0),
    "broadcast": (lambda x: (x[:, :1] * 2) + x, 0),
    "another type": (_promoted, 0),
    "one of several results": (_pooled, 1),
    "scaled": (lambda x: torch.add(x * 2, x, alpha=3), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_in_place_only_where_nobody_can_tell(name: str) -> None:
    function, expected = CASES[name]
    assert _in_place(function, torch.randn(4, 6, 8)) == expected


def test_what_only_autograd_needed_is_left_out() -> None:
    recorded = make_fx(lambda x: [F.relu(x.detach().t().t() * 2)])(torch.randn(3, 2))
    graph = simplify_graph(recorded, in_place=False)
    targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert targets == [aten.mul.Tensor, aten.relu.default]
