"""What is done of a cell on the disk: its finished runs, and how one differs from what is asked."""

import json
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos import registry
from paretocosmos._version import __version__
from paretocosmos.config.settings import (
    distribute,
)
from paretocosmos.config.training import Training
from paretocosmos.errors import DataError, RunError, SignatureError, UntrustedError
from paretocosmos.io.files import digest, read_json, user_path
from paretocosmos.io.trust import modules_of
from paretocosmos.paper._cell import ReproduceOptions
from paretocosmos.paper.names import defaults_of
from paretocosmos.paper.recipe import Cell
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import each_alone
from paretocosmos.runs.record import ROOMS, read_record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = [
    "FinishedRun",
    "Record",
    "differences",
    "finished",
    "finished_runs",
    "read_done",
    "seconds_in",
    "volume_in",
]

Record = Mapping[str, Any]
"""A run's `run.json`, as `runs.record` writes it."""

FRONTS = ("front.json", "front_val.json")


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its record, its front on the test split, and that on the validation split."""

    record: Record
    test: Front
    val: Front


def volume_in(record: Record) -> str:
    """What the paper calls a run's hypervolume, by its name among the metrics.

    Of one network per objective it is that of their ideal point.

    >>> volume_in({"fixed_rays": [[1, 0], [0, 1]]}), volume_in({"fixed_rays": None})
    ('hypervolume_ideal', 'hypervolume')
    """
    return "hypervolume_ideal" if each_alone(record["fixed_rays"]) else "hypervolume"


def seconds_in(record: Record, part: str) -> float:
    """What a seed took for one part of its run, such as ``"training"``.

    Seeds that trained together share that time equally; each is evaluated by itself.

    >>> seconds_in({"seconds_training": 10.0, "seeds_together": 5}, "training")
    2.0
    """
    together = 1 if part == "evaluating" else record["seeds_together"]
    return float(record[f"seconds_{part}"] / together)


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
                f"`{folder}` holds a run with other settings than this recipe "
                f"({'; '.join(other)}): choose another `out`, or remove that folder"
            ).by({"out": None})
        if record["status"] == "finished":
            done.append(seed)
    return done


def finished_runs(
    cell: Cell, out: Path, trust: Collection[str], verify: "Ed25519PublicKey | None"
) -> tuple[dict[int, FinishedRun], str | None]:
    """The finished runs of a cell by seed, and what is wrong with one that cannot be read.

    Args:
        cell: the cell.
        out: the folder of the reproduction.
        trust: packages whose code its runs may name.
        verify: the key that they must be signed with.
    """
    found: dict[int, FinishedRun] = {}
    wrong = None
    for seed, folder in cell.runs(out).items():
        try:
            if not (folder / "run.json").exists():
                continue
            record = read_done(folder, cell, trust, verify)
            other = "; ".join(differences(record, cell))
            if other:
                wrong = f"`{folder}` holds a run with other settings ({other})"
            elif record["status"] == "finished":
                test, val = (Front.from_dict(read_json(folder / name)) for name in FRONTS)
                found[seed] = FinishedRun(record, test, val)
        except (SignatureError, UntrustedError):
            raise
        except (RunError, DataError) as error:
            wrong = str(error)
    return found, wrong


def _images_of(record: Record) -> str:
    """What a problem's images depend on: its name, and settings such as the rule they follow."""
    problem = record["problem"] or {"name": None, "settings": {}}  # one that was built by hand
    own = problem["settings"].items()
    chosen = sorted((key, value) for key, value in own if key not in ("protocol", "data"))
    return json.dumps([problem["name"], chosen])


def read_done(
    folder: Path, cell: Cell, trust: Collection[str], verify: "Ed25519PublicKey | None" = None
) -> Record:
    """The record of a run, which may name what the cell does; its fronts must be as written."""
    try:
        allowed = (*trust, *modules_of([cell.problem, cell.method]))
        record = read_record(folder, trust=allowed, verify=verify)
        for name in (n for n in FRONTS if n in record.get("files", {})):
            if not (folder / name).exists() or digest(folder / name) != record["files"][name]:
                raise RunError(f"`{folder / name}` is missing or was changed")
    except (SignatureError, UntrustedError):
        raise
    except RunError as error:
        raise RunError(f"{error}; remove `{folder}` and start again to train it again") from error
    return record


def differences(record: Record, cell: Cell, how: ReproduceOptions | None = None) -> Iterator[str]:
    """What a run has otherwise than the cell asks for; its data need not be there to tell.

    Args:
        record: the run's.
        cell: the cell.
        how: the device and the precision it must have, if any.
    """
    facts: list[tuple[str, Any, Any]] = [
        ("problem", (record["problem"] or {}).get("name"), cell.problem),
        ("method", record.get("label"), cell.method),
        ("preset", record.get("preset", "paper"), cell.preset),
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
    return texts and Path(before) == user_path(now).absolute()
