"""Cells on several processes: the same runs, and a process that is killed takes only its cell."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from paretocosmos.paper.recipe import Recipe
from paretocosmos.paper.reproduction import Reproduction, reproduce
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


@pytest.mark.system
@pytest.mark.parametrize(("times", "state", "workers"), [(1, "done", 1), (3, "failed", 2)])
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
    assert len(list(marks.iterdir())) == (2 if state == "done" else 3)  # and no more
    if state == "failed":
        (why,) = done.failures.values()
        assert why.startswith("its process was killed 3 times")
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
