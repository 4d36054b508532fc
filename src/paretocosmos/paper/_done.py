"""What is done of a cell on the disk: its finished runs, and how one differs from what is asked."""

import json
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos import registry
from paretocosmos._version import __version__
from paretocosmos.config.settings import Training, distribute
from paretocosmos.errors import (
    RunError,
    SignatureError,
    UntrustedError,
)
from paretocosmos.io.files import digest
from paretocosmos.io.trust import modules_of
from paretocosmos.paper._cell import ReproduceOptions
from paretocosmos.paper._sets import defaults_of
from paretocosmos.paper.recipe import Cell
from paretocosmos.runs.record import ROOMS, read_record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["differences", "finished", "read_done"]


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
