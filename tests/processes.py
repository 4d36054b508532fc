"""The command line in processes of its own, forked from one that has imported it already.

And Python code in a process that nothing else shares.
"""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import torch

from paretocosmos.__main__ import main

__all__ = ["PATIENCE", "Started", "find_port", "run_example", "run_python", "start", "start_rank"]

ROOT = Path(__file__).parents[1]
PATIENCE = 600.0
"""Seconds until a process that does not end is given up: only so that a test ends, too."""


@dataclass(frozen=True)
class Started:
    """A call of the command line that runs."""

    process: ForkServerProcess
    log: Path

    def send_signal(self, number: int) -> None:
        """As the shell's `kill` does; nothing where it has ended."""
        if self.process.is_alive():
            assert self.process.pid is not None
            os.kill(self.process.pid, number)

    def ended(self, seconds: float = PATIENCE) -> tuple[int, str]:
        """Wait for the end: the exit code, and what it said on stderr, which is no traceback."""
        self.process.join(seconds)
        code, said = self.process.exitcode, self.log.read_text()
        assert code is not None, "it did not end"
        assert "Traceback" not in said, said
        return code, said


def start(*arguments: str, folder: Path, environment: Mapping[str, str] | None = None) -> Started:
    """Call `paretocosmos` in a folder; the environment is added to this process's own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pandas", "paretocosmos.cli", "paretocosmos.training.fit"])
    log = Path(tempfile.mkdtemp(dir=folder.parent)) / "stderr"
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
    process = context.Process(target=_become, args=(arguments, folder, surroundings, log))
    process.start()
    return Started(process, log)


def find_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start_rank(rank: int, port: int, folder: Path, *arguments: str) -> Started:
    """Start one of two processes that train together."""
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
    environment = {name: str(value) for name, value in told.items()} | {"MASTER_ADDR": "127.0.0.1"}
    return start("train", *arguments, "--device", "cpu", folder=folder, environment=environment)


def _become(
    arguments: tuple[str, ...], folder: Path, environment: dict[str, str], log: Path
) -> None:
    # the process that it is forked from may have been started while Ctrl-C was ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
    sys.argv = ["paretocosmos", *arguments]
    torch.set_num_threads(1)
    main()


def run_python(code: str, *arguments: str | Path) -> str:
    """Run Python code that can import the tests, and return what it prints."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def run_example(name: str, folder: Path) -> str:
    """Run a script of `examples/` in a folder, and return what it prints."""
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / name)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
