"""A server in a process of its own, and what it takes."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def server(run: Path, port: int, options: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server that listens, in a process of its own; ended gently."""
    command = [sys.executable, "-m", "paretocosmos", "serve", str(run), "--port", str(port)]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        process.stderr.readline()  # it says where it listens
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGKILL), "a server ends with 0"
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def megabytes(pid: int) -> float:
    """What a process has in memory."""
    text = Path(f"/proc/{pid}/status").read_text()
    return round(int(text.partition("VmRSS:")[2].split()[0]) / 1024, 1)


def cpu_seconds(pid: int) -> float:
    """The processor time a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
    return port
