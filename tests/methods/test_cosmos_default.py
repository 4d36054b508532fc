"""COSMOS as the default preset has it: its weights, its state, and the shapes it reaches."""

from pathlib import Path

import pytest
import torch

from paretocosmos import FunctionProblem, fit, load_problem
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Cosmos, State
from paretocosmos.pareto import cosmos_weights
from paretocosmos.pareto.metrics import hypervolume, monotonicity

ALIGNED = Cosmos(
    penalty=2.0, alignment="inverse", normalise=True, floor=0.01, least=0.5, least_epochs=4
)


def no_gram() -> torch.Tensor:
    raise AssertionError("COSMOS needs no gradients of single losses")


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) + 0.1


def weigh(method: Cosmos, losses: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
    rays = method.sample(losses.shape[-1], losses.shape[-2], torch.Generator().manual_seed(1))
    return method.weights(losses, rays, no_gram, state)


def test_sizes_are_means_over_all_rays_above_the_lowest_value() -> None:
    state = ALIGNED.init(3)
    every = torch.stack([draw(seed, 8, 3) for seed in range(5)]) * torch.tensor([1.0, -1.0, 1e3])
    for losses in every:
        _, state = weigh(ALIGNED, losses, state)
    expected = every.mean(dim=(0, 1))
    # of the negative loss, above the lowest value of the steps until then
    lowest = [float(every[: step + 1, :, 1].min()) for step in range(5)]
    expected[1] -= sum(lowest) / 5
    torch.testing.assert_close(state["sizes"], expected)
    assert float(state["steps"]) == 5


def test_a_negative_loss_weighs_as_it_would_above_zero() -> None:
    losses, state, moved_state = draw(1, 16, 2), ALIGNED.init(2), ALIGNED.init(2)
    lowest = losses.amin(dim=0)
    for _ in range(3):
        weights, state = weigh(ALIGNED, losses - lowest, state)
        moved, moved_state = weigh(
            ALIGNED, losses - torch.tensor([20.0, 3.0]) - lowest, moved_state
        )
    torch.testing.assert_close(moved, weights, rtol=1e-3, atol=1e-3)


def test_weights_are_the_gradient_of_the_normalised_loss() -> None:
    method = Cosmos(penalty=2.0, alignment="inverse", normalise=True)
    losses, rays = draw(1, 8, 3), method.sample(3, 8, torch.Generator().manual_seed(1))
    weights, _ = method.weights(losses, rays, no_gram, method.init(3))
    sizes = losses.mean(dim=0)
    expected = cosmos_weights(losses / sizes, rays, penalty=2.0, alignment="inverse") / sizes
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_a_loss_in_another_unit_has_the_same_pull(factor: float) -> None:
    units = torch.tensor([1.0, factor])
    state, other = ALIGNED.init(2), ALIGNED.init(2)
    for seed in range(3):
        losses = draw(seed, 6, 2)
        weights, state = weigh(ALIGNED, losses, state)
        scaled, other = weigh(ALIGNED, losses * units, other)
        torch.testing.assert_close(scaled * units, weights, rtol=1e-4, atol=1e-6)


def test_weights_rise_to_half_of_the_weighted_sums() -> None:
    losses, state, lowest = draw(3, 64, 2), ALIGNED.init(2), []
    rays = ALIGNED.sample(2, 64, torch.Generator().manual_seed(1))
    for epoch in range(6):
        state = ALIGNED.at_epoch(epoch, state)
        weights, state = weigh(ALIGNED, losses, state)
        shares = weights * losses.mean(dim=0) / (0.01 + 0.98 * rays)
        lowest.append(float(shares.min()))
    assert lowest[0] < lowest[1] < lowest[2] < lowest[3] < 0.5
    assert lowest[0] < 0
    assert lowest[4:] == pytest.approx([0.5, 0.5], rel=1e-5)
    at_once = Cosmos(penalty=2.0, alignment="inverse", least=0.0)
    assert float(weigh(at_once, losses, at_once.init(2))[0].min()) == 0


def test_losses_that_vanish_have_finite_weights() -> None:
    state = ALIGNED.init(2)
    for losses in (torch.zeros(4, 2), torch.tensor([[0.0, 1.0]] * 4), -torch.ones(4, 2)):
        weights, state = weigh(ALIGNED, losses, state)
        assert weights.isfinite().all()


def test_what_the_paper_prints_keeps_no_state() -> None:
    assert Cosmos().init(2) == {}
    assert Cosmos().at_epoch(3, {}) == {}
    with pytest.raises(ConfigurationError, match=r"`least_epochs` must be at least 0"):
        Cosmos(least_epochs=-1)
    with pytest.raises(ConfigurationError, match=r"`least` must be at least 0 and at most 1"):
        Cosmos(least=1.5)


@pytest.mark.parametrize("name", ["zdt1", "zdt2", "vlmop2"])
def test_fronts_of_every_shape_are_reached_with_nothing_set(name: str, tmp_path: Path) -> None:
    problem = load_problem(name)
    assert isinstance(problem, FunctionProblem)
    run = fit(
        problem,
        out=tmp_path / "run",
        device="cpu",
        progress=False,
        report=False,
        settings={"rays": 100},
    )
    exact = problem.exact_front(100)
    assert hypervolume(run.front) > 0.99 * hypervolume(exact)
    assert monotonicity(run.front).min() > 0.97
    # the middle is there
    middle = exact.values[40:60]
    distances = abs(run.front.values[:, None] - middle[None]).max(axis=2)
    assert distances.min(axis=0).max() < 0.05
    assert run.record["findings"] == []
