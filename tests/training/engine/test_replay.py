"""The straight-line function against torch.fx running the same graph."""

import math
import weakref

import pytest
import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from paretocosmos.training.engine import compile_straight_line


def _recorded(*tensors: Tensor) -> list[Tensor]:
    one, two = tensors
    shift = torch.tensor([0.25, -0.5])  # a constant of the trace
    joined = torch.cat([one + shift, two.clamp(-math.inf, 0.3)], dim=0)
    masked = joined.masked_fill(joined > 1, math.inf).nan_to_num(posinf=7.0)
    return [masked.to(torch.float64), torch.stack([one.sum(), two.sum()]), one]


def test_it_computes_what_the_graph_says() -> None:
    one, two = torch.randn(3, 2), torch.randn(4, 2)
    graph = make_fx(_recorded)(one, two)
    replay = compile_straight_line(graph.graph)
    for _ in range(2):  # nothing is used up by a call
        fresh = torch.randn(3, 2), torch.randn(4, 2)
        for found, expected in zip(replay(*fresh), _recorded(*fresh), strict=True):
            assert torch.equal(found, expected)
            assert found.dtype == expected.dtype


def test_intermediate_results_are_released() -> None:
    seen: list[weakref.ref[Tensor]] = []
    alive: list[int] = []

    def watched(value: Tensor) -> Tensor:
        alive.append(sum(ref() is not None for ref in seen))
        made = value + 1
        seen.append(weakref.ref(made))
        return made

    graph = fx.Graph()
    value = graph.placeholder("value")
    for _ in range(4):
        value = graph.call_function(watched, (value,))
    graph.output([value])
    assert compile_straight_line(graph)(torch.zeros(1))[0].item() == 4
    assert alive == [0, 1, 1, 1]  # its argument, and none before


def test_what_a_recorded_graph_cannot_hold_is_refused() -> None:
    graph = fx.Graph()
    value = graph.placeholder("value")
    graph.output([graph.call_method("neg", (value,))])
    with pytest.raises(NotImplementedError, match="call_method"):
        compile_straight_line(graph)
