"""Tables of a report: their parts, numbers as text, and tables beside figures."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paretocosmos.paper.claims import GRID, LITTLE, compute_exact_front, get_front, iterate_grid
from paretocosmos.paper.published import format_settings, format_value, method_title, published
from paretocosmos.paper.results import BenchmarkKey, ExperimentResult, Figure, Spread
from paretocosmos.pareto.metrics import front_report, hypervolume

NONE = "–"
"""Stands where there is no number."""

Columns = Sequence[tuple[str, Callable[[ExperimentResult], str]]]
"""The columns of a table with a row per experiment: their names, and how to fill them."""


@dataclass(frozen=True)
class Table:
    """Texts in rows and columns.

    Attributes:
        title: what stands above it.
        head: the columns' names; the first column names the rows.
        rows: as many texts each.
        strong: rows and columns of what is best.
        notes: sentences below, by their marks, such as "1".
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    notes: dict[str, str] = field(default_factory=dict)


def build_table(title: str, experiments: Iterable[ExperimentResult], columns: Columns) -> Table:
    """Build a table with a row per experiment."""
    rows = tuple(tuple(text(experiment) for _, text in columns) for experiment in experiments)
    return Table(title, tuple(name for name, _ in columns), rows)


class Footnotes:
    """Sentences below a table, each once, with a mark of its own.

    >>> notes = Footnotes()
    >>> notes.mark("So it is."), notes.mark("Or so."), notes.mark("So it is.")
    ('1', '2', '1')
    """

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def mark(self, sentence: str) -> str:
        """Return the mark of a sentence."""
        return self._marks.setdefault(sentence, str(len(self._marks) + 1))

    def by_mark(self) -> dict[str, str]:
        """Return the sentences by their marks."""
        return {mark: sentence for sentence, mark in self._marks.items()}


@dataclass(frozen=True)
class Picture:
    """A drawn figure: the stem of its files, what it shows, and its PNG."""

    name: str
    caption: str
    png: bytes = field(repr=False)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the verdict on it, and its details."""

    text: str
    verdict: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section of a report, on one recipe or on all of them.

    Attributes:
        name: the recipe's.
        title: the recipe's.
        source: where the paper has it; empty if it is on all of them.
        warning: that it was a rehearsal; empty if not.
        claims: of the paper, each with a verdict.
        tables: the numbers.
        pictures: the figures.
        notes: what is missing, what failed, where it was made.
        lead: a paragraph that stands first.
    """

    name: str
    title: str
    source: str = ""
    warning: str = ""
    claims: tuple[Claim, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    lead: str = ""


def format_spread(number: Spread | None, digits: int = 3, scale: float = 1.0) -> str:
    """Format a mean over seeds and its deviation.

    >>> format_spread(Spread(mean=3.3456, std=0.0031, each=[3.3, 3.4]))
    '3.346 ± 0.003'
    """
    if number is None:
        return NONE
    tail = "" if number.std is None else f" ± {scale * number.std:.{digits}f}"
    return f"{scale * number.mean:.{digits}f}{tail}"


def format_difference(value: float | None, digits: int = 3, scale: float = 1.0) -> str:
    """Format a difference with its sign.

    >>> format_difference(-0.0123), format_difference(0.0001), format_difference(None)
    ('−0.012', '+0.000', '–')
    """
    return NONE if value is None else f"{scale * value:+.{digits}f}".replace("-", "−")


def format_printed(figure: Figure, *, deviation: bool = False) -> str:
    """Format a hypervolume of the paper, with as many digits as in print; faces have no deviation.

    >>> figure = Figure(paper=3.34, paper_std=0.01)
    >>> format_printed(figure), format_printed(figure, deviation=True)
    ('3.34', '3.34 ± 0.01')
    """
    if figure.paper is None:
        return NONE
    if figure.paper_std is None:
        return f"{figure.paper:.3f}"
    return f"{figure.paper:.2f}" + (f" ± {figure.paper_std:.2f}" if deviation else "")


def format_ratio(ratio: float | None) -> str:
    """Format how many times as fast, with at least two digits.

    >>> [format_ratio(ratio) for ratio in (0.4429, 7.0, 56.6, 1202.4, None)]
    ['0.44', '7.0', '57', '1,202', '–']
    """
    if ratio is None:
        return NONE
    digits = 1 - math.floor(math.log10(float(f"{ratio:.1e}"))) if ratio else 0
    return f"{ratio:,.{max(digits, 0)}f}"


def format_duration(seconds: float | None) -> str:
    """Format seconds, or hours where they are many.

    >>> format_duration(0.123), format_duration(31), format_duration(1554), format_duration(11880)
    ('0.12 s', '31 s', '1,554 s', '3.30 h')
    """
    if seconds is None:
        return NONE
    if seconds >= 7200:
        return f"{seconds / 3600:.2f} h"
    no_digits = seconds >= 10 or float(seconds).is_integer()
    return f"{seconds:,.0f} s" if no_digits else f"{seconds:.2f} s"


def format_thousands(count: float | None) -> str:
    """Format a number of parameters as the paper prints it.

    >>> format_thousands(7011), format_thousands(3_243_410)
    ('7k', '3,243k')
    """
    return NONE if count is None else f"{count / 1000:,.0f}k"


def describe_progress(experiments: Sequence[ExperimentResult]) -> str:
    """Return how many experiments are complete, partly done, failed, and not begun."""
    complete = sum(not experiment.missing for experiment in experiments)
    parts = [f"{complete} of {len(experiments)} experiments complete"]
    partly = Counter(
        (len(experiment.seeds), len(experiment.seeds) + len(experiment.missing))
        for experiment in experiments
        if experiment.seeds and experiment.missing
    )
    parts += [f"{count} with {done} of {total} seeds" for (done, total), count in partly.items()]
    failed = sum(experiment.error is not None for experiment in experiments)
    untouched = sum(not experiment.seeds and experiment.error is None for experiment in experiments)
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{untouched} not begun"] if untouched else []
    return ", ".join(parts)


def sort_methods(experiments: Iterable[ExperimentResult]) -> list[str]:
    """Return the methods of experiments in the order of the paper's table, others after them."""
    methods = dict.fromkeys(experiment.method for experiment in experiments)
    in_paper = [method for method in published()["titles"]["methods"] if method in methods]
    return list(dict.fromkeys([*in_paper, *methods]))


def sort_experiments(experiments: Sequence[ExperimentResult]) -> list[ExperimentResult]:
    """Sort by benchmark, as they come, and then in the order of the paper's table."""
    benchmarks = list(dict.fromkeys(experiment.benchmark for experiment in experiments))
    methods = sort_methods(experiments)
    return sorted(
        experiments, key=lambda e: (benchmarks.index(e.benchmark), methods.index(e.method))
    )


def label_experiments(
    experiments: Sequence[ExperimentResult], *, aside: Sequence[str] = ()
) -> dict[str, str]:
    """Return a label for each experiment by its name: the method, with settings if they differ.

    A method that a benchmark has more than once shows which settings differ there, on all
    benchmarks; settings that are the paper's are not shown.

    Args:
        experiments: of one recipe.
        aside: settings that are shown elsewhere; experiments that differ in them are no clash.

    >>> own = {"problem": "adult", "protocol": None, "method": "cosmos", "rehearsal": None}
    >>> own |= {"seeds": [], "missing": [1], "error": None}
    >>> first, second = (
    ...     ExperimentResult(name=name, settings=settings, **own)
    ...     for name, settings in (("a", {}), ("b", {"penalty": 1}))
    ... )
    >>> label_experiments([first, second])
    {'a': 'COSMOS', 'b': 'COSMOS, penalty 1'}
    """
    alike: dict[tuple[str, BenchmarkKey, tuple[str, ...]], list[dict[str, Any]]] = {}
    for experiment in experiments:
        shown = tuple(str(experiment.varied.get(key)) for key in aside)
        key = (experiment.method, experiment.benchmark, shown)
        alike.setdefault(key, []).append(_training_settings(experiment))
    differing: dict[str, set[str]] = {}
    for (method, *_), group in alike.items():
        keys = {key for settings in group for key in settings if key not in aside}
        differing.setdefault(method, set()).update(
            key for key in keys if any(s.get(key) != group[0].get(key) for s in group)
        )
    labels = {}
    for experiment in experiments:
        settings = _training_settings(experiment)
        shown_settings = {k: v for k, v in settings.items() if k in differing[experiment.method]}
        parts = [method_title(experiment.method), format_settings(shown_settings)]
        labels[experiment.name] = ", ".join(filter(None, parts))
    return labels


def _training_settings(experiment: ExperimentResult) -> dict[str, Any]:
    """Return the settings of an experiment's training that are not the paper's."""
    preset = {} if experiment.preset == "paper" else {"preset": experiment.preset}
    return preset | experiment.variation


WIDTH = "Width is the diagonal of the box around the points that no other dominates."
RULE = (
    f"{WIDTH} The claim on the penalty holds if the front of the largest one is wider than that "
    f"of the smallest by more than the noise, and larger ones dominate at most {LITTLE:.0%} of the "
    "front of the smallest. The claim on alpha holds if the hypervolume varies with alpha by more "
    "than the noise and the width does not."
)
MEANING = (
    f"The ideal point has the best value of each objective. {WIDTH} Networks for single "
    "objectives form no front: their points may lie beyond the reference point, so the paper "
    "counts their ideal point."
)
SMOOTH = (
    "Degrees are the angle between losses and ray. A conditioned network changes smoothly with the "
    "ray: between the ends of a concave front it passes through points that no weighted sum "
    "prefers. The penalty asks for losses in the direction of the ray, so more weight on an "
    "objective raises its loss, while in a weighted sum it lowers it: the order of colours is "
    "reversed."
)


def build_fronts_table(experiments: Sequence[ExperimentResult]) -> list[Table]:
    """Build a table of how good and how wide every front is."""
    done = [experiment for experiment in experiments if experiment.seeds]
    labels = label_experiments(experiments)
    columns: Columns = [
        ("set", lambda e: e.benchmark_title()),
        ("method", lambda c: labels[c.name]),
        ("hypervolume", lambda c: format_spread(c.metrics["hypervolume"])),
        ("of the ideal point", lambda c: format_spread(c.metrics["hypervolume_ideal"])),
        ("width", lambda c: format_spread(c.metrics["span"]) if c.volume_of == "front" else NONE),
        ("points", lambda c: str(len(c.front))),
        ("seeds", lambda c: str(len(c.seeds))),
    ]
    table = build_table("The fronts in numbers", sort_experiments(done), columns)
    return [replace(table, notes={"*": MEANING})]


def build_ablation_table(experiments: Sequence[ExperimentResult]) -> list[Table]:
    """Build a table of hypervolume and width, a row per benchmark and penalty."""
    grid = list(iterate_grid(experiments))
    titles = _panel_labels([experiment for _, experiment in grid], aside=GRID)
    rows_by_title: dict[tuple[str, float], dict[float, ExperimentResult]] = {}
    for (penalty, alpha), experiment in grid:
        rows_by_title.setdefault((titles[experiment.name], penalty), {})[alpha] = experiment
    alphas = sorted({alpha for row in rows_by_title.values() for alpha in row})
    benchmarks = list(dict.fromkeys(title for title, _ in rows_by_title))
    rows = []
    for title, penalty in sorted(rows_by_title, key=lambda key: (benchmarks.index(key[0]), key[1])):
        texts = [title, f"{penalty:g}"]
        for result in map(rows_by_title[title, penalty].get, alphas):
            volume, width = (result.volume, result.metrics["span"]) if result else (None, None)
            texts += [format_spread(volume), format_spread(width)]
        rows.append(tuple(texts))
    head = ("set", "λ", *(text for alpha in alphas for text in (f"HV, α {alpha:g}", "width")))
    title = "Hypervolume and width by penalty and alpha"
    return [Table(title, head, tuple(rows), notes={"*": RULE} if rows else {})]


def build_convergence_tables(experiments: Sequence[ExperimentResult]) -> list[Table]:
    """Build tables of validation hypervolume and width over epochs."""
    titles, head = _panel_labels(experiments), ("epoch", "hypervolume", "of the last", "width")
    tables = []
    for experiment in (experiment for experiment in experiments if experiment.course):
        last = experiment.course[-1].hypervolume.mean
        rows = tuple(
            (
                str(stage.epoch),
                format_spread(stage.hypervolume),
                f"{stage.hypervolume.mean / last:.1%}" if last else NONE,
                format_spread(stage.span),
            )
            for stage in experiment.course
        )
        tables.append(
            Table(f"{titles[experiment.name]}: validation fronts over epochs", head, rows)
        )
    return tables


def _panel_labels(
    experiments: Sequence[ExperimentResult], *, aside: Sequence[str] = ()
) -> dict[str, str]:
    """Return the benchmark of each experiment, with its label where there is more than one."""
    labels = label_experiments(experiments, aside=aside)
    several = len(set(labels.values())) > 1
    return {
        c.name: c.benchmark_title() + (f", {labels[c.name]}" if several else "")
        for c in experiments
    }


def build_intuition_table(experiments: Sequence[ExperimentResult]) -> list[Table]:
    """Build a table of how much of a true front was reached."""
    done = [experiment for experiment in experiments if experiment.seeds]
    sets = list(dict.fromkeys(e.benchmark for e in done))

    def exact(experiment: ExperimentResult) -> str:
        front = compute_exact_front(experiment.problem)
        return NONE if front is None else f"{hypervolume(front):.3f}"

    columns: Columns = [
        ("problem", lambda c: c.benchmark_title(protocol=False)),
        ("method", lambda c: method_title(c.method)),
        ("settings", _format_varied),
        ("hypervolume", lambda c: format_spread(c.volume)),
        ("of the true front", exact),
        ("width", lambda c: format_spread(c.metrics["span"])),
        ("degrees from the ray", lambda c: format_spread(c.metrics["angle"], 1)),
    ]
    ordered = sorted(done, key=lambda experiment: sets.index(experiment.benchmark))
    return [replace(build_table("What was found", ordered, columns), notes={"*": SMOOTH})]


def _format_varied(experiment: ExperimentResult) -> str:
    """Format what tells an experiment from others with the same method and problem."""
    signs = {"penalty": "λ", "alpha": "α"}
    texts = (
        f"{signs[key]} {format_value(v)}" for key, v in experiment.varied.items() if key in signs
    )
    return ", ".join(texts) or NONE


STUDY_MEANING = (
    "Order is the rank correlation between a goal's weight and minus its loss, for the worst goal: "
    "1 means that more weight always lowers the loss. Dominated is the share of rays that another "
    "beats in everything. Utility is the expected weighted sum of the losses over all weights, so "
    "less is better. Range and box compare with separate networks under the default preset, a "
    "network for each ray: what share of their range the front covers, and its hypervolume within "
    "the box around their front, both of mean fronts; a front that lies wholly below theirs may "
    "be short and still better everywhere. Networks for single objectives form no front."
)


def build_study_table(experiments: Sequence[ExperimentResult]) -> list[Table]:
    """Build a table of order, range and height of every front, a row per experiment."""
    done = [experiment for experiment in experiments if experiment.seeds]
    labels = label_experiments(experiments)
    separate = {
        experiment.benchmark: experiment
        for experiment in done
        if experiment.method == "separate" and not experiment.variation
    }
    beside = {experiment.name: _compare_with(experiment, separate) for experiment in done}
    columns: Columns = [
        ("set", lambda e: e.benchmark_title()),
        ("trained", lambda c: labels[c.name]),
        ("order", lambda c: format_spread(c.metrics.get("monotonicity"), 2)),
        ("dominated", lambda c: _format_percent(c, "dominated_share")),
        ("utility", lambda c: format_spread(c.metrics.get("expected_utility"))),
        ("hypervolume", lambda c: format_spread(c.volume)),
        ("range", lambda c: beside[c.name].get("range_covered", NONE)),
        ("box", lambda c: beside[c.name].get("hypervolume_in_separate_box", NONE)),
        ("a seed takes", lambda c: format_duration(c.seconds.training.mean)),
        ("seeds", lambda c: str(len(c.seeds))),
    ]
    table = build_table("Order, range and height", sort_experiments(done), columns)
    return [replace(table, notes={"*": STUDY_MEANING})]


def _compare_with(
    experiment: ExperimentResult, separate: dict[BenchmarkKey, ExperimentResult]
) -> dict[str, str]:
    """Return the front's numbers beside separate networks on the same benchmark, if any."""
    other = separate.get(experiment.benchmark)
    if other is None or other is experiment or experiment.volume_of != "front":
        return {}
    numbers = front_report(get_front(experiment), get_front(other)).numbers
    return {
        "range_covered": f"{numbers['range_covered']:.0%}",
        "hypervolume_in_separate_box": f"{numbers['hypervolume_in_separate_box']:.3f}",
    }


def _format_percent(experiment: ExperimentResult, name: str) -> str:
    spread = experiment.metrics.get(name)
    return NONE if spread is None else f"{spread.mean:.0%}"
