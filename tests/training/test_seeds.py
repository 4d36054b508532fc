"""Several seeds at once against each alone: stacked, in turn, cut short, out of memory."""

import dataclasses
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest
import torch
from tests.resumed import results, stop_at
from tests.small import Joined, few_digits, watch
from torch import Tensor, nn

from paretocosmos import fit
from paretocosmos.errors import DivergedError, RunError
from paretocosmos.problems import Problem, load_problem
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.runs import Run, find_newest_checkpoint, load_run, load_tensors
from paretocosmos.training import fit as training
from paretocosmos.training.engine import Optimizer
from paretocosmos.training.loop import Trainer
from paretocosmos.training.progress import Progress
from paretocosmos.training.seed_run import SeedRun

SEEDS = (1, 2, 3)
NEAR = 1e-8  # in float64, after twenty steps


@pytest.fixture(scope="module")
def table() -> TabularProblem:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({name: draw.normal(size=300) for name in "abc"})
    frame["sex"] = draw.choice(["f", "m"], 300)
    frame["paid"] = frame["a"] + draw.normal(size=300) > 0
    return TabularProblem.from_frame(frame, target="paid", sensitive="sex")


@pytest.fixture(scope="module")
def digits() -> Problem:
    """A few images, kept as bytes."""
    problem = few_digits(train=195, val=40, test=40)
    # without its name there are no settings of the paper's to come first
    return dataclasses.replace(problem, spec=None)


# Small enough to be stacked on a CPU; batches of two sizes and a validation now and then.
SETTINGS: dict[str, Any] = {
    "hidden": (8,),
    "batch_size": 200,
    "rays_per_batch": 4,
    "evaluate_every": 2,
}


def _go(out: Path, problem: str | Problem = "toy_convex", **changes: Any) -> list[Run]:
    given: dict[str, Any] = {"epochs": 4, "settings": SETTINGS, "seeds": SEEDS}
    given |= {"device": "cpu", "engine": "eager"}  # recording takes longer than these trainings
    found: Run | list[Run] = fit(problem, preset="paper", out=out, **given | changes)
    return found if isinstance(found, list) else [found]


def _alone(out: Path, problem: str | Problem = "toy_convex", **changes: Any) -> list[Run]:
    """Every seed by a call of its own, in the same places."""
    seeds = changes.pop("seeds", SEEDS)
    runs = []
    for seed in seeds:
        runs += _go(out / f"seed-{seed}", problem, **changes, seed=seed, seeds=None)
    return runs


def _bytes(run: Run) -> list[bytes]:
    return results(run.folder)


def _near(ones: list[Run], others: list[Run]) -> None:
    """The last checkpoints (weights, moments, generators), the selected models and the fronts."""
    assert len(ones) == len(others)
    for one, two in zip(ones, others, strict=True):
        assert one.record["seed"] == two.record["seed"]
        saved = [load_tensors(find_newest_checkpoint(run.folder))[0] for run in (one, two)]
        assert set(saved[0]) == set(saved[1])
        for name, value in saved[0].items():
            if name != "rng.torch":  # a stack has one, which nothing draws from
                torch.testing.assert_close(value, saved[1][name], rtol=0, atol=NEAR, msg=name)
        assert one.record["epoch_selected"] == two.record["epoch_selected"]
        for front, other in ((one.front, two.front), (one.front_val, two.front_val)):
            np.testing.assert_allclose(front.values, other.values, rtol=0, atol=1e-7)
            for name, values in front.metrics.items():
                np.testing.assert_allclose(values, other.metrics[name], rtol=0, atol=1e-7)


def _steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts optimiser steps, whichever engine takes them."""
    taken: list[int] = []
    watch(monkeypatch, Optimizer, "update", lambda *_: taken.append(1))
    return taken


# ---------------------------------------------------------------- the same as each alone


@pytest.mark.system
def test_a_stack_of_tables_is_each_alone_after_twenty_steps(
    table: TabularProblem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 210 rows to train on: three batches of 60 and one of 30, five times
    settings = {"batch_size": 60, "hidden": (9, 5), "evaluate_every": 5}
    given: dict[str, Any] = {"epochs": 5, "precision": "fp64", "settings": settings}
    given["engine"] = "traced"
    taken = _steps(monkeypatch)
    runs = _go(tmp_path / "together", table, **given)
    assert len(taken) == 20
    _near(runs, _alone(tmp_path / "alone", table, **given))
    assert len(taken) == 20 + 3 * 20
    for run, seed in zip(runs, SEEDS, strict=True):
        assert run.folder == tmp_path / "together" / f"seed-{seed}"
        assert run.record["seeds_together"] == 3
        assert run.record["engine"] == "traced"
        assert run.record["seed"] == seed
    fronts = [run.front for run in runs]
    assert fronts[0] != fronts[1] != fronts[2] != fronts[0]


@pytest.mark.system
@pytest.mark.parametrize("rays_per_batch", [1, 4])
def test_a_stack_of_images_is_each_alone_after_twenty_steps(
    digits: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rays_per_batch: int
) -> None:
    # 195 images: nine batches of 20 and one of 15, of which four rays share 12; twice
    settings: dict[str, Any] = {
        "batch_size": 20,
        "rays_per_batch": rays_per_batch,
        "rays": 5,
        "evaluate_every": 2,
    }
    settings["reference"] = (3.0, 3.0)  # twenty steps are not enough for 2
    given: dict[str, Any] = {"epochs": 2, "precision": "fp64", "settings": settings}
    alone = _alone(tmp_path / "alone", digits, **given)
    monkeypatch.setattr(training, "_should_stack", lambda plan, _: True)
    taken = _steps(monkeypatch)
    runs = _go(tmp_path / "together", digits, **given)
    assert len(taken) == 20
    _near(runs, alone)
    assert [run.record["seeds_together"] for run in runs] == [3, 3, 3]
    assert [run.record["seeds_together"] for run in alone] == [1, 1, 1]


def _layers(*between: nn.Module) -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(4, 8), *between, nn.ReLU(), nn.Linear(8, 2))


APART: dict[str, Callable[[], dict[str, Any]]] = {
    "dropout": lambda: {"backbone": _layers(nn.Dropout(0.3))},
    "batch norm": lambda: {"backbone": _layers(nn.BatchNorm1d(8))},
    "own network": lambda: {"model": Joined()},
}


@pytest.mark.parametrize("kind", APART)
def test_what_does_not_stack_runs_one_after_another(tmp_path: Path, kind: str) -> None:
    settings = {"batch_size": 200, "evaluate_every": 2}
    given = APART[kind]() | {"settings": settings}
    seen: list[tuple[int, Path]] = []
    runs = _go(tmp_path / "runs", **given, progress=lambda at: seen.append((at.epoch, at.folder)))
    alone = _alone(tmp_path / "alone", **given)
    assert [_bytes(run) for run in runs] == [_bytes(run) for run in alone]
    assert {run.record["seeds_together"] for run in runs} == {1}
    assert [epoch for epoch, _ in seen] == [1, 2, 3, 4] * 3
    assert len({_bytes(run)[0] for run in runs}) == 3


@pytest.mark.parametrize(
    ("settings", "together"),
    [({"hidden": (60, 25)}, True), ({"hidden": (600, 250)}, False)],
    ids=["small", "large"],
)
def test_a_cpu_stacks_small_networks_only(
    table: TabularProblem, tmp_path: Path, settings: dict[str, Any], together: bool
) -> None:
    runs = _go(tmp_path, table, epochs=1, settings=settings, seeds=(1, 2))
    assert [run.record["seeds_together"] for run in runs] == [2 if together else 1] * 2


# ---------------------------------------------------------------- what is said and left behind


def test_folders_records_and_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Progress] = []
    runs = _go(tmp_path / "runs", seeds=(7, 3), progress=seen.append)
    assert [run.record["seed"] for run in runs] == [7, 3]  # in the order asked for
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed-3", "seed-7"]
    for run in runs:
        again = load_run(run.folder)
        assert again.record == run.record
        assert again.front == run.front
    assert [at.epoch for at in seen] == [1, 2, 3, 4]
    assert {at.folder for at in seen} == {tmp_path / "runs" / "seed-7"}
    last = [run.record["evaluations"][-1] for run in runs]
    expected = sum(one["hypervolume_val"] for one in last) / 2
    assert seen[-1].hypervolume_val == pytest.approx(expected)
    for name, value in seen[-1].losses.items():
        assert value == pytest.approx(sum(one["losses"][name] for one in last) / 2, rel=1e-5)
    # the bar and the record tell the rate of both together
    samples = len(load_problem("toy_convex").split("train"))
    for run in runs:
        expected = 2 * 4 * samples / run.record["seconds_training"]
        assert run.record["samples_per_second"] == pytest.approx(expected)
    assert seen[0].samples_per_second == pytest.approx(2 * samples / seen[0].seconds)
    (one,) = _go(tmp_path / "one", seeds=(5,))
    assert one.folder == tmp_path / "one" / "seed-5"
    (alone,) = _go(tmp_path / "alone", seeds=None, seed=5)
    assert _bytes(one) == _bytes(alone)
    monkeypatch.chdir(tmp_path)
    named = fit("toy_convex", preset="paper", seeds=range(1, 3), epochs=1, settings=SETTINGS)
    assert [run.folder.as_posix() for run in named] == [
        "runs/toy_convex-cosmos-seeds/seed-1",
        "runs/toy_convex-cosmos-seeds/seed-2",
    ]


# ---------------------------------------------------------------- cut short


@pytest.mark.parametrize("epoch", [1, 2, 4])
def test_a_stack_cut_short_goes_on_as_if_it_had_not_been(tmp_path: Path, epoch: int) -> None:
    whole = _go(tmp_path / "whole")
    with pytest.raises(InterruptedError):
        _go(tmp_path / "cut", progress=stop_at(epoch))
    torch.rand(11)
    seen: list[int] = []
    runs = _go(tmp_path / "cut", resume=True, progress=lambda at: seen.append(at.epoch))
    assert seen == list(range(epoch + 1, 5))
    assert [_bytes(run) for run in runs] == [_bytes(run) for run in whole]


def test_seeds_that_stand_at_different_epochs_finish_right(tmp_path: Path) -> None:
    """A kill between two checkpoints leaves seeds apart; one folder may be lost altogether."""
    given: dict[str, Any] = {"precision": "fp64", "seeds": (1, 2, 3, 4)}
    whole, cut = _go(tmp_path / "whole", **given), tmp_path / "cut"
    kept: dict[int, Path] = {}

    def keep(at: Progress) -> None:
        kept[at.epoch] = tmp_path / f"at-{at.epoch}"
        shutil.copytree(cut, kept[at.epoch])
        if at.epoch == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        _go(cut, progress=keep, **given)
    for seed, epoch in ((2, 1), (4, 2)):  # rewound
        shutil.rmtree(cut / f"seed-{seed}")
        shutil.copytree(kept[epoch] / f"seed-{seed}", cut / f"seed-{seed}")
    shutil.rmtree(cut / "seed-3")
    runs = _go(cut, resume=True, **given)
    _near(runs, whole)
    # seeds 1 and 4 hold epoch 2, seeds 2 and 3 the beginning
    assert [run.record["seeds_together"] for run in runs] == [2, 2, 2, 2]


def test_one_seed_that_diverges_names_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = SeedRun.check_divergence

    def spoil(self: SeedRun, losses: Tensor) -> None:
        if self.plan.seed == 2 and self.epoch == 1:
            losses = losses.clone()
            losses[1, 0] = float("nan")
        inside(self, losses)

    with monkeypatch.context() as patch:
        patch.setattr(SeedRun, "check_divergence", spoil)
        says = r"`first`.*nan.*step 2 of epoch 2.*seed-2.*leave"
        with pytest.raises(DivergedError, match=says):
            _go(tmp_path / "cut", precision="fp64")
        epochs = {
            path.name: load_tensors(find_newest_checkpoint(path))[1]["epoch"]
            for path in (tmp_path / "cut").iterdir()
        }
        assert epochs.pop("seed-2") == 1
        assert set(epochs.values()) == {2}  # the others lost nothing
        with pytest.raises(DivergedError, match=says):  # together again, to the same end
            _go(tmp_path / "cut", resume=True, precision="fp64")
        _go(tmp_path / "cut", resume=True, precision="fp64", seeds=(1, 3))
        for name in epochs:
            assert load_run(tmp_path / "cut" / name).record["status"] == "finished"
    runs = _go(tmp_path / "cut", resume=True, precision="fp64")
    _near(runs, _go(tmp_path / "whole", precision="fp64"))


# ---------------------------------------------------------------- out of memory


def _full() -> NoReturn:
    raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


def test_too_many_for_the_memory_are_trained_in_smaller_stacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"seeds": (1, 2, 3, 4, 5), "precision": "fp64"}
    whole, tried = _go(tmp_path / "whole", **given), []

    def note(trainer: Trainer) -> None:
        tried.append([seed_run.plan.seed for seed_run in trainer.seed_runs])
        if len(trainer.seed_runs) > 2:
            _full()

    watch(monkeypatch, Trainer, "run", note)
    runs = _go(tmp_path / "cut", **given)
    assert tried == [[1, 2, 3, 4, 5], [1, 2], [3, 4, 5], [3], [4, 5]]
    assert [run.record["seeds_together"] for run in runs] == [2, 2, 1, 2, 2]
    _near(runs, whole)


def test_a_single_network_too_large_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs = itertools.count(1)
    whole = _go(tmp_path / "whole", seeds=None)
    with monkeypatch.context() as patch:
        watch(
            patch, Trainer, "train_epoch", lambda *_, **__: _full() if next(epochs) == 3 else None
        )
        with pytest.raises(RunError, match=r"out of memory.*`batch_size`") as told:
            _go(tmp_path / "cut", seeds=None)
    assert f"`{tmp_path / 'cut'}`" in str(told.value)
    assert "resume=True" in str(told.value)
    assert "\n" not in str(told.value)
    runs = _go(tmp_path / "cut", seeds=None, resume=True)
    assert _bytes(runs[0]) == _bytes(whole[0])


# ---------------------------------------------------------------- folders


def test_a_folder_of_one_run_and_one_of_several_are_not_mixed(tmp_path: Path) -> None:
    _go(tmp_path / "one", seeds=None, seed=1)
    with pytest.raises(RunError, match="one run, not of several"):
        _go(tmp_path / "one", resume=True)
    _go(tmp_path / "several", seeds=(1, 2))
    with pytest.raises(RunError, match=r"\(seed-1, seed-2\)"):
        load_run(tmp_path / "several")
