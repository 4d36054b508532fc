"""What loggers share: what a training tells is handed on, and nothing else."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.resumed import stop_at

from paretocosmos import Front, Run, fit
from paretocosmos.errors import ConfigurationError, MissingExtraError
from paretocosmos.integrations.loggers import (
    LOGGERS,
    RunLogger,
    compute_identity,
    make_logger,
    select_settings,
)
from paretocosmos.training.callbacks import Start


class Notes(RunLogger[str]):
    """A tool that keeps everything in lists."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[Start] = []
        self.numbers: list[tuple[int, dict[str, float]]] = []
        self.fronts: list[tuple[int, Front]] = []
        self.ends: list[Run | None] = []

    def _begin(self, start: Start) -> str:
        self.begun.append(start)
        return start.name

    def _log_numbers(self, log: str, numbers: Mapping[str, float], epoch: int) -> None:
        assert log == self.begun[-1].name
        assert all(np.isfinite(value) for value in numbers.values())
        self.numbers.append((epoch, dict(numbers)))

    def _log_front(self, log: str, front: Front, epoch: int) -> None:
        self.fronts.append((epoch, front))

    def _end(self, log: str, run: Run | None) -> None:
        self.ends.append(run)

    def told(self, name: str) -> dict[int, float]:
        """A number by epoch."""
        return {epoch: every[name] for epoch, every in self.numbers if name in every}


def _go(folder: Path, notes: Notes, **given: object) -> Run:
    settings = {"evaluate_every": 2}
    return fit(  # type: ignore[call-overload]
        "toy_convex",
        epochs=3,
        engine="eager",
        settings=settings,
        out=folder,
        callbacks=[notes],
        **given,
    )


def test_a_training_is_told_as_its_record_has_it(tmp_path: Path) -> None:
    notes = Notes()
    run = _go(tmp_path / "run", notes)
    evaluations = run.record["evaluations"]
    assert notes.told("hypervolume/val") == {
        one["epoch"]: one["hypervolume_val"] for one in evaluations
    }
    assert list(notes.told("loss/first")) == [1, 2, 3]
    assert notes.told("loss/second")[3] == evaluations[-1]["losses"]["second"]
    assert all(speed > 0 for speed in notes.told("samples_per_second").values())
    judged = run.record["metrics"]["test"]
    assert notes.told("hypervolume/test") == {3: judged["hypervolume"]}
    assert [(epoch, front.split) for epoch, front in notes.fronts] == [
        *((one["epoch"], "val") for one in evaluations),
        (3, "test"),
    ]
    last = notes.fronts[-2][1].values
    assert notes.told("front_val/first least")[3] == last[:, 0].min()
    assert notes.told("front_val/second most")[3] == last[:, 1].max()
    assert notes.fronts[-1][1] == run.front
    assert [end.folder for end in notes.ends if end is not None] == [run.folder]


def test_a_resumed_training_is_known_again_and_another_one_is_not(tmp_path: Path) -> None:
    notes = Notes()
    with pytest.raises(InterruptedError):
        _go(tmp_path / "run", notes, progress=stop_at(2))
    assert notes.ends == [None]
    _go(tmp_path / "run", notes, resume=True)
    _go(tmp_path / "other", notes, seed=2)
    first, resumed, other = notes.begun
    assert (first.epoch, resumed.epoch) == (0, 2)
    assert compute_identity(first) == compute_identity(resumed) != compute_identity(other)
    assert select_settings(first)["training"]["epochs"] == 3
    assert not {"git", "about"} & select_settings(first).keys()


def test_what_was_never_begun_is_not_ended(tmp_path: Path) -> None:
    notes = Notes()
    notes.stopped(tmp_path, "no disk")
    assert notes.ends == []


@pytest.mark.parametrize("name", LOGGERS)
def test_a_missing_package_is_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=rf'pip install "paretocosmos\[{name}\]"'):
        make_logger(name)


def test_an_unknown_name_suggests_the_closest() -> None:
    with pytest.raises(ConfigurationError, match="did you mean `tensorboard`"):
        make_logger("tensorbord")
