"""Single task and uniform: nothing to solve, so nothing may differ."""

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos.methods import SingleTask, Uniform
from paretocosmos.pareto import Front


def no_gram() -> Tensor:
    raise AssertionError("a weighted sum never pays for the Gram matrix")


@pytest.mark.parametrize("objectives", [2, 3, 5])
def test_every_objective_has_a_network_that_knows_no_other(objectives: int) -> None:
    method = SingleTask()
    rays = method.fixed_rays(objectives)
    losses = torch.rand(objectives, 4, objectives)  # K networks, four ray groups each
    given = rays.unsqueeze(1).expand(-1, 4, -1)
    weights, state = method.weights(losses, given, no_gram, {})
    assert state == {}
    for network in range(objectives):
        for group in range(4):
            one = [float(j == network) for j in range(objectives)]
            assert weights[network, group].tolist() == one


@pytest.mark.parametrize("objectives", [2, 3, 5])
def test_uniform_is_the_mean(objectives: int) -> None:
    method = Uniform()
    assert torch.equal(method.fixed_rays(objectives), torch.full((1, objectives), 1 / objectives))
    losses = torch.rand(4, objectives, dtype=torch.float64)
    weights, state = method.weights(losses, torch.rand(4, objectives), no_gram, {})
    assert state == {}
    torch.testing.assert_close((weights * losses).sum(dim=1), losses.mean(dim=1))


def test_a_network_of_one_task_is_judged_by_it_alone() -> None:
    method = SingleTask()
    rays = method.fixed_rays(3).numpy()
    values = np.array([0.4, 1.9, 0.7])
    for network in range(3):
        ray = rays[network : network + 1]
        front = Front(ray, values[None], ("a", "b", "c"), np.full(3, 2.0))
        assert method.quality(front) == -values[network]
        for other in (0.0, 100.0, np.nan, np.inf):  # what the others reach is all the same
            changed = np.where(ray > 0, values, other)
            front = Front(ray, changed, ("a", "b", "c"), np.full(3, 2.0))
            assert method.quality(front) == -values[network]
