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


def _family(name: str, count: int, n: int) -> Tensor:
    plain = _normal(count, n, 20)
    if name == "rank 1, lengths 1e-8 to 1e8":
        return _normal(count, n, 1) * _decades(count, n, 8)
    if name.startswith("rank "):
        return _normal(count, n, int(name[5:]))
    if name.startswith("nearly collinear "):
        return plain[:, :1] + float(name[17:]) * plain
    if name == "zero gradient":
        plain[:, 1] = 0
    elif name == "all zero":
        plain.zero_()
    elif name == "equal":
        return plain[:, :1].expand(-1, n, -1)
    elif name == "opposite":
        plain[:, 1] = -plain[:, 0]
    elif name == "positive":
        return torch.rand(count, n, 3, dtype=torch.float64)
    elif name == "lengths 1e-4 to 1e4":
        return plain * _decades(count, n, 4)
    elif name == "lengths 1e-8 to 1e8":
        return plain * _decades(count, n, 8)
    elif name == "matrices 1e-16 to 1e16":
        return plain * _decades(count, 1, 8)
    elif name != "full rank":
        raise AssertionError(name)
    return plain


@pytest.fixture
def gradients() -> Gradients:
    """Seeded gradients ``[count, n, size]`` of a family."""

    def make(name: str, count: int, n: int, seed: int) -> Tensor:
        state = torch.get_rng_state()
        torch.manual_seed(seed)
        found = _family(name, count, n)
        torch.set_rng_state(state)
        return found

    return make
