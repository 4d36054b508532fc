"""EPO's weights against the linear programme of FACTS.md, section 4, by scipy."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Epo, State

Array = npt.NDArray[np.float64]
DOUBLE = torch.float64


def _by_hand(gram: Array, losses: Array, ray: Array) -> Array | None:
    """α, or `None` where there is none."""
    m = len(losses)
    scaled = ray * losses
    share = scaled / scaled.sum()
    mu = float((share * np.log(m * share)).sum())
    ca = gram @ (ray * (np.log(m * share) - mu))
    if mu > 1e-4:
        gain, rows, least = ca, gram, np.zeros(m)
        if (ca > 0).any():
            least = np.where(ca > 0, -np.inf, ca)
            least[np.argmax(scaled)] = 0
    else:
        gain, rows = gram.sum(axis=0), np.vstack([gram, ca])
        least = np.append(np.zeros(m), min(0.0, float(ca.max())))
    kept = np.isfinite(least)
    # `linprog` minimises, and bounds from above
    found = linprog(
        -gain, A_ub=-rows[kept], b_ub=-least[kept], A_eq=np.ones((1, m)), b_eq=[1.0], bounds=(0, 1)
    )
    return np.asarray(found.x) if found.status == 0 else None


def _case(objectives: int, seed: int, *, on_ray: bool) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    ray = torch.rand(objectives, generator=draw, dtype=DOUBLE) + 0.2
    ray = ray / ray.sum()
    losses = torch.rand(objectives, generator=draw, dtype=DOUBLE) + 0.2
    gradients = torch.randn(objectives, 9, generator=draw, dtype=DOUBLE)
    gradients += 0.6 * torch.randn(9, generator=draw, dtype=DOUBLE)
    noise = 1 + 0.01 * torch.rand(objectives, generator=draw, dtype=DOUBLE)
    return (noise / ray if on_ray else losses), ray, gradients @ gradients.mT


@pytest.mark.parametrize("on_ray", [False, True], ids=["off the ray", "on it"])
@pytest.mark.parametrize("objectives", [2, 3, 5])
def test_weights_are_as_many_times_the_programmes_solution(objectives: int, on_ray: bool) -> None:
    solved = 0
    for seed in range(20):
        losses, ray, gram = _case(objectives, seed, on_ray=on_ray)
        weights, _ = Epo().weights(losses, ray, lambda gram=gram: gram, Epo().init(objectives))  # type: ignore[misc]
        alpha = _by_hand(gram.numpy(), losses.numpy(), ray.numpy())
        solved += alpha is not None
        expected = ray.numpy() if alpha is None else alpha
        np.testing.assert_allclose(weights.numpy(), objectives * expected, rtol=0, atol=1e-6)
        assert float(weights.sum()) == pytest.approx(objectives)
    assert solved > 10


def _infeasible() -> tuple[Tensor, Tensor, Tensor]:
    """On the ray, where every (Ca)_j is negative: α must then be the third corner, C α ≥ 0 or not.

    It is not: the third gradient leads away from the second. (With two objectives the programme
    always has a solution.)
    """
    gradients = torch.tensor([[2.0, 0.0], [0.5, 0.3], [0.1, -0.2]], dtype=DOUBLE)
    ray = torch.tensor([0.4, 0.2, 0.4], dtype=DOUBLE)
    losses = torch.tensor([0.995, 1.005, 1.0], dtype=DOUBLE) / ray
    gram = gradients @ gradients.mT
    assert _by_hand(gram.numpy(), losses.numpy(), ray.numpy()) is None
    return losses, ray, gram


def _feasible() -> tuple[Tensor, Tensor, Tensor]:
    return _case(3, 1, on_ray=False)


def _stacked(*cases: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    losses, rays, grams = (torch.stack(parts) for parts in zip(*cases, strict=True))
    return losses, rays, grams


def _step(given: tuple[Tensor, Tensor, Tensor], state: State) -> tuple[Tensor, State]:
    losses, rays, grams = given
    return Epo().weights(losses, rays, lambda: grams, state)


def test_what_has_no_solution_is_weighed_by_the_ray_and_counted() -> None:
    good, bad = _feasible(), _infeasible()
    state = Epo().init(3)
    assert Epo().report(state) == {"infeasible_share": 0.0, "largest_gap": 0.0}
    weights, state = _step(bad, state)
    torch.testing.assert_close(weights, 3 * bad[1])
    for _ in range(3):
        _, state = _step(good, state)
    assert Epo().report(state)["infeasible_share"] == 0.25
    assert Epo().report(state)["largest_gap"] < 1e-6  # of those that were solved


def test_every_group_counts() -> None:
    good, bad = _feasible(), _infeasible()
    _, state = _step(_stacked(good, bad, good, good, bad), Epo().init(3))
    assert Epo().report(state)["infeasible_share"] == pytest.approx(2 / 5)
    _, state = _step(_stacked(good, good, good, good, good), state)
    assert Epo().report(state)["infeasible_share"] == pytest.approx(2 / 10)


@pytest.mark.parametrize("groups", [1, 2])
def test_every_network_counts_for_itself(groups: int) -> None:
    good, bad = _feasible(), _infeasible()
    shares = []
    state: State = {name: torch.stack([value] * 3) for name, value in Epo().init(3).items()}
    for row in ((good, good, bad), (good, bad, bad)):
        given = [_stacked(*[case] * groups) for case in row]
        _, state = _step(_stacked(*given), state)
    for network in range(3):
        mine = {name: value[network] for name, value in state.items()}
        shares.append(Epo().report(mine)["infeasible_share"])
    assert shares == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("loss", [0.0, -0.5, float("nan")])
def test_a_loss_that_is_not_positive_gives_the_ray_and_counts(loss: float) -> None:
    losses, ray, gram = _feasible()
    losses = losses.clone()
    losses[1] = loss
    weights, state = _step((losses, ray, gram), Epo().init(3))
    torch.testing.assert_close(weights, 3 * ray)
    assert Epo().report(state)["infeasible_share"] == 1
    _, state = _step(_feasible(), state)
    assert Epo().report(state)["infeasible_share"] == 0.5


@pytest.mark.parametrize(
    ("losses", "found"),
    [([0.5, 0.0], "0 for `b`"), ([-2.5, 1.0], r"-2\.5 for `a`"), ([1.0, np.nan], "nan for `b`")],
    ids=["zero", "negative", "nan"],
)
def test_such_losses_of_a_fresh_network_are_refused(losses: list[float], found: str) -> None:
    with pytest.raises(ConfigurationError, match=f"found {found} .*add a constant"):
        Epo().check(torch.tensor(losses), ("a", "b"))


def test_the_gradients_are_those_of_all_parameters_and_rays_are_phns() -> None:
    assert Epo.over == "all"  # C = GGᵀ over all hypernet parameters
    assert Epo().alpha == 0.2
