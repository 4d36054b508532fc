"""Where runs go: folders asked for or free, finished, begun, refused."""

import json
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paretocosmos.config.plan import Plan
from paretocosmos.errors import ConfigurationError, ParetoCosmosError, RunError
from paretocosmos.io.files import digest_of, exists, user_path
from paretocosmos.runs.record import other_objectives, record_in
from paretocosmos.runs.saved import saved_in
from paretocosmos.runs.stored_names import rename_record, restore_names
from paretocosmos.runtime.distributed import Processes

__all__ = [
    "finished",
    "flat",
    "folder_for",
    "folders_of",
    "hash_run",
    "refuse_one_run",
    "refuse_other",
    "with_kept",
]


def folder_for(out: str | Path | None, name: str, *, resume: bool, what: str = "run") -> Path:
    """The folder asked for, if it may be used, or a free name under ``runs``.

    Args:
        out: the one asked for.
        name: what a free name begins with.
        resume: whether it may be there.
        what: it is to hold, in a word.
    """
    if out is not None:
        folder = user_path(out)
        there = exists(folder)
        if there and not resume:
            raise RunError(
                f"`{folder}` exists; choose another `out`, or continue the {what} in it with "
                "resume=True"
            ).by({"out": None, "resume": True})
        if there and not folder.is_dir():
            raise RunError(f"`{folder}` is a file; choose another `out`").by({"out": None})
        return folder
    if resume:
        raise ConfigurationError(f"`resume` needs `out`, the folder of the {what} to continue").by(
            {"out": None}
        )
    base = Path("runs") / re.sub(r"[^\w.-]+", "-", name)
    for number in range(1, 1_000_000):
        folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
        if not folder.exists():
            return folder
    raise RunError(f"all names like `{base}` are taken; choose one with `out`").by({"out": None})


def refuse_one_run(folder: Path, what: str) -> None:
    """Refuse the folder of one run where several are to go."""
    if (folder / "run.json").exists():
        raise RunError(
            f"`{folder}` is the folder of one run, not of {what}; choose another `out`"
        ).by({"out": None})


def folders_of(
    processes: Processes,
    plans: Sequence[Plan],
    out: str | Path | None,
    *,
    several: bool,
    resume: bool,
) -> list[Path]:
    """The run folder of every plan, as the first process chooses them."""

    def chosen() -> list[str]:
        if not processes.first:
            return []
        lead = plans[0]
        name = f"{lead.problem.name}-{lead.configuration.label}"
        if not several:
            return [str(folder_for(out, f"{name}-{lead.seed}", resume=resume))]
        root = (
            user_path(out) if out is not None else folder_for(None, f"{name}-seeds", resume=resume)
        )
        refuse_one_run(root, "several seeds")
        places = [root / f"seed-{plan.seed}" for plan in plans]
        return [str(folder_for(place, name, resume=resume)) for place in places]

    said = processes.broadcast_bytes(json.dumps(processes.together(chosen)).encode())
    return [Path(folder) for folder in json.loads(said)]


def finished(processes: Processes, folder: Path, plan: Plan) -> bool:
    """Whether a run came to its end, as the first process finds it; refuses other settings."""

    def found() -> bool:
        if not processes.first or not (folder / "run.json").exists():
            return False
        record = record_in(folder)
        refuse_other(folder, record, plan)
        return bool(record["status"] == "finished")

    ended: bool = json.loads(
        processes.broadcast_bytes(json.dumps(processes.together(found)).encode())
    )
    return ended


def with_kept(error: ParetoCosmosError, folder: Path) -> ParetoCosmosError:
    """The same error, which also says how to go on from a folder where something is saved."""
    if not saved_in(folder):
        return error
    kept = f"the last checkpoint is kept in `{folder}`: go on from it with resume=True"
    found = type(error)(f"{error}; {kept}").by({**error.ways, "resume": True})
    found.shared = error.shared
    return found


def refuse_other(folder: Path, record: Mapping[str, Any], plan: Plan) -> None:
    """Refuse to continue a run with other settings or on other data than it was begun."""
    now, recorded = plan.configuration.to_dict(), record.get("data_hash")
    same_problem = record.get("problem") == now["problem"]
    if same_problem and recorded != plan.data_hash:
        # first, since settings such as the knots of a network follow from the data
        raise RunError(
            f"`{folder}` was begun on other data than this (an input, an answer or the order of "
            "the rows changed): restore the data, or choose another `out`"
        ).by({"out": None})
    differences = [
        f"{name}: {reprlib.repr(before)} there, {reprlib.repr(after)} now"
        for name, before, after in _differences(rename_record(record), now)
    ]
    differences += other_objectives(record, plan.problem)
    if differences:
        raise RunError(
            f"`{folder}` holds a run with other settings ({'; '.join(differences)}); repeat them, "
            "or choose another `out`"
        ).by({"out": None})


def hash_run(plan: Plan) -> str:
    """Return a hash of what decides a run's result: its settings, its data, and the seed."""
    settings = restore_names(plan.configuration.to_dict()) | {"device": plan.device.type}
    return digest_of([settings, plan.problem.names, plan.data_hash])


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    # the record holds more than the configuration, but inside of it every key counts
    old, new = flat({key: before.get(key) for key in now}), flat(now)
    for settings in (old, new):  # whichever of several GPUs: the kind decides the result
        settings["device"] = str(settings["device"]).partition(":")[0]
    for key in dict.fromkeys([*new, *old]):
        if old.get(key) != new.get(key):
            yield key, old.get(key), new.get(key)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner = isinstance(value, Mapping)
        found |= flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return found
