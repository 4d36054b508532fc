"""Trainings that are judged on data that is read: as if it were in memory, and what goes wrong."""

import json
import math
import os
import re
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.processes import run_python
from tests.resumed import results
from tests.streams import Heads, Pictures, Sample, Stream, Task, problem_of
from torch import Tensor
from torch.utils.data import DataLoader, WeightedRandomSampler, default_collate

from paretocosmos import DataProblem, Run, fit
from paretocosmos.errors import DataError, FindingWarning, ParetoCosmosError
from paretocosmos.evaluation import evaluate as evaluation
from paretocosmos.evaluation import samples
from paretocosmos.objectives import CrossEntropy, MeanSquaredError, accuracy
from paretocosmos.runs import list_checkpoints
from paretocosmos.types import Targets

pytestmark = pytest.mark.filterwarnings(f"ignore::{FindingWarning.__module__}.FindingWarning")
SETTINGS: dict[str, Any] = {"rays_per_batch": 2, "rays": 3, "calibrate": False, "evaluate_every": 1}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From then on no split is small enough to be kept, and no outputs are."""

    def begin() -> None:
        monkeypatch.setattr(samples, "HELD", 0)
        monkeypatch.setattr(evaluation, "WHOLE", 0)
        monkeypatch.setattr(evaluation, "BLOCK", 20_000)

    return begin


def _fit(problem: DataProblem, out: Path, *, epochs: int = 3, **given: Any) -> Run:
    torch.manual_seed(1)
    settings = SETTINGS | ({} if problem.batch_size else {"batch_size": 8})
    settings |= given.pop("settings", {})
    asked: dict[str, Any] = {"progress": False, "report": False, "engine": "eager"} | given
    return fit(
        problem,
        backbone=Heads(),
        conditioning="film",
        settings=settings,
        epochs=epochs,
        out=out,
        **asked,
    )


def _sign(outputs: Any, targets: Targets) -> Tensor:
    """Needs all outputs at once, for want of a word that it adds up."""
    return outputs["sign"].std()


def _right(outputs: Any, targets: Targets) -> Tensor:
    return accuracy(outputs, targets, output="sign")


class _Random(Stream):
    """Draws from torch's generator, as a transform may."""

    def __iter__(self) -> Iterator[Sample]:
        for sample in super().__iter__():
            torch.rand(3)
            yield sample


def _kinds(count: int) -> dict[str, Any]:
    rows = Pictures(count, 2)
    order = WeightedRandomSampler([1.0] * count, count, replacement=False)
    return {
        "dataset": rows,
        "loader": DataLoader(rows, batch_size=50, shuffle=True),
        "sampler": DataLoader(rows, batch_size=50, sampler=order),
        "stream": _Random(count),
    }


@pytest.mark.parametrize("kind", ["dataset", "loader", "sampler", "stream"])
def test_a_split_that_is_read_gives_what_one_in_memory_gives(
    kind: str, read: Callable[[], None], tmp_path: Path
) -> None:
    def run(out: Path) -> Run:
        val, test = _kinds(1010)[kind], _kinds(70)[kind]
        metrics: dict[str, Any] = {"right": _right, "sign": _sign}
        problem = problem_of(Pictures(16), val=val, test=test, metrics=metrics, gather=True)
        return _fit(problem, out, settings={"calibrate": True})

    held = run(tmp_path / "held")
    read()
    streamed = run(tmp_path / "read")
    for name in ("front", "front_val"):
        one, two = getattr(held, name), getattr(streamed, name)
        np.testing.assert_allclose(two.values, one.values, rtol=1e-6, atol=1e-7)
        for metric in ("right", "sign"):
            np.testing.assert_allclose(two.metrics[metric], one.metrics[metric], rtol=1e-5)
    assert held.record["epoch_selected"] == streamed.record["epoch_selected"]
    assert torch.equal(held.model.ends, streamed.model.ends)  # type: ignore[arg-type]
    for one, two in zip(held.record["evaluations"], streamed.record["evaluations"], strict=True):
        assert two["hypervolume_val"] == pytest.approx(one["hypervolume_val"], rel=1e-6)
        assert two["losses"] == one["losses"]


def test_no_more_than_a_few_batches_are_in_memory(read: Callable[[], None], tmp_path: Path) -> None:
    alive: list[int] = []
    there: weakref.WeakSet[Tensor] = weakref.WeakSet()

    def noted(rows: Any) -> Any:
        batch = default_collate(rows)
        there.add(batch["image"])
        alive.append(len(there))
        return batch

    read()
    loader = DataLoader(Pictures(300, 2), batch_size=10, collate_fn=noted)
    problem = problem_of(Pictures(16), val=loader, test=loader)
    _fit(problem, tmp_path / "run", epochs=1)
    assert len(alive) > 90
    assert max(alive) <= 4


STRICT = (
    CrossEntropy(name="sign", output="sign"),
    MeanSquaredError(name="size", output="size", target="mean"),
)


def test_every_objective_is_judged_on_its_own_source(
    read: Callable[[], None], tmp_path: Path
) -> None:
    tasks = Task(60, "label"), Task(25, "mean", 2)
    loaders = {
        "sign": DataLoader(tasks[0], batch_size=8),
        "size": DataLoader(tasks[1], batch_size=4),
    }

    def run(out: Path) -> Run:
        problem = problem_of(loaders, val=loaders, test=loaders, objectives=STRICT)
        return _fit(problem, out)

    held = run(tmp_path / "held")
    read()
    streamed = run(tmp_path / "read")
    np.testing.assert_allclose(streamed.front.values, held.front.values, rtol=1e-6)
    assert held.record["epoch_selected"] == streamed.record["epoch_selected"]
    expected = []
    with torch.no_grad():
        for ray in torch.tensor(streamed.front.rays).float():
            (x, y), (u, v) = (
                default_collate([task[row] for row in range(len(task))]) for task in tasks
            )
            sign = F.cross_entropy(streamed.model(x, ray)["sign"], y)
            expected.append([sign, F.mse_loss(streamed.model(u, ray)["size"], v)])
    np.testing.assert_allclose(streamed.front.values, np.array(expected), rtol=1e-5)
    choice = streamed.choose(knee=True)
    assert set(choice.test.intervals) == {"sign", "size"}
    least = float(streamed.front_val.values[:, 0].min())
    sure = streamed.choose(max={"sign": 2 * least + 1}, minimize="size", confidence=0.9)
    assert sure.val["sign"] <= 2 * least + 1


# ---------------------------------------------------------------- what goes wrong in the middle


SOUND = 10**6


class _Breaks:
    """Batches that are as they should be until so many passes were made."""

    def __init__(self, sound: int, broken: Callable[[int, Any], Any]) -> None:
        self.sound, self.broken, self.passes = sound, broken, 0

    def __iter__(self) -> Iterator[Any]:
        self.passes += 1
        rows = Pictures(24, 2)
        for place in range(3):
            batch = default_collate([rows[row] for row in range(8 * place, 8 * place + 8)])
            if self.passes > self.sound:
                batch = self.broken(place, batch)
            if batch is None:
                return
            yield batch


class _Sized(_Breaks):
    def __len__(self) -> int:
        return 3


def _lost(place: int, batch: Any) -> Any:
    raise OSError("the disk is gone")


def _ends(place: int, batch: Any) -> Any:
    return None if place else batch


def _nothing(place: int, batch: Any) -> Any:
    return None


def _with(**changes: Tensor) -> Callable[[int, Any], Any]:
    return lambda place, batch: batch | (changes if place == 1 else {})


BROKEN: dict[str, tuple[Callable[[int, Any], Any], bool, str]] = {
    "gone": (_lost, False, r"a batch of `val` of `pictures` cannot be read \(OSError"),
    "ends": (_ends, True, "`val` of `pictures` ended after 1 of 3 batches"),
    "fewer": (_ends, False, "8 samples this time and had 24 before"),
    "nothing": (_nothing, False, "yields nothing"),
    "nan": (
        _with(image=torch.full((8, 2, 3, 3), math.nan)),
        False,
        "batch 2 of `val` of `pictures` has NaN in its inputs",
    ),
    "label": (
        _with(label=torch.full((8,), 2)),
        False,
        "labels of `label` must be 0 to 1.*batch 2 of",
    ),
    "shape": (_with(image=torch.zeros(8, 2, 3, 4)), False, "the network cannot take it"),
    "type": (_with(image=torch.zeros(8, 2, 3, 3).double()), False, "of the same types"),
    "key": (lambda place, batch: {"image": batch["image"]}, False, "say with `targets`"),
}


@pytest.mark.system
@pytest.mark.parametrize("case", BROKEN)
def test_what_goes_wrong_in_a_validation_loses_nothing(
    case: str, read: Callable[[], None], tmp_path: Path
) -> None:
    broken, length, words = BROKEN[case]

    def problem(sound: int) -> DataProblem:
        val = (_Sized if length else _Breaks)(sound, broken)
        return problem_of(Pictures(16, noise=True), val=val)

    read()
    passes: list[int] = []
    whole = problem(SOUND)
    expected = _fit(whole, tmp_path / "whole", progress=lambda _: passes.append(whole.val.passes))
    with pytest.raises(ParetoCosmosError, match=words) as found:
        _fit(problem(passes[0]), tmp_path / "run")  # sound until the second validation
    said = str(found.value)
    assert "\n" not in said
    if isinstance(found.value, DataError):
        assert f"kept in `{tmp_path / 'run'}`: go on from it with resume=True" in said
    assert (
        max(list_checkpoints(tmp_path / "run")) == 2
    )  # with the steps of the epoch that was not judged
    _fit(problem(SOUND), tmp_path / "run", resume=True)
    assert results(tmp_path / "run") == results(expected.folder)
    judged = json.loads((tmp_path / "run" / "run.json").read_text())["evaluations"]
    assert [one["epoch"] for one in judged] == [1, 2, 3]


class _Dies(Pictures):
    """A worker process that reads it ends, once a file is there."""

    def __init__(self, count: int, file: Path) -> None:
        super().__init__(count)
        self.file = file

    def __getitem__(self, row: int) -> Sample:
        if row == 5 and self.file.exists():
            os._exit(3)
        return super().__getitem__(row)


def _train_with_a_worker(folder: Path, *, dying: bool = False, **given: Any) -> Run:
    """Train, judged on what a worker reads; it dies after the first epoch, if it is to."""
    deadly = folder / "deadly"
    loader = DataLoader(_Dies(8, deadly), batch_size=4, num_workers=1)
    problem = problem_of(Pictures(16), val=loader)
    progress: Any = (lambda _: deadly.touch()) if dying else False
    return _fit(problem, folder / "run", epochs=2, progress=progress, **given)


@pytest.mark.system
def test_a_worker_that_dies_in_a_validation_loses_nothing(tmp_path: Path) -> None:
    """In a process of its own, since torch raises the death once more whenever the signal comes."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from paretocosmos.errors import DataError\n"
        "from paretocosmos.evaluation import samples\n"
        "from tests.training.test_validated import _train_with_a_worker\n"
        "samples.HELD = 0\n"
        "folder = Path(sys.argv[1])\n"
        "try:\n"
        "    _train_with_a_worker(folder / 'broken', dying=True)\n"
        "except DataError as error:\n"
        "    print(error, flush=True)\n"
        "(folder / 'broken' / 'deadly').unlink()\n"
        "for name in ('sound', 'broken'):\n"
        "    _train_with_a_worker(folder / name, resume=name == 'broken')\n"
    )
    for name in ("sound", "broken"):
        (tmp_path / name).mkdir()
    said = run_python(code, tmp_path)
    # of the data as a whole, where the signal came while nothing was read
    assert re.search(r"reads (`val`|the data) of `pictures` has died.*resume=True", said)
    assert results(tmp_path / "broken" / "run") == results(tmp_path / "sound" / "run")


def test_the_death_of_a_worker_is_told_wherever_torch_raises_it(tmp_path: Path) -> None:
    def die(_at: Any) -> None:
        raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")

    with pytest.raises(DataError, match=r"the data of `pictures` has died.*`workers`.*resume=True"):
        _fit(problem_of(Pictures(16)), tmp_path / "run", progress=die)
