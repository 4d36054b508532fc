"""Collect the results of a recipe from its run folders: means over seeds, beside the paper's."""

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from pydantic import ValidationError

from paretocosmos.errors import DataError, RunError
from paretocosmos.io.files import read_json
from paretocosmos.io.trust import check_names, check_trust
from paretocosmos.paper.claims import judge_ablation, judge_convergence, judge_fronts
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
from paretocosmos.paper.results import (
    ClaimResult,
    ExperimentResult,
    Origin,
    RecipeResult,
    Seconds,
    Spread,
    Stage,
    Tasks,
    TotalSeconds,
    first_mistake,
)
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import span
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.runs.record import list_validation_fronts

FORMAT = 1
"""Raised when a file of today could not be read by yesterday's code."""

EPOCHS_SHOWN = 10  # of a course: the paper's figure has a front every ten epochs of a hundred
DIGITS = 6  # of values that are only drawn

# Where a record holds what `Origin` lists.
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

# The order of the paper; other recipes come after them.
ORDER = (
    *("table_1", "table_1_text", "figure_vs_sota", "figure_vs_single_task"),
    *("figure_convergence", "figure_ablation", "figure_ablation_text", "table_celeba"),
    *("figure_celeba", "celeba_objectives", "celeba_small", "intuition", "study_fronts"),
)

# The functions that judge the paper's claims, by what a recipe shows.
JUDGES: dict[str, Callable[[Sequence[ExperimentResult]], list[ClaimResult]]] = {
    "table": judge_fronts,
    "ablation": judge_ablation,
    "convergence": judge_convergence,
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
        try:
            result = collect_experiment(experiment, out, course=course, trust=trust)
        except ValidationError as error:  # of a record, whose machine and versions may be anything
            raise RunError(
                f"`{experiment.folder(out)}` has a record that cannot be reported "
                f"({first_mistake(error)}): fix it, or train it again"
            ) from error
        comparison = compare_to_paper(result) if recipe.compares(experiment) else None
        experiments.append(result.model_copy(update={"comparison": comparison}))
    seconds = [result.seconds for result in experiments if result.seeds]
    if not seconds:
        # a recipe of one's own is named by its file in the command
        name = recipe.name if recipe.name in recipe_names() else f"{recipe.name}.toml"
        refusal = RunError(
            f"`{recipe.root(out)}` has no finished run of `{recipe.name}`: train it with "
            f"`paretocosmos reproduce {name}`"
        )
        raise _with_rehearsal_hint(refusal, out, recipe)
    # a rehearsal does not show whether a claim holds
    judge = None if recipe.epochs is not None else JUDGES.get(recipe.shows)
    phases = ("training", "preparing", "evaluating")
    return RecipeResult(
        format=FORMAT,
        recipe=recipe.name,
        title=recipe.title,
        section=recipe.section,
        shows=recipe.shows,
        rehearsal=recipe.epochs,
        cells=experiments,
        seconds=TotalSeconds(**{p: sum(getattr(s, f"all_{p}") for s in seconds) for p in phases}),
        claims=[] if judge is None else judge(experiments),
    )


def read_result(path: Path, *, trust: Collection[str] = ()) -> RecipeResult:
    """Read results that `collect_results` gave, from a file.

    Args:
        path: the file.
        trust: packages and modules whose code it may name, as ``["my_package"]``.
    """
    content = read_json(path)
    # before the schema: another format would fail it with a sentence that helps nobody
    if content.get("format") != FORMAT:
        raise RunError(
            f"`{path}` was not written by this version of `paretocosmos report` (its `format` is "
            f"not {FORMAT}): write it again from the run folders"
        )
    result = RecipeResult.from_dict(content, path)
    names = [("problems", experiment.problem) for experiment in result.experiments]
    # problems are imported later, to tell their settings from those of the method
    check_names(names, file=path, trust=check_trust(trust))
    return result


def find_recipes(out: Path, epochs: int | None) -> list[Recipe]:
    """Return the built-in recipes of which a folder has results, in the order of the paper.

    They were begun there, or other recipes have trained all of their experiments.
    """
    recipes = [load_recipe(name).rehearsal(epochs) for name in sort_recipes(recipe_names())]
    # reading the records is left to `collect_results`: here files only have to exist
    return [recipe for recipe in recipes if _has_results(recipe, out)]


def sort_recipes(names: Sequence[str]) -> list[str]:
    """Sort names of recipes in the order of the paper.

    >>> sort_recipes(["mine", "intuition", "table_1"])
    ['table_1', 'intuition', 'mine']
    """
    return [*(name for name in ORDER if name in names), *(n for n in names if n not in ORDER)]


def _has_results(recipe: Recipe, out: Path) -> bool:
    # recipes share experiments: one that was not begun is shown once all of its own are there
    begun = (recipe.root(out) / f"{recipe.name}.json").exists()
    folders = [f for experiment in recipe.experiments for f in experiment.runs(out).values()]
    finished = [(folder / "front.json").exists() for folder in folders]
    return any(finished) if begun else all(finished)


def _with_rehearsal_hint(refusal: RunError, out: Path, recipe: Recipe) -> RunError:
    """Return the refusal, which also says how to see a rehearsal if there is one."""
    rehearsals = sorted(path.name.partition("-")[2] for path in out.glob("rehearsal-*/"))
    if recipe.epochs is not None or not rehearsals:
        return refusal
    # any of them will do as an example
    epochs = rehearsals[0]
    hint = f"there is a rehearsal, shown with epochs={epochs}"
    return RunError(f"{refusal}; {hint}").with_hint({"epochs": epochs})


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
    fields: dict[str, Any] = {
        "name": experiment.name,
        "problem": experiment.problem,
        "protocol": experiment.protocol,
        "method": experiment.method,
        "preset": experiment.preset,
        "settings": dict(experiment.settings),
        "rehearsal": experiment.epochs,
        "seeds": list(runs_by_seed),
        "missing": [seed for seed in experiment.seeds if seed not in runs_by_seed],
        "error": damage or status.error,
    }
    if not runs_by_seed:
        return ExperimentResult(**fields)
    runs = list(runs_by_seed.values())
    records = [run.record for run in runs]
    # seeds differ in nothing but the seed, which reading them checked
    first = records[0]
    front = compute_mean_front([run.test for run in runs])
    metrics = [record["metrics"]["test"] for record in records]
    settings = first["method"]["settings"]
    # experiments that shared a device each took longer than they would have alone
    side_by_side = max(1.0, status.seconds / status.share) if status.share else 1.0
    if course:
        fields["course"] = compute_mean_course(runs)
    return ExperimentResult(
        **fields,
        volume=compute_spread([numbers[volume_name(first)] for numbers in metrics]),
        volume_of="ideal point" if has_only_corners(first["fixed_rays"]) else "front",
        metrics={
            name: _spread_if_known([numbers.get(name) for numbers in metrics])
            for name in metrics[0]
        },
        seconds=_sum_seconds(records, 1 / side_by_side),
        networks=len(first["networks"]),
        separate=first["fixed_rays"] is not None,
        # as the paper prints them: of one network
        parameters=first["parameters"] // len(first["networks"]),
        epochs=first["training"]["epochs"],
        epochs_selected=[record["epoch_selected"] for record in records],
        varied={key: settings[key] for key in ("penalty", "alpha") if key in settings},
        objectives=list(front.names),
        reference=front.reference.tolist(),
        rays=_round_values(front.rays),
        front=_round_values(front.values),
        tasks=_compute_task_errors(runs),
        made=_describe_origin(records, round(side_by_side)),
    )


def compute_spread(values: Sequence[float]) -> Spread:
    """Return the mean, the sample deviation (`None` for one seed) and each value.

    >>> compute_spread([1.0, 2.0, 3.0])
    Spread(mean=2.0, std=1.0, each=[1.0, 2.0, 3.0])
    """
    # by n - 1: a handful of seeds stand for all that could have been drawn
    deviation = stdev(values) if len(values) > 1 else None
    return Spread(mean=fmean(values), std=deviation, each=list(map(float, values)))


def _spread_if_known(values: Sequence[float | None]) -> Spread | None:
    """Return the spread, or `None` if one of the values does not exist."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return compute_spread(finite) if len(finite) == len(values) else None


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
            stages.append(Stage(epoch=epochs[index], hypervolume=volume, span=width, values=values))
    return stages


def _round_values(values: Array) -> list[list[float | None]]:
    """Round values that are only drawn; one that does not exist becomes `None`."""
    return [
        [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in row]
        for row in values
    ]


def _sum_seconds(records: Sequence[Record], share: float) -> Seconds:
    """Times of the seeds; `share` is less than 1 where experiments were trained side by side."""
    by_phase = {
        phase: [share * get_seconds(record, phase) for record in records]
        for phase in ("to_selected", "training", "preparing", "evaluating")
    }
    return Seconds(
        to_selected=compute_spread(by_phase["to_selected"]),
        training=compute_spread(by_phase["training"]),
        all_training=sum(by_phase["training"]),
        all_preparing=sum(by_phase["preparing"]),
        all_evaluating=sum(by_phase["evaluating"]),
    )


def _compute_task_errors(runs: Sequence[FinishedRun]) -> Tasks | None:
    """Compute misclassification task by task; `None` if it is not known of every task."""
    # the accuracy of a task is stored under the name of its objective
    names = runs[0].test.names
    alone = has_only_corners(runs[0].record["fixed_rays"])
    rates = [[_compute_task_error(run, n, alone=alone) for n in range(len(names))] for run in runs]
    if not all(math.isfinite(rate) for row in rates for rate in row):
        return None
    return Tasks(
        judged="each by its own network" if alone else "with equal weights",
        misclassification={
            name: compute_spread(column)
            for name, column in zip(names, zip(*rates, strict=True), strict=True)
        },
        mean=compute_spread([fmean(row) for row in rates]),
    )


def _compute_task_error(run: FinishedRun, task: int, *, alone: bool) -> float:
    """Return the misclassification of a task, NaN if it is not known."""
    key = f"accuracy_{run.test.names[task]}"
    if alone:
        # ray number `task` is the corner at which this task's network was trained
        return 1 - float(run.test.metrics[key][task]) if key in run.test.metrics else math.nan
    # with equal weights: at the centre of the simplex, which need not be a ray of the front
    accuracy = ((run.record.get("centre") or {}).get("metrics") or {}).get(key)
    return math.nan if accuracy is None else 1 - float(accuracy)


def _describe_origin(records: Sequence[Record], side_by_side: int) -> Origin:
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
    return Origin(**answers, caveats=list(caveats), side_by_side=side_by_side)
