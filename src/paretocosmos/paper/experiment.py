"""One experiment: train its seeds, and see which of its runs on the disk are finished."""

import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretocosmos import registry
from paretocosmos._version import __version__
from paretocosmos.config.settings import Training, split_settings
from paretocosmos.errors import DataError, DivergedError, RunError, UntrustedError
from paretocosmos.io.files import (
    VARIABLE,
    lock_folder,
    read_json,
    remove_leftovers,
    user_path,
)
from paretocosmos.io.schema import CELL
from paretocosmos.paper.published import get_problem_defaults
from paretocosmos.paper.recipe import Experiment
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.registry import modules_of
from paretocosmos.runs.checkpoint import clean_run_folder
from paretocosmos.runs.record import KINDS, check_files, read_record
from paretocosmos.runs.run import Run
from paretocosmos.training.fit import fit
from paretocosmos.training.progress import ProgressCallback


@dataclass(frozen=True)
class ReproduceOptions:
    """Options that all experiments of a reproduction share.

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


def train_seeds(
    experiment: Experiment,
    options: ReproduceOptions,
    seeds: Sequence[int],
    folder: Path,
    progress: ProgressCallback,
) -> list[Run]:
    """Train seeds of an experiment together, or resume them.

    Args:
        experiment: the experiment.
        options: the device, the precision.
        seeds: those that are not done.
        folder: the experiment's.
        progress: as for `fit`.
    """

    def train(seeds: Sequence[int]) -> list[Run]:
        return fit(
            experiment.problem,
            preset=experiment.preset,
            method=experiment.method,
            protocol=experiment.protocol,
            seeds=seeds,
            settings=experiment.changed,
            out=folder,
            # what an earlier session was stopped at goes on from its checkpoints
            resume=True,
            device=options.device,
            precision=options.precision,
            progress=progress,
            # a reproduction has a report of its own, and a page for every seed would take time
            report=False,
        )

    with lock_folder(folder), _search_data_in(options.data):
        try:
            runs = train(seeds)
        except DivergedError:  # of one seed, which stops the stack it is in
            if len(seeds) == 1:
                raise
            # one after the other, so that one that diverges does not stop the others
            runs, failures = [], []
            for seed in seeds:
                try:
                    runs += train([seed])
                except DivergedError as error:
                    failures.append(f"seed {seed}: {error}")
            if failures:
                raise DivergedError("; ".join(failures)) from None
        clean_up(folder, experiment.seeds)
    return runs


def clean_up(folder: Path, seeds: Sequence[int]) -> None:
    """Remove temporary files and all checkpoints, which may be hundreds and are not needed."""
    remove_leftovers(folder)
    for run in (folder / f"seed-{seed}" for seed in seeds):
        # a read-only folder is left as it is: leftovers harm nobody
        shutil.rmtree(run / "checkpoint", ignore_errors=True)
        if next(run.glob(".*"), None) is not None:
            with suppress(RunError), lock_folder(run):
                clean_run_folder(run)


@contextmanager
def _search_data_in(data: str | None) -> Iterator[None]:
    """Make problems look for their files in a folder first.

    It is not a setting of theirs: the same experiment may find its data elsewhere the next time.
    """
    before = dict(os.environ)
    os.environ.update({} if data is None else {VARIABLE: data})
    try:
        yield
    finally:
        if VARIABLE in before:
            os.environ[VARIABLE] = before[VARIABLE]
        else:
            os.environ.pop(VARIABLE, None)


@dataclass(frozen=True)
class SavedStatus:
    """What the folder of an experiment keeps beside its runs.

    Attributes:
        error: why it failed the last time.
        seconds: what all its sessions took.
        share: its part of them, where experiments ran side by side.
    """

    error: str | None = None
    seconds: float = 0.0
    share: float = 0.0


def read_saved_status(folder: Path) -> SavedStatus:
    """Read the status in an experiment's folder; one that is missing or damaged is empty.

    It only describes the past: the runs beside it say what is done.
    """
    path = folder / CELL
    try:
        content: Record = read_json(path) if path.exists() else {}
        times = [float(content.get(key, 0.0)) for key in ("seconds", "share")]
    except (RunError, OverflowError, TypeError, ValueError):
        return SavedStatus()
    error = content.get("error")
    # the comparison is false for NaN, too
    is_valid = all(0 <= time < 1e300 for time in times) and isinstance(error, str | None)
    return SavedStatus(error, *times) if is_valid else SavedStatus()


Record = Mapping[str, Any]
"""A run's `run.json`, as `runs.record` writes it."""

FRONTS = ("front.json", "front_val.json")


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its record, its front on the test split, and that on the validation split."""

    record: Record
    test: Front
    val: Front


def volume_name(record: Record) -> str:
    """Return the name of the metric that the paper calls hypervolume.

    Of one network per objective it is that of their ideal point.

    >>> volume_name({"fixed_rays": [[1, 0], [0, 1]]}), volume_name({"fixed_rays": None})
    ('hypervolume_ideal', 'hypervolume')
    """
    return "hypervolume_ideal" if has_only_corners(record["fixed_rays"]) else "hypervolume"


def get_seconds(record: Record, phase: str) -> float:
    """Return the seconds of a seed for one phase of its run, such as ``"training"``.

    Seeds that trained together share that time equally; each is evaluated by itself.

    >>> get_seconds({"seconds_training": 10.0, "seeds_together": 5}, "training")
    2.0
    """
    together = 1 if phase == "evaluating" else record["seeds_together"]
    return float(record[f"seconds_{phase}"] / together)


def find_finished_seeds(
    experiment: Experiment,
    options: ReproduceOptions,
    images: MutableMapping[str, str],
    *,
    asked: bool = True,
) -> list[int]:
    """Return the finished seeds of an experiment; raise if a run there has other settings.

    Args:
        experiment: the experiment.
        options: the folder and what has to be the same.
        images: the checksum of every problem's images, by its name and settings; this
            experiment's own is added.
        asked: whether it is to be trained now; otherwise any device and precision will do.
    """
    done = []
    for seed, folder in experiment.runs(options.out).items():
        record = read_finished(folder, experiment, options.trust, options if asked else None)
        if record is None:
            continue
        # images are composed from a seed: other source files give other images without notice
        checksum = (record.get("about") or {}).get("sha256")
        problem = record["problem"] or {"name": None, "settings": {}}  # one that was built by hand
        # settings such as the rule of composing them
        relevant = sorted(
            (k, value) for k, value in problem["settings"].items() if k not in ("protocol", "data")
        )
        key = json.dumps([problem["name"], relevant])
        if checksum is not None and images.setdefault(key, checksum) != checksum:
            raise _refuse(folder, [f"images: sha256 {checksum} there, {images[key]} elsewhere"])
        done.append(seed)
    return done


def read_finished_runs(
    experiment: Experiment, out: Path, trust: Collection[str]
) -> tuple[dict[int, FinishedRun], str | None]:
    """Read the finished runs of an experiment by seed, and say why one cannot be read.

    Args:
        experiment: the experiment.
        out: the folder of the reproduction.
        trust: packages whose code its runs may name.
    """
    runs: dict[int, FinishedRun] = {}
    problem = None
    for seed, folder in experiment.runs(out).items():
        try:
            record = read_finished(folder, experiment, trust)
            if record is not None:
                test, val = (Front.from_dict(read_json(folder / name)) for name in FRONTS)
                runs[seed] = FinishedRun(record, test, val)
        except UntrustedError:
            raise
        except (RunError, DataError) as error:
            problem = str(error)
    return runs, problem


def read_finished(
    folder: Path,
    experiment: Experiment,
    trust: Collection[str],
    options: ReproduceOptions | None = None,
) -> Record | None:
    """Read the record of a finished run, `None` where there is none; raise if it is another's.

    Args:
        folder: the run's, whose fronts are checked by their digests.
        experiment: what it should be a run of.
        trust: packages whose code it may name.
        options: the device and the precision it must have, if any.
    """
    if not (folder / "run.json").exists():
        return None
    try:
        allowed = (*trust, *modules_of([experiment.problem, experiment.method]))
        record = read_record(folder, trust=allowed)
        # the model is not read here, and may be gigabytes
        check_files(folder, record, FRONTS)
    except UntrustedError:
        raise
    except RunError as error:
        raise RunError(f"{error}; remove `{folder}` and start again to train it again") from error
    mismatches = list(_find_differences(record, experiment, options))
    if mismatches:
        raise _refuse(folder, mismatches)
    return record if record["status"] == "finished" else None


def _refuse(folder: Path, mismatches: Sequence[str]) -> RunError:
    return RunError(
        f"`{folder}` holds a run with other settings than this recipe ({'; '.join(mismatches)}): "
        "choose another `out`, or remove that folder"
    )


def _find_differences(
    record: Record, experiment: Experiment, options: ReproduceOptions | None
) -> Iterator[str]:
    """Yield how a run differs from what the experiment asks for; its data need not be there."""
    facts: list[tuple[str, Any, Any]] = [
        ("problem", (record["problem"] or {}).get("name"), experiment.problem),
        ("method", record.get("label"), experiment.method),
        ("preset", record.get("preset", "paper"), experiment.preset),
    ]
    if experiment.protocol is not None:
        facts.append(("protocol", record.get("protocol"), experiment.protocol))
    if options is not None:
        facts.append(("precision", record.get("precision"), options.precision))
    if options is not None and options.device != "auto":  # whichever of several GPUs
        before, asked = (str(d).partition(":")[0] for d in (record.get("device"), options.device))
        facts.append(("device", before, asked))
    settings = {role: record[role]["settings"] for role in KINDS if record[role] is not None}
    owners = {role: registry.find(KINDS[role], record[role]["name"]) for role in settings}
    settings["training"] = record["training"]
    # settings that are not asked for have their defaults, which an earlier version may have changed
    defaults = {
        f"problem.{key}": value for key, value in get_problem_defaults(experiment.problem).items()
    }
    # lenient: the paper's settings include some of networks that the method does not have
    asked_for = split_settings(
        defaults | experiment.asked, owners | {"training": Training}, lenient=True
    )
    for role, values in asked_for.items():
        facts += [(f"{role}.{key}", settings[role].get(key), values[key]) for key in values]
    # a patch release changes no result
    if str(record.get("version")).split(".")[:2] != __version__.split(".")[:2]:
        yield f"version: {record.get('version')!r} there, {__version__!r} now"
    for name, before, now in facts:
        # in a record, tuples are lists, as after JSON, and paths are absolute
        texts = isinstance(before, str) and isinstance(now, str)
        is_same = before == json.loads(json.dumps(now)) or (
            texts and Path(before) == user_path(now).absolute()
        )
        if not is_same:
            yield f"{name}: {before!r} there, {now!r} now"
