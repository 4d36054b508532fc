"""Collect the results of a recipe from its run folders: means over seeds, beside the paper's."""

import itertools
import math
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from paretocosmos import registry
from paretocosmos.errors import DataError, RunError
from paretocosmos.paper.claims import GRID, judge_claims
from paretocosmos.paper.experiment import (
    FinishedRun,
    Record,
    get_seconds,
    read_finished_runs,
    read_saved_status,
    volume_name,
)
from paretocosmos.paper.published import (
    format_settings,
    get_paper_row,
    get_paper_tasks,
    get_published,
    is_face_problem,
)
from paretocosmos.paper.recipe import Experiment, Recipe, load_recipe, recipe_names
from paretocosmos.paper.results import (
    DEVIATIONS,
    ExperimentResult,
    PaperComparison,
    RecipeResult,
    Spread,
    Stage,
    compute_difference_deviation,
)
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import span
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.registry import check_trust
from paretocosmos.runs.record import list_validation_fronts

EPOCHS_SHOWN = 10  # of a course: the paper's figure has a front every ten epochs of a hundred
DIGITS = 6  # of values that are only drawn
# Hypervolumes are printed with two digits after the point, those of faces with three.
LAST_DIGIT, LAST_DIGIT_OF_FACES = 0.01, 0.001

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


@dataclass(frozen=True)
class KnownReason:
    """Why numbers may differ from the paper's, and when that applies; see ``reasons.toml``."""

    sentence: str
    problems: Sequence[str] = ()
    methods: Sequence[str] = ()
    protocols: Sequence[str] = ()
    when: str | None = None
    least: float = -math.inf
    most: float = math.inf

    def applies(self, result: ExperimentResult, difference: float) -> bool:
        """Return True if it can explain a difference in hypervolume."""
        conditions = {
            "subset": any("CelebA" in caveat for caveat in result.made["caveats"]),
            "random_weights": "random" in result.made["weights"],
            "other_settings": bool(result.problem_settings or result.settings),
        }
        return (
            (not self.problems or result.problem in self.problems)
            and (not self.methods or result.method in self.methods)
            and (not self.protocols or result.protocol in self.protocols)
            and (self.when is None or conditions[self.when])
            # a reason such as another draw of images explains hundredths, not tenths
            and self.least < difference < self.most
        )


@cache
def load_known_reasons() -> list[KnownReason]:
    """Load the reasons for differences that are known."""
    text = files("paretocosmos.paper").joinpath("reasons.toml").read_text(encoding="utf-8")
    return [KnownReason(**entry) for entry in tomllib.loads(text)["reason"]]


def compare_to_paper(result: ExperimentResult) -> PaperComparison:
    """Compare an experiment with the paper's numbers; without a run there are only these.

    A rehearsal is not compared: it has no difference, and no reason for one.
    """
    paper = dict(get_paper_row(result.problem, result.method) or {})
    tasks = get_paper_tasks(result.problem, result.method)
    comparison = PaperComparison(paper, tasks=list(tasks or ()))
    if not result.seeds or result.rehearsal is not None or not (paper or tasks):
        return comparison
    faces = is_face_problem(result.problem)
    ours = {
        "hypervolume": result.volume.mean,
        "parameters": float(result.parameters),
        # Table 1 times a seed up to its selected epoch, the table of CelebA all epochs of a network
        "seconds": result.seconds["training"].mean / result.networks
        if faces
        else result.seconds["to_selected"].mean,
    }
    if result.mean_error is not None:
        ours["misclassification"] = result.mean_error.mean
    comparison = replace(comparison, ours=ours)
    gap = comparison.difference("hypervolume")
    if gap is not None:
        # `each` only counts the paper's seeds, whose single values are not in print
        seeds = len(get_published()["table_1"]["seeds"])
        theirs = Spread(paper["hypervolume"], paper.get("std"), [paper["hypervolume"]] * seeds)
        # where neither side has a deviation, only the rounding is allowed for
        noise = compute_difference_deviation(result.volume, theirs) or 0.0
        # the printed number was rounded, by at most half of its last digit
        digit = LAST_DIGIT_OF_FACES if faces else LAST_DIGIT
        allowed = digit / 2 + DEVIATIONS * noise
        comparison = replace(comparison, allowed=allowed, differs=abs(gap) > allowed)
    # where hypervolumes are the same there is nothing to explain
    if comparison.differs is False:
        return comparison
    settings = format_settings({**result.problem_settings, **result.settings})
    caveat = next((caveat for caveat in result.made["caveats"] if "CelebA" in caveat), "")
    reasons = [
        reason.sentence.format(settings=settings, caveat=caveat)
        for reason in load_known_reasons()
        # without a hypervolume in print the gap counts as 0, which bounds around 0 let through
        if reason.applies(result, gap or 0.0)
    ]
    return replace(comparison, reasons=reasons)


def find_recipes(out: Path, epochs: int | None) -> list[Recipe]:
    """Return the built-in recipes of which a folder has results, in the order of the paper.

    They were begun there, or other recipes have trained all of their experiments.
    """
    recipes = []
    for name in sort_recipes(recipe_names()):
        recipe = load_recipe(name).rehearsal(epochs)
        # reading the records is left to `collect_results`: here files only have to exist
        begun = (recipe.root(out) / f"{name}.json").exists()
        folders = [f for experiment in recipe.experiments for f in experiment.runs(out).values()]
        finished = [(folder / "front.json").exists() for folder in folders]
        # recipes share experiments: one that was not begun is shown once all of its own are there
        if any(finished) if begun else all(finished):
            recipes.append(recipe)
    return recipes


def sort_recipes(names: Iterable[str]) -> list[str]:
    """Sort names of recipes: Table 1 first, whose first claim is the paper's main one.

    >>> sort_recipes(["mine", "intuition", "table_1"])
    ['table_1', 'intuition', 'mine']
    """
    return sorted(names, key=lambda name: (not name.startswith("table_1"), name))


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
    """Compute misclassification task by task; nothing if it is not known of every task.

    It is that with equal weights, or that of each task's own network.
    """
    spreads = {}
    for task, name in enumerate(runs[0].test.names):
        key = f"accuracy_{name}"  # the name of its objective
        if has_only_corners(runs[0].record["fixed_rays"]):
            # ray number `task` is the corner at which this task's network was trained
            columns = [run.test.metrics.get(key) for run in runs]
            accuracies = [None if column is None else column[task] for column in columns]
        else:
            # at the centre of the simplex, which need not be a ray of the front
            centres = [run.record.get("centre") or {} for run in runs]
            accuracies = [(centre.get("metrics") or {}).get(key) for centre in centres]
        spread = _spread_if_known([None if a is None else 1 - float(a) for a in accuracies])
        if spread is None:
            return {}
        spreads[name] = spread
    return spreads


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
