"""Gradients to be hard on the solvers with."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

Gradients = Callable[[str, int, int, int], Tensor]


def _normal(count: int, n: int, size: int) -> Tensor:
    return torch.randn(count, n, size, dtype=torch.float64)


def _decades(count: int, n: int, most: float) -> Tensor:
    return 10 ** ((2 * torch.rand(count, n, 1, dtype=torch.float64) - 1) * most)


def _sample_family(name: str, count: int, n: int) -> Tensor:
    plain, value = _normal(count, n, 20), name.rpartition(" ")[2]
    if name.startswith("rank 1, lengths"):
        return _normal(count, n, 1) * _decades(count, n, 8)
    if name.startswith("rank "):
        return _normal(count, n, int(value))
    if name.startswith("nearly collinear "):
        return plain[:, :1] + float(value) * plain
    if name == "zero gradient":
        plain[:, 1] = 0
    elif name == "opposite":
        plain[:, 1] = -plain[:, 0]
    families: dict[str, Callable[[], Tensor]] = {
        "full rank": lambda: plain,
        "zero gradient": lambda: plain,
        "opposite": lambda: plain,
        "all zero": plain.zero_,
        "equal": lambda: plain[:, :1].expand(-1, n, -1),
        "positive": lambda: torch.rand(count, n, 3, dtype=torch.float64),
        "lengths 1e-4 to 1e4": lambda: plain * _decades(count, n, 4),
        "lengths 1e-8 to 1e8": lambda: plain * _decades(count, n, 8),
        "matrices 1e-16 to 1e16": lambda: plain * _decades(count, 1, 8),
    }
    return families[name]()


def is_on_simplex(weights: Tensor) -> bool:
    return bool((weights >= 0).all()) and bool(((weights.sum(dim=-1) - 1).abs() < 1e-14).all())


@pytest.fixture
def gradients() -> Gradients:
    """Seeded gradients ``[count, n, size]`` of a family."""

    def make(name: str, count: int, n: int, seed: int) -> Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return _sample_family(name, count, n)

    return make
