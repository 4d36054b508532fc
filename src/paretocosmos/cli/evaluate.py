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
    Verify,
    parse_numbers,
)
from paretocosmos.cli.results import find_leading, get_measures, suggest_choice
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

# Columns that the words above a number have, unless one alone is longer.
HEAD = 12


def evaluate(
    folder: RunFolder,
    split: Annotated[str | None, typer.Option(help="train, val or test (the default).")] = None,
    rays: Annotated[
        int | None, typer.Option(help="How many evenly spread rays; by default the run's.")
    ] = None,
    ray: Annotated[list[str] | None, typer.Option(help="One ray, as 0.3,0.7; repeatable.")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Where the data is now, or a table of other labelled rows."),
    ] = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    device: RunDevice = "cpu",
    trust: Trust = None,
    verify: Verify = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a RUN again: reproduce its front, or use other rays, splits or rows."""
    if ray and rays is not None:
        raise ConfigurationError("--ray and --rays exclude each other: give one of them")
    run = load_run(folder, trust=trust or (), verify=verify, device=device)
    with warnings_as_notes():
        form = {"separator": separator, "decimal": decimal, "encoding": encoding}
        problem, where = _load_problem(run, data, split, form)
        own = run.front.rays.tolist() if rays is None else rays
        wanted = [parse_numbers(text) for text in ray] if ray else own
        origin = {key: run.front.provenance.get(key) for key in ("method", "seed", "networks")}
        with status("evaluating"):
            front = evaluate_model(
                run.model, problem, split=split or "test", rays=wanted, provenance=origin
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
        f"hypervolume {format_number(report.numbers['hypervolume'])} at "
        f"{front.reference.tolist()} on {escape(where)}; "
        f"scores: {escape(front.provenance['scores'])}",
    )
    print_next_command(*suggest_choice(run))


def _load_problem(
    run: Run, data: str | None, split: str | None, form: dict[str, str | None]
) -> tuple[Problem, str]:
    """Return the problem to evaluate on and its name: the run's own data, or other rows."""
    said = split or "test"
    if data is None or run.table is None or split is not None:
        return run.problem(data=data), said
    try:
        return run.problem(data=data), said
    except ParetoCosmosError:  # other rows, or a mistake in them, which is told next
        frame = read_table(Path(data), **form)
        problem = problem_from_rows(run, frame)
    print_note(
        f"`{data}` is not the table of this run: all of its {len(frame):,} rows are evaluated"
    )
    return problem, Path(data).name


def print_front(front: Front, problem: Problem | None = None) -> None:
    """Print a row per ray; metrics for which a terminal has no room are named below."""
    console = get_stdout()
    measures = get_measures(problem, front)
    weights = front.names[:1] if front.objectives == 2 else front.names
    lead = [name for name in find_leading(problem, front) if name not in front.names]
    rest = [name for name in front.metrics if name not in lead and name != "misclassification"]
    heads = [f"weight on {measures[name].label}" for name in weights]
    room = console.width - sum(map(_measure_room, heads)) - _measure_room("dominated")
    columns = {}
    for name in (*front.names, *lead, *rest):  # the last is 1 - accuracy
        head = _format_head(measures[name])
        room -= _measure_room(head)
        if room >= 0 or name in front.names:
            columns[name] = head
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for head in (*heads, *columns.values()):
        table.add_column(escape(head), justify="right", width=_measure_room(head) - 2)
    table.add_column("", no_wrap=True)
    keep = front.non_dominated
    for at in range(len(front)):
        point = dict(zip(front.names, front.values[at], strict=True))
        point |= {name: column[at] for name, column in front.metrics.items()}
        cells = [f"{weight:.3f}" for weight in front.rays[at][: len(weights)]]
        cells += [_format_number(point[name], measures[name]) for name in columns]
        table.add_row(*cells, "" if keep[at] else "dominated")
    print_table(console, table)
    said = [f"{measures[name].label}: {name}" for name in columns]
    print_markup(console, f"[dim]{escape('their names: ' + '; '.join(said))}[/]")
    absent = [name for name in (*lead, *rest) if name not in columns]
    if absent:
        print_markup(console, escape(f"no room for {', '.join(absent)}: use --json to see them"))


def _format_head(measure: Measure) -> str:
    return f"{measure.label}, {measure.unit}" if measure.unit else measure.label


def _format_number(value: float, measure: Measure) -> str:
    return f"{100 * value:.1f}" if measure.unit else f"{value:.3f}"


def _measure_room(head: str) -> int:
    """Return the columns that a number takes below its head, whose words are stacked."""
    return 2 + max(min(len(head), HEAD), *map(len, head.split()))
