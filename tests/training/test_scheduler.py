"""Tasks on workers: who shares what, and what cannot be sent."""

from pathlib import Path
from typing import Any

import pytest
import torch

from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.training import scheduler
from paretocosmos.training.scheduler import run_tasks
from paretocosmos.training.tasks import Outcome, Task


def _worker(gpu: str | None) -> Any:
    return type("Worker", (), {"gpu": gpu})


def test_a_moment_is_shared_by_those_on_the_same_gpu() -> None:
    running = [
        scheduler._Running(None, 1, _worker(gpu), 0.0)  # type: ignore[arg-type]
        for gpu in ("0", "0", "1")
    ]
    scheduler._share_time(running, 6.0)
    assert [active.share for active in running] == [3.0, 3.0, 6.0]
    scheduler._share_time(running[:1], 3.0)
    assert running[0].share == 6.0


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
    raise RunError("the disk is full").with_hint({"out": None})


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
    assert (full.error, full.hints, full.stops_all) == ("the disk is full", {"out": None}, True)
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
