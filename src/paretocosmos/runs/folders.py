"""Choose, check, find and lock the folders of runs."""

import dataclasses
import json
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from paretocosmos.config.plan import Plan
from paretocosmos.errors import ConfigurationError, ParetoCosmosError, RunError
from paretocosmos.io.files import hash_json, lock_folder, path_exists, user_path
from paretocosmos.runs.checkpoint import (
    clean_run_folder,
    group_by_epoch,
    list_checkpoints,
)
from paretocosmos.runs.record import find_objective_differences, load_record
from paretocosmos.runs.stored_names import rename_record, restore_names
from paretocosmos.runtime.distributed import Processes


def choose_folder(out: str | Path | None, name: str, *, resume: bool, what: str = "run") -> Path:
    """Return the folder that was asked for, if it may be used, or a free one under ``runs``.

    Args:
        out: the folder that was asked for.
        name: what a free name begins with.
        resume: whether it may exist.
        what: what it is to hold, in a word.
    """
    if out is not None:
        folder = user_path(out)
        # `path_exists` raises a sentence where a parent may not be read
        if not path_exists(folder):
            return folder
        if not resume:
            raise RunError(
                f"`{folder}` exists; choose another `out`, or continue the {what} in it with "
                "resume=True"
            )
        if not folder.is_dir():
            raise RunError(f"`{folder}` is a file; choose another `out`")
        return folder
    if resume:
        raise ConfigurationError(f"`resume` needs `out`, the folder of the {what} to continue")
    # names of third-party code have colons, which Windows refuses
    base = Path("runs") / re.sub(r"[^\w.-]+", "-", name)
    # as files are numbered elsewhere: run, run-2, run-3
    for number in range(1, 1_000_000):
        folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
        if not folder.exists():
            return folder
    raise RunError(f"all names like `{base}` are taken; choose one with `out`")


def refuse_one_run(folder: Path, what: str) -> None:
    """Raise if a folder for several runs is that of one."""
    if (folder / "run.json").exists():
        raise RunError(f"`{folder}` is the folder of one run, not of {what}; choose another `out`")


def choose_run_folders(
    processes: Processes,
    plans: Sequence[Plan],
    out: str | Path | None,
    *,
    several: bool,
    resume: bool,
) -> list[Path]:
    """Return the run folder of every plan, as the first process chooses them."""

    def choose() -> list[str]:
        lead = plans[0]
        # plans of one call differ in the seed alone
        name = f"{lead.problem.name}-{lead.configuration.label}"
        if not several:
            return [str(choose_folder(out, f"{name}-{lead.seed}", resume=resume))]
        # the root may exist without `resume`: what counts is that none of its seeds does
        root = (
            choose_folder(None, f"{name}-seeds", resume=resume) if out is None else user_path(out)
        )
        refuse_one_run(root, "several seeds")
        folders = [root / f"seed-{plan.seed}" for plan in plans]
        return [str(choose_folder(folder, name, resume=resume)) for folder in folders]

    return [Path(folder) for folder in _ask_first(processes, choose)]


def _ask_first(processes: Processes, decide: Callable[[], Any]) -> Any:
    """Return in every process what the first one decides, a JSON value; all raise its errors."""
    # if every process chose, one would find that another has just created the folder
    answer = processes.together(lambda: decide() if processes.first else None)
    return json.loads(processes.broadcast_bytes(json.dumps(answer).encode()))


def is_finished(folder: Path, plan: Plan, *, any_device: bool = False) -> bool:
    """Return True if a run came to its end; raise if it has other settings.

    Args:
        folder: the run folder, which need not exist.
        plan: what is to be trained in it.
        any_device: whether it may have trained on another kind of device.
    """
    if not (folder / "run.json").exists():
        return False
    record = load_record(folder)
    if any_device:
        there = dataclasses.replace(plan.configuration, device=record["device"])
        plan = dataclasses.replace(plan, configuration=there)
    refuse_other(folder, record, plan)
    return bool(record["status"] == "finished")


def with_resume_hint(error: ParetoCosmosError, folder: Path) -> ParetoCosmosError:
    """Return the error, which also says how to continue if a checkpoint was saved."""
    if not list_checkpoints(folder):
        return error
    remedy = f"the last checkpoint is kept in `{folder}`: go on from it with resume=True"
    hinted = type(error)(f"{error}; {remedy}")
    # the copy, too, is an error of every process, which only the first one tells
    hinted.shared = error.shared
    return hinted


def refuse_other(folder: Path, record: Mapping[str, Any], plan: Plan) -> None:
    """Raise if a run was begun with other settings or on other data than those of a plan."""
    now, recorded = plan.configuration.to_dict(), record.get("data_hash")
    same_problem = record.get("problem") == now["problem"]
    if same_problem and recorded != plan.data_hash:
        # first, since settings such as the knots of a network follow from the data
        raise RunError(
            f"`{folder}` was begun on other data than this (an input, an answer or the order of "
            "the rows changed): restore the data, or choose another `out`"
        )
    # the record holds more than the configuration, but inside of it every key counts
    before = rename_record(record)
    # flat, so that a message can name one setting in place of a nested table
    old, new = flatten_settings({key: before.get(key) for key in now}), flatten_settings(now)
    for settings in (old, new):  # whichever of several GPUs: the kind decides the result
        settings["device"] = str(settings["device"]).partition(":")[0]
    differences = [
        f"{key}: {reprlib.repr(old.get(key))} there, {reprlib.repr(new.get(key))} now"
        for key in dict.fromkeys([*new, *old])
        if old.get(key) != new.get(key)
    ]
    differences += find_objective_differences(record, plan.problem)
    if differences:
        raise RunError(
            f"`{folder}` holds a run with other settings ({'; '.join(differences)}); repeat them, "
            "or choose another `out`"
        )


def hash_run(plan: Plan) -> str:
    """Return a hash of what decides a run's result: its settings, its data, and the seed."""
    # by the names of 0.2, or its checkpoints would be of another run
    settings = restore_names(plan.configuration.to_dict()) | {"device": plan.device.type}
    return hash_json([settings, plan.problem.names, plan.data_hash])


def flatten_settings(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by dotted names.

    >>> flatten_settings({"method": {"penalty": 0.1}, "seed": 1})
    {'method.penalty': 0.1, 'seed': 1}
    """
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten_settings(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


# A comparison has a folder for each method, which has one for each seed.
DEPTH = 3


def find_runs(folder: Path) -> list[Path]:
    """Return the folder itself if it is that of a run, else the folders of all runs below it."""
    if path_exists(folder / "run.json"):
        return [folder]
    # not `rglob`, which would search data and caches below the folder, too
    records = (folder.glob(f"{'*/' * depth}run.json") for depth in range(1, DEPTH + 1))
    return sorted(path.parent for paths in records for path in paths) if folder.is_dir() else []


def split_runs(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders of finished runs in a folder, and of those that were only begun.

    A run folder, or a path that is no folder, is returned as it is: whoever reads it reports what
    is wrong with it. Other folders are searched, a few levels deep, in the order of their names.

    >>> import tempfile
    >>> empty = Path(tempfile.mkdtemp())
    >>> split_runs(empty / "nowhere")[0] == [empty / "nowhere"]
    True
    """
    folders = find_runs(folder)
    if folders == [folder] or not folder.is_dir():
        return [folder], []
    if not folders:
        raise RunError(
            f"there is no run in `{folder}`: neither it nor a folder in it has a `run.json`; train "
            "one with `paretocosmos train`"
        )
    split: dict[bool, list[Path]] = {True: [], False: []}
    for path in folders:
        # a damaged record raises here: to skip it would hide a run
        split[load_record(path).get("status") == "finished"].append(path)
    if not split[True]:
        raise RunError(
            f"no run in `{folder}` is finished: continue them with the same call and resume=True"
        )
    return split[True], split[False]


Job = tuple[Plan, Path]


def claim_runs(
    locks: ExitStack, jobs: list[Job], processes: Processes, *, resume: bool, stacked: bool
) -> list[list[Job]]:
    """Lock and clean the folders of unfinished runs; return them, those that train as one together.

    Args:
        locks: where the locks are entered.
        jobs: plans and their folders, whether finished, begun or neither.
        processes: those that train together; the first one locks.
        resume: whether some may be finished already.
        stacked: whether several of them train as one.
    """
    pending = _select_unfinished(jobs, processes) if resume else jobs
    processes.together(lambda: _lock_folders(locks, jobs, pending) if processes.first else None)
    # before it was locked, another process may have come to the end of a run
    pending = _select_unfinished(jobs, processes)
    if not stacked or not pending:
        return [[job] for job in pending]
    groups = group_by_epoch([folder for _, folder in pending])
    return [[pending[index] for index in group] for group in groups]


def _select_unfinished(jobs: list[Job], processes: Processes) -> list[Job]:
    return [
        (plan, folder)
        for plan, folder in jobs
        if not _ask_first(processes, partial(is_finished, folder, plan))
    ]


def _lock_folders(locks: ExitStack, jobs: list[Job], pending: list[Job]) -> None:
    """Keep other trainings out of folders; remove what killed ones left half written.

    A finished run may be in a read-only folder: it is touched only if there is something to remove.
    """
    for _, folder in pending:
        locks.enter_context(lock_folder(folder))
        clean_run_folder(folder)
    trained = {folder for _, folder in pending}
    for folder in (folder for _, folder in jobs if folder not in trained):
        if any(path.name.startswith(".") for path in folder.iterdir()):
            # where another process holds the lock, that one cleans up
            with suppress(RunError), lock_folder(folder):
                clean_run_folder(folder)
