"""Cells on several processes: the same runs, and a process that is killed takes only its cell."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from paretocosmos.paper import Recipe, ReproduceOptions, Reproduction, scheduling
from paretocosmos.paper.reproduce import reproduce
from paretocosmos.runs import find_newest_checkpoint

Write = Callable[..., Recipe]


@pytest.mark.system
def test_processes_train_the_same_cells(recipe: Write, tmp_path: Path) -> None:
    made = recipe(["toy_convex", "toy_concave"], ["cosmos", "linear"])
    most = 0
    epochs: set[int] = set()

    def look(at: Reproduction) -> None:
        nonlocal most
        running = at.select("running")
        most = max(most, len(running))
        epochs.update(one.progress.epoch for one in running if one.progress is not None)

    here = reproduce(made, out=tmp_path / "here", device="cpu")
    there = reproduce(made, out=tmp_path / "there", device="cpu", workers=2, progress=look)
    assert (here.failures, there.failures) == ({}, {})
    assert most == 2
    assert epochs == {1, 2}
    for cell in made.experiments:
        for name in ("front.json", "front_val.json", "model.safetensors"):
            one, two = (cell.runs(tmp_path / out)[1] / name for out in ("here", "there"))
            assert one.read_bytes() == two.read_bytes()
    assert sorted(there.notes) == sorted(here.notes)  # those of two processes as they come
    # side by side each cell has a part of the time, alone all of it
    shares = [(one.share, one.seconds) for one in there.statuses.values()]
    assert all(0 < share <= seconds for share, seconds in shares)
    assert any(share < seconds for share, seconds in shares)
    assert all(one.share == one.seconds for one in here.statuses.values())


def test_a_moment_is_shared_by_those_on_the_same_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    gpus, began = ("0", "0", "1", "0"), (0.0, 0.0, 0.0, 96.0)
    busy = [
        scheduling._Worker(0, None, None, None, gpu, start)  # type: ignore[arg-type]
        for gpu, start in zip(gpus, began, strict=True)
    ]
    assert scheduling._share_time(busy, before=94.0) == now
    assert [worker.share for worker in busy] == [2.0, 2.0, 6.0, 4 / 3]
    now = 103.0
    assert scheduling._share_time(busy[:1], before=100.0) == now
    assert busy[0].share == 5.0


@pytest.mark.system
@pytest.mark.parametrize(("times", "state", "workers"), [(1, "done", 1), (2, "failed", 2)])
def test_a_killed_process_is_given_another_chance(
    recipe: Write, own: str, tmp_path: Path, times: int, state: str, workers: int
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    settings = {"marks": str(marks), "times": times}
    deadly = recipe([f"{own}:deadly"], ["linear"], **settings).experiments
    made = Recipe(
        "both", "Both", "none", "table", (*deadly, *recipe(["toy_convex"], ["linear"]).experiments)
    )
    done = reproduce(made, out=tmp_path / "out", device="cpu", workers=workers)
    assert [one.state for one in done.statuses.values()] == [state, "done"]
    assert len(list(marks.iterdir())) == 2  # it was begun twice, no more
    if state == "failed":
        (why,) = done.failures.values()
        assert why.startswith("its process ended 2 times, at last by SIGKILL")
        assert done.statuses[deadly[0].name].seconds > 0


@pytest.mark.system
def test_nothing_is_left_running_after_an_interrupt(recipe: Write, tmp_path: Path) -> None:
    made = recipe(["toy_convex", "toy_concave"], ["linear"], epochs=100_000)
    running: set[str] = set()

    def interrupt(at: Reproduction) -> None:
        running.update(
            one.experiment.name for one in at.select("running") if one.progress is not None
        )
        if len(running) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(made, out=tmp_path, device="cpu", workers=2, progress=interrupt)
    checkpoints = [find_newest_checkpoint(cell.runs(tmp_path)[1]) for cell in made.experiments]
    before = [path.stat().st_mtime_ns for path in checkpoints]
    time.sleep(0.3)
    assert [path.stat().st_mtime_ns for path in checkpoints] == before


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
    how = ReproduceOptions(Path(os.devnull), device)
    assert [scheduling._choose_gpu(place, how) for place in range(3)] == expected
