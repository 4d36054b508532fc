import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto import as_rays, check_alpha, even_rays, has_only_corners, sample_rays

positive = st.floats(1e-3, 1e3)


def _on_simplex(rays: torch.Tensor) -> bool:
    sums = rays.double().sum(dim=1)
    return bool((rays >= 0).all()) and bool((sums - 1).abs().max() < 1e-6)


def _closest(rays: torch.Tensor) -> float:
    """The smallest distance between two rays."""
    return float(torch.pdist(rays.double()).min())


@pytest.mark.parametrize("alpha", [0.2, 1.0, 1.2, (0.1, 0.5), (5.0, 1.0, 0.5), (0.3,) * 4])
def test_sampled_rays_have_the_moments_of_a_dirichlet(alpha: float | tuple[float, ...]) -> None:
    count, objectives = 40_000, 2 if isinstance(alpha, float) else len(alpha)
    rays = sample_rays(count, objectives, alpha=alpha, generator=7).double().numpy()
    a = np.broadcast_to(np.asarray(alpha), (objectives,))
    total = a.sum()
    mean = a / total
    variance = mean * (1 - mean) / (total + 1)
    covariance = (np.diag(mean) - np.outer(mean, mean)) / (total + 1)
    error = 5 * np.sqrt(variance / count)  # five standard errors
    np.testing.assert_array_less(np.abs(rays.mean(axis=0) - mean), error)
    np.testing.assert_allclose(np.cov(rays.T, ddof=0), covariance, atol=0.05 * variance.max())


def test_two_uniform_objectives_give_a_uniform_first_entry() -> None:
    first = sample_rays(20_000, 2, generator=3)[:, 0].sort().values
    expected = (torch.arange(20_000) + 0.5) / 20_000
    assert (first - expected).abs().max() < 1.95 / math.sqrt(20_000)  # Kolmogorov, p = 0.001


@given(alpha=positive, objectives=st.integers(1, 12), seed=st.integers(0, 2**31))
def test_sampled_rays_lie_on_the_simplex(alpha: float, objectives: int, seed: int) -> None:
    rays = sample_rays(16, objectives, alpha=alpha, generator=seed)
    assert rays.shape == (16, objectives)
    assert rays.dtype == torch.float32
    assert _on_simplex(rays)


@pytest.mark.parametrize("alpha", [1e-3, 1e-8])
def test_a_tiny_alpha_gives_corners_and_no_nan(alpha: float) -> None:
    rays = sample_rays(5_000, 3, alpha=alpha, generator=0)
    assert _on_simplex(rays)
    assert (rays.amax(dim=1) > 0.999).float().mean() > 0.97
    assert (rays.argmax(dim=1).bincount(minlength=3) > 1_500).all()  # every corner as often


def test_a_uniform_draw_of_exactly_zero_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.zeros(shape, dtype=torch.float64))
    assert _on_simplex(sample_rays(5, 3, alpha=0.5, generator=0))


def test_a_seed_a_generator_and_the_global_seed_agree() -> None:
    by_seed = sample_rays(5, 3, alpha=0.5, generator=11)
    generator = torch.Generator().manual_seed(11)
    assert torch.equal(by_seed, sample_rays(5, 3, alpha=0.5, generator=generator))
    assert not torch.equal(by_seed, sample_rays(5, 3, alpha=0.5, generator=generator))
    torch.manual_seed(11)
    assert torch.equal(by_seed, sample_rays(5, 3, alpha=0.5))
    assert not torch.equal(by_seed, sample_rays(5, 3, alpha=0.5, generator=12))


@pytest.mark.parametrize(("count", "objectives"), [(0, 2), (3, 0), (-1, 2)])
def test_sampling_nothing_is_refused(count: int, objectives: int) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        sample_rays(count, objectives)


BAD_ALPHA: list[object] = [0, -1.0, float("nan"), float("inf"), (), (0.5, 0.0), "0.5", "abc", None]


@pytest.mark.parametrize("alpha", BAD_ALPHA)
def test_alpha_must_be_positive_numbers(alpha: object) -> None:
    for refuse in (lambda: check_alpha(alpha), lambda: sample_rays(1, 2, alpha=alpha)):  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="`alpha` must be positive"):
            refuse()


@pytest.mark.parametrize("length", [1, 2, 4])
def test_alpha_is_one_number_or_one_per_objective(length: int) -> None:
    if length == 1:
        assert check_alpha((0.5,), 3) == (0.5, 0.5, 0.5)
        return
    with pytest.raises(ConfigurationError, match=f"here 3; found {length}"):
        check_alpha((0.5,) * length, 3)


@pytest.mark.parametrize("alpha", [[0.1, 0.5], np.array([0.1, 0.5]), torch.tensor([0.125, 0.5])])
def test_alpha_may_be_any_vector(alpha: list[float]) -> None:
    assert check_alpha(alpha, 2) == (float(alpha[0]), 0.5)


# Even rays


@pytest.mark.parametrize("count", [2, 5, 25])
def test_even_rays_of_two_objectives_are_the_papers(count: int) -> None:
    expected = []
    for i in range(count):
        angle = 0.1 + i * (math.pi / 2 - 0.2) / (count - 1)
        total = math.cos(angle) + math.sin(angle)
        expected.append([math.cos(angle) / total, math.sin(angle) / total])
    np.testing.assert_allclose(even_rays(count, 2).numpy(), expected, atol=1e-7)


@pytest.mark.parametrize(("count", "objectives"), [(25, 2), (1, 3), (40, 3), (30, 4), (25, 10)])
def test_even_rays_are_positive_on_the_simplex_and_repeatable(count: int, objectives: int) -> None:
    rays = even_rays(count, objectives)
    assert rays.shape == (count, objectives)
    assert rays.dtype == torch.float32
    assert not rays.requires_grad
    assert _on_simplex(rays)
    assert (rays > 0).all()
    torch.manual_seed(99)  # the global generator plays no part, nor does the grad mode
    with torch.no_grad():
        assert torch.equal(rays, even_rays(count, objectives))


def test_even_rays_of_three_objectives_cover_the_octant_by_area() -> None:
    rays = even_rays(400, 3).double()
    points = rays / rays.norm(dim=1, keepdim=True)
    # On a sphere equal heights hold equal areas, so every coordinate is uniform on [0, 1] over
    # the octant, and the mean direction is (1/2, 1/2, 1/2).
    for axis in range(3):
        heights = points[:, axis].sort().values
        uniform = (torch.arange(400) + 0.5) / 400
        assert (heights - uniform).abs().max() < 0.02
    # the octant cut into the three parts where each coordinate is the largest
    assert (points.argmax(dim=1).bincount(minlength=3) - 400 / 3).abs().max() < 8
    random = torch.randn(400, 3, dtype=torch.float64).abs()
    assert _closest(points) > 5 * _closest(random / random.norm(dim=1, keepdim=True))


@pytest.mark.parametrize(("objectives", "count"), [(4, 25), (10, 100), (40, 1000)])
def test_rays_of_many_objectives_lie_near_corners_and_centre(objectives: int, count: int) -> None:
    rays = even_rays(count, objectives).double()
    # the distribution function of one weight of a Dirichlet draw; each N-th of it has one ray
    shares = beta(0.5, 0.5 * (objectives - 1)).cdf(rays[:, 0].sort().values) * count
    assert np.abs(shares - (np.arange(count) + 0.5)).max() < 0.51
    assert (rays.mean(dim=0) * objectives - 1).abs().max() < 3 * math.sqrt(2 / count)


def test_a_single_even_ray_is_the_centre() -> None:
    for objectives in (2, 3, 5):
        torch.testing.assert_close(
            even_rays(1, objectives), torch.full((1, objectives), 1 / objectives)
        )


@pytest.mark.parametrize(("count", "objectives"), [(0, 2), (5, 1), (5, 0)])
def test_even_rays_need_a_count_and_two_objectives(count: int, objectives: int) -> None:
    with pytest.raises(ConfigurationError, match="even rays need"):
        even_rays(count, objectives)


# Rays from users


@given(st.lists(positive, min_size=2, max_size=6))
def test_normalised_positive_numbers_are_rays(entries: list[float]) -> None:
    ray = [entry / sum(entries) for entry in entries]
    given = (ray, tuple(ray), [ray], np.array(ray), np.array([ray, ray]), torch.tensor(ray))
    for rays in given:
        found = as_rays(rays, len(ray))
        assert found.dtype == torch.float32
        assert found.ndim == 2
        np.testing.assert_allclose(found.numpy(), np.broadcast_to(ray, found.shape), rtol=1e-6)


def test_corners_are_rays() -> None:
    assert torch.equal(as_rays([[1, 0], [0, 1]], 2), torch.eye(2))


@pytest.mark.parametrize(
    ("rays", "says"),
    [
        ([-0.5, 1.5], r"finite entries >= 0; found \[-0\.5, 1\.5\]"),
        ([float("nan"), 1.0], "finite entries"),
        ([float("inf"), 0.0], "finite entries"),
        ([0.5, 0.6], r"sum of 1\.1: divide"),
        ([[0.5, 0.5], [0.2, 0.2]], r"sum of 0\.4"),
        ([0.0, 0.0], "sum of 0"),
        ([1.0], r"here 2; found shape \(1,\)"),
        ([0.2, 0.3, 0.5], r"found shape \(3,\)"),
        ([[[0.5, 0.5]]], r"found shape \(1, 1, 2\)"),
        (1.0, r"found shape \(\)"),
        ([], r"found shape \(0,\)"),
        (torch.zeros(0, 2), r"found shape \(0, 2\)"),
        ("0.5,0.5", r"2 numbers.*'0\.5,0\.5'"),
        (["a", "b"], "2 numbers that sum to 1"),
        ([[0.5, 0.5], [1.0]], "2 numbers that sum to 1"),
        (None, "2 numbers that sum to 1"),
    ],
)
def test_what_is_no_ray_is_refused_with_the_reason(rays: list[float], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        as_rays(rays, 2)


def test_as_rays_leaves_its_input_alone() -> None:
    given = torch.tensor([0.25, 0.75], dtype=torch.float64)
    as_rays(given, 2).zero_()
    assert given.tolist() == [0.25, 0.75]


@pytest.mark.parametrize("objectives", [2, 3])
def test_the_corners_in_order_are_each_objective_alone(objectives: int) -> None:
    corners = torch.eye(objectives)
    for rays in (corners, corners.tolist(), corners.double().numpy()):
        assert has_only_corners(rays)
    for other in (corners[:1], corners.flip(0), 0.9 * corners, even_rays(objectives, objectives)):
        assert not has_only_corners(other)
    assert not has_only_corners([[1.0]])
    assert not has_only_corners([])
    assert not has_only_corners(None)


def test_a_ray_off_the_simplex_is_refused_or_normalised() -> None:
    with pytest.raises(ConfigurationError, match="sum of 4: divide"):
        as_rays([1.0, 3.0], 2)
    with pytest.warns(UserWarning, match="sum of 4: they are divided"):
        found = as_rays([[1.0, 3.0], [0.5, 0.5]], 2, off_simplex="normalise")
    assert found.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    for hopeless in ([0.0, 0.0], [-1.0, 3.0], [float("nan"), 1.0]):
        with pytest.raises(ConfigurationError):
            as_rays(hopeless, 2, off_simplex="normalise")
    with pytest.raises(ConfigurationError, match=r"`off_simplex`.*`normalise`"):
        as_rays([0.5, 0.5], 2, off_simplex="ignore")
