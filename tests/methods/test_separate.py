"""A network for every ray: its rays, its weights, how it is judged, and a front that is known."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos import fit
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Separate
from paretocosmos.pareto import Front, even_rays


def no_gram() -> Tensor:
    raise AssertionError("a weighted sum never pays for the Gram matrix")


def test_two_objectives_have_even_rays() -> None:
    assert torch.equal(Separate().fixed_rays(2), even_rays(9, 2))
    assert torch.equal(Separate(networks=3).fixed_rays(2), even_rays(3, 2))


@pytest.mark.parametrize("objectives", [3, 5])
@pytest.mark.parametrize("more", [0, 1, 4])
def test_more_objectives_have_the_ends_the_centre_and_even_rays(objectives: int, more: int) -> None:
    rays = Separate(networks=objectives + 1 + more).fixed_rays(objectives)
    assert len(rays) == objectives + 1 + more
    assert torch.equal(rays[:objectives], torch.eye(objectives))
    assert torch.equal(rays[objectives], torch.full((objectives,), 1 / objectives))
    assert len(torch.unique(rays, dim=0)) == len(rays)
    torch.testing.assert_close(rays.sum(dim=1), torch.ones(len(rays)))
    few = Separate(networks=1).fixed_rays(objectives)
    assert torch.equal(few, rays[: objectives + 1])


def test_weights_are_the_rays_above_the_floor() -> None:
    rays = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    weights, state = Separate().weights(torch.rand(2, 2), rays, no_gram, {})
    assert state == {}
    torch.testing.assert_close(weights, torch.tensor([[0.99, 0.01], [0.255, 0.745]]))
    plain, _ = Separate(floor=0.0).weights(torch.rand(2, 2), rays, no_gram, {})
    assert torch.equal(plain, rays)


def test_each_network_is_judged_by_its_own_sum() -> None:
    ray, values = np.array([[0.25, 0.75]]), np.array([[0.4, 0.2]])
    front = Front(ray, values, ("a", "b"), np.full(2, 2.0))
    assert Separate(floor=0.0).quality(front) == pytest.approx(-0.25)
    assert Separate().quality(front) == pytest.approx(-(0.255 * 0.4 + 0.745 * 0.2))


def test_mistakes_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="`networks` must be at least 1, found 0"):
        Separate(networks=0)
    for method in (Separate(floor=0.6), Separate(floor=-0.1)):
        with pytest.raises(ConfigurationError, match="`floor` must be at least 0 and at most 1/J"):
            method.weights(torch.rand(2), torch.rand(2), no_gram, {})


def test_a_training_gives_a_front_in_order(tmp_path: Path) -> None:
    settings = {"networks": 5, "epochs": 40}
    run = fit(
        "toy_convex",
        preset="paper",
        method="separate",
        out=tmp_path / "run",
        settings=settings,
        seed=1,
    )
    assert len(run.front.values) == 5
    assert (np.diff(run.front.values[:, 0]) > 0).all()  # less weight, larger loss
    assert (np.diff(run.front.values[:, 1]) < 0).all()
