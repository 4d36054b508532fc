"""Stratified rays against scipy's distributions, and against independent draws."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto import Alpha, sample_rays, stratified_rays


def _draw(
    steps: int, rays_per_batch: int, objectives: int, alpha: Alpha = 0.5, seed: int = 3
) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    rays = stratified_rays(steps, rays_per_batch, objectives, alpha=alpha, generator=generator)
    assert rays.shape == (steps * rays_per_batch, objectives)
    assert rays.dtype == torch.float32
    return rays


@pytest.mark.parametrize("rays_per_batch", [1, 2, 8])
@pytest.mark.parametrize("alpha", [0.2, (0.5, 1.5)])
def test_of_two_objectives_every_stratum_of_a_step_has_its_ray(
    rays_per_batch: int, alpha: Alpha
) -> None:
    rays = _draw(200, rays_per_batch, 2, alpha).double().numpy()
    a, b = (alpha, alpha) if isinstance(alpha, float) else alpha
    shares = stats.beta.cdf(rays[:, 0], a, b).reshape(200, rays_per_batch)
    strata = np.clip(
        np.floor(rays_per_batch * shares + 1e-4 * (shares - 0.5)), 0, rays_per_batch - 1
    )
    assert (np.sort(strata, axis=1) == np.arange(rays_per_batch)).mean() > 0.99  # but for rounding
    orders = {tuple(row) for row in strata}
    assert len(orders) > (1 if rays_per_batch > 1 else 0)  # and in no fixed order


@pytest.mark.parametrize("alpha", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("objectives", [2, 3, 5])
def test_every_entry_has_the_marginal_distribution(objectives: int, alpha: float) -> None:
    rays = _draw(500, 8, objectives, alpha).double().numpy()
    np.testing.assert_allclose(rays.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(rays.mean(axis=0), 1 / objectives, atol=0.01)
    marginal = stats.beta(alpha, alpha * (objectives - 1))
    for entry in rays.T:
        # draws of a step repel each other, so that the distance is smaller than independent draws'
        assert stats.kstest(np.maximum(entry, 1e-38), marginal.cdf).statistic < 0.03
    covariance = np.cov(rays.T)[0, 1]
    total = alpha * objectives
    assert covariance == pytest.approx(-(alpha**2) / (total**2 * (total + 1)), rel=0.1)


def test_an_alpha_for_each_objective_gives_its_mean() -> None:
    alpha = (0.3, 1.2, 0.5)
    mean = _draw(2000, 4, 3, alpha).mean(dim=0)
    torch.testing.assert_close(mean, torch.tensor(alpha) / 2, atol=0.01, rtol=0)


@pytest.mark.parametrize("rays_per_batch", [2, 8, 16])
@pytest.mark.parametrize("objectives", [2, 3, 5])
def test_the_mean_of_a_step_varies_less(objectives: int, rays_per_batch: int) -> None:
    steps = 500
    spread = _draw(steps, rays_per_batch, objectives)
    alone = sample_rays(steps * rays_per_batch, objectives, alpha=0.5, generator=3)
    one, two = (
        rays.reshape(steps, rays_per_batch, objectives).mean(dim=1).var(dim=0)
        for rays in (spread, alone)
    )
    assert (one < 0.9 * two).all()
    if objectives == 2:
        assert (one < 2 / rays_per_batch * two).all()


def test_a_seed_gives_its_rays_and_one_objective_gives_ones() -> None:
    assert torch.equal(_draw(3, 4, 3), _draw(3, 4, 3))
    assert not torch.equal(_draw(3, 4, 3), _draw(3, 4, 3, seed=4))
    assert torch.equal(_draw(3, 4, 1), torch.ones(12, 1))


@pytest.mark.parametrize("alpha", [0.005, 1e4, (0.01, 100.0, 3.0)])
def test_extreme_parameters_give_rays(alpha: Alpha) -> None:
    rays = _draw(50, 4, 3, alpha)
    assert rays.isfinite().all()
    assert (rays >= 0).all()
    torch.testing.assert_close(rays.sum(dim=1), torch.ones(200))


def test_mistakes_are_refused() -> None:
    with pytest.raises(
        ConfigurationError, match="`rays_per_batch` and `objectives` must be at least 1"
    ):
        _draw(3, 0, 2)
    with pytest.raises(ConfigurationError, match="`alpha`"):
        _draw(3, 2, 2, alpha=-1.0)
