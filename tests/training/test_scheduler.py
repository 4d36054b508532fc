"""Tasks on workers: who shares what, and what cannot be sent."""

from pathlib import Path
from typing import Any

import pytest
import torch

from paretocosmos import compare, fit
from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.methods import Linear
from paretocosmos.training import scheduler
from paretocosmos.training.callbacks import Callback
from paretocosmos.training.progress import Progress
from paretocosmos.training.scheduler import run_tasks
from paretocosmos.training.tasks import Outcome, Task

SMALL: dict[str, Any] = {"epochs": 1, "device": "cpu", "report": False}


class _Unportable(Callback):
    """A callback that cannot be sent to another process."""

    def __init__(self) -> None:
        self.close = lambda: None


@pytest.mark.parametrize(
    ("device", "count", "visible", "expected"),
    [
        ("auto", 2, None, ["0", "1", "0"]),
        ("cuda", 3, "7,5,2", ["7", "5", "2"]),
        ("cuda:1", 2, None, [None] * 3),
        ("cpu", 2, None, [None] * 3),
        ("auto", 1, None, [None] * 3),
        ("auto", 0, None, [None] * 3),
    ],
)
def test_processes_share_the_gpus(
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    count: int,
    visible: str | None,
    expected: list[str | None],
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [scheduler._choose_gpu(number, device) for number in range(3)] == expected


def _fail(folder: Path, progress: Any) -> Any:
    raise RunError("the disk is full")


def _break(folder: Path, progress: Any) -> Any:
    raise ZeroDivisionError("on purpose")


def test_a_failure_does_not_stop_the_next_task(tmp_path: Path) -> None:
    news: dict[str, Any] = {}
    run_tasks(
        [Task("full", tmp_path / "full", _fail), Task("bug", tmp_path / "bug", _break)],
        news.__setitem__,
    )
    full, bug = news["full"], news["bug"]
    assert isinstance(full, Outcome)
    assert (full.error, full.stops_all) == ("the disk is full", True)
    assert not bug.stops_all
    assert "is a bug" in bug.error
    assert "ZeroDivisionError" in (tmp_path / "bug" / "error.log").read_text()


def test_what_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    task = Task("local", tmp_path, lambda folder, progress: [])
    with pytest.raises(ConfigurationError, match="instead of passing objects"):
        run_tasks([task], lambda name, news: None, workers=1)


@pytest.mark.parametrize(("workers", "cluster"), [(-1, None), (1000, None), (1, "local")])
def test_impossible_places_are_refused(workers: int, cluster: str | None) -> None:
    with pytest.raises(ConfigurationError, match="`workers`"):
        run_tasks([], lambda name, news: None, workers=workers, cluster=cluster)


def test_an_error_of_the_callers_own_stops_all(tmp_path: Path) -> None:
    epochs: list[tuple[str, int]] = []

    def stop(method: str, progress: Progress) -> None:
        epochs.append((method, progress.epoch))
        raise LookupError("enough")

    with pytest.raises(LookupError, match=r"^enough$"):
        compare("toy_convex", ["linear", "uniform"], out=tmp_path / "runs", progress=stop, **SMALL)
    assert epochs == [("linear", 1)]
    assert not list(tmp_path.rglob("error.log"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"workers": 2}, "share `seeds` out, found none"),
        ({"workers": 2, "seeds": [1, 2], "method": Linear()}, None),
        ({"workers": 2, "seeds": [1, 2], "callbacks": [_Unportable()]}, "instead of passing"),
        ({"workers": -1, "seeds": [1, 2]}, "`workers` must be from 0"),
        ({"workers": 2, "cluster": "local", "seeds": [1]}, "found both"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, says: str | None
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(
        scheduler, "_run_on_workers", lambda tasks, *_: sent.extend(task.name for task in tasks)
    )
    expected = RunError if says is None else ConfigurationError
    with pytest.raises(expected, match=says or "not a folder"):
        fit("toy_convex", out=tmp_path / "runs", progress=False, **{**SMALL, **arguments})
    # two small networks are fastest as one stack, which must not be taken apart
    assert sent == (["seed 1, 2"] if says is None else [])


@pytest.mark.system
def test_workers_train_the_same(tmp_path: Path) -> None:
    # hidden layers that are too large for a stack on a CPU, so that each seed is a task
    own: dict[str, Any] = {**SMALL, "settings": {"hidden": [512, 512], "learning_rate": 1e-4}}
    seen: set[str] = set()
    for workers in (0, 2):
        folder = tmp_path / str(workers)
        compare(
            "toy_convex", ["linear", "uniform"], out=folder / "compared", workers=workers, **SMALL
        )
        fit("toy_convex", seeds=[3, 4], out=folder / "seeds", workers=workers, **own)
    results = [path.relative_to(tmp_path / "0") for path in (tmp_path / "0").rglob("model.*")]
    assert len(results) == 4
    for path in results:
        assert (tmp_path / "0" / path).read_bytes() == (tmp_path / "2" / path).read_bytes()
    # what is finished is read, by a process that trains nothing
    again = fit(
        "toy_convex",
        seeds=[3, 4],
        out=tmp_path / "2" / "seeds",
        workers=2,
        resume=True,
        **own,
        progress=lambda progress: seen.add(str(progress.folder)),
    )
    assert ([run.record["seed"] for run in again], seen) == ([3, 4], set())
