"""A cell: what is done of it on the disk, and one sitting of its training."""

import json
import os
import shutil
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos import registry
from paretocosmos._version import __version__
from paretocosmos.config.settings import Training, distribute
from paretocosmos.errors import (
    BenchmarkWarning,
    DivergedError,
    FrontWarning,
    ParetoCosmosError,
    RunError,
    SignatureError,
    UntrustedError,
)
from paretocosmos.io.files import digest, one_line, sweep, write_bytes
from paretocosmos.io.locks import locked
from paretocosmos.io.paths import VARIABLE
from paretocosmos.io.trust import modules_of
from paretocosmos.paper._sets import defaults_of
from paretocosmos.paper.recipe import Cell
from paretocosmos.pareto.rays import each_alone
from paretocosmos.runs.record import ROOMS, read_record
from paretocosmos.runs.saved import sweep_run
from paretocosmos.training.fit import Progress, fit

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = [
    "Outcome",
    "ReproduceOptions",
    "differences",
    "finished",
    "packages_of",
    "read_done",
    "tidy",
    "train",
]

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


def packages_of(error: Exception) -> tuple[str, ...]:
    """What an error says would have to be trusted."""
    return error.packages if isinstance(error, UntrustedError) else ()


def finished(
    cell: Cell, how: ReproduceOptions, images: MutableMapping[str, str], *, asked: bool = True
) -> list[int]:
    """The seeds of a cell that are done; what is there but is not the same cell is refused.

    Args:
        cell: the cell.
        how: the folder and what has to be the same.
        images: the checksum of every problem's images, by its name and what is set of it; what
            this cell says of its own is added.
        asked: whether it is to be trained now; else any device and precision will do.
    """
    done = []
    for seed, folder in cell.runs(how.out).items():
        if not (folder / "run.json").exists():
            continue
        record = read_done(folder, cell, how.trust)
        other = list(differences(record, cell, how if asked else None))
        made, which = (record.get("about") or {}).get("sha256"), _images_of(record)
        if made is not None and images.setdefault(which, made) != made:
            other.append(f"images: sha256 {made} there, {images[which]} elsewhere")
        if other:
            raise RunError(
                f"`{folder}` holds a run that must not be mixed with this recipe's "
                f"({'; '.join(other)}): choose another `out`, or remove that folder"
            ).by({"out": None})
        if record["status"] == "finished":
            done.append(seed)
    return done


def _images_of(record: Mapping[str, Any]) -> str:
    """What a problem's images depend on: its name, and settings such as the rule they follow."""
    problem = record["problem"] or {"name": None, "settings": {}}  # one that was built by hand
    own = problem["settings"].items()
    chosen = sorted((key, value) for key, value in own if key not in ("protocol", "data"))
    return json.dumps([problem["name"], chosen])


def read_done(
    folder: Path,
    cell: Cell,
    trust: Collection[str],
    verify: "Ed25519PublicKey | None" = None,
) -> dict[str, Any]:
    """The record of a run; its fronts must be as they were written.

    Args:
        folder: the run's.
        cell: what it is a run of; what that names has been allowed.
        trust: packages whose code it may name beside that.
        verify: the key that it must be signed with.
    """
    try:
        allowed = (*trust, *modules_of([cell.problem, cell.method]))
        record = read_record(folder, trust=allowed, verify=verify)
        for name in (n for n in ("front.json", "front_val.json") if n in record.get("files", {})):
            if not (folder / name).exists() or digest(folder / name) != record["files"][name]:
                raise RunError(f"`{folder / name}` is missing or was changed")
    except (SignatureError, UntrustedError):
        raise
    except RunError as error:
        raise RunError(f"{error}; remove `{folder}` and start again to train it anew") from error
    return record


def differences(
    record: Mapping[str, Any], cell: Cell, how: ReproduceOptions | None = None
) -> Iterator[str]:
    """What a run has otherwise than the cell asks for; its data need not be there to tell.

    Args:
        record: the run's, as `read_done` gives it.
        cell: the cell.
        how: the device and the precision it must have, if any.
    """
    facts: list[tuple[str, Any, Any]] = [
        ("problem", (record["problem"] or {}).get("name"), cell.problem),
        ("method", record.get("label"), cell.method),
    ]
    if cell.protocol is not None:
        facts.append(("protocol", record.get("protocol"), cell.protocol))
    if how is not None:
        facts.append(("precision", record.get("precision"), how.precision))
    if how is not None and how.device != "auto":  # whichever of several GPUs
        there, asked = (str(d).partition(":")[0] for d in (record.get("device"), how.device))
        facts.append(("device", there, asked))
    kept = {role: record[role]["settings"] for role in ROOMS if record[role] is not None}
    owners = {role: registry.find(ROOMS[role], record[role]["name"]) for role in kept}
    kept["training"] = record["training"]
    # what is not asked for is as usual, which it need not have been in an earlier version
    usual = {f"problem.{key}": value for key, value in defaults_of(cell.problem).items()}
    asked_for = distribute(usual | cell.asked, owners | {"training": Training}, lenient=True)
    for role, own in asked_for.items():
        facts += [(f"{role}.{key}", kept[role].get(key), own[key]) for key in own]
    if _series(str(record.get("version"))) != _series(__version__):
        yield f"version: {record.get('version')!r} there, {__version__!r} now"
    for name, before, now in facts:
        if not _same(before, now):
            yield f"{name}: {before!r} there, {now!r} now"


def _series(version: str) -> list[str]:
    """What of a version decides results, ``0.1`` of ``0.1.3``: a patch release changes none."""
    return version.split(".")[:2]


def _same(before: Any, now: Any) -> bool:
    """Whether a setting is what a record says: a tuple is a list there, and a path a whole one."""
    if before == json.loads(json.dumps(now)):
        return True
    texts = isinstance(before, str) and isinstance(now, str)
    return texts and Path(before) == Path(now).expanduser().absolute()


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
            method=cell.method,
            protocol=cell.protocol,
            seeds=some,
            settings=settings,
            out=folder,
            resume=True,
            device=how.device,
            precision=how.precision,
            progress=progress,
        )
        alone = each_alone(runs[0].record["fixed_rays"])

    error: str | None = None
    packages: tuple[str, ...] = ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            with locked(folder), _looking_in(how.data):
                try:
                    together(seeds)
                except DivergedError:
                    if len(seeds) == 1:
                        raise
                    _each(together, seeds)
                _tidied(cell, how)
        except ParetoCosmosError as refused:
            error, packages = str(refused), packages_of(refused)
        except Exception as bug:
            error = _logged(folder, bug)
    notes = dict.fromkeys(
        str(one.message)
        if issubclass(one.category, BenchmarkWarning)
        else f"{cell.name}: {one.message}"
        for one in caught
        if not (alone and issubclass(one.category, FrontWarning))
    )
    seconds = time.perf_counter() - started
    return Outcome(error, seconds, tuple(notes), packages=packages)


def tidy(cell: Cell, how: ReproduceOptions) -> None:
    """Remove what a killed process left of a cell that is done; it may lie where nobody writes."""
    folder, runs = cell.folder(how.out), list(cell.runs(how.out).values())
    hidden = (path for place in (folder, *runs) if place.is_dir() for path in place.glob(".*"))
    if next(hidden, None) is None and not any((run / "checkpoint").exists() for run in runs):
        return
    with suppress(RunError), locked(folder):
        _tidied(cell, how)


def _tidied(cell: Cell, how: ReproduceOptions) -> None:
    """Drop all checkpoints: there may be hundreds, and nobody goes on from the end; and sweep."""
    sweep(cell.folder(how.out))
    for run in cell.runs(how.out).values():
        shutil.rmtree(run / "checkpoint", ignore_errors=True)
        if next(run.glob(".*"), None) is not None:
            with suppress(RunError), locked(run):
                sweep_run(run)


def _each(together: Callable[[Sequence[int]], None], seeds: Sequence[int]) -> None:
    """One after the other, so that a seed that diverges does not keep the others back."""
    why = []
    for seed in seeds:
        try:
            together([seed])
        except DivergedError as error:
            why.append(f"seed {seed}: {error}")
    if why:
        raise DivergedError("; ".join(why))


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
