"""Calibration: fronts by hand, whose dominated tails are known, and what a run folder keeps."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from paretocosmos import evaluate, fit
from paretocosmos.evaluation import load_samples_for
from paretocosmos.nn.conditioning import Conditioning
from paretocosmos.objectives import Objective
from paretocosmos.problems import Problem, Split, load_problem
from paretocosmos.runs import Run, load_run
from paretocosmos.training.calibration import find_useful_ends
from paretocosmos.types import Batch, Outputs, Targets

ROWS = 1000


class Mean(Objective):
    """The mean of one output."""

    def __init__(self, *, name: str, of: int) -> None:
        super().__init__(name=name)
        self.of = of

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return outputs[:, self.of].mean()


@dataclass(frozen=True, kw_only=True, eq=False)
class ByHand(Problem):
    """Every tenth of the rows has a number of its own, 1.2 or -1."""

    rows: int = ROWS
    name: str = "by_hand"
    objectives: tuple[Objective, ...] = (Mean(name="first", of=0), Mean(name="second", of=1))
    reference: tuple[float, ...] = (2.0, 2.0)
    input_shape: tuple[int, ...] = (1,)
    outputs: int = 2

    def split(self, name: Split) -> Batch:
        part = torch.arange(self.rows) // max(1, self.rows // 10)
        inputs = torch.where(part % 2 == 0, 1.2, -1.0)[:, None]
        return Batch(inputs, {"label": torch.zeros(self.rows)})


class Drawn(nn.Module):
    """A front that was drawn: from the second's weight and a row's number to both outputs."""

    def __init__(self, curve: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.curve = curve

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        number = inputs[:, 0]
        return torch.stack([part + 0 * number for part in self.curve(ray[1], number)], dim=1)


def _ends(curve: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], rows: int = ROWS) -> Tensor:
    problem = ByHand(rows=rows)
    return find_useful_ends(Drawn(curve), problem, load_samples_for(Drawn(curve), problem, "val"))


def test_an_end_moves_to_where_the_dominated_tail_begins() -> None:
    """From half the weight on the second stays at 0, and the first gets ever worse."""
    found = _ends(lambda weight, number: (weight, (0.5 - weight).clamp_min(0)))
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))


def test_both_ends_can_move() -> None:
    def curve(weight: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        inside = weight.clamp(0.25, 0.75)
        outside = (weight - inside).abs()
        return inside + outside, 1 - inside + outside

    torch.testing.assert_close(_ends(curve), torch.tensor([[0.75, 0.25], [0.25, 0.75]]))


def test_what_all_rays_share_is_no_noise_between_them() -> None:
    """The numbers of the rows are much larger than the front."""
    found = _ends(lambda weight, number: (weight + 100 * number, (0.5 - weight).clamp_min(0)))
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))


def test_a_front_without_a_dominated_tail_stays() -> None:
    found = _ends(lambda weight, number: (weight, 1 - weight))
    assert torch.equal(found, torch.eye(2))


def test_a_tail_that_is_dominated_by_chance_stays() -> None:
    """The first gets worse by a tenth on average, on half of the rows it gets better."""

    def curve(weight: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        beyond = (weight - 0.5).clamp_min(0)
        return weight - beyond + beyond * number, (0.5 - weight).clamp_min(0)

    assert torch.equal(_ends(curve), torch.eye(2))


def _constant_end(gain: float) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """From half the weight the second stays, and at the very end it is less by `gain`.

    Rows disagree on the second by up to 0.012 where it is not the end's, so that its standard error
    is near 0.004.
    """

    def curve(weight: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        floor = 0.1 + 0.012 * number * (weight < 0.999)
        second = (0.5 - weight).clamp_min(0) + floor - gain * (weight > 0.999)
        return weight, second

    return curve


def test_a_far_end_that_gains_by_chance_goes_with_the_tail_before_it() -> None:
    """Constant predictions have a gap of exactly 0, which nothing beats: not a choice by itself."""
    corner = torch.tensor([1.0, 0.0])
    torch.testing.assert_close(
        _ends(_constant_end(0.003)), torch.stack([corner, torch.tensor([0.5, 0.5])])
    )
    assert torch.equal(_ends(_constant_end(0.05)), torch.eye(2))  # that is beyond noise


def test_neighbours_that_pay_stay_though_each_gains_by_chance() -> None:
    """A front need not be beyond noise from step to step, only where nothing between pays."""

    def curve(weight: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        return weight, 1 - weight + 0.3 * weight * number

    assert torch.equal(_ends(curve), torch.eye(2))


def test_where_hardly_any_weight_pays_all_of_the_simplex_stays() -> None:
    assert torch.equal(_ends(lambda weight, number: (weight, 0 * weight)), torch.eye(2))


def test_on_few_rows_nothing_can_be_said() -> None:
    def curve(weight: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        return weight, (0.5 - weight).clamp_min(0)

    assert torch.equal(_ends(curve, rows=999), torch.eye(2))
    assert not torch.equal(_ends(curve, rows=1000), torch.eye(2))


# ---------------------------------------------------------------- in a run

ENDS = torch.tensor([[0.9, 0.1], [0.4, 0.6]])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose ends were found to be those."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("paretocosmos.training.seed_run.find_useful_ends", lambda *_: ENDS)
        return _trained(tmp_path_factory.mktemp("calibrated") / "run")


def _trained(out: Path, model: nn.Module | None = None) -> Run:
    settings = {} if model is not None else {"hidden": (8,)}
    return fit("toy_convex", model=model, epochs=3, settings=settings, out=out, device="cpu")


def test_loading_keeps_the_ends(run: Run) -> None:
    loaded = load_run(run.folder)
    for model in (run.model, loaded.model):
        assert isinstance(model, Conditioning)
        assert model.ends is not None
        assert torch.equal(model.ends, ENDS)
    problem = load_problem("toy_convex")
    for split, front in (("test", run.front), ("val", run.front_val)):
        again = evaluate(loaded.model, problem, split=split, rays=25)
        assert np.array_equal(again.values, front.values)
        assert np.array_equal(again.rays, front.rays)


def test_the_corners_are_answered_by_the_ends(run: Run) -> None:
    assert run.front.rays[[0, -1]].tolist() == [[1, 0], [0, 1]]
    model = load_run(run.folder).model
    problem = load_problem("toy_convex")
    corners = evaluate(model, problem, rays=torch.eye(2))
    assert isinstance(model, Conditioning)
    model.ends = None
    ends = evaluate(model, problem, rays=ENDS)
    np.testing.assert_allclose(corners.values, ends.values, rtol=1e-6)
    assert not np.allclose(corners.values, evaluate(model, problem, rays=torch.eye(2)).values)


def test_a_calibrated_network_that_is_trained_again_hears_the_whole_simplex(
    run: Run, tmp_path: Path
) -> None:
    free = copy.deepcopy(run.model)
    assert isinstance(free, Conditioning)
    free.ends = None
    again = _trained(tmp_path / "again", model=run.model)
    assert again.front == _trained(tmp_path / "free", model=free).front
    assert isinstance(run.model, Conditioning)
    assert run.model.ends is not None
    assert torch.equal(run.model.ends, ENDS)  # a copy was trained
