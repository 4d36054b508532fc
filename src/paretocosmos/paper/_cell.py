"""A cell: what is done of it on the disk, and one sitting of its training."""

import os
import shutil
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from paretocosmos import errors
from paretocosmos.io.files import VARIABLE, lock_folder, one_line, sweep, write_bytes
from paretocosmos.paper.recipe import Cell
from paretocosmos.pareto.rays import each_alone
from paretocosmos.runs.saved import sweep_run
from paretocosmos.training.fit import Progress, fit

__all__ = ["Job", "Outcome", "ReproduceOptions", "Tell", "packages_of", "tidy", "train"]

LOG = "error.log"


@dataclass(frozen=True)
class ReproduceOptions:
    """What the cells of a reproduction share.

    Attributes:
        out: the folder of the reproduction.
        device: as for `fit`; results of any device count as done where it is ``"auto"``.
        precision: as for `fit`.
        data: a folder to look for data in, before the cache.
        trust: packages whose code the runs that are there may name.
    """

    out: Path
    device: str = "auto"
    precision: str = "tf32"
    data: str | None = None
    trust: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a sitting of a cell ended.

    Attributes:
        error: why it failed, in a sentence; `None` if it did not.
        seconds: it took, all in all.
        notes: warnings, each once.
        share: what of the time is its own, where several cells ran on one device at the same time:
            an equal part of every moment. `None`: all of it.
        packages: what would have to be trusted, where that is why it failed.
    """

    error: str | None
    seconds: float
    notes: tuple[str, ...] = ()
    share: float | None = None
    packages: tuple[str, ...] = ()


Job = tuple[Cell, list[int]]
"""A cell to be trained, and its seeds that are not done."""

Tell = Callable[[Cell, Progress | Outcome | None], None]
"""Called with what a cell says: that it begins (`None`), where it stands, how it ended."""


def packages_of(error: Exception | None) -> tuple[str, ...]:
    """What an error says would have to be trusted."""
    return error.packages if isinstance(error, errors.UntrustedError) else ()


def train(
    cell: Cell, how: ReproduceOptions, seeds: Sequence[int], progress: Callable[[Progress], None]
) -> Outcome:
    """Train seeds of a cell together, or go on where they stopped; what fails is told, not raised.

    Args:
        cell: the cell.
        how: the folder, the device, the precision.
        seeds: those that are not done.
        progress: called after every epoch.
    """
    started = time.perf_counter()
    folder = cell.folder(how.out)
    settings = dict(cell.settings) | ({} if cell.epochs is None else {"epochs": cell.epochs})

    alone = False  # whether each network is for one objective, and so need not be a front

    def together(some: Sequence[int]) -> None:
        nonlocal alone
        runs = fit(
            cell.problem,
            preset=cell.preset,
            method=cell.method,
            protocol=cell.protocol,
            seeds=some,
            settings=settings,
            out=folder,
            resume=True,
            device=how.device,
            precision=how.precision,
            progress=progress,
            report=False,
        )
        alone = each_alone(runs[0].record["fixed_rays"])

    error: str | None = None
    packages: tuple[str, ...] = ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            with lock_folder(folder), _looking_in(how.data):
                try:
                    together(seeds)
                except errors.DivergedError:
                    if len(seeds) == 1:
                        raise
                    _each(together, seeds)
                _tidied(cell, how)
        except errors.ParetoCosmosError as refused:
            error, packages = str(refused), packages_of(refused)
        except Exception as bug:
            error = _logged(folder, bug)
    told = [one for one in caught if not (alone and issubclass(one.category, errors.FrontWarning))]
    notes = (f"{_whose(one.category, cell)}{one.message}" for one in told)
    seconds = time.perf_counter() - started
    return Outcome(error, seconds, tuple(dict.fromkeys(notes)), packages=packages)


def _whose(kind: type[Warning], cell: Cell) -> str:
    """What a warning is of: that a set is a benchmark is so for all cells."""
    return "" if issubclass(kind, errors.BenchmarkWarning) else f"{cell.name}: "


def tidy(cell: Cell, how: ReproduceOptions) -> None:
    """Remove what a killed process left of a cell that is done; it may lie where nobody writes."""
    folder, runs = cell.folder(how.out), list(cell.runs(how.out).values())
    hidden = (path for place in (folder, *runs) if place.is_dir() for path in place.glob(".*"))
    if next(hidden, None) is None and not any((run / "checkpoint").exists() for run in runs):
        return
    with suppress(errors.RunError), lock_folder(folder):
        _tidied(cell, how)


def _tidied(cell: Cell, how: ReproduceOptions) -> None:
    """Drop all checkpoints: there may be hundreds, and nobody goes on from the end; and sweep."""
    sweep(cell.folder(how.out))
    for run in cell.runs(how.out).values():
        shutil.rmtree(run / "checkpoint", ignore_errors=True)
        if next(run.glob(".*"), None) is not None:
            with suppress(errors.RunError), lock_folder(run):
                sweep_run(run)


def _each(together: Callable[[Sequence[int]], None], seeds: Sequence[int]) -> None:
    """One after the other, so that a seed that diverges does not keep the others back."""
    why = []
    for seed in seeds:
        try:
            together([seed])
        except errors.DivergedError as error:
            why.append(f"seed {seed}: {error}")
    if why:
        raise errors.DivergedError("; ".join(why))


def _logged(folder: Path, bug: Exception) -> str:
    """A sentence on what nobody foresaw; all of it goes to a file."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / LOG, "".join(traceback.format_exception(bug)).encode())
    return (
        f"stopped by {type(bug).__name__} ({one_line(bug)}), which nobody foresaw: "
        f"`{folder / LOG}` has the details"
    )


@contextmanager
def _looking_in(data: str | None) -> Iterator[None]:
    """Problems look for their files in that folder first, and those that carry them need not.

    It is no setting of theirs: the same cell may find its data elsewhere the next time.
    """
    before = os.environ.get(VARIABLE)
    if data is not None:
        os.environ[VARIABLE] = data
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        elif data is not None:
            del os.environ[VARIABLE]
