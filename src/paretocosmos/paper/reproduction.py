"""Train all experiments of a recipe that are not finished, and keep track of them."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from paretocosmos.errors import (
    ConfigurationError,
    ParetoCosmosError,
    RunError,
    UntrustedError,
    cannot_use,
    check_choice,
)
from paretocosmos.io.files import lock_folder, remove_leftovers, user_path, write_json
from paretocosmos.io.schema import CELL
from paretocosmos.paper.experiment import (
    Record,
    ReproduceOptions,
    clean_up,
    find_finished_seeds,
    get_seconds,
    read_saved_status,
    train_seeds,
    volume_name,
)
from paretocosmos.paper.recipe import Experiment, Recipe, load_recipe
from paretocosmos.registry import check_trust
from paretocosmos.runs.record import load_record
from paretocosmos.runtime.device import PRECISIONS, resolve_device
from paretocosmos.runtime.distributed import join_processes
from paretocosmos.training.jobs import check_seeds
from paretocosmos.training.progress import Progress
from paretocosmos.training.scheduler import check_place, run_tasks
from paretocosmos.training.tasks import Outcome, Task, describe_failure

State = Literal["waiting", "running", "done", "failed"]

# Phases of a run, as its record names them.
PHASES = ("training", "preparing", "evaluating")


@dataclass(frozen=True)
class ExperimentStatus:
    """Status of one experiment.

    Attributes:
        experiment: the experiment.
        asked: whether it is to be trained this time.
        state: ``"waiting"``, ``"running"``, ``"done"`` or ``"failed"``.
        error: why it failed.
        packages: what would have to be trusted, where that is why.
        seconds: what all of its sessions took.
        share: its part of that, where experiments ran side by side.
        progress: of its training, if it runs.
        began: when that began, by `time.monotonic`.
        seeds_done: the seeds whose runs are finished.
        hypervolume: their mean, on test; of one network per objective that of their ideal point.
        hypervolume_paper: what the paper prints for it; `None` if it prints nothing.
        seconds_in: what the time of those runs went into.
    """

    experiment: Experiment
    asked: bool
    state: State = "waiting"
    error: str | None = None
    seconds: float = 0.0
    share: float = 0.0
    progress: Progress | None = None
    began: float | None = None
    seeds_done: tuple[int, ...] = ()
    hypervolume: float | None = None
    hypervolume_paper: float | None = None
    seconds_in: Mapping[str, float] = field(default_factory=dict)
    packages: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a reproduction's file."""
        described = ("name", "problem", "protocol", "method", "settings", "seeds")
        reached = ("state", "error", "seeds_done", "hypervolume", "hypervolume_paper")
        entry = {key: getattr(self.experiment, key) for key in described}
        entry |= {key: getattr(self, key) for key in (*reached, "seconds", "share", "seconds_in")}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in entry.items()}


@dataclass
class Reproduction:
    """Status of all experiments of a recipe.

    Attributes:
        recipe: with the seeds and epochs that were asked for.
        out: the folder of all recipes.
        statuses: by the name of the experiment, in the recipe's order.
        notes: warnings, each once.
    """

    recipe: Recipe
    out: Path
    statuses: dict[str, ExperimentStatus] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def file(self) -> Path:
        """The file of this status."""
        return self.recipe.root(self.out) / f"{self.recipe.name}.json"

    def select(self, state: State) -> list[ExperimentStatus]:
        """Return the experiments in a state, of those that are to be trained this time."""
        return [
            status for status in self.statuses.values() if status.asked and status.state == state
        ]

    @property
    def failures(self) -> dict[str, str]:
        """Errors of the experiments that failed, by their names."""
        return {status.experiment.name: str(status.error) for status in self.select("failed")}

    def enter(
        self,
        experiment: Experiment,
        state: State,
        error: ParetoCosmosError | None = None,
        *,
        asked: bool,
    ) -> None:
        """Record the state in which an experiment is on the disk."""
        saved = read_saved_status(experiment.folder(self.out))
        why = None if error is None else str(error)
        # one that is not to be trained again remains failed
        if not asked and state == "waiting" and saved.error:
            state, why = "failed", saved.error
        status = ExperimentStatus(
            experiment,
            asked,
            state,
            why,
            saved.seconds,
            saved.share,
            hypervolume_paper=self.recipe.paper_volume(experiment),
            packages=error.packages if isinstance(error, UntrustedError) else (),
        )
        self.statuses[experiment.name] = _add_results(status, self.out)

    def update(self, experiment: Experiment, news: Progress | Outcome | None) -> None:
        """Record news of an experiment: it begins (`None`), progress, or its outcome."""
        status = self.statuses[experiment.name]
        if not isinstance(news, Outcome):
            # monotonic, since the clock may be set while an experiment trains for hours
            began = time.monotonic() if news is None else status.began
            now = replace(status, state="running", progress=news, began=began)
            self.statuses[experiment.name] = now
            return
        now = replace(
            status,
            state="done" if news.error is None else "failed",
            error=news.error,
            packages=news.packages,
        )
        now = _add_results(now, self.out)
        self._end(now, news.seconds, news.seconds if news.share is None else news.share)
        self.notes += [note for note, _ in news.notes if note not in self.notes]

    def stop(self) -> None:
        """Mark running experiments as waiting for the next time, and save."""
        for status in self.select("running"):
            spent = 0.0 if status.began is None else time.monotonic() - status.began
            self._end(replace(status, state="waiting", began=None), spent, spent)  # at most
        self.save()

    def _end(self, status: ExperimentStatus, seconds: float, share: float) -> None:
        """Add the time of a session, here and in the experiment's folder."""
        now = replace(
            status, progress=None, seconds=status.seconds + seconds, share=status.share + share
        )
        self.statuses[status.experiment.name] = now
        keys = ("problem", "protocol", "method", "settings", "error", "seconds", "share")
        content = {key: value for key, value in now.to_dict().items() if key in keys}
        folder = now.experiment.folder(self.out)
        with suppress(OSError):  # where nothing can be written, the experiment has failed for it
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / CELL, content | {"rehearsal": now.experiment.epochs})

    def to_dict(self) -> dict[str, Any]:
        """Return every experiment and the total times, as `reproduce --json` prints them."""
        statuses = list(self.statuses.values())
        phases = {p: sum(status.seconds_in.get(p, 0.0) for status in statuses) for p in PHASES}
        return {
            "recipe": self.recipe.name,
            "title": self.recipe.title,
            "section": self.recipe.section,
            "shows": self.recipe.shows,
            "rehearsal": self.recipe.epochs,
            "cells": [status.to_dict() for status in statuses],
            "seconds": {"all": sum(status.seconds for status in statuses), **phases},
        }

    def save(self) -> None:
        """Write the file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_json(self.file, self.to_dict())
        except RunError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            # another process that begins has swept it away as it was written
            write_json(self.file, self.to_dict())


def _add_results(status: ExperimentStatus, out: Path) -> ExperimentStatus:
    """Return the status with the numbers of the finished runs."""
    done: dict[int, Record] = {}
    for seed, folder in status.experiment.runs(out).items():
        with suppress(RunError):  # of a record that is damaged, for which the experiment has failed
            record = load_record(folder) if (folder / "run.json").exists() else {}
            if record.get("status") == "finished":
                done[seed] = record
    reached = [record["metrics"]["test"][volume_name(record)] for record in done.values()]
    spent = {phase: sum(get_seconds(record, phase) for record in done.values()) for phase in PHASES}
    mean = fmean(reached) if reached else None
    return replace(status, seeds_done=tuple(done), hypervolume=mean, seconds_in=spent)


def reproduce(
    recipe: str | Path | Recipe,
    *,
    out: str | Path = "reproduction",
    only: Sequence[str] = (),
    seeds: Sequence[int] | None = None,
    epochs: int | None = None,
    data: str | Path | None = None,
    trust: Collection[str] = (),
    device: str = "auto",
    precision: str = "tf32",
    workers: int = 0,
    cluster: str | None = None,
    progress: Callable[[Reproduction], None] | None = None,
) -> Reproduction:
    """Train the experiments of a recipe that are not done, each in a folder of its own.

    What is done stays, also from another recipe that has the same experiment; what was interrupted
    goes on. An experiment that fails does not stop the others: it is in `failures`.

    Args:
        recipe: its name, a TOML file, or a recipe.
        out: the folder of all recipes; experiments are in ``cells/PROBLEM/METHOD/seed-SEED``.
        only: problems, methods and protocols to train; all if none is named.
        seeds: others than the recipe's.
        epochs: as many instead of the paper's, for a rehearsal; it has a folder of its own in
            `out`, and is marked in all that comes from it.
        data: a folder to look for data in, before the cache; as ``$PARETOCOSMOS_DATA``.
        trust: packages and modules whose code the recipe's file, and the runs in `out`, may name.
        device: as for `fit`; with ``"auto"``, what was done on another device counts as well.
        precision: as for `fit`.
        workers: processes on this machine that train one experiment each; one that kills its
            process does not affect the others. 0 trains in this process.
        cluster: the address of a Ray cluster whose workers train the experiments; ``"local"``
            starts one on this machine.
        progress: called after every epoch and whenever an experiment begins or ends.

    >>> import tempfile
    >>> done = reproduce("intuition", out=tempfile.mkdtemp(), only=["linear"], epochs=1)
    >>> [(status.experiment.problem, status.state) for status in done.select("done")]
    [('toy_convex', 'done'), ('toy_concave', 'done')]
    """
    _check_options(device, data, workers, cluster)
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe, trust=trust)
    recipe = recipe.with_seeds(None if seeds is None else check_seeds(seeds)).rehearsal(epochs)
    # checked before anything is written, so that a mistake leaves no folder behind
    asked = {experiment.name for experiment in recipe.only(only)}
    check_choice("precision", precision, PRECISIONS)
    data_folder = None if data is None else str(user_path(data).absolute())
    folder = user_path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_use(folder, error) from error
    options = ReproduceOptions(folder, device, precision, data_folder, check_trust(trust))
    reproduction = Reproduction(recipe, options.out)
    # files of a killed process
    remove_leftovers(reproduction.file.parent, of=reproduction.file.name)
    images: dict[str, str] = {}
    # all experiments of the recipe are checked, since a recipe is reported as a whole
    tasks = _find_tasks(reproduction, asked, options, images)
    reproduction.save()
    show = progress or (lambda _: None)
    show(reproduction)

    def notify(name: str, news: Progress | Outcome | None) -> None:
        experiment = reproduction.statuses[name].experiment
        # a worker may have had other settings, or images from other files, than this process
        if isinstance(news, Outcome) and news.error is None:
            try:
                find_finished_seeds(experiment, options, images)
            except ParetoCosmosError as error:
                news = replace(news, **describe_failure(error))
        reproduction.update(experiment, news)
        if isinstance(news, Outcome):
            reproduction.save()
        show(reproduction)

    try:
        run_tasks(tasks, notify, workers=workers, cluster=cluster, device=device)
    finally:
        # also after Ctrl-C, so that the time spent so far is not lost
        reproduction.stop()
    return reproduction


def _check_options(device: str, data: str | Path | None, workers: int, cluster: str | None) -> None:
    """Raise if the device, the data or the workers cannot be used."""
    if join_processes(device)[0].count > 1:
        raise ConfigurationError(
            "`reproduce` must run in one process, found several: start it without torchrun, and "
            "use `workers` or `cluster`"
        )
    check_place(workers, cluster)
    if cluster is not None:  # its machines have devices and data of their own
        return
    resolve_device(device)
    if data is not None and not user_path(data).is_dir():
        raise ConfigurationError(f"`data` must be a folder, found `{data}`: check the path")


def _find_tasks(
    reproduction: Reproduction,
    asked: Collection[str],
    options: ReproduceOptions,
    images: dict[str, str],
) -> list[Task]:
    """Enter the state of all experiments; return those to train as tasks."""
    tasks: list[Task] = []
    for experiment in reproduction.recipe.experiments:
        selected, folder = experiment.name in asked, experiment.folder(options.out)
        try:
            missing = set(experiment.seeds) - set(
                find_finished_seeds(experiment, options, images, asked=selected)
            )
        except ParetoCosmosError as error:
            reproduction.enter(experiment, "failed", error, asked=selected)
            continue
        reproduction.enter(experiment, "waiting" if missing else "done", asked=selected)
        if missing and selected:
            seeds = [seed for seed in experiment.seeds if seed in missing]
            train = partial(train_seeds, experiment, options, seeds)
            tasks.append(Task(experiment.name, folder, train))
        elif selected:
            # of what a killed process left; the folder may be read-only
            with suppress(RunError), lock_folder(folder):
                clean_up(folder, experiment.seeds)
    return tasks
