"""The experiments of a recipe, arranged as its tables show them.

Each function of `TABLES` returns what the template of a kind of recipe, such as
``fronts.md.jinja``, needs beside the results themselves.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paretocosmos.paper.claims import GRID, LITTLE, compute_exact_front, get_front, iterate_grid
from paretocosmos.paper.published import (
    device_title,
    format_settings,
    format_value,
    get_paper_tasks,
    get_published,
    method_title,
    problem_title,
)
from paretocosmos.paper.report.formatting import NONE, format_difference, format_rate, format_spread
from paretocosmos.paper.results import (
    DEVIATIONS,
    BenchmarkKey,
    ExperimentResult,
    RecipeResult,
    compute_difference_deviation,
)
from paretocosmos.pareto.metrics import front_report, hypervolume

NARROW = 0.01  # a width below which a front is next to a point
UNEXPLAINED = "This differs from the paper for no known reason."
Experiments = Sequence[ExperimentResult]


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


def label_experiments(experiments: Experiments, *, aside: Sequence[str] = ()) -> dict[str, str]:
    """Return a label for each experiment by its name: the method, with settings if they differ.

    A method that a benchmark has more than once shows which settings differ there, on all
    benchmarks; settings that are the paper's are not shown.

    Args:
        experiments: of one recipe.
        aside: settings that are shown elsewhere; experiments that differ in them are no clash.

    >>> common = {"problem": "adult", "protocol": None, "method": "cosmos", "rehearsal": None}
    >>> common |= {"seeds": [], "missing": [1], "error": None}
    >>> first, second = (
    ...     ExperimentResult(name=name, settings=settings, **common)
    ...     for name, settings in (("a", {}), ("b", {"penalty": 1}))
    ... )
    >>> label_experiments([first, second])
    {'a': 'COSMOS', 'b': 'COSMOS, penalty 1'}
    """
    # rows that would have the same label: one method on one benchmark, more than once
    alike: dict[tuple[str, BenchmarkKey, tuple[str, ...]], list[dict[str, Any]]] = {}
    for experiment in experiments:
        # as text, since an alpha may be a list, which no key of a dict can be
        shown = tuple(str(experiment.varied.get(key)) for key in aside)
        key = (experiment.method, experiment.benchmark, shown)
        alike.setdefault(key, []).append(_get_training_settings(experiment))
    # by method, not by benchmark: a setting shown on one is shown on all, or the rows would not
    # match
    differing: dict[str, set[str]] = {}
    for (method, *_), group in alike.items():
        keys = {key for settings in group for key in settings if key not in aside}
        differing.setdefault(method, set()).update(
            key for key in keys if any(s.get(key) != group[0].get(key) for s in group)
        )
    labels = {}
    for experiment in experiments:
        settings = _get_training_settings(experiment)
        shown_settings = {k: v for k, v in settings.items() if k in differing[experiment.method]}
        parts = [method_title(experiment.method), format_settings(shown_settings)]
        labels[experiment.name] = ", ".join(filter(None, parts))
    return labels


def _get_training_settings(experiment: ExperimentResult) -> dict[str, Any]:
    """Return the settings of an experiment's training that are not the paper's."""
    preset = {} if experiment.preset == "paper" else {"preset": experiment.preset}
    return preset | experiment.variation


def title_benchmarks(experiments: Experiments, *, aside: Sequence[str] = ()) -> dict[str, str]:
    """Return the benchmark of each experiment, with its label where there is more than one."""
    labels = label_experiments(experiments, aside=aside)
    several = len(set(labels.values())) > 1
    return {
        e.name: e.benchmark_title() + (f", {labels[e.name]}" if several else "")
        for e in experiments
    }


def explain_difference(experiment: ExperimentResult) -> list[str]:
    """Return the known reasons for a difference, or that there is none."""
    if experiment.comparison is None or experiment.rehearsal is not None:
        return []
    reasons = [reason.sentence for reason in experiment.comparison.reasons]
    return reasons or [UNEXPLAINED] * bool(experiment.comparison.hypervolume.differs)


def is_among_best(experiment: ExperimentResult, experiments: Experiments) -> bool:
    """Return True if a front is the best of its benchmark, or not worse beyond the noise."""
    # an ideal point is no front: its hypervolume is an upper bound that no single network reaches
    fronts = (
        e for e in experiments if e.benchmark == experiment.benchmark and e.volume_of == "front"
    )
    leader = max(fronts, key=lambda e: e.volume.mean, default=experiment)
    noise = compute_difference_deviation(experiment.volume, leader.volume) or 0.0
    gap = leader.volume.mean - experiment.volume.mean
    return experiment.volume_of == "front" and gap <= DEVIATIONS * noise


def describe_training(experiment: ExperimentResult) -> str:
    """Describe the device of an experiment, and how many seeds and experiments ran at once."""
    # several answers if some seeds were resumed apart from the others
    counts = sorted(set(experiment.made.seeds_together), reverse=True)
    device = " and ".join(map(device_title, experiment.made.device)) or "an unknown device"
    together = " or ".join(str(count) for count in counts if count > 1)
    text = f"{together} seeds together" if together else "one seed at a time"
    text += " and others alone" * (bool(together) and 1 in counts)
    if experiment.made.side_by_side > 1:
        text += ", several experiments at the same time, each counted with its share"
    return f"{device}, {text}"


def arrange_table_1(result: RecipeResult) -> dict[str, Any]:
    """Arrange Table 1 as the paper prints it, a row per label and a column per benchmark."""
    done, labels = result.done, label_experiments(result.experiments)
    benchmarks = list_benchmarks(done)
    # a benchmark under both protocols has a table of its own; the main one shows the paper's
    paired = [
        (*key[:2], protocol)
        for key in benchmarks
        if key[2] == "paper" and (*key[:2], "clean") in benchmarks
        for protocol in ("paper", "clean")
    ]
    main = [key for key in benchmarks if not (key in paired and key[2] == "clean")]
    machines = dict.fromkeys(describe_training(e) for e in done if e.benchmark in main)
    # experiments with fewer seeds are marked in the table
    usual_seeds = max(len(experiment.seeds) for experiment in done)
    return {
        "main": main,
        "paired": paired,
        "rows": _arrange_rows(done, labels, main),
        "paired_rows": _arrange_rows(done, labels, paired),
        "titles": {e.benchmark: e.benchmark_title for e in done},
        "compared": any(experiment.comparison for experiment in done),
        "usual_seeds": usual_seeds,
        "seeds": f"mean of {usual_seeds} seeds" if usual_seeds > 1 else "one seed",
        "timed": any(e.paper.seconds.paper for e in done if e.benchmark in main),
        # letters, since digits already mark the notes
        "machines": {machine: chr(ord("a") + n) for n, machine in enumerate(machines)},
        "everywhere": len({describe_training(experiment) for experiment in done}) == 1,
        "clean_reasons": {key: _list_clean_reasons(done, key) for key in paired},
        "by_method": {
            **{method_title(m): [e for e in done if e.method == m] for m in sort_methods(done)},
            "all": done,
        },
    }


def _arrange_rows(
    done: Experiments, labels: Mapping[str, str], benchmarks: Sequence[BenchmarkKey]
) -> dict[str, list[ExperimentResult | None]]:
    """Return by label the experiments on some benchmarks, in the order of the paper's methods."""
    # a label tells experiments of one benchmark apart, so the key is unique
    by_cell = {(e.benchmark, labels[e.name]): e for e in done}
    order = sort_methods(done)
    methods = {labels[e.name]: e.method for e in done if e.benchmark in benchmarks}
    return {
        label: [by_cell.get((key, label)) for key in benchmarks]
        for label in sorted(methods, key=lambda label: order.index(methods[label]))
    }


def _list_clean_reasons(done: Experiments, benchmark: BenchmarkKey) -> list[str]:
    """List what protocol `clean` is known to change on a benchmark."""
    reasons = (r for e in done if e.benchmark == benchmark for r in explain_difference(e))
    return list(dict.fromkeys(reason for reason in reasons if "`clean`" in reason))


def sum_paper_seconds(experiments: Experiments) -> float:
    """Return the paper's seconds for all seeds of experiments under its own protocol."""
    return sum(
        # the paper times one seed, and has no times of the clean protocol
        len(e.seeds) * (e.paper.seconds.paper or 0)
        for e in experiments
        if e.protocol != "clean"
    )


def arrange_ablation(result: RecipeResult) -> dict[str, Any]:
    """Arrange an ablation, a row per benchmark and penalty, two columns per alpha."""
    grid = list(iterate_grid(result.experiments))
    titles = title_benchmarks([experiment for _, experiment in grid], aside=GRID)
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


def arrange_intuition(result: RecipeResult) -> dict[str, Any]:
    """Arrange toy problems beside their true fronts."""
    order = list_benchmarks(result.done)
    return {"ordered": sorted(result.done, key=lambda e: order.index(e.benchmark))}


def compute_exact_volume(problem: str) -> str:
    """Return the hypervolume of a toy problem's true front as text."""
    front = compute_exact_front(problem)
    return NONE if front is None else f"{hypervolume(front):.3f}"


def format_varied(experiment: ExperimentResult) -> str:
    """Format what tells an experiment from others with the same method and problem."""
    signs = {"penalty": "λ", "alpha": "α"}
    texts = (f"{signs[k]} {format_value(v)}" for k, v in experiment.varied.items() if k in signs)
    return ", ".join(texts) or NONE


def arrange_study(result: RecipeResult) -> dict[str, Any]:
    """Arrange fronts beside those of separate networks on the same benchmark."""
    # the fronts that separate networks reach are what a conditioned network is measured by
    separate = {e.benchmark: e for e in result.done if e.method == "separate" and not e.variation}
    numbers = {
        e.name: front_report(get_front(e), get_front(separate[e.benchmark])).numbers
        for e in result.done
        # where there are no separate networks, the default `e` leaves it out, too
        if e.volume_of == "front" and separate.get(e.benchmark, e) is not e
    }
    return {"beside": numbers}


def arrange_faces(result: RecipeResult) -> dict[str, Any]:
    """Arrange the pairs of tasks that the paper compares, and every problem task by task."""
    labels = label_experiments(result.experiments)
    # the paper prints no hypervolume of the problems with more tasks
    pairs = [e for e in result.done if e.paper.hypervolume.paper]
    narrow = [
        e
        for e in pairs
        # Single Task has an ideal point instead of a front with a width
        if e.volume_of == "front" and (width := e.metrics["span"]) and width.mean < NARROW
    ]
    earlier = [reason.sentence for e in pairs for reason in e.paper.reasons]
    return {
        "pairs": pairs,
        "narrow": narrow,
        "overhead": f"{get_published()['table_celeba']['overhead']:.0%}",
        "task_tables": list(_list_task_tables(result.done, labels, set(earlier))),
    }


def format_overhead(experiment: ExperimentResult, done: Experiments) -> str:
    """Format how much longer it takes than one network for one task."""
    # another set of tasks has another cost per image
    same_tasks = [e for e in done if e.benchmark == experiment.benchmark]
    single_task = [e for e in same_tasks if e.method == "single_task"]
    if experiment.method == "single_task" or not single_task:
        return NONE
    # Single Task trains one network per task, all of which its time covers
    per_network = single_task[0].seconds.training.mean / single_task[0].networks
    return f"{experiment.seconds.training.mean / per_network - 1:+.1%}".replace("-", "−")


@dataclass(frozen=True)
class TaskColumn:
    """The tasks of one method: its label, its experiment if there is one, the paper's rates."""

    title: str
    experiment: ExperimentResult | None
    paper: Sequence[float] | None

    def format_task(self, index: int, task: str) -> list[str]:
        """Return our rate, the paper's and the difference; a rehearsal has no difference."""
        tasks = self.experiment.tasks if self.experiment else None
        ours = tasks.misclassification[task] if tasks else None
        paper = None if self.paper is None else self.paper[index]
        difference = None
        if self.experiment and ours and paper is not None and self.experiment.rehearsal is None:
            difference = ours.mean - paper
        return [
            format_spread(ours, 2, 100),
            format_rate(paper),
            format_difference(difference, 2, 100),
        ]


def _list_task_tables(
    done: Experiments, labels: Mapping[str, str], earlier: set[str]
) -> Iterator[dict[str, Any]]:
    """Yield for each problem our rate of every task beside the paper's, for both methods.

    Reasons that earlier tables gave are referred to.
    """
    for problem in dict.fromkeys(experiment.problem for experiment in done):
        # neither we nor the paper have a rate of its tasks
        if get_paper_tasks(problem, "cosmos") is None and not _select_by_tasks(
            done, "cosmos", problem
        ):
            continue
        tasks = next(experiment.objectives for experiment in done if experiment.problem == problem)
        columns = list(_list_task_columns(done, labels, problem, tasks))
        # a reader must know that these networks were trained for another problem
        notes = [
            f"The networks of Single Task are those of {problem_title(column.experiment.problem)}."
            for column in columns
            if column.experiment and column.experiment.problem != problem
        ]
        beside_paper = [
            column.experiment for column in columns if column.experiment and column.paper
        ]
        # a dict as an ordered set: the same reason often holds for both methods
        reasons = dict.fromkeys(r.sentence for e in beside_paper for r in e.paper.reasons)
        notes += [reason for reason in reasons if reason not in earlier]
        if earlier.intersection(reasons):
            more = "Further reasons" if set(reasons) - earlier else "Reasons for the differences"
            notes.append(f"{more}: as above.")
        earlier.update(reasons)
        yield {
            "problem": problem_title(problem),
            "columns": [column.title for column in columns],
            "rows": {
                task.replace("_", " "): [
                    text for column in columns for text in column.format_task(index, task)
                ]
                for index, task in enumerate(tasks)
            },
            "notes": notes,
        }


def _list_task_columns(
    done: Experiments, labels: Mapping[str, str], problem: str, tasks: Sequence[str]
) -> Iterator[TaskColumn]:
    """Yield COSMOS and Single Task, whose networks may be those of a problem with more tasks."""
    for method in ("cosmos", "single_task"):
        experiments = _select_by_tasks(done, method, problem)
        if not experiments and method == "single_task":
            # a network for one task is the same whatever the other tasks of the problem are
            experiments = [
                e
                for e in _select_by_tasks(done, method)
                if e.tasks and {*tasks} <= {*e.tasks.misclassification}
            ][:1]
        # the paper's rates get a column even if nothing of ours is trained yet
        paper = get_paper_tasks(problem, method)
        yield from (TaskColumn(labels[e.name], e, paper) for e in experiments)
        if not experiments:
            yield TaskColumn(method_title(method), None, paper)


def _select_by_tasks(
    done: Experiments, method: str, problem: str | None = None
) -> list[ExperimentResult]:
    """Return the experiments of a method that have rates of tasks, on one problem or on any."""
    return [e for e in done if e.method == method and e.tasks and problem in (None, e.problem)]


TABLES: dict[str, Callable[[RecipeResult], dict[str, Any]]] = {
    "table": arrange_table_1,
    "fronts": lambda _: {},
    "convergence": lambda _: {},
    "ablation": arrange_ablation,
    "celeba": arrange_faces,
    "intuition": arrange_intuition,
    "study": arrange_study,
}
"""By what a recipe shows, the function that arranges its tables."""


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
