"""What callbacks hear of a training, and what becomes of it when one fails."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.resumed import results, stop_at

from paretocosmos import Callback, Run, compare, fit
from paretocosmos.errors import CallbackWarning, ConfigurationError
from paretocosmos.estimators import ParetoRegressor
from paretocosmos.pareto.metrics import hypervolume
from paretocosmos.training.callbacks import Evaluation, Start
from paretocosmos.training.progress import Progress


class Heard(Callback):
    """Remembers everything."""

    def __init__(self) -> None:
        self.said: list[tuple[str, Path, Any]] = []

    def started(self, start: Start) -> None:
        self.said.append(("started", start.folder, start))

    def epoch(self, at: Progress) -> None:
        self.said.append(("epoch", at.folder, at))

    def evaluated(self, found: Evaluation) -> None:
        self.said.append(("evaluated", found.folder, found))

    def finished(self, run: Run) -> None:
        self.said.append(("finished", run.folder, run))

    def stopped(self, folder: Path, why: str) -> None:
        self.said.append(("stopped", folder, why))

    def of(self, folder: Path) -> list[tuple[str, Any]]:
        return [(what, told) for what, where, told in self.said if where == folder]


class Failing(Heard):
    """Fails at one thing."""

    def __init__(self, at: str) -> None:
        super().__init__()
        setattr(self, at, self._fail)

    def _fail(self, *told: object) -> None:
        raise OSError("the disk\nis full")


def _go(out: Path, **given: Any) -> Any:
    options = {"epochs": 3, "settings": {"evaluate_every": 2}, "device": "cpu", **given}
    return fit("toy_convex", out=out, **options)


def test_everything_is_told_in_order(tmp_path: Path) -> None:
    heard = Heard()
    run = _go(tmp_path / "run", callbacks=[heard])
    told = heard.of(run.folder)
    what = ["started", "epoch", "epoch", "evaluated", "epoch", "evaluated", "finished"]
    assert [one for one, _ in told] == what
    start = told[0][1]
    assert (start.epoch, start.name, start.record["status"]) == (
        0,
        "toy_convex-cosmos-1",
        "training",
    )
    assert start.record["training"] == run.record["training"]
    for at, epoch in ((1, 1), (2, 2), (4, 3)):
        assert told[at][1].epoch == epoch
    by_epoch = {one["epoch"]: one for one in run.record["evaluations"]}
    for at in (3, 5):
        found = told[at][1]
        assert found.hypervolume == by_epoch[found.epoch]["hypervolume_val"]
        assert found.front.values.tolist() == by_epoch[found.epoch]["values"]
        assert found.hypervolume == pytest.approx(hypervolume(found.front))
        assert told[at - 1][1].losses == by_epoch[found.epoch]["losses"]
    assert told[-1][1] is run


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return _go(tmp_path_factory.mktemp("quiet") / "run")


@pytest.mark.parametrize("at", ["started", "epoch", "evaluated", "finished"])
def test_a_callback_that_fails_loses_no_training(tmp_path: Path, quiet: Run, at: str) -> None:
    failing, heard = Failing(at), Heard()
    with pytest.warns(CallbackWarning) as caught:
        run = _go(tmp_path / "run", callbacks=[failing, heard])
    (said,) = [str(one.message) for one in caught if one.category is CallbackWarning]
    assert said == (
        f"the callback `Failing` failed at `{at}` (OSError: the disk is full) and is not called "
        "again; training continues"
    )
    assert results(run.folder) == results(quiet.folder)
    assert [what for what, _ in heard.of(run.folder)][-1] == "finished"


def test_a_training_that_stops_is_told_and_goes_on_by_its_name(tmp_path: Path) -> None:
    heard, place = Heard(), tmp_path / "run"
    with pytest.raises(InterruptedError):
        _go(place, callbacks=[heard], progress=stop_at(2))
    assert heard.said[-1] == ("stopped", place, "InterruptedError")
    again = Heard()
    _go(place, callbacks=[again], resume=True)
    told = again.of(place)
    assert told[0][1].epoch == 2
    assert told[0][1].record == heard.said[0][2].record
    assert [what for what, _ in told] == ["started", "epoch", "evaluated", "finished"]
    _go(place, callbacks=[done := Heard()], resume=True)
    assert done.said == []


@pytest.mark.parametrize("given", [Heard, print, "tensorboard"])
def test_what_is_no_callback_is_refused(tmp_path: Path, given: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=("`callbacks` must be a list, each a `Callback`, found ")
    ):
        _go(tmp_path / "run", callbacks=[given])
    assert not (tmp_path / "run").exists()


def test_comparisons_and_estimators_have_them_too(tmp_path: Path) -> None:
    heard = Heard()
    compare("toy_convex", ["linear", "uniform"], epochs=1, out=tmp_path / "all", callbacks=[heard])
    names = [told.name for what, _, told in heard.said if what == "started"]
    assert names == ["toy_convex-linear-1", "toy_convex-uniform-1"]
    rows = torch.arange(40.0).reshape(20, 2).numpy()
    estimator = ParetoRegressor(callbacks=[other := Heard()], epochs=2, random_state=0)
    estimator.fit(rows, rows[:, 0])
    assert [what for what, _, _ in other.said].count("epoch") == 2
    assert json.dumps(other.said[0][2].record)
