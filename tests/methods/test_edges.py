"""Edges of methods: which epoch is better, and which losses are refused."""

import numpy as np
import numpy.typing as npt
import pytest
import torch

from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.methods import Linear, Mgda, Separate, SmoothTchebycheff, Tchebycheff
from paretocosmos.pareto import Front

NAMES = ("first", "second")


def front_of(values: npt.ArrayLike, rays: npt.ArrayLike | None = None) -> Front:
    found = np.asarray(values, dtype=np.float64)
    given = np.full(found.shape, 0.5) if rays is None else np.asarray(rays, dtype=np.float64)
    return Front(given, found, NAMES, np.array([2.0, 1.0]))


def test_a_front_beyond_the_reference_is_judged_by_its_nearest_point() -> None:
    # the first point is beyond by 1 in the first objective alone, the second by 3 and 4
    with pytest.warns(FrontWarning):
        found = Linear().quality(front_of([[3.0, 0.5], [5.0, 5.0]]))
    assert found == -1.0


@pytest.mark.parametrize(
    ("values", "quality"),
    [([[np.nan, 0.0], [2.5, 1.0]], -0.5), ([[np.nan, 0.0]], -np.inf), ([[np.inf, 0.0]], -np.inf)],
)
def test_what_is_no_number_is_infinitely_far(values: list[list[float]], quality: float) -> None:
    with pytest.warns(FrontWarning):
        found = Linear().quality(front_of(values))
    assert found == quality


def test_an_objective_without_weight_may_have_no_number() -> None:
    assert Separate(floor=0.0).quality(front_of([[0.5, np.nan]], [[1.0, 0.0]])) == -0.5


def test_stratified_rays_follow_alpha() -> None:
    drawn = [
        Linear(alpha=alpha, stratified=True).sample_steps(
            2, 50, 8, torch.Generator().manual_seed(0)
        )
        for alpha in (0.05, 20.0)
    ]
    wide, narrow = (rays.reshape(-1, 2)[:, 0].std() for rays in drawn)
    assert wide > 0.4  # near the corners, where the deviation is 1/2
    assert narrow < 0.15


@pytest.mark.parametrize(
    ("method", "way_out"),
    [
        (Tchebycheff(), "add a constant to it, or use another method, such as `linear`"),
        (SmoothTchebycheff(), "add a constant to it, or use another method, such as `linear`"),
        (Mgda(), "set `normalisation` to `l2` or `none`"),
    ],
)
def test_a_loss_may_be_zero_but_not_below(
    method: Tchebycheff | SmoothTchebycheff | Mgda, way_out: str
) -> None:
    method.check(torch.tensor([0.0, 1.0]), NAMES)
    with pytest.raises(ConfigurationError, match="found -1 for `second`") as refused:
        method.check(torch.tensor([0.0, -1.0]), NAMES)
    assert str(refused.value).endswith(way_out)


def test_mgda_without_the_losses_takes_any() -> None:
    Mgda(normalisation="l2").check(torch.tensor([-1.0, 1.0]), NAMES)
