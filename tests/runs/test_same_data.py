"""A run goes on with its own data and its own checkpoints, or is refused."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.resumed import stop_at
from tests.streams import Heads, Pictures, Sample, problem_of
from torch.utils.data import DataLoader

from paretocosmos import Run, fit
from paretocosmos.errors import RunError
from paretocosmos.runs import find_newest_checkpoint, load_tensors, save_tensors
from paretocosmos.training.compare import compare

Lines = list[list[str]]
SETTINGS = {"target": "paid", "sensitive": "sex", "hidden": "4", "rays": 3, "batch_size": 32}
HOW: dict[str, Any] = {"preset": "paper", "device": "cpu", "engine": "eager", "report": False}


def _write(path: Path, change: Callable[[Lines], None] = lambda rows: None) -> None:
    draw = random.Random(0)
    rows = [[f"{draw.gauss(0, 1):.3f}", draw.choice("fm"), draw.choice("01")] for _ in range(120)]
    change(rows)
    path.write_text("\n".join(["skill,sex,paid", *(",".join(row) for row in rows)]) + "\n")


def _fit(folder: Path, **changes: Any) -> None:
    settings = SETTINGS | changes.pop("settings", {})
    out = changes.pop("out", folder / "run")
    given = {"epochs": 3, "settings": settings, "out": out} | HOW | changes
    fit(str(folder / "people.csv"), **given)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, and beside it a run on it that was stopped after its second epoch."""
    folder = tmp_path_factory.mktemp("begun")
    _write(folder / "people.csv")
    with pytest.raises(InterruptedError):
        _fit(folder, progress=stop_at(2))
    return folder


@pytest.fixture
def place(begun: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same, whose table and run are put back afterwards."""
    kept = begun / "kept"
    shutil.copytree(begun / "run", kept)
    yield begun
    shutil.rmtree(begun / "run")
    kept.rename(begun / "run")
    _write(begun / "people.csv")


def _cell(rows: Lines) -> None:
    rows[50][0] = "0.125"


def _label(rows: Lines) -> None:
    rows[50][2] = "10"[int(rows[50][2])]


def _group(rows: Lines) -> None:
    rows[50][1] = "mf"["mf".index(rows[50][1]) - 1]


def _order(rows: Lines) -> None:
    rows.reverse()


@pytest.mark.parametrize("change", [_cell, _label, _group, _order])
def test_other_data_is_refused(place: Path, change: Callable[[Lines], None]) -> None:
    _write(place / "people.csv", change)
    with pytest.raises(RunError, match=r"other data.*another `out`"):
        _fit(place, resume=True)


def test_data_is_named_where_settings_follow_from_it(place: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"preset": "default", "epochs": 1, "out": tmp_path / "run"}
    _fit(place, **given)
    _write(place / "people.csv", _cell)  # which moves the knots of the default's network, too
    with pytest.raises(RunError, match="other data"):
        _fit(place, resume=True, **given)
    with pytest.raises(RunError, match=r"other settings .*split_seed"):
        _fit(place, resume=True, settings={"split_seed": 2}, **given)


def test_the_same_rows_in_another_layout_go_on(place: Path) -> None:
    path = place / "people.csv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    _fit(place, resume=True)
    assert json.loads((place / "run" / "run.json").read_text())["status"] == "finished"


def test_methods_are_not_compared_on_two_sets_of_data(tmp_path: Path) -> None:
    _write(tmp_path / "people.csv")
    given: dict[str, Any] = {"epochs": 1, "settings": SETTINGS, "out": tmp_path / "runs"} | HOW
    compare(str(tmp_path / "people.csv"), ["linear"], **given)
    _write(tmp_path / "people.csv", _cell)
    with pytest.raises(RunError, match="other data"):
        compare(str(tmp_path / "people.csv"), ["uniform", "linear"], resume=True, **given)
    assert not (tmp_path / "runs" / "uniform").exists()


# ---------------------------------------------------------------- data that is read on the way


class _Noisy(Pictures):
    """Pictures with noise from a generator that no seed of the training reaches."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.generator = np.random.default_rng()

    def __getitem__(self, row: int) -> Sample:
        sample = super().__getitem__(row)
        noise = torch.from_numpy(self.generator.normal(size=sample["image"].shape)).float()
        return sample | {"image": sample["image"] + noise}


def _fit_streamed(train: Any, out: Path, **changes: Any) -> Run:
    settings = {"batch_size": 8, "rays": 3, "calibrate": False}
    given: dict[str, Any] = {"epochs": 2, "conditioning": "film", "out": out} | HOW | changes
    return fit(problem_of(train), backbone=Heads(), settings=settings, **given)


@pytest.mark.parametrize("loader", [False, True])
@pytest.mark.parametrize("name", ["x", "order"])
def test_other_streamed_data_is_refused(name: str, loader: bool, tmp_path: Path) -> None:
    def make(*, other: bool) -> Any:
        data: Any = Pictures(20)
        if other:
            data.x = data.x.flip(0) if name == "order" else torch.cat([data.x[:19], data.x[:1]])
        return DataLoader(data, batch_size=8, shuffle=True) if loader else data

    with pytest.raises(InterruptedError):
        _fit_streamed(make(other=False), tmp_path / "run", progress=stop_at(1))
    with pytest.raises(RunError, match=r"other data.*another `out`"):
        _fit_streamed(make(other=True), tmp_path / "run", resume=True)
    _fit_streamed(make(other=False), tmp_path / "run", resume=True)


def test_random_transforms_do_not_look_like_other_data(tmp_path: Path) -> None:
    with pytest.raises(InterruptedError):
        _fit_streamed(_Noisy(20), tmp_path / "run", progress=stop_at(1))
    _fit_streamed(_Noisy(20), tmp_path / "run", resume=True)
    other = _Noisy(20)
    other.x = -other.x  # whose targets are others, too
    with pytest.raises(RunError, match="other data"):
        _fit_streamed(other, tmp_path / "run", resume=True)


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 2},
        {"settings": {"learning_rate": 0.5}},
        {"settings": {"batch_size": 16}},
        {"epochs": 4},
        {"method": "linear"},
    ],
    ids=lambda other: next(iter(other.get("settings", other))),
)
def test_a_checkpoint_of_another_run_is_refused(place: Path, tmp_path: Path, other: Any) -> None:
    with pytest.raises(InterruptedError):
        _fit(place, out=tmp_path / "other", progress=stop_at(2), **other)
    shutil.rmtree(place / "run" / "checkpoint")
    shutil.copytree(tmp_path / "other" / "checkpoint", place / "run" / "checkpoint")
    with pytest.raises(RunError, match=r"another run.*remove `.*checkpoint`.*`out`"):
        _fit(place, resume=True)
    shutil.rmtree(place / "run" / "checkpoint")  # the way out that is named
    _fit(place, resume=True)


def test_a_checkpoint_that_does_not_name_its_run_is_refused(place: Path) -> None:
    path = find_newest_checkpoint(place / "run")
    tensors, numbers = load_tensors(path, hashed=True)
    del numbers["run"]
    save_tensors(path, tensors, numbers, hashed=True)
    with pytest.raises(RunError, match="another run"):
        _fit(place, resume=True)
