"""The paper's claims about COSMOS, and whether our results support them."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from operator import itemgetter
from statistics import fmean
from typing import get_type_hints

import numpy as np

from paretocosmos import registry
from paretocosmos.paper.published import get_published, method_title
from paretocosmos.paper.results import (
    BenchmarkKey,
    ClaimResult,
    ClaimRow,
    ExperimentResult,
    Spread,
    Stage,
    compute_difference_deviation,
    is_significant,
)
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import coverage
from paretocosmos.problems import load_problem
from paretocosmos.problems.functions import ToyProblem

Experiments = Sequence[ExperimentResult]

GRID = ("penalty", "alpha")
"""What an ablation varies."""

LITTLE = 0.1
"""How much of the front of the smallest penalty others may dominate for it to count as optimal."""

POINTS = 1001  # of a true front: enough for a line, and for its hypervolume

# The methods of Table 1 whose fronts the paper compares with that of COSMOS.
RIVALS = ("phn_epo", "phn_ls", "pareto_mtl")
FAIR = ("adult", "compas", "default_credit")  # where the optima of Single Task exclude each other

# The paper says "well-spread after 10 epochs", but not how wide that is: half of the last width.
EPOCH, WIDE = 10, 0.5


def get_front(experiment: ExperimentResult, stage: Stage | None = None) -> Front:
    """Return the mean front of an experiment on the test split, or at a stage of its training."""
    return Front(
        # with a dtype, `None` in a file becomes NaN
        np.array(experiment.rays, dtype=np.float64),
        np.array(experiment.front if stage is None else stage.values, dtype=np.float64),
        tuple(experiment.objectives),
        np.array(experiment.reference, dtype=np.float64),
        # points of separate networks are not joined by a line
        provenance={"networks": experiment.networks if experiment.separate else None},
    )


def iterate_grid(
    experiments: Iterable[ExperimentResult],
) -> Iterator[tuple[tuple[float, float], ExperimentResult]]:
    """Yield the finished experiments that have a penalty and one alpha, with both."""
    for experiment in experiments:
        penalty, alpha = (experiment.varied.get(key) for key in GRID)
        # an alpha per objective is no point on the axis of an ablation
        if penalty is not None and isinstance(alpha, int | float):
            yield (float(penalty), float(alpha)), experiment


@cache
def compute_exact_front(problem: str) -> Front | None:
    """Return the true front of a toy problem, `None` for any other, which is not loaded.

    >>> len(compute_exact_front("toy_convex")), compute_exact_front("adult")
    (1001, None)
    """
    # of a problem of one's own no code is run, and loading another may download its data
    if problem not in registry.names("problems"):
        return None
    if get_type_hints(registry.find("problems", problem)).get("return") is not ToyProblem:
        return None
    toy = load_problem(problem)
    assert isinstance(toy, ToyProblem)
    return toy.exact_front(POINTS)


def judge_claims(shows: str, experiments: Experiments) -> list[ClaimResult]:
    """Judge the paper's claims that a recipe is about, benchmark by benchmark.

    Args:
        shows: what the recipe shows, such as ``"table"``.
        experiments: all of them; those that are not trained decide nothing.
    """
    done = [experiment for experiment in experiments if experiment.seeds]
    judged = ((name, list(judge(done))) for name, judge in JUDGES.get(shows, {}).items())
    harder = all(experiment.is_harder for experiment in done)
    texts = get_published()["claims"]
    return [ClaimResult(str(texts[name]), rows, harder) for name, rows in judged if rows]


def _judge_volumes(
    experiments: Experiments, methods: Sequence[str], *, outperform: bool
) -> Iterator[ClaimRow]:
    """Compare the hypervolume of COSMOS with that of each method on the same benchmark.

    Args:
        experiments: those that are done; variations are compared with each other, not here.
        methods: their names.
        outperform: whether COSMOS must be ahead beyond the noise, instead of not behind.
    """
    usual = [experiment for experiment in experiments if not experiment.settings]
    for cosmos in (experiment for experiment in usual if experiment.method == "cosmos"):
        for rival in usual:
            if rival.method not in methods or rival.benchmark != cosmos.benchmark:
                continue
            # on the fairness sets no network can reach the ideal point that Single Task has
            if rival.method == "single_task" and rival.problem in FAIR:
                continue
            gap = rival.volume.mean - cosmos.volume.mean  # positive where the rival is ahead
            noise = compute_difference_deviation(cosmos.volume, rival.volume)
            clear = is_significant(gap, noise)
            remark = "" if clear else ", one seed" if noise is None else ", within the noise"
            difference = f"{gap:+.3f}".replace("-", "−")
            yield ClaimRow(
                cosmos.benchmark,
                None
                if noise is None
                else clear and gap < 0
                if outperform
                else not clear or gap < 0,
                f"{method_title(rival.method)} {difference}{remark}",
            )


def _judge_convergence(experiments: Experiments) -> Iterator[ClaimRow]:
    """Compare the width of the validation front after ten epochs with that of the last one."""
    for experiment in experiments:
        course = {stage.epoch: stage for stage in experiment.course}
        # the claim is about COSMOS with the paper's settings
        if experiment.method != "cosmos" or experiment.settings or EPOCH not in course:
            continue
        early, last = course[EPOCH], course[max(course)]
        # the threshold is a multiple of the last width, and so is its deviation
        std = None if last.span.std is None else WIDE * last.span.std
        threshold = Spread(WIDE * last.span.mean, std, last.span.each)
        noise = compute_difference_deviation(early.span, threshold)
        margin = early.span.mean - threshold.mean
        yield ClaimRow(
            experiment.benchmark,
            margin > 0 if is_significant(margin, noise) else None,
            f"width {early.span.mean:.3f}, at the end {last.span.mean:.3f}",
            f"width {_format_spread(early.span)} after {EPOCH} epochs, where {WIDE:.0%} of that "
            f"after {last.epoch} ({_format_spread(last.span)}) counts as well spread; hypervolume "
            f"{early.hypervolume.mean:.3f} and {last.hypervolume.mean:.3f}",
        )


def _format_spread(number: Spread) -> str:
    return f"{number.mean:.3f} ± {_format_deviation(number.std)}"


class Grid:
    """The experiments of an ablation on one benchmark: every penalty with every alpha."""

    def __init__(self, cells: dict[tuple[float, float], ExperimentResult]) -> None:
        self.cells = cells
        self.penalties, self.alphas = (sorted({point[axis] for point in cells}) for axis in (0, 1))

    @property
    def is_full(self) -> bool:
        """True if nothing is missing, and there are two or more of each setting."""
        # with a hole in the grid, a mean over alphas would compare different penalties
        sides = len(self.penalties), len(self.alphas)
        return len(self.cells) == math.prod(sides) and min(sides) > 1

    def average(self, metric: str, axis: int) -> list[tuple[float, float | None]]:
        """Return the mean of a metric, and its standard error, for each penalty (0) or alpha (1).

        The runs are independent: the variances of their means add up.
        """
        lines = []
        for value in (self.penalties, self.alphas)[axis]:
            spreads = [e.metrics[metric] for point, e in self.cells.items() if point[axis] == value]
            numbers = [spread for spread in spreads if spread is not None]
            errors = [n.error for n in numbers if n.error is not None]
            # one seed does not tell how far the next would be off
            error = math.hypot(*errors) / len(errors) if len(errors) == len(numbers) else None
            lines.append((fmean(number.mean for number in numbers), error))
        return lines

    def measure_dominated(self) -> float:
        """Return the share of the smallest penalty's front that one of a larger one dominates.

        It is the C-metric of Zitzler and Thiele, of the largest of them, mean over the alphas.
        """
        least, *larger = self.penalties
        return fmean(
            max(
                coverage(get_front(self.cells[least, a]), get_front(self.cells[p, a]))
                for p in larger
            )
            for a in self.alphas
        )


def _build_grids(experiments: Experiments) -> Iterator[tuple[BenchmarkKey, Grid]]:
    """Yield the full grids by benchmark."""
    cells: dict[BenchmarkKey, dict[tuple[float, float], ExperimentResult]] = {}
    for point, experiment in iterate_grid(experiments):
        # a metric is `None` where a seed has no finite value
        if experiment.metrics["hypervolume"] is not None and experiment.metrics["span"] is not None:
            cells.setdefault(experiment.benchmark, {})[point] = experiment
    for benchmark, cells_of_benchmark in cells.items():
        grid = Grid(cells_of_benchmark)
        if grid.is_full:
            yield benchmark, grid


def _judge_penalty(experiments: Experiments) -> Iterator[ClaimRow]:
    """Judge whether the smallest penalty is optimal but narrow, and the largest one wider.

    Optimal means that fronts of larger penalties dominate next to nothing of it.
    """
    for benchmark, grid in _build_grids(experiments):
        spans, volumes = grid.average("span", 0), grid.average("hypervolume", 0)
        wider, noise = _subtract(spans[-1], spans[0])
        dominated = grid.measure_dominated()
        widened = wider > 0 if is_significant(wider, noise) else None
        yield ClaimRow(
            benchmark,
            widened if dominated <= LITTLE else False,
            f"width {spans[0][0]:.3f} → {spans[-1][0]:.3f}, {dominated:.0%} dominated",
            f"width {_join(spans)} (± {_format_deviation(noise)} between the ends) and "
            f"hypervolume {_join(volumes)} with λ "
            f"{', '.join(f'{penalty:g}' for penalty in grid.penalties)}; larger λ dominate "
            f"{dominated:.0%} of the front of λ {grid.penalties[0]:g}",
        )


def _judge_alpha(experiments: Experiments) -> Iterator[ClaimRow]:
    """Judge whether alpha changes the hypervolume beyond the noise, and the width not.

    Where neither this nor its opposite is beyond the noise, the claim is open.
    """
    for benchmark, grid in _build_grids(experiments):
        over_penalty = float(np.ptp([mean for mean, _ in grid.average("span", 0)]))
        # the largest and the smallest mean need not be at the outer alphas
        (width, width_noise), (volume, volume_noise) = (
            _subtract(max(lines, key=itemgetter(0)), min(lines, key=itemgetter(0)))
            for lines in (grid.average("span", 1), grid.average("hypervolume", 1))
        )
        # the claim denies an effect of alpha on the width, so a significant one refutes it
        moved = is_significant(width, width_noise)
        more = f"over λ by {over_penalty:.3f}" if moved else f"hypervolume by {volume:.3f}"
        yield ClaimRow(
            benchmark,
            # without an effect on the hypervolume the claim is open: more seeds may show one
            False if moved else is_significant(volume, volume_noise) or None,
            f"width varies by {width:.3f}, {more}",
            f"over alpha the width varies by {width:.3f} (± {_format_deviation(width_noise)}; over "
            f"λ by {over_penalty:.3f}), the hypervolume by {volume:.3f} "
            f"(± {_format_deviation(volume_noise)})",
        )


def _subtract(
    first: tuple[float, float | None], second: tuple[float, float | None]
) -> tuple[float, float | None]:
    """Return the difference of two means, and its standard error."""
    errors = [error for _, error in (first, second) if error is not None]
    return first[0] - second[0], math.hypot(*errors) if len(errors) == 2 else None


def _join(lines: Sequence[tuple[float, float | None]]) -> str:
    return " → ".join(f"{mean:.3f}" for mean, _ in lines)


def _format_deviation(deviation: float | None) -> str:
    return "?" if deviation is None else f"{deviation:.3f}"


JUDGES: dict[str, dict[str, Callable[[Experiments], Iterator[ClaimRow]]]] = {
    "table": {
        "fronts": partial(_judge_volumes, methods=RIVALS, outperform=False),
        "alone": partial(_judge_volumes, methods=("single_task",), outperform=True),
    },
    "convergence": {"fast": _judge_convergence},
    "ablation": {"penalty": _judge_penalty, "alpha": _judge_alpha},
}
"""By what a recipe shows, the functions that judge the paper's claims, by their names."""
