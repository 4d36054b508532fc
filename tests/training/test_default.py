"""Trainings under the default preset: the same bits, stacks, engines, patience and units."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.resumed import results, stop_at

from paretocosmos import fit
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.runs import Run, find_newest_checkpoint, load_tensors

SEEDS = (1, 2, 3)
SETTINGS: dict[str, Any] = {"hidden": (8,), "evaluate_every": 2, "rays": 9}


@pytest.fixture(scope="module")
def table() -> TabularProblem:
    """2800 rows to train on: more than the scales of losses are taken from."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({name: draw.normal(size=4000) for name in "abc"})
    frame["sex"] = np.where(frame["b"] + draw.normal(size=4000) > 0, "f", "m")
    frame["paid"] = frame["a"] + frame["b"] + draw.normal(size=4000) > 0
    return TabularProblem.from_frame(frame, target="paid", sensitive="sex")


def _go(out: Path, problem: str | Problem, **changes: Any) -> list[Run]:
    given: dict[str, Any] = {"epochs": 4, "device": "cpu", "engine": "eager", "settings": SETTINGS}
    given["conditioning"] = "film"  # as everything but tables has
    found: Run | list[Run] = fit(problem, out=out, **given | changes)
    return found if isinstance(found, list) else [found]


def _alone(out: Path, problem: str | Problem, **changes: Any) -> list[Run]:
    """Every seed by a call of its own."""
    return [run for seed in SEEDS for run in _go(out / str(seed), problem, seed=seed, **changes)]


def _near(ones: list[Run], others: list[Run], *, atol: float = 1e-8) -> None:
    """Fronts, ends of the simplex and weights, up to rounding in float64."""
    assert len(ones) == len(others)
    for one, two in zip(ones, others, strict=True):
        assert one.record["epoch_selected"] == two.record["epoch_selected"]
        assert (
            dict(one.record["evaluations"][-1])["epoch"] == two.record["evaluations"][-1]["epoch"]
        )
        states = one.model.state_dict(), two.model.state_dict()
        assert set(states[0]) == set(states[1])
        for name, value in states[0].items():
            torch.testing.assert_close(value, states[1][name], rtol=0, atol=atol, msg=name)
        for front, other in ((one.front, two.front), (one.front_val, two.front_val)):
            np.testing.assert_allclose(front.values, other.values, rtol=0, atol=atol)


# ---------------------------------------------------------------- the same bits


@pytest.mark.system
@pytest.mark.parametrize("epoch", [1, 2, 4])
def test_cut_short_it_goes_on_as_if_it_had_not_been(
    table: TabularProblem, tmp_path: Path, epoch: int
) -> None:
    whole = _go(tmp_path / "whole", table)
    with pytest.raises(InterruptedError):
        _go(tmp_path / "cut", table, progress=stop_at(epoch))
    torch.rand(11)
    seen: list[int] = []
    again = _go(tmp_path / "cut", table, resume=True, progress=lambda at: seen.append(at.epoch))
    assert seen == list(range(epoch + 1, 5))
    assert results(again[0].folder) == results(whole[0].folder)
    kept, cut = (load_tensors(find_newest_checkpoint(run[0].folder))[0] for run in (whole, again))
    assert set(kept) == set(cut)
    assert any("average" in name for name in kept)
    assert any("loss_scales" in name for name in kept)
    assert all(torch.equal(value, cut[name]) for name, value in kept.items())


def test_averaged_weights_are_kept_and_those_trained_go_on(
    table: TabularProblem, tmp_path: Path
) -> None:
    (run,) = _go(tmp_path / "run", table, settings=SETTINGS | {"evaluate_every": 4})
    tensors, _ = load_tensors(find_newest_checkpoint(run.folder))
    state = run.model.state_dict()
    for name in (name for name in state if name != "ends"):
        assert torch.equal(state[name], tensors[f"optimiser.{name}.average"]), name
        assert not torch.equal(state[name], tensors[f"model.{name}"]), name


# ---------------------------------------------------------------- the same up to rounding


@pytest.mark.system
def test_patience_ends_early_in_a_stack_as_alone(table: TabularProblem, tmp_path: Path) -> None:
    settings = SETTINGS | {"patience": 2, "evaluate_every": 1, "learning_rate": 0.03}
    given: dict[str, Any] = {"epochs": 30, "settings": settings, "precision": "fp64"}
    given["backbone"] = "mlp"  # steps as large as these make much of rounding in eight members
    stacked = _go(tmp_path / "stack", table, seeds=SEEDS, **given)
    alone = _alone(tmp_path / "alone", table, **given)
    ended = []
    for run in alone:
        ended.append(run.record["evaluations"][-1]["epoch"])
        assert ended[-1] == run.record["epoch_selected"] + 2
        assert len(run.record["evaluations"]) == ended[-1]
    assert max(ended) < 30
    assert len(set(ended)) > 1  # one waits for another in the stack, and stays what it was
    _near(stacked, alone, atol=1e-6)
    (patient,) = _go(
        tmp_path / "patient", table, **given | {"settings": settings | {"patience": 0}}
    )
    assert len(patient.record["evaluations"]) == 30


# ---------------------------------------------------------------- what it promises


def test_the_convex_front_is_found_from_corner_to_corner(tmp_path: Path) -> None:
    """With nothing set: in order, on the front, and as far as both ends."""
    run = fit("toy_convex", out=tmp_path / "run", device="cpu")
    assert run.record["preset"] == "default"
    assert run.record["method"]["name"] == "cosmos"
    assert run.front.rays[[0, -1]].tolist() == [[1, 0], [0, 1]]
    for split in ("val", "test"):
        assert run.record["metrics"][split]["monotonicity"] == 1
    assert (np.diff(run.front.values, axis=0) * [1, -1] > 0).all()
    first, second = run.front.values.T
    assert np.abs(np.sqrt(first) + np.sqrt(second) - 1).max() < 0.02
    assert first[0] < 0.02
    assert second[-1] < 0.02
