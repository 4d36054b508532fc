"""Collect the results of a recipe from its run folders: means over seeds, beside the paper's."""

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from paretocosmos import registry
from paretocosmos.errors import DataError, RunError
from paretocosmos.io.files import read_json
from paretocosmos.io.trust import check_trust
from paretocosmos.paper.claims import GRID, judge_claims
from paretocosmos.paper.compare import compare_to_paper
from paretocosmos.paper.experiment import (
    FinishedRun,
    Record,
    get_seconds,
    read_finished_runs,
    read_saved_status,
    volume_name,
)
from paretocosmos.paper.recipe import Experiment, Recipe, load_recipe, recipe_names
from paretocosmos.paper.results import FORMAT, ExperimentResult, RecipeResult, Spread, Stage
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import span
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.runs.record import list_validation_fronts

EPOCHS_SHOWN = 10  # of a course: the paper's figure has a front every ten epochs of a hundred
DIGITS = 6  # of values that are only drawn

# Where a record holds the answers to questions about its origin.
ORIGIN = {
    "version": ("version",),
    "source": ("source",),
    "precision": ("precision",),
    "engine": ("engine",),
    "device": ("machine", "device"),
    "threads": ("machine", "threads"),
    "torch": ("versions", "torch"),
    "seeds_together": ("seeds_together",),
    "images": ("about", "images"),
    "weights": ("backbone", "settings", "weights"),
}


def collect_results(recipe: Recipe, out: Path, *, trust: Collection[str] = ()) -> RecipeResult:
    """Collect the numbers of a recipe from its run folders.

    Args:
        recipe: with the seeds and epochs that were asked for.
        out: the folder of the reproduction.
        trust: packages and modules whose code its runs may name.
    """
    trust = check_trust(trust)
    experiments = []
    for experiment in recipe.experiments:
        # the fronts of a hundred epochs would make every other file needlessly large
        course = recipe.shows == "convergence"
        result = collect_experiment(experiment, out, course=course, trust=trust)
        if recipe.compares(experiment):
            result = replace(result, comparison=compare_to_paper(result))
        experiments.append(result)
    if not any(result.seeds for result in experiments):
        # a recipe of one's own is named by its file in the command
        name = recipe.name if recipe.name in recipe_names() else f"{recipe.name}.toml"
        raise RunError(
            f"`{recipe.root(out)}` has no finished run of `{recipe.name}`: train it with "
            f"`paretocosmos reproduce {name}`, or name the `epochs` of a rehearsal"
        )
    return RecipeResult(
        recipe=recipe.name,
        title=recipe.title,
        section=recipe.section,
        shows=recipe.shows,
        rehearsal=recipe.epochs,
        experiments=experiments,
        # a rehearsal does not show whether a claim holds
        claims=[] if recipe.epochs is not None else judge_claims(recipe.shows, experiments),
    )


def read_result(path: Path) -> RecipeResult:
    """Read results that `collect_results` gave, from a file."""
    content = read_json(path)
    # another format would fail with a sentence that helps nobody
    if content.get("format") != FORMAT:
        raise RunError(
            f"`{path}` was not written by this version of `paretocosmos report` (its `format` is "
            f"not {FORMAT}): write it again from the run folders"
        )
    return RecipeResult.from_dict(content, path)


def find_recipes(out: Path, epochs: int | None) -> list[Recipe]:
    """Return the built-in recipes of which a folder has results, in the order of the paper.

    They were begun there, or other recipes have trained all of their experiments.
    """
    recipes = [load_recipe(name).rehearsal(epochs) for name in sort_recipes(recipe_names())]
    # reading the records is left to `collect_results`: here files only have to exist
    return [recipe for recipe in recipes if _has_results(recipe, out)]


def sort_recipes(names: Iterable[str]) -> list[str]:
    """Sort names of recipes: Table 1 first, whose first claim is the paper's main one.

    >>> sort_recipes(["mine", "intuition", "table_1"])
    ['table_1', 'intuition', 'mine']
    """
    return sorted(names, key=lambda name: (not name.startswith("table_1"), name))


def _has_results(recipe: Recipe, out: Path) -> bool:
    # recipes share experiments: one that was not begun is shown once all of its own are there
    begun = (recipe.root(out) / f"{recipe.name}.json").exists()
    folders = [f for experiment in recipe.experiments for f in experiment.runs(out).values()]
    finished = [(folder / "front.json").exists() for folder in folders]
    return any(finished) if begun else all(finished)


def _find_problem_settings(experiment: Experiment) -> set[str]:
    """Return the names of the settings that are the problem's, not the method's."""
    # most experiments change nothing: their problem need not be imported
    if not experiment.settings:
        return set()
    parameters = registry.parameters(registry.find("problems", experiment.problem))
    # a prefix tells a problem's setting from a method's of the same name
    return {key for key in experiment.settings if key.removeprefix("problem.") in parameters}


def collect_experiment(
    experiment: Experiment,
    out: Path,
    *,
    course: bool = False,
    trust: Collection[str] = (),
) -> ExperimentResult:
    """Collect the result of an experiment; numbers are means over its seeds.

    Seeds that trained together share their time: a seed's is an equal part. So do experiments that
    were trained side by side on one device. `volume` is what the paper prints as hypervolume: of
    one network per objective that of their ideal point.

    Args:
        experiment: the experiment.
        out: the folder of the reproduction.
        course: whether to keep the validation fronts of some epochs.
        trust: packages whose code its runs may name.
    """
    # a damaged run does not hide the others: its seed counts as missing, with the reason
    runs_by_seed, damage = read_finished_runs(experiment, out, trust)
    status = read_saved_status(experiment.folder(out))
    settings, of_problem = experiment.settings, _find_problem_settings(experiment)
    result = ExperimentResult(
        name=experiment.name,
        problem=experiment.problem,
        method=experiment.method,
        protocol=experiment.protocol,
        problem_settings={k: v for k, v in settings.items() if k in of_problem},
        settings={k: v for k, v in settings.items() if k not in of_problem},
        preset=experiment.preset,
        rehearsal=experiment.epochs,
        seeds=list(runs_by_seed),
        missing=[seed for seed in experiment.seeds if seed not in runs_by_seed],
        error=damage or status.error,
    )
    if not runs_by_seed:
        return result
    runs = list(runs_by_seed.values())
    records = [run.record for run in runs]
    # seeds differ in nothing but the seed, which reading them checked
    first = records[0]
    front = compute_mean_front([run.test for run in runs])
    metrics = [record["metrics"]["test"] for record in records]
    # experiments that shared a device each took longer than they would have alone
    side_by_side = max(1.0, status.seconds / status.share) if status.share else 1.0
    phases = ("to_selected", "training", "preparing", "evaluating")
    seconds = {p: [get_seconds(record, p) / side_by_side for record in records] for p in phases}
    return replace(
        result,
        course=compute_mean_course(runs) if course else [],
        volume=Spread.of([numbers[volume_name(first)] for numbers in metrics]),
        ideal=has_only_corners(first["fixed_rays"]),
        metrics={
            name: _spread_if_known([numbers.get(name) for numbers in metrics])
            for name in metrics[0]
        },
        seconds={phase: Spread.of(seconds[phase]) for phase in phases[:2]},
        total_seconds={phase: sum(seconds[phase]) for phase in phases[1:]},
        networks=len(first["networks"]),
        separate=first["fixed_rays"] is not None,
        # as the paper prints them: of one network
        parameters=first["parameters"] // len(first["networks"]),
        epochs=first["training"]["epochs"],
        epochs_selected=[record["epoch_selected"] for record in records],
        varied={k: v for k, v in first["method"]["settings"].items() if k in GRID},
        objectives=list(front.names),
        reference=front.reference.tolist(),
        rays=_round_values(front.rays),
        front=_round_values(front.values),
        tasks=_compute_task_errors(runs),
        made=_describe_origin(records) | {"side_by_side": [round(side_by_side)]},
    )


def _spread_if_known(values: Sequence[float | None]) -> Spread | None:
    """Return the spread, or `None` if one of the values does not exist."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return Spread.of(finite) if len(finite) == len(values) else None


def compute_mean_front(fronts: Sequence[Front]) -> Front:
    """Return the mean of fronts ray by ray; they have the same rays.

    >>> first = Front([[0.5, 0.5]], [[0.2, 0.4]], ("loss", "gap"), (2, 2))
    >>> second = Front([[0.5, 0.5]], [[0.4, 0.4]], ("loss", "gap"), (2, 2))
    >>> compute_mean_front([first, second]).values.round(3).tolist()
    [[0.3, 0.4]]
    """
    first = fronts[0]
    for front in fronts:
        # shapes first: `allclose` would raise or broadcast if they differ
        alike = front.names == first.names and front.rays.shape == first.rays.shape
        if not (alike and np.allclose(front.rays, first.rays, atol=1e-6)):
            raise DataError(
                "a mean front needs fronts of the same objectives and rays, found "
                f"{first!r} and {front!r}: train all seeds with the same `rays`"
            )
    values = np.mean([front.values for front in fronts], axis=0)
    # without metrics: the mean front belongs to no network that could be measured
    return Front(first.rays, values, first.names, first.reference, {}, first.split)


def compute_mean_course(runs: Sequence[FinishedRun]) -> list[Stage]:
    """Return the mean validation front of some epochs, evenly spaced, the last among them."""
    # seeds that were validated after other epochs have no mean course
    courses = [list_validation_fronts(run.record, run.val) for run in runs]
    epochs = [epoch for epoch, _ in courses[0]]
    if not epochs or any([epoch for epoch, _ in course] != epochs for course in courses):
        return []
    # counted from the end, so that the last front, by which the course is judged, is shown
    step = math.ceil(len(epochs) / EPOCHS_SHOWN)
    stages = []
    for index in sorted({*range(step - 1, len(epochs), step), len(epochs) - 1}):
        fronts = [course[index][1] for course in courses]
        evaluations = [run.record["evaluations"][index] for run in runs]
        volume = _spread_if_known([evaluation["hypervolume_val"] for evaluation in evaluations])
        width = _spread_if_known([span(front) for front in fronts])
        if volume is not None and width is not None:
            values = _round_values(compute_mean_front(fronts).values)
            stages.append(Stage(epochs[index], volume, width, values))
    return stages


def _round_values(values: Array) -> list[list[float | None]]:
    """Round values that are only drawn; one that does not exist becomes `None`."""
    return [
        [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in row]
        for row in values
    ]


def _compute_task_errors(runs: Sequence[FinishedRun]) -> dict[str, Spread]:
    """Compute misclassification task by task; nothing if it is not known of every task."""
    # the accuracy of a task is stored under the name of its objective
    names = runs[0].test.names
    spreads = {
        name: _spread_if_known([_compute_task_error(run, task) for run in runs])
        for task, name in enumerate(names)
    }
    known = {name: spread for name, spread in spreads.items() if spread is not None}
    return known if len(known) == len(names) else {}


def _compute_task_error(run: FinishedRun, task: int) -> float | None:
    """Return the misclassification of a task: with equal weights, or of its own network."""
    key = f"accuracy_{run.test.names[task]}"
    if has_only_corners(run.record["fixed_rays"]):
        # ray number `task` is the corner at which this task's network was trained
        return 1 - float(run.test.metrics[key][task]) if key in run.test.metrics else None
    # at the centre of the simplex, which need not be a ray of the front
    accuracy = ((run.record.get("centre") or {}).get("metrics") or {}).get(key)
    return None if accuracy is None else 1 - float(accuracy)


def _describe_origin(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Return the distinct answers of some records to each question about their origin."""
    answers: dict[str, list[Any]] = {name: [] for name in ORIGIN}
    for (name, keys), record in itertools.product(ORIGIN.items(), records):
        value: Any = record
        # runs of earlier versions lack some of these keys
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None and value not in answers[name]:
            answers[name].append(value)
    caveats = dict.fromkeys(text for record in records for text in record.get("caveats") or ())
    return {**answers, "caveats": list(caveats)}
