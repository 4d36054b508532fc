"""Outputs of a network that are computed once."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos import load_problem
from paretocosmos.evaluation import OutputCache, collect_outputs, evaluate_shares, load_samples_for
from paretocosmos.problems import Problem


class Counting(nn.Module):
    """Says how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        self.asked += 1
        return ray[1].expand(len(inputs), 2)


@pytest.fixture
def problem() -> Problem:
    return load_problem("toy_convex")


def test_a_front_is_the_same_cached_or_not(problem: Problem) -> None:
    model, cache, rays = Counting(), OutputCache(), torch.tensor([[0.25, 0.75], [0.5, 0.5]])

    def front(**options: Any) -> Any:
        val = load_samples_for(model, problem, "val")
        return evaluate_shares(model, problem, val, rays, split="val", **options)

    expected = front()
    asked = model.asked
    assert front(cache=cache) == expected
    assert model.asked == 2 * asked  # which no earlier call filled
    assert front(cache=cache) == expected
    assert 2 * asked <= model.asked < 3 * asked  # but for the trial that measures its outputs
    ((_, samples),) = load_samples_for(model, problem, "val")
    before = model.asked
    collect_outputs(model, problem, samples, rays.clone(), purpose="a test", cache=cache)
    assert model.asked == before
    for other in (rays.flip(1), rays[:1]):
        collect_outputs(model, problem, samples, other, purpose="a test", cache=cache)
    ((_, test),) = load_samples_for(model, problem, "test")
    collect_outputs(model, problem, test, rays, purpose="a test", cache=cache)
    assert len(cache) == 4


def test_the_least_recently_used_go() -> None:
    cache, computed = OutputCache(10), list[str]()

    def ask(key: str, size: int = 5) -> Tensor:
        def compute() -> Tensor:
            computed.append(key)
            return torch.zeros(size)

        return cache.get(key, compute)

    for key in ("a", "b", "a", "c"):  # "b" has to go
        ask(key)
    assert computed == ["a", "b", "c"]
    ask("a")
    ask("b")
    assert computed == ["a", "b", "c", "b"]
    ask("large", 11)  # more than there is room for
    assert len(cache) == 2
    assert cache.get("packed", lambda: {"one": [torch.zeros(2), torch.zeros(3)]})
    assert len(cache) == 2


def test_without_room_nothing_is_held() -> None:
    cache = OutputCache(0)
    assert [cache.get("key", lambda: torch.zeros(1)) is None for _ in range(2)] == [False] * 2
    assert len(cache) == 0
