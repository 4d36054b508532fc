"""The paper's claims about COSMOS, and whether our results support them."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from statistics import fmean
from typing import get_type_hints

import numpy as np

from paretocosmos import registry
from paretocosmos.paper.published import get_published, method_title
from paretocosmos.paper.results import (
    DEVIATIONS,
    AblationRow,
    BenchmarkKey,
    BenchmarkResult,
    ClaimResult,
    ConvergenceRow,
    ExperimentResult,
    RivalComparison,
    Spread,
    Stage,
    compute_difference_deviation,
    is_significant,
)
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import coverage
from paretocosmos.problems import load_problem
from paretocosmos.problems.toys import ToyProblem

GRID = ("penalty", "alpha")
"""What an ablation varies."""

LITTLE = 0.1
"""How much of the front of the smallest penalty others may dominate for it to count as optimal."""

POINTS = 1001  # of a true front: enough for a line, and for its hypervolume

# The methods of Table 1 whose fronts the paper compares with that of COSMOS.
RIVALS = ("phn_epo", "phn_ls", "pareto_mtl")
ONE_SEED = "one seed"  # of both, so that the noise is unknown
FAIR = ("adult", "compas", "default_credit")  # where the optima of Single Task exclude each other

# The paper says "well-spread after 10 epochs", but not how wide that is: half of the last width.
EPOCH, WIDE = 10, 0.5
RULE = f"Well spread means at least {WIDE:.0%} of the last front's width."

Grid = dict[tuple[float, float], ExperimentResult]
"""The experiments of a benchmark by penalty and alpha."""


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
        # an experiment without a finished run has no `varied` settings
        if experiment.seeds:
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
    # by its annotation, since loading a problem may download its data
    if get_type_hints(registry.find("problems", problem)).get("return") is not ToyProblem:
        return None
    toy = load_problem(problem)
    assert isinstance(toy, ToyProblem)
    return toy.exact_front(POINTS)


def judge_fronts(experiments: Sequence[ExperimentResult]) -> list[ClaimResult]:
    """Compare COSMOS with its rivals on every benchmark, in deviations of the difference.

    Args:
        experiments: all of them; those without a finished run are counted.
    """
    claims = []
    # on the fairness sets no network can reach the ideal point, which Single Task is judged by
    without_fair = [e for e in experiments if e.problem not in FAIR]
    for name, pairs, judge in (
        ("fronts", _pair_up(experiments, RIVALS), _judge_rivals),
        ("alone", _pair_up(without_fair, ("single_task",)), _judge_single_task),
    ):
        # a pair is compared as soon as each has one seed
        rows = [_compare_volumes(*pair) for pair in pairs if all(result.seeds for result in pair)]
        if rows:
            holds, verdict = judge(rows)
            missing = len(pairs) - len(rows)
            tail = f", {missing} more missing" if missing else ""
            scope = (
                f"{_format_count(len(rows), 'comparison')} on {_describe_benchmarks(rows)}{tail}."
            )
            claims.append(
                ClaimResult(
                    claim=str(get_published()["claims"][name]),
                    holds=holds,
                    deviations=DEVIATIONS,
                    sentence=f"{scope} {verdict}",
                    rows=[*rows],
                )
            )
    return claims


def judge_convergence(experiments: Sequence[ExperimentResult]) -> list[ClaimResult]:
    """Compare the width of the validation front after ten epochs with that of the last one."""
    rows = []
    for experiment in experiments:
        course = {stage.epoch: stage for stage in experiment.course}
        # the claim is about COSMOS with the paper's settings
        if experiment.method == "cosmos" and not experiment.variation and EPOCH in course:
            rows.append(_judge_course(experiment, course[EPOCH], course[max(course)]))
    return [_judge_claim("fast", rows, RULE)] if rows else []


def judge_ablation(experiments: Sequence[ExperimentResult]) -> list[ClaimResult]:
    """Judge both claims of the ablation from widths, hypervolumes and mean fronts.

    Wide is the span; optimal means that fronts of larger penalties dominate next to nothing of it.
    Alpha must change the hypervolume beyond the noise, and the width not. Where neither a claim nor
    its opposite is beyond the noise, which one seed does not tell, it is open.
    """
    grids: dict[BenchmarkKey, Grid] = {}
    for point, experiment in iterate_grid(experiments):
        metrics = experiment.metrics
        # a metric is `None` where a seed has no finite value
        if metrics["hypervolume"] is not None and metrics["span"] is not None:
            grids.setdefault(experiment.benchmark, {})[point] = experiment
    rows = [_ablation_row(grid) for grid in grids.values() if _is_full(grid)]
    penalty = _judge_claim("penalty", [_judge_penalty(row) for row in rows])
    narrower = [row for row in rows if _compute_widening(row) < 0]
    if narrower:
        more = f" With a larger penalty the front is narrower on {_join_titles(narrower)}."
        penalty = penalty.model_copy(update={"sentence": penalty.sentence + more})
    return [penalty, _judge_claim("alpha", [_judge_alpha(row) for row in rows])]


def _judge_claim(
    name: str, rows: Sequence[AblationRow | ConvergenceRow], rule: str = ""
) -> ClaimResult:
    """Judge a claim benchmark by benchmark: where it holds, where not, and where it is open.

    Args:
        name: of the claim.
        rows: a benchmark each.
        rule: how it is judged, where the claim does not say.
    """
    true, false, undecided = (
        [row for row in rows if row.holds is state] for state in (True, False, None)
    )
    # one benchmark that does not hold refutes a claim; it holds only where all of them do
    sentences = [rule] if rule else []
    sentences += [f"Holds on {_join_titles(true)}."] if true else []
    sentences += [f"Does not hold on {_join_titles(false)}."] if false else []
    sentences += [f"Open, within the noise, on {_join_titles(undecided)}."] if undecided else []
    return ClaimResult(
        claim=str(get_published()["claims"][name]),
        # an open benchmark could still refute the claim, so only `True` everywhere confirms it
        holds=False if false else None if undecided or not rows else True,
        sentence=" ".join(sentences) or "Too few experiments are trained to decide.",
        rows=[*rows],
    )


def _join_titles(rows: Sequence[BenchmarkResult]) -> str:
    return "; ".join(row.benchmark_title() for row in rows)


def _pair_up(
    experiments: Sequence[ExperimentResult], rivals: Sequence[str]
) -> list[tuple[ExperimentResult, ExperimentResult]]:
    """Return COSMOS and each rival on the same benchmark, both with the paper's settings."""
    # variations are compared with each other, not with a rival's usual settings
    usual = [experiment for experiment in experiments if not experiment.variation]
    return [
        (cosmos, rival)
        for cosmos in usual
        for rival in usual
        if cosmos.method == "cosmos"
        and rival.method in rivals
        and rival.benchmark == cosmos.benchmark
    ]


def _judge_rivals(rows: Sequence[RivalComparison]) -> tuple[bool | None, str]:
    """Judge whether no rival is ahead beyond the noise."""
    leaders, near = (_list_rows(rows, v) for v in ("ahead", "ahead within the noise"))
    single = [row for row in rows if row.verdict == ONE_SEED]
    sentences = []
    if leaders:
        count = sum(row.verdict == "ahead" for row in rows)
        sentences.append(f"It does not hold in {count}; ahead of COSMOS: {leaders}.")
    elif not single:
        sentences.append("It holds: no baseline is ahead by more than the noise.")
    if near:
        sentences.append(f"Ahead within the noise: {near}.")
    if single:
        # who is ahead is told, since a reader would ask, but it does not count
        leading = _list_rows([row for row in single if row.difference > 0], ONE_SEED)
        sentences.append(f"One seed of each decides nothing: ahead are {leading or 'none'}.")
    return (False if leaders else None if single else True), " ".join(sentences)


def _judge_single_task(rows: Sequence[RivalComparison]) -> tuple[bool | None, str]:
    """Judge whether COSMOS is ahead everywhere, beyond the noise."""
    # on either side: within the noise neither of them outperforms the other
    near = (_list_rows(rows, f"{side} within the noise") for side in ("ahead", "behind"))
    lists = {
        "It holds": _list_rows(rows, "behind"),
        "It does not hold": _list_rows(rows, "ahead"),
        "Within the noise": "; ".join(filter(None, near)),
        "One seed of each decides nothing": _list_rows(rows, ONE_SEED),
    }
    sentence = " ".join(f"{start}: {listed}." for start, listed in lists.items() if listed)
    if lists["It does not hold"] or lists["Within the noise"]:
        return False, sentence
    return (None if lists["One seed of each decides nothing"] else True), sentence


def _compare_volumes(cosmos: ExperimentResult, rival: ExperimentResult) -> RivalComparison:
    gap = rival.volume.mean - cosmos.volume.mean  # positive where the rival is ahead
    noise = compute_difference_deviation(cosmos.volume, rival.volume)
    side = "ahead" if gap > 0 else "behind"
    verdict = side if is_significant(gap, noise) else f"{side} within the noise"
    return RivalComparison(
        problem=cosmos.problem,
        settings=cosmos.problem_settings,
        protocol=cosmos.protocol,
        method=rival.method,
        difference=gap,
        # the noise is `None` for one seed, and 0 if all seeds are equal
        in_deviations=gap / noise if noise else None,
        verdict=ONE_SEED if noise is None else verdict,
    )


def _list_rows(rows: Sequence[RivalComparison], verdict: str) -> str:
    """List the comparisons with a verdict, with their differences."""
    texts = []
    for row in (row for row in rows if row.verdict == verdict):
        noise = "" if row.in_deviations is None else f", {abs(row.in_deviations):.1f} deviations"
        gap = f"{row.difference:+.3f}".replace("-", "−")
        texts.append(f"{method_title(row.method)} on {row.benchmark_title()} ({gap}{noise})")
    return "; ".join(texts)


def _describe_benchmarks(rows: Sequence[BenchmarkResult]) -> str:
    """Count benchmarks and those under more than one protocol, and name the draw of images."""
    # the first two entries of a benchmark are the problem and its settings
    protocols = Counter(key[:2] for key in {row.benchmark for row in rows})
    twice = sum(count > 1 for count in protocols.values())
    more = f", {twice} of them under both protocols" if twice else ""
    draw = ", on this harder draw, not the paper's" if all(row.is_harder for row in rows) else ""
    return f"{_format_count(len(protocols), 'set')}{more}{draw}"


def _format_count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _judge_course(experiment: ExperimentResult, early: Stage, last: Stage) -> ConvergenceRow:
    first, final = early.span, last.span
    # the deviation of the threshold, which is a multiple of the final width
    std = None if final.std is None else WIDE * final.std
    noise = compute_difference_deviation(first, final.model_copy(update={"std": std}))
    margin = first.mean - WIDE * final.mean
    volumes = [stage.hypervolume.mean for stage in (early, last)]
    return ConvergenceRow(
        problem=experiment.problem,
        settings=experiment.problem_settings,
        protocol=experiment.protocol,
        widths=[first.mean, final.mean],
        volumes=volumes,
        deviation=noise,
        holds=margin > 0 if is_significant(margin, noise) else None,
        short=f"width {first.mean:.3f}, at the end {final.mean:.3f}",
        sentence=f"width {_format_spread(first)} after {EPOCH} epochs, "
        f"{_format_spread(final)} after {last.epoch}; "
        f"hypervolume {volumes[0]:.3f} and {volumes[1]:.3f}",
    )


def _format_spread(number: Spread) -> str:
    return f"{number.mean:.3f}" + ("" if number.std is None else f" ± {number.std:.3f}")


def _is_full(grid: Grid) -> bool:
    """Return True if every penalty was tried with every alpha, two or more of each."""
    penalties, alphas = ({point[axis] for point in grid} for axis in (0, 1))
    # with a hole in the grid, a mean over alphas would compare different penalties
    return len(grid) == len(penalties) * len(alphas) and min(len(penalties), len(alphas)) > 1


def _ablation_row(grid: Grid) -> AblationRow:
    first = next(iter(grid.values()))
    penalties, alphas = (sorted({point[axis] for point in grid}) for axis in (0, 1))

    def numbers(axis: int, values: Sequence[float], key: str) -> list[Spread]:
        """Return a metric of all experiments with one of these penalties or alphas."""
        spreads = (e.metrics[key] for point, e in grid.items() if point[axis] in values)
        return [number for number in spreads if number is not None]

    def means(axis: int, values: Sequence[float], key: str) -> list[float]:
        return [fmean(number.mean for number in numbers(axis, [v], key)) for v in values]

    def noise(axis: int, ends: Sequence[float], key: str) -> float | None:
        """Return the deviation of the difference of two means, each over a line of the grid."""
        # independent runs: the variances of their means add up
        at_ends = numbers(axis, ends, key)
        errors = [n.std / math.sqrt(len(n.each)) for n in at_ends if n.std is not None]
        one_seed = len(errors) < len(at_ends)
        return None if one_seed else math.hypot(*errors) / (len(at_ends) / len(ends))

    # the alphas of the largest and the smallest mean, which need not be the outer ones
    def ends(values: Sequence[float]) -> tuple[float, float]:
        return alphas[values.index(max(values))], alphas[values.index(min(values))]

    volumes, spans = means(1, alphas, "hypervolume"), means(1, alphas, "span")
    # the C-metric of Zitzler and Thiele: the share of the front of the smallest penalty that the
    # front of another one dominates
    dominated = [
        max(
            coverage(get_front(grid[penalties[0], a]), get_front(grid[p, a])) for p in penalties[1:]
        )
        for a in alphas
    ]
    return AblationRow(
        problem=first.problem,
        settings=first.problem_settings,
        protocol=first.protocol,
        penalties=penalties,
        span_by_penalty=means(0, penalties, "span"),
        volume_by_penalty=means(0, penalties, "hypervolume"),
        alphas=alphas,
        span_by_alpha=spans,
        volume_by_alpha=volumes,
        span_deviation=noise(0, (penalties[0], penalties[-1]), "span"),
        span_deviation_by_alpha=noise(1, ends(spans), "span"),
        volume_deviation=noise(1, ends(volumes), "hypervolume"),
        smallest_dominated=fmean(dominated),
    )


def _compute_widening(row: AblationRow) -> float:
    """Return how much wider the front of the largest penalty is, 0 within the noise."""
    wider = row.span_by_penalty[-1] - row.span_by_penalty[0]
    # 0 makes "within the noise" neither wider nor narrower
    return wider if is_significant(wider, row.span_deviation) else 0.0


def _judge_penalty(row: AblationRow) -> AblationRow:
    widened = _compute_widening(row)
    optimal = row.smallest_dominated <= LITTLE
    spans, volumes = (
        " → ".join(f"{number:.3f}" for number in numbers)
        for numbers in (row.span_by_penalty, row.volume_by_penalty)
    )
    penalties = ", ".join(f"{penalty:g}" for penalty in row.penalties)
    first, *_, last = row.span_by_penalty
    judged = {
        # wider, not narrower, and beyond the noise; otherwise the claim is open
        "holds": False if not optimal else widened > 0 if widened else None,
        "sentence": f"width {spans} (± {_format_deviation(row.span_deviation)} between the ends) "
        f"and hypervolume {volumes} with λ {penalties}; larger λ dominate "
        f"{row.smallest_dominated:.0%} of the front of λ {row.penalties[0]:g}",
        "short": f"width {first:.3f} → {last:.3f}, {row.smallest_dominated:.0%} dominated",
    }
    return row.model_copy(update=judged)


def _judge_alpha(row: AblationRow) -> AblationRow:
    spans, volumes, over_penalty = (
        float(np.ptp(numbers))
        for numbers in (row.span_by_alpha, row.volume_by_alpha, row.span_by_penalty)
    )
    # the claim denies an effect of alpha on the width, so a significant one refutes it
    moved = is_significant(spans, row.span_deviation_by_alpha)
    more = f"over λ by {over_penalty:.3f}" if moved else f"hypervolume by {volumes:.3f}"
    judged = {
        # without an effect on the hypervolume the claim is open: more seeds may show one
        "holds": False if moved else is_significant(volumes, row.volume_deviation) or None,
        "sentence": f"over alpha the width varies by {spans:.3f} "
        f"(± {_format_deviation(row.span_deviation_by_alpha)}; over λ by {over_penalty:.3f}), the "
        f"hypervolume by {volumes:.3f} (± {_format_deviation(row.volume_deviation)})",
        "short": f"width varies by {spans:.3f}, {more}",
    }
    return row.model_copy(update=judged)


def _format_deviation(deviation: float | None) -> str:
    return "?" if deviation is None else f"{deviation:.3f}"
