"""What tests train on or plan with: few images, a default plan, a network, a small disk."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from paretocosmos.config.plan import Plan
from paretocosmos.config.resolve import make_plan
from paretocosmos.io import progress
from paretocosmos.problems import SPLITS, Problem, load_problem
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.types import Batch, map_tensors

__all__ = ["Joined", "few_digits", "files_at_most", "plan_of", "seen", "watch"]


@cache
def _digits() -> ImageProblem:
    problem = load_problem("multi_digits", settings={"copies": 1})
    assert isinstance(problem, ImageProblem)
    return problem


def few_digits(
    *, train: int | None = None, val: int | None = None, test: int | None = None
) -> ImageProblem:
    """Images of two digits, kept as bytes: of each split the first so many, or all."""
    problem = _digits()
    splits = {}
    for name, count in zip(SPLITS, (train, val, test), strict=True):
        whole = problem.split(name)
        parts = (
            map_tensors(lambda t, n=count: t[:n], part) for part in (whole.inputs, whole.targets)
        )
        splits[name] = Batch(*parts)
    return replace(problem, splits=splits)


def plan_of(problem: str | Problem = "toy_convex", **changes: Any) -> Plan:
    """The plan of a training on the CPU with nothing set but what is named."""
    given: dict[str, Any] = {"method": "cosmos", "settings": {}, "seed": 1, "device": "cpu"}
    given |= dict.fromkeys(("model", "conditioning", "backbone", "protocol"))
    given |= {"preset": "paper", "deterministic": False, "precision": "tf32"}
    return make_plan(problem, **given | changes)


class Joined(nn.Module):
    """A whole network of one's own for `toy_convex`: what it decides in Python cannot be known."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return self.net(torch.cat([inputs, ray.expand(len(inputs), -1)], dim=1))


@contextlib.contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """A disk on which no file grows beyond `size` bytes."""
    import resource  # Windows has none

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what moves be drawn as where somebody looks at both streams."""
    people = Console(stderr=True, force_terminal=True, force_interactive=True)
    monkeypatch.setattr(progress, "get_console", lambda: people)
    monkeypatch.setattr(progress, "_is_stdout_terminal", lambda: True)


def watch(
    patch: pytest.MonkeyPatch, owner: object, name: str, before: Callable[..., object]
) -> None:
    """Call `before` with the arguments of each call of `owner.name`, and then what it was."""
    inside = getattr(owner, name)

    def watched(*given: Any, **named: Any) -> Any:
        before(*given, **named)
        return inside(*given, **named)

    patch.setattr(owner, name, watched)
