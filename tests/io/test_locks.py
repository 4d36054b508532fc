"""A folder in training belongs to one process, as long as that lives."""

import fcntl
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paretocosmos import fit
from paretocosmos.errors import RunError
from paretocosmos.io.files import lock_folder
from paretocosmos.training.progress import Progress

HOLD = """
import sys, time
from pathlib import Path
from paretocosmos.io.files import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.system
def test_a_living_process_keeps_others_out_and_a_dead_one_does_not(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=f"`{folder}`.*another process.*wait"):
            fit("toy_convex", preset="paper", out=folder, epochs=1, device="cpu", resume=True)
        with pytest.raises(RunError, match="is being trained"), lock_folder(folder):
            pass
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert [path.name for path in folder.iterdir()] == [".lock"]  # it could not tidy up
    fit("toy_convex", preset="paper", out=folder, epochs=1, device="cpu", resume=True)
    assert not (folder / ".lock").exists()


def test_two_trainings_in_one_process_do_not_share_a_folder(tmp_path: Path) -> None:
    refused: list[str] = []

    def go(seeds: tuple[int, ...], progress: Callable[[Progress], None] | bool = False) -> None:
        given: dict[str, Any] = {"epochs": 1, "settings": {"hidden": (4,)}, "device": "cpu"}
        fit(
            "toy_convex",
            preset="paper",
            out=tmp_path,
            seeds=seeds,
            resume=True,
            progress=progress,
            **given,
        )

    def again(at: Progress) -> None:
        for seeds in ((1,), (2,), (3, 2)):
            with pytest.raises(RunError, match="is being trained") as told:
                go(seeds)
            refused.append(str(told.value))

    go((1, 2), again)
    assert ["seed-1" in one for one in refused] == [True, False, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-1", "seed-2"]
    go((1, 2))


def test_a_folder_made_for_nothing_is_removed_and_one_in_use_is_not(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock_folder(tmp_path / "a" / "b"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with lock_folder(tmp_path / "a"):
        (tmp_path / "a" / "file").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]
    (tmp_path / "mine").mkdir()
    with lock_folder(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine").is_dir()


def test_a_disk_without_locks_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(handle: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with lock_folder(tmp_path), lock_folder(tmp_path):
        pass


def test_a_link_for_a_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "mine")
    with pytest.raises(RunError, match="cannot use"), lock_folder(tmp_path / "run"):
        pass
    assert (tmp_path / "mine").read_text() == "precious"
