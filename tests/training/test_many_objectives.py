"""Forty objectives, more than a hypervolume is known for: all the rest works."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos import Front, Problem, compare, fit, hypervolume, load_run
from paretocosmos.errors import FrontWarning
from paretocosmos.methods import Linear
from paretocosmos.objectives import Objective
from paretocosmos.types import Batch, Outputs, Targets

MANY = 40


class Aim(Objective):
    """The distance to a number of its own, which one of three outputs has to answer for."""

    def __init__(self, place: int = 0) -> None:
        super().__init__(name=f"aim_{place}", target="aims")
        self.place = place

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return (outputs[:, self.place % 3] - targets["aims"][:, self.place]).square().mean()

    score = loss


@dataclass(frozen=True, kw_only=True, eq=False)
class Aims(Problem):
    def split(self, name: str) -> Batch:
        generator = torch.Generator().manual_seed(0)
        aims = torch.randn(64, MANY, generator=generator)
        return Batch(torch.randn(64, 4, generator=generator), {"aims": aims})


def _problem() -> Aims:
    objectives = tuple(Aim(place) for place in range(MANY))
    return Aims(
        name="aims", objectives=objectives, reference=(9,) * MANY, input_shape=(4,), outputs=3
    )


def _front(objectives: int) -> Front:
    rays = np.full((2, objectives), 1 / objectives)
    names = tuple(f"aim_{place}" for place in range(objectives))
    values = np.stack([np.zeros(objectives), np.full(objectives, 0.5)])
    return Front(rays, values, names, np.ones(objectives))


def test_a_hypervolume_is_known_for_31_objectives() -> None:
    assert hypervolume(_front(31)) == pytest.approx(1, rel=0.1)  # of the unit cube, estimated
    for how in ("auto", "exact", "approximate"):
        with pytest.warns(FrontWarning, match="31 objectives, found 32"):
            assert math.isnan(hypervolume(_front(32), how=how))


@pytest.mark.filterwarnings("ignore:the hypervolume is known")
def test_the_better_epoch_has_the_better_quality() -> None:
    good, bad = _front(MANY).take([0]), _front(MANY).take([1])
    method = Linear()
    assert method.quality(good) > method.quality(bad)
    assert method.quality(bad) == pytest.approx(-0.5)


@pytest.mark.filterwarnings("ignore:more weight raises", "ignore:the ray", "ignore:steps were run")
def test_it_is_trained_saved_read_and_chosen_from(tmp_path: Path) -> None:
    with pytest.warns(FrontWarning, match="hypervolume is known for at most 31"):
        run = fit(_problem(), backbone="mlp", epochs=2, engine="eager", out=tmp_path / "run")
    assert run.explore(out=tmp_path / "page.html").path.stat().st_size > 0
    assert run.front.values.shape[1] == MANY
    assert math.isnan(run.hypervolume)
    assert "hypervolume -" in repr(run)
    read = load_run(run.folder, trust=["tests"])
    np.testing.assert_array_equal(read.front.values, run.front.values)
    assert read.record["metrics"]["test"]["hypervolume"] is None
    assert read.record["metrics"]["test"]["hypervolume_ideal"] > 0
    bound = float(np.median(run.front_val.values[:, 3]))
    with pytest.warns(FrontWarning, match="rows that the network was trained on"):
        choice = read.choose(max={"aim_3": bound}, problem=_problem())
    assert choice.val["aim_3"] <= bound


def test_each_corner_is_better_for_its_objective_than_equal_weights(tmp_path: Path) -> None:
    torch.manual_seed(1)
    x = torch.randn(1024, 10)
    targets = {f"task_{j}": (x @ torch.randn(10, 1)).tanh() for j in range(20)}
    network = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
    losses = dict.fromkeys(targets, F.mse_loss)
    run = fit(
        network, (x, *targets.values()), losses, epochs=20, out=tmp_path / "run", report=False
    )
    model: Any = run.model
    equal = model(x, torch.full((20,), 1 / 20))
    corners = model.each_ray(x, torch.eye(20))
    for corner, target in zip(corners, targets.values(), strict=True):
        assert F.mse_loss(corner, target) < F.mse_loss(equal, target)
    # the corners are in the front, with as many rays between them
    assert run.front.rays.shape == (40, 20)
    np.testing.assert_array_equal(run.front.rays[:20], np.eye(20))


@pytest.mark.filterwarnings("ignore::paretocosmos.errors.FrontWarning")
@pytest.mark.filterwarnings("ignore:constrained_layout", "ignore:steps were run")
def test_methods_are_compared_by_the_rest(tmp_path: Path) -> None:
    done = compare(
        _problem(),
        ["linear", "cosmos"],
        backbone="mlp",
        epochs=1,
        seeds=[1, 2],
        engine="eager",
        out=tmp_path / "compared",
    )
    assert [row["hypervolume"] for row in done.rows] == [None, None]
    assert all(row["monotonicity"] is not None for row in done.rows)
