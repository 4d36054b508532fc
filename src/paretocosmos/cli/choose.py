"""`paretocosmos choose`."""

from typing import Annotated

import typer
from rich.table import Table

from paretocosmos.cli import options
from paretocosmos.cli.console import (
    escape,
    get_stdout,
    print_json,
    print_markup,
    print_next_command,
    print_table,
    warnings_as_notes,
)
from paretocosmos.cli.results import find_leading, get_measures
from paretocosmos.evaluation.choose import Choice
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.io.trust import modules_of
from paretocosmos.objectives import Measure, named_label
from paretocosmos.pareto.front import Point
from paretocosmos.problems import Problem
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import Run

Bounds = list[str] | None


def choose(
    folder: options.RunFolder,
    at_most: Annotated[
        Bounds,
        typer.Option(
            "--max", metavar="NAME=NUMBER", help="An upper bound, as tpr_gap=2%; repeatable."
        ),
    ] = None,
    at_least: Annotated[
        Bounds,
        typer.Option("--min", metavar="NAME=NUMBER", help="A lower bound; repeatable."),
    ] = None,
    minimize: Annotated[
        str | None,
        typer.Option(help="What to minimise; by default the first objective without a bound."),
    ] = None,
    maximize: Annotated[str | None, typer.Option(help="What to maximise, as accuracy.")] = None,
    knee: Annotated[
        bool, typer.Option("--knee", help="The knee: beyond it, a small gain costs much.")
    ] = False,
    weights: Annotated[
        str | None, typer.Option(help="How much each objective matters, as 0.7,0.3.")
    ] = None,
    near: Annotated[
        Bounds, typer.Option(metavar="NAME=NUMBER", help="A value to come close to; repeatable.")
    ] = None,
    allow_constant: Annotated[
        bool, typer.Option("--allow-constant", help="Allow a constant classifier.")
    ] = False,
    confidence: Annotated[
        float | None,
        typer.Option(help="Confidence that the bounds hold for new people, as 0.9."),
    ] = None,
    threshold: options.Threshold = None,
    evaluations: Annotated[int, typer.Option(help="The most rays to evaluate.")] = 20,
    data: options.MovedData = None,
    device: options.RunDevice = "cpu",
    trust: options.Trust = None,
    verify: options.Verify = None,
    as_json: options.AsJson = False,
) -> None:
    """Choose a point of a RUN: the best under a constraint, the knee, or one near given values."""
    run = load_run(folder, trust=trust or (), verify=verify, device=device)
    with warnings_as_notes():
        problem = run.problem(data=data)
        choice = run.choose(
            max=options.parse_named_numbers("--max", at_most),
            min=options.parse_named_numbers("--min", at_least),
            minimize=minimize,
            maximize=maximize,
            knee=knee,
            weights=None if weights is None else options.parse_numbers(weights, "--weights"),
            near=options.parse_named_numbers("--near", near) or None,
            allow_constant=allow_constant,
            confidence=confidence,
            threshold=threshold,
            evaluations=evaluations,
            problem=problem,
        )
    if as_json:
        print_json({"run": str(folder), **choice.to_dict()})
    else:
        print_choice(run, choice, problem, confidence)


def print_choice(
    run: Run, choice: Choice, problem: Problem | None = None, confidence: float | None = None
) -> None:
    """Print the ray, its numbers on val and test with intervals, and the code to use it."""
    console = get_stdout()
    # measured for this choice: the run's own front may lack some of them
    measured = (*choice.val.metrics, *choice.test.metrics)
    measures = get_measures(problem, run.front, measured)
    weights = ", ".join(
        f"{part:.1%} on {measures[name].wish}"
        for part, name in zip(choice.ray, run.front.names, strict=True)
    )
    ray = ", ".join(f"{part:.4f}" for part in choice.ray)
    print_markup(console, f"[bold]weights[/] {escape(weights)}: the ray {ray}")
    if choice.threshold != MIDDLE:
        print_markup(
            console,
            f"[bold]threshold[/] {choice.threshold:g}: a prediction is positive above this "
            "probability, for everybody",
        )
    table = Table(box=None, padding=(0, 2), header_style="bold")
    table.add_column("")
    for heading in ("on val", "on test"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("", "name"):
        table.add_column(heading, no_wrap=True, style="dim")
    plain = find_leading(problem, run.front)
    for name in dict.fromkeys([*plain, *choice.val.values, *choice.val.metrics]):
        if name != "misclassification":  # 1 - accuracy
            one = measures[name]
            both = (_format_number(point, name, one) for point in (choice.val, choice.test))
            table.add_row(
                f"[bold]{escape(one.label)}[/]" if name in plain else escape(one.label),
                *both,
                one.unit,
                escape(name),
            )
    print_table(console, table)
    for name, limit in choice.val.limits.items():
        label = escape(named_label(name, measures[name]))
        print_markup(
            console,
            f"With a confidence of {confidence:.0%}, [bold]{label}[/] is "
            f"at {'most' if limit >= choice.val[name] else 'least'} {measures[name].said(limit)}.",
        )
    for name, gap in choice.val.pooled.items():
        print_markup(
            console,
            f"[bold]{escape(name)}[/] is {gap:.4f} on the training and validation rows together, "
            "on which the bound is kept; on the validation rows alone it is mostly noise.",
        )
    print_markup(
        console,
        "In brackets: 95 % intervals. The choice was made on validation rows, so the numbers "
        "there are optimistic; the test rows were not used.",
    )
    console.print("\n".join(["", *map(escape, _write_code(run, choice)), ""]), soft_wrap=True)
    print_next_command(*_suggest_next(run, choice))


def _suggest_next(run: Run, choice: Choice) -> list[object]:
    """Suggest to predict rows at this choice, or to export the run."""
    moved = [] if choice.threshold == MIDDLE else ["--threshold", f"{choice.threshold:g}"]
    if run.table is None:
        return ["export", run.folder]
    ray = ",".join(f"{part:.9g}" for part in choice.ray)
    return ["predict", run.folder, "new.csv", "--ray", ray, *moved]


def _format_number(point: Point, name: str, measure: Measure) -> str:
    """Format a number with its interval; in hundredths where its unit says so."""
    scale, form = (100, ".1f") if measure.unit else (1, ".4f")
    value, low, high = (format(scale * one, form) for one in (point[name], *point.intervals[name]))
    return f"{value} \\[{low}, {high}]"


def _write_code(run: Run, choice: Choice) -> list[str]:
    """Return Python code to paste; the ray in all its digits, since a bound may depend on them."""
    ray = ", ".join(f"{part:.9g}" for part in choice.ray)
    parts = (run.record[part] or {} for part in ("problem", "method", "conditioning", "backbone"))
    own = modules_of(part.get("name") for part in parts)
    folder = f"{str(run.folder)!r}" + (f", trust={list(own)}" if own else "")
    load = ["from paretocosmos import load_run", "", f"run = load_run({folder})"]
    if run.table is not None:
        decided = "" if choice.threshold == MIDDLE else f" > {choice.threshold!r}"
        return [*load, f"run.predict(rows, ray=[{ray}]){decided}  # rows: a DataFrame"]
    return ["import torch", *load, f"run.model(inputs, torch.tensor([{ray}]))"]
