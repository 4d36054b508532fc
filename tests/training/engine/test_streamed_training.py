"""Whole trainings on streamed data against the same on data that lies on the device."""

import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.small import few_digits, watch

from paretocosmos import Run, fit
from paretocosmos.errors import DataError
from paretocosmos.evaluation import samples
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.runs import find_newest_checkpoint, load_tensors
from paretocosmos.training import engine
from paretocosmos.training.engine import THREAD, batch_source
from paretocosmos.training.progress import Progress

IMAGES: dict[str, Any] = {
    "batch_size": 32,
    "rays_per_batch": 2,
    "rays": 5,
    "evaluate_every": 1,
    "reference": (4.0, 4.0),
}
TABLE: dict[str, Any] = {"batch_size": 100, "rays": 5}  # five of 100 and one of 12


@pytest.fixture(scope="module")
def digits() -> ImageProblem:
    return few_digits(train=141)  # four batches of 32 and one of 13, which gives 12


Both = Callable[..., tuple[Any, Any]]


def _stream(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, samples):
        monkeypatch.setattr(module, "fits_on_device", lambda *given, **named: False)


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """A training with its data on the device, and streamed."""

    def train(problem: Any, **given: Any) -> tuple[Any, Any]:
        given = {"epochs": 2, "device": "cpu", **given}
        resident = fit(problem, preset="paper", out=tmp_path / "resident", **given)
        with pytest.MonkeyPatch.context() as patched:
            _stream(patched)
            return resident, fit(problem, preset="paper", out=tmp_path / "streamed", **given)

    return train


def _same(resident: Run, streamed: Run) -> None:
    assert (resident.record["data"], streamed.record["data"]) == ("on the device", "streamed")
    assert streamed.front == resident.front
    assert streamed.front_val == resident.front_val
    one, two = (load_tensors(find_newest_checkpoint(run.folder))[0] for run in (resident, streamed))
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert torch.equal(value, two[name]), name
    for before, after in zip(
        resident.record["evaluations"], streamed.record["evaluations"], strict=True
    ):
        assert before["losses"] == after["losses"]
    assert resident.record["share_waiting"] == 0
    assert 0 <= streamed.record["share_waiting"] < 1
    assert not [thread for thread in threading.enumerate() if thread.name == THREAD]


@pytest.mark.parametrize("engine", ["eager", "traced"])
def test_streamed_images_train_the_same_network(
    both: Both, digits: ImageProblem, engine: str
) -> None:
    runs = both(digits, settings=IMAGES, engine=engine)
    _same(*runs)
    assert [run.record["engine"] for run in runs] == [engine] * 2


@pytest.mark.parametrize("precision", ["tf32", "fp64"])
def test_streamed_rows_train_the_same_network(both: Both, precision: str) -> None:
    _same(*both("toy_convex", settings=TABLE | {"rays_per_batch": 4}, precision=precision))


# ---------------------------------------------------------------- when it goes wrong


def test_data_that_goes_away_ends_the_training_and_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, both: Both
) -> None:
    resident, _ = both("toy_convex", settings=TABLE)
    _stream(monkeypatch)
    calls = itertools.count(1)

    def fail(*_: object) -> None:
        if next(calls) == 12:  # after two to prepare and six of the first epoch
            raise OSError("the disk is gone")

    watch(monkeypatch, batch_source._Slot, "fill", fail)
    given: dict[str, Any] = {"epochs": 2, "device": "cpu", "settings": TABLE}
    with pytest.raises(DataError, match="OSError: the disk is gone"):
        fit("toy_convex", preset="paper", out=tmp_path / "cut", **given)
    assert not [thread for thread in threading.enumerate() if thread.name == THREAD]
    assert load_tensors(find_newest_checkpoint(tmp_path / "cut"))[1]["epoch"] == 1
    _same(resident, fit("toy_convex", preset="paper", out=tmp_path / "cut", resume=True, **given))


# ---------------------------------------------------------------- what it says of itself


@pytest.mark.system
def test_progress_and_record_say_what_it_costs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, digits: ImageProblem
) -> None:
    _stream(monkeypatch)
    # longer than a step
    watch(monkeypatch, batch_source._Slot, "fill", lambda *_: time.sleep(0.03))
    seen: list[Progress] = []
    run = fit(
        digits,
        preset="paper",
        epochs=3,
        settings=IMAGES | {"evaluate_every": 2},
        device="cpu",
        out=tmp_path / "run",
        progress=seen.append,
    )
    seconds = np.diff([0.0, *(at.seconds for at in seen)])
    for at, own in zip(seen, seconds, strict=True):
        assert at.unit == "images"
        assert at.samples_per_second == pytest.approx(141 / own)
        assert 0 < at.waiting < 1
        assert at.memory is not None
        assert at.memory > 50 * 2**20  # torch alone
        assert (at.seconds_left > 0) == (at.epoch < 3)
    record = run.record
    assert record["samples_per_second"] == pytest.approx(3 * 141 / record["seconds_training"])
    waited = sum(at.waiting * own for at, own in zip(seen, seconds, strict=True))
    assert record["share_waiting"] == pytest.approx(waited / record["seconds_training"])
    assert record["peak_memory"] >= (seen[-1].memory or 0)
