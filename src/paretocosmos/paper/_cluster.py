"""Cells on the machines of a Ray cluster; what they leave behind comes back to this one."""

import dataclasses
import logging
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paretocosmos._version import __version__
from paretocosmos.errors import ConfigurationError, MissingExtraError, RunError
from paretocosmos.io.files import one_line, write_bytes
from paretocosmos.paper._cell import Job, Outcome, ReproduceOptions, Tell, train
from paretocosmos.paper.recipe import Cell
from paretocosmos.training.fit import Progress

__all__ = ["need_ray", "on_ray"]

Files = Mapping[str, bytes]

# How often a cell is begun again whose worker is lost.
RETRIES = 2
# Seconds between two looks at how the cells stand.
POLL = 0.5
# Seconds to wait for an answer of the cluster.
PATIENCE = 10.0
# What a cell takes of a machine; and one GPU where the cluster has some and --device is not cpu.
CPUS = 1


def on_ray(jobs: Sequence[Job], how: ReproduceOptions, tell: Tell, *, address: str) -> None:
    """Train cells as tasks of a cluster.

    A worker that sees the folder of the reproduction trains in it, so that what is interrupted goes
    on the next time. Any other trains in a folder of its own and sends the finished runs back.

    Args:
        jobs: cells and the seeds that are not done.
        how: what they share.
        tell: called with what a cell says.
        address: of the cluster, or ``"local"`` to start one here.
    """
    with _cluster(address) as ray:
        gpus = _gpus(ray.cluster_resources(), how)
        board = ray.remote(num_cpus=0, max_restarts=-1)(_Board).remote()
        options = {"num_cpus": CPUS, "num_gpus": gpus, "max_retries": RETRIES}
        task = ray.remote(**options)(_away)
        cells = {cell.name: cell for cell, _ in jobs}
        with _mark(how.out) as mark:
            there = dataclasses.replace(how, out=how.out.absolute())
            given = (there, mark, __version__, board)
            pending = {task.remote(cell, seeds, *given): cell.name for cell, seeds in jobs}
            try:
                while pending:
                    ready, _ = ray.wait(list(pending), timeout=POLL)
                    for name, what in _said(ray, board):
                        if name in pending.values():  # a late word is of no use
                            tell(cells[name], what)
                    for one in ready:
                        cell = cells[pending.pop(one)]
                        tell(cell, _result(ray, one, cell, how.out))
            finally:
                for one in pending:
                    ray.cancel(one, force=True)


def need_ray() -> Any:
    """Ray, or a refusal."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "training on a Ray cluster") from error
    return ray


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Ray, joined to a cluster, which is left again; one that was started here ends."""
    ray = need_ray()
    ours = not ray.is_initialized()
    if ours:
        here = {"include_dashboard": False} if address == "local" else {}
        try:
            _knock(address)
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **here)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"there is no Ray cluster at `{address}` ({one_line(error)}): start one with `ray "
                'start --head`, or use cluster="local"'
            ).by({"cluster": "local"}) from error
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def _knock(address: str) -> None:
    """See that somebody answers at HOST:PORT: Ray itself would ask for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()


def _gpus(cluster: Mapping[str, float], how: ReproduceOptions) -> int:
    """How many GPUs a cell is given."""
    there = cluster.get("GPU", 0) >= 1
    if how.device not in ("auto", "cpu") and not there:
        raise ConfigurationError(
            f'`{how.device}` needs a GPU, but no machine in the cluster has one: use device="cpu"'
        ).by({"device": "cpu"})
    return int(there and how.device != "cpu")


class _Board:
    """Where cells write how they stand, and where that is read."""

    def __init__(self) -> None:
        self._said: dict[str, list[Progress | None]] = {}

    def write(self, name: str, what: Progress | None) -> None:
        """Keep a beginning and the last word."""
        begun = [one for one in self._said.get(name, []) if one is None and what is not None]
        self._said[name] = [*begun, what]

    def take(self) -> list[tuple[str, Progress | None]]:
        """All that is new, the oldest first."""
        said = [(name, what) for name, every in self._said.items() for what in every]
        self._said = {}
        return said


def _said(ray: Any, board: Any) -> list[tuple[str, Progress | None]]:
    try:
        said: list[tuple[str, Progress | None]] = ray.get(board.take.remote())
    except ray.exceptions.RayError:  # it was lost with its machine; another one comes
        return []
    return said


def _away(
    cell: Cell, seeds: list[int], how: ReproduceOptions, mark: str, version: str, board: Any
) -> tuple[Outcome, Files]:
    """What a worker does; gives the files of finished runs where it cannot leave them."""
    if version != __version__:
        why = f"its worker has paretocosmos {__version__}, not {version}"
        return Outcome(f"{why}: install the same everywhere", 0.0), {}
    board.write.remote(cell.name, None)
    last = 0.0

    def say(at: Progress) -> None:
        nonlocal last
        if time.monotonic() - last > POLL:
            last = time.monotonic()
            board.write.remote(cell.name, at)

    if (how.out / mark).exists():
        return train(cell, how, seeds, say), {}
    with tempfile.TemporaryDirectory(prefix="paretocosmos-") as folder:
        own = dataclasses.replace(how, out=Path(folder))
        outcome = train(cell, own, seeds, say)
        error = outcome.error and outcome.error.replace(folder, str(how.out))
        return dataclasses.replace(outcome, error=error), _packed(cell.folder(own.out))


def _packed(folder: Path) -> Files:
    """The files of a cell: its log, and all but the checkpoints of runs that are finished."""
    runs = [path for path in sorted(folder.glob("seed-*")) if (path / "front.json").exists()]
    files = [path for place in (folder, *runs) for path in sorted(place.iterdir())]
    kept = [path for path in files if path.is_file() and not path.name.startswith(".")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in kept}


def _unpack(folder: Path, files: Files) -> None:
    """Lay a cell's files down; a run's record comes last, for it says that the run is finished."""
    for name in sorted(files, key=lambda name: (name.endswith("run.json"), name)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, files[name])
        if path.name == "run.json":  # of a run that was begun here
            shutil.rmtree(path.parent / "checkpoint", ignore_errors=True)


def _result(ray: Any, one: Any, cell: Cell, out: Path) -> Outcome:
    try:
        outcome: Outcome
        outcome, files = ray.get(one)
        _unpack(cell.folder(out), files)
    except ray.exceptions.RayTaskError as error:
        return Outcome(f"its worker could not begin ({one_line(error.cause)})", 0.0)
    except ray.exceptions.RayError as error:
        why = str(error).strip().partition("\n")[0]
        return Outcome(f"its worker was lost {RETRIES + 1} times ({why})", 0.0)
    except RunError as error:
        return dataclasses.replace(outcome, error=str(error))
    return outcome


@contextmanager
def _mark(out: Path) -> Iterator[str]:
    """A file by which a worker tells that it sees the same folder; gives its name."""
    mark = out / f".seen-{uuid.uuid4().hex}"
    mark.touch()
    try:
        yield mark.name
    finally:
        mark.unlink(missing_ok=True)
