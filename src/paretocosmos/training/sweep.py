"""`sweep`: a search over settings, methods and problems, judged on validation data."""

import dataclasses
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal, get_args

from paretocosmos.errors import ConfigurationError, check_choice
from paretocosmos.io.files import write_json
from paretocosmos.io.formatting import Grid, format_number
from paretocosmos.pareto.metrics import MEANINGS
from paretocosmos.problems import Problem
from paretocosmos.runs.run import Run
from paretocosmos.training.callbacks import Callback
from paretocosmos.training.compare import (
    Candidate,
    begin_folder,
    check_comparable,
    check_single_process,
    plan_trainings,
    train_all,
)
from paretocosmos.training.fit import FitOptions
from paretocosmos.training.jobs import check_seeds
from paretocosmos.training.progress import Progress, ProgressCallback, follow_progress

Measure = Literal["hypervolume", "expected_utility", "monotonicity", "dominated_share"]
SMALLER_IS_BETTER = ("expected_utility", "dominated_share")
# Arguments of `fit` that may vary like settings.
VARIED = ("method", "backbone", "conditioning", "preset")


@dataclass(frozen=True)
class Sweep:
    """What a search reached.

    Attributes:
        folder: where the runs are, a folder for each trial.
        measure: what they are judged by, on validation data.
        values: the problem and the settings of every trial, by its name.
        runs: the runs of every trial that was trained, one per seed.
        failures: why another was not.
    """

    folder: Path
    measure: Measure
    values: Mapping[str, Mapping[str, Any]]
    runs: Mapping[str, Sequence[Run]]
    failures: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _grid(self) -> Grid:
        heads = [*next(iter(self.values.values())), self.measure]
        rows = [[row["trial"], *(row[head] for head in heads)] for row in self.rows]
        cells = [
            [
                "-" if v is None else format_number(v) if isinstance(v, float) else f"{v}"
                for v in row
            ]
            for row in rows
        ]
        notes = [
            f"{self.measure} on validation data: {MEANINGS[self.measure]}",
            *(f"failed: {trial}, {why}" for trial, why in self.failures.items()),
            f"{self.folder}",
        ]
        return Grid("Trials, the best first", ["trial", *heads], cells, notes)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row per trial, the best of each problem first; numbers are of validation data."""
        rows = [self._row(trial, runs) for trial, runs in self.runs.items()]
        problems = list(dict.fromkeys(row["problem"] for row in rows))
        sign = 1 if self.measure in SMALLER_IS_BETTER else -1

        def rank(row: dict[str, Any]) -> tuple[int, bool, float]:
            value = row[self.measure]
            return problems.index(row["problem"]), value is None, sign * (value or 0.0)

        return sorted(rows, key=rank)

    @property
    def best(self) -> dict[str, Sequence[Run]]:
        """The runs of the best trial of each problem: quote their test fronts, no other's."""
        # the rows are sorted: the first of each problem stays
        return {row["problem"]: self.runs[row["trial"]] for row in reversed(self.rows)}

    def to_dict(self) -> dict[str, Any]:
        """The numbers, which `sweep --json` prints; `test` is of the best trials alone."""
        return {
            "folder": str(self.folder),
            "measure": self.measure,
            "rows": self.rows,
            "best": {
                problem: {
                    "runs": [str(run.folder) for run in runs],
                    "test": _compute_mean(runs, "test", self.measure),
                }
                for problem, runs in self.best.items()
            },
            "failures": dict(self.failures),
        }

    def _row(self, trial: str, runs: Sequence[Run]) -> dict[str, Any]:
        reached = [run.record["metrics"]["val"][self.measure] for run in runs]
        return {
            "trial": trial,
            **self.values[trial],
            self.measure: _compute_mean(runs, "val", self.measure),
            "std": stdev(reached) if len(reached) > 1 and None not in reached else None,
            "seconds": fmean(run.record["seconds_training"] for run in runs),
        }


def _compute_mean(runs: Sequence[Run], split: str, measure: str) -> float | None:
    values = [run.record["metrics"][split][measure] for run in runs]
    # a mean over the seeds that have a value would flatter the trial
    return None if None in values else fmean(values)


def sweep(
    problem: str | Problem | Sequence[str | Problem],
    grid: Mapping[str, Sequence[Any]],
    *,
    samples: int | None = None,
    measure: Measure = "hypervolume",
    seeds: Sequence[int] = (1,),
    method: str | None = None,
    preset: str | None = None,
    protocol: str | None = None,
    epochs: int | None = None,
    backbone: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    engine: str = "auto",
    precision: str = "tf32",
    deterministic: bool = False,
    workers: int = 0,
    cluster: str | None = None,
    progress: Callable[[str, Progress], None] | bool = True,
    callbacks: Sequence[Callback] = (),
) -> Sweep:
    """Train every combination of some values, or a random sample of them, and rank the results.

    Mistakes in any combination are refused before the first is trained. One that fails later does
    not stop the others.

    Args:
        problem: as for `fit`; or several, each of which has a best combination of its own.
        grid: the values of every setting, which may also be ``"method"``, ``"backbone"``,
            ``"conditioning"`` or ``"preset"``, but not what changes the data or the objectives.
        samples: so many combinations, drawn at random without repetition; all of them if `None`.
        measure: what ranks them, as a mean over seeds on validation data: ``"hypervolume"``,
            ``"expected_utility"``, ``"monotonicity"`` or ``"dominated_share"``.
        seeds: each combination has one run for each of them; the first draws the sample.
        method: as for `fit`.
        preset: as for `fit`.
        protocol: as for `fit`.
        epochs: as for `fit`.
        backbone: as for `fit`.
        settings: as for `fit`, for every combination.
        out: the new folder that gets a folder for each combination; ``runs/sweep`` if `None`.
        resume: continue what was begun in `out`.
        device: as for `fit`.
        engine: as for `fit`.
        precision: as for `fit`.
        deterministic: as for `fit`.
        workers: processes of this machine that train a combination each; 0 trains in this one.
        cluster: as for `fit`, for combinations.
        progress: one bar, `False` for none, or a function to call after every epoch with the
            name of the combination and its progress.
        callbacks: as for `fit`.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/runs"
    >>> grid = {"method": ["linear", "cosmos"], "learning_rate": [0.001, 0.01]}
    >>> done = sweep("toy_convex", grid, epochs=2, out=folder)
    >>> len(done.rows), len(done.best)
    (4, 1)
    """
    check_single_process("sweep", device, workers, cluster)
    check_choice("measure", measure, get_args(Measure))
    all_seeds = check_seeds(seeds)
    problems = [problem] if isinstance(problem, str | Problem) else list(problem)
    trials = _draw_trials(problems, grid, samples, all_seeds[0])
    shared = {**(settings or {}), **({} if epochs is None else {"epochs": epochs})}
    options: FitOptions = {
        "preset": preset,
        "method": method,
        "model": None,
        "conditioning": None,
        "backbone": backbone,
        "protocol": protocol,
        "settings": shared,
        "device": device if cluster is None else "auto",  # a cluster has devices of its own
        "precision": precision,
        "deterministic": deterministic,
    }
    rest: FitOptions = {"device": device, "engine": engine, "callbacks": callbacks}
    with follow_progress(progress is True) as follow:
        named = {name: _name_trial(name, values) for name, (_, values) in trials.items()}
        asked = {named[name]: (trial[0], _set(options, *trial)) for name, trial in trials.items()}
        elsewhere = workers > 0 or cluster is not None
        planned = plan_trainings(asked, all_seeds, engine, elsewhere=elsewhere)
        folder = begin_folder(out, "sweep", resume=resume, what="sweep")
        candidates = {name: planned[named[name]].begin(folder / name, rest) for name in trials}
        bars = _follow_all(candidates, follow, progress)
        runs, failures = train_all(candidates, all_seeds, bars, workers=workers, cluster=cluster)
    values = {
        name: {"problem": candidates[name].plan.problem.name} | trials[name][1] for name in trials
    }
    done = Sweep(folder, measure, values, runs, failures)
    write_json(folder / "sweep.json", {k: v for k, v in done.to_dict().items() if k != "folder"})
    return done


Trial = tuple[str | Problem, dict[str, Any]]


def _draw_trials(
    problems: Sequence[str | Problem],
    grid: Mapping[str, Sequence[Any]],
    samples: int | None,
    seed: int,
) -> dict[str, Trial]:
    """Return the problem and the values of each combination, or of a sample, by name."""
    if not problems:
        raise ConfigurationError("`problem` needs at least one problem, found none: try adult")
    for key, values in grid.items():
        if isinstance(values, str) or not len(values):
            raise ConfigurationError(
                f"`{key}` of `grid` must be a list of values, found {values!r}: write [{values!r}]"
            )
    combinations = [
        dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
    ]
    trials = list(itertools.product(problems, combinations))
    if samples is not None and not 1 <= samples <= len(trials):
        raise ConfigurationError(
            f"`samples` must be from 1 to {len(trials)}, the number of all, found {samples}"
        )
    if samples is not None:
        trials = random.Random(seed).sample(trials, samples)
    width = len(str(len(trials)))
    return {f"trial-{number:0{width}}": trial for number, trial in enumerate(trials, start=1)}


def _name_trial(name: str, values: Mapping[str, Any]) -> str:
    """Return a trial's name in errors, with its values: a setting may suit the other trials."""
    listed = ", ".join(f"{setting}={value}" for setting, value in values.items())
    return f"{name} ({listed})" if values else name


def _set(options: FitOptions, problem: str | Problem, values: Mapping[str, Any]) -> FitOptions:
    """Return the options of a trial."""
    for setting in values:
        check_comparable(setting, problem)
    rest = {key: value for key, value in values.items() if key not in VARIED}
    changed: Any = {key: value for key, value in values.items() if key in VARIED}
    changed["settings"] = {**(options["settings"] or {}), **rest}
    trial: FitOptions = options | changed
    return trial


def _follow_all(
    candidates: Mapping[str, Candidate],
    follow: Callable[[str, int], ProgressCallback | None],
    progress: Callable[[str, Progress], None] | bool,
) -> dict[str, ProgressCallback | None]:
    """Return the callback of every trial: the caller's, or one bar for the epochs of all."""
    if callable(progress):
        return {name: partial(progress, name) for name in candidates}
    total = sum(candidate.plan.training.epochs for candidate in candidates.values())
    callback, epochs = follow("", total), dict[str, int]()

    def add_up(name: str, progress: Progress) -> None:
        epochs[name] = max(progress.epoch, epochs.get(name, 0))
        if callback is not None:
            callback(dataclasses.replace(progress, epoch=sum(epochs.values()), epochs=total))

    return {name: partial(add_up, name) for name in candidates}
