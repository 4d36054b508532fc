"""The experiments of a recipe, labelled and arranged as its tables and figures show them.

Each function of `TABLES` returns what the template of a kind of recipe, such as
``table.md.jinja``, needs beside the results themselves.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from paretocosmos.paper.claims import GRID, LITTLE, compute_exact_front, iterate_grid
from paretocosmos.paper.published import (
    device_title,
    format_settings,
    format_value,
    get_published,
    method_title,
)
from paretocosmos.paper.results import (
    DEVIATIONS,
    BenchmarkKey,
    ExperimentResult,
    RecipeResult,
    Spread,
    compute_difference_deviation,
    title_benchmark,
)
from paretocosmos.pareto.metrics import hypervolume

NARROW = 0.01  # a width below which a front is next to a point
Experiments = Sequence[ExperimentResult]
NONE = "–"
"""Stands where there is no number."""


def format_spread(number: Spread | None, digits: int = 3, scale: float = 1.0) -> str:
    """Format a mean over seeds and its deviation.

    >>> format_spread(Spread(3.3456, 0.0031, [3.3, 3.4]))
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
    # a true minus sign is as wide as the plus above and below it
    return NONE if value is None else f"{scale * value:+.{digits}f}".replace("-", "−")


def format_printed(paper: Mapping[str, float], *, deviation: bool = False) -> str:
    """Format a hypervolume of the paper, with as many digits as in print; faces have no deviation.

    >>> paper = {"hypervolume": 3.34, "std": 0.01}
    >>> format_printed(paper), format_printed(paper, deviation=True)
    ('3.34', '3.34 ± 0.01')
    """
    if "hypervolume" not in paper:
        return NONE
    # the table of CelebA has three digits and no deviation, Table 1 two and one
    if "std" not in paper:
        return f"{paper['hypervolume']:.3f}"
    return f"{paper['hypervolume']:.2f}" + (f" ± {paper['std']:.2f}" if deviation else "")


def format_ratio(ratio: float | None) -> str:
    """Format how many times as fast, with at least two digits.

    >>> [format_ratio(ratio) for ratio in (0.4429, 7.0, 56.6, 1202.4, None)]
    ['0.44', '7.0', '57', '1,202', '–']
    """
    if ratio is None:
        return NONE
    # rounded to two digits first, or 9.96 would have three
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
    # fractions of a second matter only to short trainings
    no_digits = seconds >= 10 or float(seconds).is_integer()
    return f"{seconds:,.0f} s" if no_digits else f"{seconds:.2f} s"


def format_thousands(count: float | None) -> str:
    """Format a number of parameters as the paper prints it.

    >>> format_thousands(7011), format_thousands(3_243_410)
    ('7k', '3,243k')
    """
    return NONE if count is None else f"{count / 1000:,.0f}k"


def format_rate(rate: float | None) -> str:
    """Format a rate of misclassification in percent, as the paper prints it.

    >>> format_rate(0.0307)
    '3.07'
    """
    return NONE if rate is None else f"{100 * rate:.2f}"


class Footnotes:
    """Sentences below a table, each once, with a mark of its own.

    >>> notes = Footnotes()
    >>> notes.mark("So it is."), notes.mark("Or so."), notes.mark("So it is.")
    ('1', '2', '1')
    """

    def __init__(self) -> None:
        # a dict keeps the order in which the marks were given
        self._marks: dict[str, str] = {}

    def mark(self, sentence: str) -> str:
        """Return the mark of a sentence, a new one if the sentence is new."""
        return self._marks.setdefault(sentence, str(len(self._marks) + 1))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Iterate over marks and sentences."""
        return ((mark, sentence) for sentence, mark in self._marks.items())


def format_epochs(result: RecipeResult) -> str:
    """Format the epochs of a rehearsal."""
    return f"{result.rehearsal} epoch{'s' * (result.rehearsal != 1)}"


def sort_methods(experiments: Iterable[ExperimentResult]) -> list[str]:
    """Return the methods of experiments in the order of the paper's table, others after them."""
    methods = dict.fromkeys(experiment.method for experiment in experiments)
    # published.toml lists the titles in the order of the paper's table
    in_paper = [method for method in get_published()["titles"]["methods"] if method in methods]
    return list(dict.fromkeys([*in_paper, *methods]))


def sort_experiments(experiments: Experiments) -> list[ExperimentResult]:
    """Sort by benchmark, in order of appearance, and then in the order of the paper's table."""
    benchmarks = list_benchmarks(experiments)
    methods = sort_methods(experiments)
    return sorted(
        experiments, key=lambda e: (benchmarks.index(e.benchmark), methods.index(e.method))
    )


def list_benchmarks(experiments: Experiments) -> list[BenchmarkKey]:
    """Return the benchmarks of experiments, each once."""
    return list(dict.fromkeys(experiment.benchmark for experiment in experiments))


def title_benchmarks(benchmarks: Iterable[BenchmarkKey]) -> dict[BenchmarkKey, str]:
    """Return the titles of benchmarks; a protocol is shown where a problem is there under two.

    >>> title_benchmarks([("adult", "", "paper"), ("adult", "", "clean"), ("compas", "", "paper")])
    ... # doctest: +NORMALIZE_WHITESPACE
    {('adult', '', 'paper'): 'Adult, paper', ('adult', '', 'clean'): 'Adult, clean',
     ('compas', '', 'paper'): 'COMPAS'}
    """
    keys = list(dict.fromkeys(benchmarks))
    count = Counter(key[:2] for key in keys)
    return {key: title_benchmark(key, protocol=count[key[:2]] > 1) for key in keys}


def label_experiments(experiments: Experiments, *, aside: Sequence[str] = ()) -> dict[str, str]:
    """Return a label for each experiment by its name: the method, with settings if they differ.

    A method that a benchmark has more than once shows which settings differ there, on all
    benchmarks; settings that are the paper's are not shown.

    Args:
        experiments: of one recipe.
        aside: settings that are shown elsewhere; experiments that differ in them are no clash.

    >>> first = ExperimentResult("a", "adult", "cosmos")
    >>> label_experiments([first, ExperimentResult("b", "adult", "cosmos", settings={"mu": 1})])
    {'a': 'COSMOS', 'b': 'COSMOS, mu 1'}
    """
    settings = {
        e.name: ({} if e.preset == "paper" else {"preset": e.preset}) | e.settings
        for e in experiments
    }
    # experiments that would have the same label: one method on one benchmark, more than once
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for e in experiments:
        # as text, since an alpha may be a list, which no key of a dict can be
        shown = tuple(str(e.varied.get(key)) for key in aside)
        alike.setdefault((e.method, e.benchmark, shown), []).append(settings[e.name])
    # by method, not by benchmark: a setting shown on one is shown on all, or rows would not match
    differing = {
        (method, key)
        for (method, *_), group in alike.items()
        for key in {key for own in group for key in own if key not in aside}
        if any(own.get(key) != group[0].get(key) for own in group)
    }
    labels = {}
    for e in experiments:
        different = {k: v for k, v in settings[e.name].items() if (e.method, k) in differing}
        parts = [method_title(e.method), format_settings(different)]
        labels[e.name] = ", ".join(filter(None, parts))
    return labels


def title_experiments(experiments: Experiments, *, aside: Sequence[str] = ()) -> dict[str, str]:
    """Return the benchmark of each experiment, with its label where there is more than one."""
    labels = label_experiments(experiments, aside=aside)
    titles = title_benchmarks(e.benchmark for e in experiments)
    several = len({(e.benchmark, labels[e.name]) for e in experiments}) > len(titles)
    return {
        e.name: titles[e.benchmark] + (f", {labels[e.name]}" if several else "")
        for e in experiments
    }


def is_among_best(experiment: ExperimentResult, experiments: Experiments) -> bool:
    """Return True if a front is the best of its benchmark, or not worse beyond the noise."""
    # an ideal point is no front: its hypervolume is an upper bound that no single network reaches
    fronts = (e for e in experiments if e.benchmark == experiment.benchmark and not e.ideal)
    leader = max(fronts, key=lambda e: e.volume.mean, default=experiment)
    noise = compute_difference_deviation(experiment.volume, leader.volume) or 0.0
    gap = leader.volume.mean - experiment.volume.mean
    return not experiment.ideal and gap <= DEVIATIONS * noise


def describe_training(experiment: ExperimentResult) -> str:
    """Describe the device of an experiment, and how many seeds and experiments ran at once."""
    # several answers if some seeds were resumed apart from the others
    counts = sorted(set(experiment.made["seeds_together"]), reverse=True)
    device = " and ".join(map(device_title, experiment.made["device"])) or "an unknown device"
    others = int(experiment.made["side_by_side"][0]) - 1
    beside = f", beside {others} more" if others else ""
    return f"{device}, {' or '.join(map(str, counts))} at once{beside}"


def arrange_table_1(result: RecipeResult) -> dict[str, Any]:
    """Arrange Table 1 as the paper prints it, a row per label and a column per benchmark."""
    done, labels = result.done, label_experiments(result.experiments)
    benchmarks = list_benchmarks(done)
    # of a benchmark under both protocols it shows the paper's
    columns = [
        key for key in benchmarks if key[2] != "clean" or (*key[:2], "paper") not in benchmarks
    ]
    # a label tells experiments of one benchmark apart, so the key is unique
    by_cell = {(e.benchmark, labels[e.name]): e for e in done}
    order = sort_methods(done)
    methods = {labels[e.name]: e.method for e in done if e.benchmark in columns}
    # experiments with fewer seeds are marked in the table
    usual_seeds = max(len(experiment.seeds) for experiment in done)
    return {
        "columns": list(title_benchmarks(columns).values()),
        "rows": {
            label: [by_cell.get((key, label)) for key in columns]
            for label in sorted(methods, key=lambda label: order.index(methods[label]))
        },
        "usual_seeds": usual_seeds,
        "seeds": f"mean of {usual_seeds} seeds" if usual_seeds > 1 else "one seed",
    }


def arrange_ablation(result: RecipeResult) -> dict[str, Any]:
    """Arrange an ablation, a row per benchmark and penalty, two columns per alpha."""
    grid = list(iterate_grid(result.experiments))
    titles = title_experiments([experiment for _, experiment in grid], aside=GRID)
    rows: dict[tuple[str, float], dict[float, ExperimentResult]] = {}
    for (penalty, alpha), experiment in grid:
        rows.setdefault((titles[experiment.name], penalty), {})[alpha] = experiment
    # benchmarks in the recipe's order, penalties by size
    order = list(dict.fromkeys(title for title, _ in rows))
    return {
        "alphas": sorted({alpha for row in rows.values() for alpha in row}),
        "rows": sorted(rows.items(), key=lambda row: (order.index(row[0][0]), row[0][1])),
        "little": f"{LITTLE:.0%}",
    }


def compute_exact_volume(problem: str) -> str:
    """Return the hypervolume of a toy problem's true front as text."""
    front = compute_exact_front(problem)
    return NONE if front is None else f"{hypervolume(front):.3f}"


def format_varied(experiment: ExperimentResult) -> str:
    """Format what tells an experiment from others with the same method and problem."""
    signs = {"penalty": "λ", "alpha": "α"}
    texts = (f"{signs[k]} {format_value(v)}" for k, v in experiment.varied.items() if k in signs)
    return ", ".join(texts) or NONE


def arrange_faces(result: RecipeResult) -> dict[str, Any]:
    """Arrange every problem task by task, beside the networks for one task each."""
    with_tasks = [e for e in result.done if e.tasks]
    alone = {
        task: rate.mean
        for e in with_tasks
        if e.method == "single_task"
        # a network for one task is the same whatever the other tasks of its problem are
        for task, rate in e.tasks.items()
    }
    widths = [(e, e.metrics["span"]) for e in result.done if not e.ideal]
    return {
        "narrow": [e for e, width in widths if width is not None and width.mean < NARROW],
        "overhead": f"{get_published()['table_celeba']['overhead']:.0%}",
        "tasks": [e for e in with_tasks if e.method != "single_task"],
        "alone": alone,
    }


def format_overhead(experiment: ExperimentResult, done: Experiments) -> str:
    """Format how much longer it takes than one network for one task."""
    # another set of tasks has another cost per image
    same_tasks = [e for e in done if e.benchmark == experiment.benchmark]
    single_task = [e for e in same_tasks if e.method == "single_task"]
    if experiment.method == "single_task" or not single_task:
        return NONE
    # Single Task trains one network per task, all of which its time covers
    per_network = single_task[0].seconds["training"].mean / single_task[0].networks
    ratio = experiment.seconds["training"].mean / per_network
    return f"{ratio - 1:+.1%}".replace("-", "−")


TABLES: Mapping[str, Callable[[RecipeResult], dict[str, Any]]] = {
    "table": arrange_table_1,
    "ablation": arrange_ablation,
    "celeba": arrange_faces,
}
"""By what a recipe shows, the function that arranges its tables; others need none."""


def describe_progress(experiments: Experiments) -> str:
    """Return how many experiments are complete, partly done, failed, and not begun."""
    complete = sum(not experiment.missing for experiment in experiments)
    parts = [f"{complete} of {len(experiments)} experiments complete"]
    partly = Counter(
        (len(e.seeds), len(e.seeds) + len(e.missing)) for e in experiments if e.seeds and e.missing
    )
    parts += [f"{count} with {done} of {total} seeds" for (done, total), count in partly.items()]
    failed = sum(experiment.error is not None for experiment in experiments)
    untouched = sum(not experiment.seeds and experiment.error is None for experiment in experiments)
    # counts of nothing are left out
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{untouched} not begun"] if untouched else []
    return ", ".join(parts)
