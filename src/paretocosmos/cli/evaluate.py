"""`paretocosmos evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli import console, options
from paretocosmos.cli.results import suggest_choice
from paretocosmos.errors import ConfigurationError, ParetoCosmosError
from paretocosmos.evaluation.evaluate import evaluate as evaluate_model
from paretocosmos.io.formatting import format_number
from paretocosmos.io.progress import status
from paretocosmos.pareto.metrics import front_report
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import read_table
from paretocosmos.runs.load import load_run, problem_from_rows
from paretocosmos.runs.run import Run


def evaluate(
    folder: options.RunFolder,
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
    device: options.RunDevice = "cpu",
    trust: options.Trust = None,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate a RUN again: reproduce its front, or use other rays, splits or rows."""
    if ray and rays is not None:
        raise ConfigurationError("--ray and --rays exclude each other: give one of them")
    run = load_run(folder, trust=trust or (), device=device)
    with console.warnings_as_notes():
        problem, rows_name = _load_problem(run, data, split)
        origin = {key: run.front.provenance.get(key) for key in ("method", "seed", "networks")}
        asked = [options.parse_numbers(text) for text in ray] if ray else rays
        evaluated = run.front.rays.tolist() if asked is None else asked
        with status("evaluating"):
            front = evaluate_model(
                run.model, problem, split=split or "test", rays=evaluated, provenance=origin
            )
        report = front_report(front)
    if as_json:
        console.print_json(front.to_dict())
        return
    stdout = console.get_stdout()
    console.print_value(front)
    if len(front) > 1:  # one point is no front
        order = zip(front.names, report.by_objective["monotonicity"], strict=True)
        console.print_markup(
            stdout,
            f"order {', '.join(f'{console.escape(name)} {value:.2f}' for name, value in order)}; "
            f"dominated {report.numbers['dominated_share']:.0%}; "
            f"span {report.numbers['span']:.4f}",
        )
    console.print_markup(
        stdout,
        f"hypervolume {format_number(report.numbers['hypervolume'])} with reference point "
        f"{front.reference.tolist()} on {console.escape(rows_name)}; "
        f"scores: {console.escape(front.provenance['scores'])}",
    )
    console.print_next_command(*suggest_choice(run))


def _load_problem(run: Run, data: str | None, split: str | None) -> tuple[Problem, str]:
    """Return the problem to evaluate on, and the name of its rows: a split, or another file."""
    try:
        return run.problem(data=data), split or "test"
    # --data may be the run's own table or other rows: only loading it tells
    except ParetoCosmosError:
        if data is None or run.table is None or split is not None:
            raise
        # not the table of the run: other rows, or a file that cannot be read, which raises here
        frame = read_table(Path(data), **options.get_table_format(run))
        problem = problem_from_rows(run, frame)
    console.print_note(
        f"`{data}` is not the table of this run: evaluating all of its {len(frame):,} rows"
    )
    return problem, Path(data).name
