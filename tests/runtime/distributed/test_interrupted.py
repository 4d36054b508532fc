"""A process that waits for another is ended by a signal at once, not when the other answers."""

import signal
import socket
import time
from pathlib import Path

import pytest
from tests.processes import PATIENCE, Started, find_port, start_rank

from paretocosmos.runs import list_checkpoints

pytestmark = pytest.mark.system

GIVEN = ("toy_convex", "--epochs", "100000", "--out", "run", "--set", "rays=3")
AT_MOST = 300.0  # seconds to the end: without an answer, torch waits for half an hour


def _is_ended_by(number: int, process: Started) -> None:
    process.send_signal(number)
    code, said = process.ended(AT_MOST)
    assert code == 130
    assert "continue with --out run --resume" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_the_middle_of_a_training(tmp_path: Path, number: int) -> None:
    port = find_port()
    first, second = (start_rank(rank, port, tmp_path, *GIVEN) for rank in (0, 1))
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


def test_before_the_others_have_begun(tmp_path: Path) -> None:
    port = find_port()
    first = start_rank(0, port, tmp_path, *GIVEN)
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
