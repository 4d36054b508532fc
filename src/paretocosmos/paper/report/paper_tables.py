"""The paper's Table 1 and its tables of CelebA, with our numbers beside."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from paretocosmos.paper.published import (
    device_title,
    get_paper_tasks,
    method_title,
    problem_title,
    published,
)
from paretocosmos.paper.report.tables import (
    NONE,
    Columns,
    Footnotes,
    Table,
    build_table,
    format_difference,
    format_duration,
    format_printed,
    format_ratio,
    format_spread,
    format_thousands,
    label_experiments,
    sort_experiments,
    sort_methods,
)
from paretocosmos.paper.results import (
    DEVIATIONS,
    BenchmarkKey,
    ExperimentResult,
    compute_difference_deviation,
)

Experiments = Mapping[tuple[BenchmarkKey, str], ExperimentResult]
"""Experiments by benchmark and label."""

BOLD = "The largest mean of a front, and those that are not lower by more than the noise."
UNEXPLAINED = "This differs from the paper for no known reason."


def build_table_1(experiments: Sequence[ExperimentResult]) -> list[Table]:
    """Build Table 1 as the paper prints it, both protocols side by side, times and details."""
    done = [experiment for experiment in experiments if experiment.seeds]
    labels = label_experiments(experiments)
    by_label = {(experiment.benchmark, labels[experiment.name]): experiment for experiment in done}
    benchmarks = list(dict.fromkeys(e.benchmark for e in done))
    in_both_protocols = {
        (*s,) for *s, _ in benchmarks if {(*s, "paper"), (*s, "clean")} <= set(benchmarks)
    }
    main = [key for key in benchmarks if not (key[:2] in in_both_protocols and key[2] == "clean")]
    usual = max(len(experiment.seeds) for experiment in done)
    seeds = f"mean of {usual} seeds" if usual > 1 else "one seed"
    tables = [
        _build_matrix(f"Test hypervolume, {seeds}", by_label, main, _format_volume, best=True)
    ]
    tables.append(_build_times_table(by_label, main))
    compared = any(experiment.comparison for experiment in done)
    if compared:
        tables = [replace(table, title=f"{table.title}: ours (the paper's)") for table in tables]
    if in_both_protocols:
        paired = [key for key in benchmarks if key[:2] in in_both_protocols]
        paired.sort(key=lambda key: (benchmarks.index((*key[:2], "paper")), key[2] != "paper"))
        title = f"Test hypervolume, {seeds}, under both protocols: as published, and clean"
        table = _build_matrix(
            title, by_label, paired, lambda experiment: format_spread(experiment.volume), best=True
        )
        tables.append(_add_protocol_notes(table, paired, done))
    details = [_build_details_table(experiments, labels), _build_total_times_table(done)]
    return [*tables, *(details if compared else map(_drop_empty_columns, details))]


def _build_matrix(
    title: str,
    by_label: Experiments,
    benchmarks: Sequence[BenchmarkKey],
    text: Callable[[ExperimentResult], str],
    *,
    best: bool = False,
) -> Table:
    """Build a row per method, a column per benchmark; the best fronts of a column are strong."""
    methods_by_label = {
        name: experiment.method for (key, name), experiment in by_label.items() if key in benchmarks
    }
    by_benchmark = {key: experiment for (key, _), experiment in by_label.items()}
    order = sort_methods(by_label.values())
    row_labels = sorted(methods_by_label, key=lambda name: order.index(methods_by_label[name]))
    several = len({protocol for *_, protocol in benchmarks}) > 1
    usual_seeds = max(len(experiment.seeds) for experiment in by_label.values())
    rows, strong = [], set()
    for row, method in enumerate(row_labels):
        in_row = [by_label.get((key, method)) for key in benchmarks]
        ideal = best and any(
            experiment and experiment.volume_of == "ideal point" for experiment in in_row
        )
        texts = [
            NONE if experiment is None else text(experiment) + _note_seeds(experiment, usual_seeds)
            for experiment in in_row
        ]
        rows.append((f"{method}{', ideal point' * ideal}", *texts))
        for column, experiment in enumerate(in_row, start=1):
            if best and experiment is not None and _is_among_best(experiment, by_label):
                strong.add((row, column))
    head = [by_benchmark[key].benchmark_title(protocol=several) for key in benchmarks]
    notes = {"bold": BOLD} if strong else {}
    return Table(title, ("", *head), tuple(rows), frozenset(strong), notes)


def _is_among_best(experiment: ExperimentResult, by_label: Experiments) -> bool:
    """Return True if a front is the best of its benchmark, or not worse beyond the noise."""
    fronts = (
        e
        for (key, _), e in by_label.items()
        if key == experiment.benchmark and e.volume_of == "front"
    )
    leader = max(fronts, key=lambda e: e.volume.mean, default=experiment)
    noise = compute_difference_deviation(experiment.volume, leader.volume) or 0.0
    gap = leader.volume.mean - experiment.volume.mean
    return experiment.volume_of == "front" and gap <= DEVIATIONS * noise


def _note_seeds(experiment: ExperimentResult, usual: int) -> str:
    """Note that a number has fewer seeds than others."""
    count = len(experiment.seeds)
    return "" if count == usual else f" [{count} seed{'s' * (count > 1)}]"


def _format_volume(experiment: ExperimentResult) -> str:
    theirs = experiment.paper.hypervolume
    return format_spread(experiment.volume) + (
        "" if theirs.paper is None else f" ({format_printed(theirs)})"
    )


def _build_times_table(by_label: Experiments, benchmarks: Sequence[BenchmarkKey]) -> Table:
    """Build the table of times, with marks where they were measured on several machines."""
    shown = [experiment for (key, _), experiment in by_label.items() if key in benchmarks]
    machines = list(dict.fromkeys(map(describe_training, shown)))
    marks = {machine: chr(ord("a") + number) for number, machine in enumerate(machines)}

    def text(experiment: ExperimentResult) -> str:
        theirs = experiment.paper.seconds.paper
        ours = format_duration(experiment.seconds.to_selected.mean)
        mark = f" ({marks[describe_training(experiment)]})" if len(machines) > 1 else ""
        return ours + ("" if theirs is None else f" ({format_duration(theirs)})") + mark

    descriptions = [
        f"({marks[machine]}) {machine}" if len(machines) > 1 else machine for machine in machines
    ]
    paper = f"The paper: {published()['table_1']['hardware']}, one seed after another. "
    timed = any(experiment.paper.seconds.paper for experiment in shown)
    note = (paper if timed else "") + f"Ours: {'; '.join(descriptions)}."
    table = _build_matrix(
        "Training time of a seed to its selected epoch", by_label, benchmarks, text
    )
    return replace(table, notes={"*": note})


def describe_training(experiment: ExperimentResult) -> str:
    """Describe the device of an experiment, and how many seeds and experiments ran at once."""
    counts = sorted(set(experiment.made.seeds_together), reverse=True)
    device = " and ".join(map(device_title, experiment.made.device)) or "an unknown device"
    counts_together = [str(count) for count in counts if count > 1]
    text = (
        f"{' or '.join(counts_together)} seeds together"
        if counts_together
        else "one seed at a time"
    )
    text += " and others alone" * (bool(counts_together) and 1 in counts)
    if experiment.made.side_by_side > 1:
        text += ", several experiments at the same time, each counted with its share"
    return f"{device}, {text}"


def _drop_empty_columns(table: Table) -> Table:
    """Drop the columns that are empty because the paper prints nothing."""
    full = [n for n, column in enumerate(zip(*table.rows, strict=True)) if {*column} - {NONE, ""}]
    rows = tuple(tuple(row[n] for n in full) for row in table.rows)
    return replace(table, head=tuple(table.head[n] for n in full), rows=rows)


def _add_protocol_notes(
    table: Table, benchmarks: Sequence[BenchmarkKey], done: Sequence[ExperimentResult]
) -> Table:
    """Add what the protocols are, and, as footnotes, what is known to change under `clean`."""
    notes = Footnotes()
    head = list(table.head)
    for column, key in enumerate(benchmarks, start=1):
        reasons = [
            explain_difference(experiment) for experiment in done if experiment.benchmark == key
        ]
        clean_reasons = dict.fromkeys(
            reason for listed in reasons for reason in listed if "`clean`" in reason
        )
        head[column] += "".join(f" ({notes.mark(reason)})" for reason in clean_reasons)
    about = "`paper` follows the published code, flaws included; `clean` is without the flaws."
    return replace(table, head=tuple(head), notes={**table.notes, **notes.by_mark(), "*": about})


def _build_details_table(
    experiments: Sequence[ExperimentResult], labels: Mapping[str, str]
) -> Table:
    """Build a row per experiment, failed ones included, with reasons for differences below."""
    notes = Footnotes()

    def volume(experiment: ExperimentResult) -> str:
        state = "not run" if experiment.error is None else "failed"
        return format_spread(experiment.volume) if experiment.seeds else state

    def seconds(experiment: ExperimentResult) -> str:
        ours = experiment.paper.seconds.ours  # is not beside the paper's in a rehearsal
        return format_duration(ours or experiment.seconds.to_selected.mean)

    def faster(experiment: ExperimentResult) -> str:
        printed = experiment.paper.seconds
        return format_ratio(
            printed.paper / printed.ours if printed.paper and printed.ours else None
        )

    def done(text: Callable[[ExperimentResult], str]) -> Callable[[ExperimentResult], str]:
        return lambda experiment: text(experiment) if experiment.seeds else NONE

    columns: Columns = [
        ("set", lambda e: e.benchmark_title()),
        ("method", lambda c: labels[c.name]),
        ("HV, ours", volume),
        ("paper", done(lambda c: format_printed(c.paper.hypervolume, deviation=True))),
        ("difference", done(lambda c: format_difference(c.paper.hypervolume.difference))),
        ("time, ours", done(seconds)),
        ("paper", done(lambda c: format_duration(c.paper.seconds.paper))),
        ("times faster", done(faster)),
        ("parameters, ours", done(lambda c: f"{c.networks} x {c.parameters:,}")),
        ("paper", done(lambda c: format_thousands(c.paper.parameters.paper))),
        ("seeds", done(lambda c: f"{len(c.seeds)} of {len(c.seeds) + len(c.missing)}")),
        ("why", done(lambda c: " ".join(map(notes.mark, explain_difference(c))))),
    ]
    table = build_table("In detail", sort_experiments(experiments), columns)
    marks = notes.by_mark()
    if len({describe_training(experiment) for experiment in experiments if experiment.seeds}) > 1:
        marks["*"] = "The table of training times says which device each was measured on."
    return replace(table, notes=marks)


def explain_difference(experiment: ExperimentResult) -> list[str]:
    """Return the known reasons for a difference, or that there is none."""
    if experiment.comparison is None or experiment.rehearsal is not None:
        return []
    reasons = [reason.sentence for reason in experiment.comparison.reasons]
    return reasons or [UNEXPLAINED] * bool(experiment.comparison.hypervolume.differs)


def _build_total_times_table(done: Sequence[ExperimentResult]) -> Table:
    """Build a table of the total seconds of each method, and the paper's."""
    rows = []
    for method in [*sort_methods(done), None]:
        of_method = [experiment for experiment in done if method in (None, experiment.method)]
        seconds = [experiment.seconds for experiment in of_method]
        phases = [
            sum(s.all_training for s in seconds),
            sum(s.all_preparing for s in seconds),
            sum(s.all_evaluating for s in seconds),
        ]
        printed = [c for c in of_method if c.protocol != "clean"]
        theirs = sum(len(c.seeds) * (c.paper.seconds.paper or 0) for c in printed)
        name = "all" if method is None else method_title(method)
        rows.append(
            (
                name,
                str(len(of_method)),
                *map(format_duration, [*phases, sum(phases), theirs or None]),
            )
        )
    head = (
        "",
        "experiments",
        "training",
        "preparing",
        "evaluating",
        "all",
        "the paper's, without clean",
    )
    return Table("Where the time went, all seeds", head, tuple(rows))


NARROW = 0.01  # a width below which a front is next to a point


def build_face_tables(experiments: Sequence[ExperimentResult]) -> list[Table]:
    """Build tables of hypervolume, misclassification and time, and of each task."""
    done, labels = (
        [experiment for experiment in experiments if experiment.seeds],
        label_experiments(experiments),
    )
    compared = [experiment for experiment in done if experiment.paper.hypervolume.paper]
    tables = [_build_pairs_table(compared, labels)] if compared else []
    known_reasons = {note for table in tables for note in table.notes.values()}
    return [*tables, *_build_task_tables(done, labels, known_reasons=known_reasons)]


def _build_pairs_table(done: Sequence[ExperimentResult], labels: Mapping[str, str]) -> Table:
    """Table 2, with the time COSMOS takes more than one network for one task."""
    notes = Footnotes()

    def rate(experiment: ExperimentResult) -> str:
        theirs = experiment.paper.misclassification.paper
        return NONE if theirs is None else f"{100 * theirs:.2f}"

    columns: Columns = [
        ("set", lambda c: c.benchmark_title(protocol=False)),
        ("method", lambda c: labels[c.name]),
        ("HV, ours", lambda c: format_spread(c.volume)),
        ("paper", lambda c: format_printed(c.paper.hypervolume)),
        ("difference", lambda c: format_difference(c.paper.hypervolume.difference)),
        ("width", lambda c: format_spread(c.metrics["span"]) if c.volume_of == "front" else NONE),
        ("error, %", lambda c: format_spread(c.tasks.mean if c.tasks else None, 2, 100)),
        ("paper", rate),
        ("difference", lambda c: format_difference(c.paper.misclassification.difference, 2, 100)),
        ("time, ours", lambda c: format_duration(c.paper.seconds.ours)),
        ("paper", lambda c: format_duration(c.paper.seconds.paper)),
        ("overhead", lambda c: _format_overhead(c, done)),
        ("why", lambda c: " ".join(map(notes.mark, _list_reasons(c)))),
    ]
    table = build_table("Hypervolume, mean misclassification and time", done, columns)
    about = (
        "Times are for all epochs, for Single Task of one network. An overhead compares two single "
        f"runs, so it is noisy. The paper's is {published()['table_celeba']['overhead']:.0%}."
    )
    for experiment in done:
        width = experiment.metrics["span"]
        if experiment.volume_of == "front" and width is not None and width.mean < NARROW:
            name = f"{labels[experiment.name]} on {experiment.benchmark_title(protocol=False)}"
            about += f" The front of {name} is nearly a point: its rays hardly differ."
    return replace(table, notes={**notes.by_mark(), "*": about})


def _list_reasons(experiment: ExperimentResult) -> list[str]:
    """Return the known reasons for differences, those of times aside."""
    return [reason.sentence for reason in experiment.paper.reasons]


def _format_overhead(experiment: ExperimentResult, done: Sequence[ExperimentResult]) -> str:
    """Format how much longer it takes than one network for one task."""
    single_task = [
        c for c in done if c.benchmark == experiment.benchmark and c.method == "single_task"
    ]
    if experiment.method == "single_task" or not single_task:
        return NONE
    per_network = single_task[0].seconds.training.mean / single_task[0].networks
    return f"{experiment.seconds.training.mean / per_network - 1:+.1%}".replace("-", "−")


@dataclass(frozen=True)
class Column:
    """The tasks of one method: its label, its experiment if there is one, the paper's rates."""

    title: str
    experiment: ExperimentResult | None
    paper: Sequence[float] | None

    def texts(self, index: int, task: str) -> list[str]:
        """Return our rate, the paper's and the difference; a rehearsal has no difference."""
        tasks = self.experiment.tasks if self.experiment else None
        ours = tasks.misclassification[task] if tasks else None
        paper = None if self.paper is None else self.paper[index]
        difference = None
        if self.experiment and ours and paper is not None and self.experiment.rehearsal is None:
            difference = ours.mean - paper
        rate = NONE if paper is None else f"{100 * paper:.2f}"
        return [format_spread(ours, 2, 100), rate, format_difference(difference, 2, 100)]


def _build_task_tables(
    done: Sequence[ExperimentResult], labels: Mapping[str, str], *, known_reasons: Collection[str]
) -> Iterator[Table]:
    """Build a table for each problem: our rate of every task beside the paper's, for both methods.

    Reasons that earlier tables gave are not repeated.
    """
    earlier = set(known_reasons)
    for problem in dict.fromkeys(experiment.problem for experiment in done):
        if get_paper_tasks(problem, "cosmos") is None and not _select(done, problem, "cosmos"):
            continue
        tasks = next(experiment.objectives for experiment in done if experiment.problem == problem)
        columns = list(_task_columns(done, labels, problem, tasks))
        rows = [
            (
                task.replace("_", " "),
                *(text for column in columns for text in column.texts(index, task)),
            )
            for index, task in enumerate(tasks)
        ]
        head = [text for column in columns for text in (column.title, "paper", "difference")]
        notes = [
            f"The networks of Single Task are those of {problem_title(column.experiment.problem)}."
            for column in columns
            if column.experiment and column.experiment.problem != problem
        ]
        with_paper = [column.experiment for column in columns if column.experiment and column.paper]
        reasons = list(
            dict.fromkeys(
                reason for experiment in with_paper for reason in _list_reasons(experiment)
            )
        )
        notes += [reason for reason in reasons if reason not in earlier]
        if earlier.intersection(reasons):
            more = "Further reasons" if set(reasons) - earlier else "Reasons for the differences"
            notes.append(f"{more}: as above.")
        earlier |= set(reasons)
        title = f"{problem_title(problem)}: task by task, COSMOS with equal weights"
        marks = {str(number): note for number, note in enumerate(notes, start=1)}
        yield Table(title, ("misclassification, %", *head), tuple(rows), notes=marks)


def _task_columns(
    done: Sequence[ExperimentResult], labels: Mapping[str, str], problem: str, tasks: Sequence[str]
) -> Iterator[Column]:
    """Yield COSMOS and Single Task, whose networks may be those of a problem with more tasks."""
    for method in ("cosmos", "single_task"):
        of_method = _select(done, problem, method)
        if not of_method and method == "single_task":
            of_any_problem = _select(done, None, method)
            of_method = [
                c for c in of_any_problem if c.tasks and set(tasks) <= {*c.tasks.misclassification}
            ][:1]
        paper = get_paper_tasks(problem, method)
        yield from (Column(labels[experiment.name], experiment, paper) for experiment in of_method)
        if not of_method:
            yield Column(method_title(method), None, paper)


def _select(
    done: Sequence[ExperimentResult], problem: str | None, method: str
) -> list[ExperimentResult]:
    of_method = [
        experiment for experiment in done if experiment.method == method and experiment.tasks
    ]
    return [experiment for experiment in of_method if problem in (None, experiment.problem)]
