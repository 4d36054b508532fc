"""Where runs go: folders asked for or free, finished, begun, refused."""

import json
import re
import reprlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from paretocosmos.config.plan import Plan
from paretocosmos.errors import ConfigurationError, ParetoCosmosError, RunError
from paretocosmos.io.files import hash_json, lock_folder, path_exists, user_path
from paretocosmos.runs.checkpoint import (
    clean_run_folder,
    find_flaw,
    group_by_epoch,
    list_checkpoints,
)
from paretocosmos.runs.record import load_record, other_objectives
from paretocosmos.runs.stored_names import rename_record, restore_names
from paretocosmos.runtime.distributed import Processes


def choose_folder(out: str | Path | None, name: str, *, resume: bool, what: str = "run") -> Path:
    """The folder asked for, if it may be used, or a free name under ``runs``.

    Args:
        out: the one asked for.
        name: what a free name begins with.
        resume: whether it may be there.
        what: it is to hold, in a word.
    """
    if out is not None:
        folder = user_path(out)
        there = path_exists(folder)
        if there and not resume:
            raise RunError(
                f"`{folder}` exists; choose another `out`, or continue the {what} in it with "
                "resume=True"
            ).with_hint({"out": None, "resume": True})
        if there and not folder.is_dir():
            raise RunError(f"`{folder}` is a file; choose another `out`").with_hint({"out": None})
        return folder
    if resume:
        raise ConfigurationError(
            f"`resume` needs `out`, the folder of the {what} to continue"
        ).with_hint({"out": None})
    base = Path("runs") / re.sub(r"[^\w.-]+", "-", name)
    for number in range(1, 1_000_000):
        folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
        if not folder.exists():
            return folder
    raise RunError(f"all names like `{base}` are taken; choose one with `out`").with_hint(
        {"out": None}
    )


def refuse_one_run(folder: Path, what: str) -> None:
    """Refuse the folder of one run where several are to go."""
    if (folder / "run.json").exists():
        raise RunError(
            f"`{folder}` is the folder of one run, not of {what}; choose another `out`"
        ).with_hint({"out": None})


def choose_run_folders(
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
            return [str(choose_folder(out, f"{name}-{lead.seed}", resume=resume))]
        root = (
            user_path(out)
            if out is not None
            else choose_folder(None, f"{name}-seeds", resume=resume)
        )
        refuse_one_run(root, "several seeds")
        places = [root / f"seed-{plan.seed}" for plan in plans]
        return [str(choose_folder(place, name, resume=resume)) for place in places]

    said = processes.broadcast_bytes(json.dumps(processes.together(chosen)).encode())
    return [Path(folder) for folder in json.loads(said)]


def is_finished(processes: Processes, folder: Path, plan: Plan) -> bool:
    """Whether a run came to its end, as the first process finds it; refuses other settings."""

    def found() -> bool:
        if not processes.first or not (folder / "run.json").exists():
            return False
        record = load_record(folder)
        refuse_other(folder, record, plan)
        return bool(record["status"] == "finished")

    ended: bool = json.loads(
        processes.broadcast_bytes(json.dumps(processes.together(found)).encode())
    )
    return ended


def with_resume_hint(error: ParetoCosmosError, folder: Path) -> ParetoCosmosError:
    """The same error, which also says how to go on from a folder where something is saved."""
    if not list_checkpoints(folder):
        return error
    kept = f"the last checkpoint is kept in `{folder}`: go on from it with resume=True"
    found = type(error)(f"{error}; {kept}").with_hint({**error.hints, "resume": True})
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
        ).with_hint({"out": None})
    differences = [
        f"{name}: {reprlib.repr(before)} there, {reprlib.repr(after)} now"
        for name, before, after in _differences(rename_record(record), now)
    ]
    differences += other_objectives(record, plan.problem)
    if differences:
        raise RunError(
            f"`{folder}` holds a run with other settings ({'; '.join(differences)}); repeat them, "
            "or choose another `out`"
        ).with_hint({"out": None})


def hash_run(plan: Plan) -> str:
    """Return a hash of what decides a run's result: its settings, its data, and the seed."""
    settings = restore_names(plan.configuration.to_dict()) | {"device": plan.device.type}
    return hash_json([settings, plan.problem.names, plan.data_hash])


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    # the record holds more than the configuration, but inside of it every key counts
    old, new = flatten({key: before.get(key) for key in now}), flatten(now)
    for settings in (old, new):  # whichever of several GPUs: the kind decides the result
        settings["device"] = str(settings["device"]).partition(":")[0]
    for key in dict.fromkeys([*new, *old]):
        if old.get(key) != new.get(key):
            yield key, old.get(key), new.get(key)


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner = isinstance(value, Mapping)
        found |= flatten(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return found


# Folders below one another in which runs are looked for: comparisons, their methods, their seeds.
DEEP = 3


def find_runs(folder: Path) -> list[Path]:
    """The folder itself where it is that of a run, else those of all runs below it."""
    if path_exists(folder / "run.json"):
        return [folder]
    found = (folder.glob(f"{'*/' * depth}run.json") for depth in range(1, DEEP + 1))
    return sorted(path.parent for some in found for path in some) if folder.is_dir() else []


def split_runs(folder: Path) -> tuple[list[Path], list[Path]]:
    """The folders of finished runs in a folder, and of those that were only begun.

    The folder of a run is that run, and what is wrong with it, or with what is no folder, is told
    by whoever reads it. Other folders are looked through, a few levels deep, in the order of their
    names.

    >>> import tempfile
    >>> empty = Path(tempfile.mkdtemp())
    >>> split_runs(empty / "nowhere")[0] == [empty / "nowhere"]
    True
    """
    found = find_runs(folder)
    if found == [folder] or not folder.is_dir():
        return [folder], []
    if not found:
        raise RunError(
            f"there is no run in `{folder}`: neither it nor a folder in it has a `run.json`; train "
            "one with `paretocosmos train`"
        )
    ended = {place: load_record(place).get("status") == "finished" for place in found}
    is_finished = [place for place in found if ended[place]]
    begun = [place for place in found if not ended[place]]
    if not is_finished:
        raise RunError(
            f"no run in `{folder}` is finished: continue them with the same call and resume=True"
        ).with_hint({"resume": True})
    return is_finished, begun


Job = tuple[Plan, Path]


def claim_runs(
    held: ExitStack, jobs: list[Job], processes: Processes, *, resume: bool, stacked: bool
) -> list[list[Job]]:
    """The runs that are left, those together that train as one, their folders locked and swept.

    Args:
        held: where the locks go.
        jobs: plans and their folders, whether finished, begun or neither.
        processes: those that train together; the first one locks.
        resume: whether some may be finished already.
        stacked: whether several of them train as one.
    """
    left = _unfinished(jobs, processes) if resume else jobs
    processes.together(lambda: _lock(held, jobs, left) if processes.first else None)
    left = _unfinished(jobs, processes)  # another process may have come to the end meanwhile
    if not stacked or not left:
        return [[job] for job in left]
    mates = _mates(left)
    for _, folder in mates:
        held.enter_context(lock_folder(folder))
    if mates:
        order = [plan.seed for plan, _ in jobs]
        asked = all(plan.seed in order for plan, _ in mates)
        left = sorted(
            [*left, *mates], key=lambda job: order.index(job[0].seed) if asked else job[0].seed
        )
    return [[left[at] for at in some] for some in group_by_epoch([folder for _, folder in left])]


def _unfinished(jobs: list[Job], processes: Processes) -> list[Job]:
    return [(plan, folder) for plan, folder in jobs if not is_finished(processes, folder, plan)]


def _lock(held: ExitStack, jobs: list[Job], left: list[Job]) -> None:
    """Keep other trainings from the folders of runs that are left; remove_leftovers out what killed ones left.

    A finished run may be in a read-only folder, and is touched only if there is something to remove_leftovers.
    """
    for _, folder in left:
        held.enter_context(lock_folder(folder))
        clean_run_folder(folder)
    trained = {folder for _, folder in left}
    for folder in (folder for _, folder in jobs if folder not in trained):
        if any(path.name.startswith(".") for path in folder.iterdir()):
            with suppress(RunError), lock_folder(folder):
                clean_run_folder(folder)


def _mates(left: list[Job]) -> list[Job]:
    """The finished runs that have to train once more with those that are left: hardly ever any.

    A stack finishes one seed after the other. If it was killed meanwhile, and the last checkpoint
    of a seed that is left is damaged, an epoch has to be repeated, and only the whole stack repeats
    it bit for bit. They lie beside, whether or not the caller asks for their seeds again.
    """
    last = left[0][0].training.epochs
    saved = [list_checkpoints(folder).get(last) for _, folder in left]
    at_the_end = [path for path in saved if path is not None]
    if len(at_the_end) < len(left) or not any(find_flaw(path, last) for path in at_the_end):
        return []
    found: list[tuple[Job, int]] = []
    for job in _beside(left):
        with suppress(RunError):  # damaged, or of other settings: it is none of them
            record = load_record(job[1])
            refuse_other(job[1], record, job[0])
            if record["status"] == "finished" and last in list_checkpoints(job[1]):
                found.append((job, record["seeds_together"]))
    counts = Counter(size for _, size in found)
    return [job for job, size in found if size == len(left) + counts[size]]


def _beside(left: list[Job]) -> Iterator[Job]:
    """The other seeds whose folders lie beside those of seeds that are left."""
    plan, folder = left[0]
    if folder.name != f"seed-{plan.seed}":
        return
    behind = {folder for _, folder in left}
    for other in folder.parent.glob("seed-*/run.json"):
        number = re.fullmatch(r"seed-(\d{1,19})", other.parent.name)
        if number and other.parent not in behind and int(number[1]) < 2**63:
            yield plan.for_seed(int(number[1])), other.parent
