"""`paretocosmos evaluate`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from paretocosmos.cli.console import (
    escape,
    get_stdout,
    print_json,
    print_markup,
    print_next_command,
    print_note,
    print_table,
    warnings_as_notes,
)
from paretocosmos.cli.options import (
    AsJson,
    Decimal,
    Encoding,
    RunDevice,
    RunFolder,
    Separator,
    Trust,
    parse_numbers,
)
from paretocosmos.cli.results import find_plain_metrics, get_measures, suggest_choice
from paretocosmos.errors import ConfigurationError, ParetoCosmosError
from paretocosmos.evaluation.evaluate import evaluate as evaluate_model
from paretocosmos.io.formatting import format_number
from paretocosmos.io.progress import status
from paretocosmos.objectives import Measure
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import front_report
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import read_table
from paretocosmos.runs.load import load_run, problem_from_rows
from paretocosmos.runs.run import Run

# Width of a table's heads, whose words are stacked, unless a single word is longer.
HEAD_WIDTH = 12


def evaluate(
    folder: RunFolder,
    split: Annotated[
        str | None, typer.Option(help="The rows to evaluate on: train, val or test (the default).")
    ] = None,
    rays: Annotated[
        int | None,
        typer.Option(help="Evaluate so many evenly spread rays; by default, the run's rays."),
    ] = None,
    ray: Annotated[
        list[str] | None, typer.Option(help="Evaluate this ray, e.g. 0.3,0.7; repeatable.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="The new location of the data, or a table of other labelled rows."),
    ] = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    device: RunDevice = "cpu",
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a RUN again: reproduce its front, or use other rays, splits or rows."""
    if ray and rays is not None:
        raise ConfigurationError("--ray and --rays exclude each other: give one of them")
    run = load_run(folder, trust=trust or (), device=device)
    with warnings_as_notes():
        table_format = {"separator": separator, "decimal": decimal, "encoding": encoding}
        problem, rows_name = _load_problem(run, data, split, table_format)
        origin = {key: run.front.provenance.get(key) for key in ("method", "seed", "networks")}
        asked = [parse_numbers(text) for text in ray] if ray else rays
        evaluated = run.front.rays.tolist() if asked is None else asked
        with status("evaluating"):
            front = evaluate_model(
                run.model, problem, split=split or "test", rays=evaluated, provenance=origin
            )
        report = front_report(front)
    if as_json:
        print_json(front.to_dict())
        return
    print_front(front, problem)
    order = zip(front.names, report.by_objective["monotonicity"], strict=True)
    shape = (
        f"order {', '.join(f'{escape(name)} {value:.2f}' for name, value in order)}; "
        f"dominated {report.numbers['dominated_share']:.0%}; span {report.numbers['span']:.4f}; "
    )
    print_markup(
        get_stdout(),
        f"{shape if len(front) > 1 else ''}"  # one point is no front
        f"hypervolume {format_number(report.numbers['hypervolume'])} with reference point "
        f"{front.reference.tolist()} on {escape(rows_name)}; "
        f"scores: {escape(front.provenance['scores'])}",
    )
    print_next_command(*suggest_choice(run))


def _load_problem(
    run: Run, data: str | None, split: str | None, table_format: dict[str, str | None]
) -> tuple[Problem, str]:
    """Return the problem to evaluate on, and the name of its rows: a split, or another file."""
    try:
        return run.problem(data=data), split or "test"
    # --data may be the run's own table or other rows: only loading it tells
    except ParetoCosmosError:
        if data is None or run.table is None or split is not None:
            raise
        # not the table of the run: other rows, or a file that cannot be read, which raises here
        frame = read_table(Path(data), **table_format)
        problem = problem_from_rows(run, frame)
    print_note(f"`{data}` is not the table of this run: evaluating all of its {len(frame):,} rows")
    return problem, Path(data).name


def print_front(front: Front, problem: Problem | None = None) -> None:
    """Print a row per ray; name the metrics for which the terminal has no room below."""
    console = get_stdout()
    measures = get_measures(problem, front)
    # Of two weights, which sum to 1, one suffices.
    weights = front.names[:1] if front.objectives == 2 else front.names
    plain = [name for name in find_plain_metrics(problem, front) if name not in front.names]
    # misclassification is 1 - accuracy, which is listed
    further_metrics = [name for name in front.metrics if name not in (*plain, "misclassification")]
    heads = [f"weight on {measures[name].label}" for name in weights]
    # the columns that must be there are subtracted first
    room = console.width - sum(map(_measure_column, heads)) - _measure_column("dominated")
    columns = {}
    for name in (*front.names, *plain, *further_metrics):
        head = _format_head(measures[name])
        room -= _measure_column(head)
        # the values of the objectives are what was asked for, so they are never left out
        if room >= 0 or name in front.names:
            columns[name] = head
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for head in (*heads, *columns.values()):
        table.add_column(escape(head), justify="right", width=_measure_column(head) - 2)
    table.add_column("", no_wrap=True)
    for index in range(len(front)):
        point = dict(zip(front.names, front.values[index], strict=True))
        point |= {name: column[index] for name, column in front.metrics.items()}
        cells = [f"{weight:.3f}" for weight in front.rays[index][: len(weights)]]
        cells += [_format_number(point[name], measures[name]) for name in columns]
        table.add_row(*cells, "" if front.non_dominated[index] else "dominated")
    print_table(console, table)
    # labels are for reading, names are what --max and --minimize take
    names = "; ".join(f"{measures[name].label}: {name}" for name in columns)
    print_markup(console, f"[dim]names of the columns: {escape(names)}[/]")
    # nothing disappears without a word
    absent = [name for name in (*plain, *further_metrics) if name not in columns]
    if absent:
        print_markup(console, escape(f"no room for {', '.join(absent)}: see them with --json"))


def _format_head(measure: Measure) -> str:
    return f"{measure.label}, {measure.unit}" if measure.unit else measure.label


def _format_number(value: float, measure: Measure) -> str:
    return f"{100 * value:.1f}" if measure.unit else f"{value:.3f}"


def _measure_column(head: str) -> int:
    """Return the width of a column, including its padding."""
    # 2 is the padding; a single long word cannot be broken
    return 2 + max(min(len(head), HEAD_WIDTH), *map(len, head.split()))
