"""A process that waits for another is ended by a signal at once, not when the other answers."""

import signal
import socket
import time
from pathlib import Path

import pytest
from tests.processes import PATIENCE, Started, start

from paretocosmos.runs import list_checkpoints

pytestmark = pytest.mark.system

GIVEN = ("train", "toy_convex", "--epochs", "100000", "--out", "run", "--set", "rays=3")
AT_MOST = 300.0  # seconds to the end: without an answer, torch waits for half an hour


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _start(rank: int, port: int, folder: Path) -> Started:
    given = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
    environment = {name: str(value) for name, value in given.items()}
    environment["MASTER_ADDR"] = "127.0.0.1"
    return start(*GIVEN, "--device", "cpu", folder=folder, environment=environment)


def _is_ended_by(number: int, process: Started) -> None:
    process.send_signal(number)
    code, said = process.ended(AT_MOST)
    assert code == 130
    assert "continue with --out run --resume" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_the_middle_of_a_training(tmp_path: Path, port: int, number: int) -> None:
    first, second = (_start(rank, port, tmp_path) for rank in (0, 1))
    try:
        deadline = time.monotonic() + PATIENCE
        while next(iter(list_checkpoints(tmp_path / "run")), 0) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        second.send_signal(signal.SIGSTOP)
        time.sleep(2)  # the first one comes to where it waits
        _is_ended_by(number, first)
    finally:
        first.send_signal(signal.SIGKILL)
        second.send_signal(signal.SIGKILL)


def test_before_the_others_have_begun(tmp_path: Path, port: int) -> None:
    first = _start(0, port, tmp_path)
    try:
        deadline = time.monotonic() + PATIENCE
        while not _listens(port):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        _is_ended_by(signal.SIGTERM, first)
    finally:
        first.send_signal(signal.SIGKILL)


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
