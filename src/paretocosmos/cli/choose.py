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
from paretocosmos.cli.results import find_plain_metrics, get_measures
from paretocosmos.evaluation.choose import Choice
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.io.trust import modules_of
from paretocosmos.objectives import Measure, named_label
from paretocosmos.pareto.front import Point
from paretocosmos.problems import Problem
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import Run


def choose(
    folder: options.RunFolder,
    at_most: Annotated[
        options.Bounds,
        typer.Option(
            "--max", metavar="NAME=NUMBER", help="An upper bound, e.g. tpr_gap=2%; repeatable."
        ),
    ] = None,
    at_least: Annotated[
        options.Bounds,
        typer.Option("--min", metavar="NAME=NUMBER", help="A lower bound; repeatable."),
    ] = None,
    minimize: Annotated[
        str | None,
        typer.Option(
            help="The quantity to minimise; by default the first objective without a bound."
        ),
    ] = None,
    maximize: Annotated[
        str | None, typer.Option(help="The quantity to maximise, e.g. accuracy.")
    ] = None,
    knee: Annotated[
        bool, typer.Option("--knee", help="Choose the knee: beyond it, a small gain costs a lot.")
    ] = False,
    weights: Annotated[
        str | None, typer.Option(help="The importance of each objective, e.g. 0.7,0.3.")
    ] = None,
    near: Annotated[
        options.Bounds, typer.Option(metavar="NAME=NUMBER", help="A value to aim for; repeatable.")
    ] = None,
    allow_constant: Annotated[
        bool,
        typer.Option(
            "--allow-constant", help="Allow classifiers that predict the same for everybody."
        ),
    ] = False,
    confidence: Annotated[
        float | None, typer.Option(help="The confidence that bounds hold for new people, e.g. 0.9.")
    ] = None,
    threshold: options.Threshold = None,
    evaluations: Annotated[int, typer.Option(help="The number of rays to evaluate at most.")] = 20,
    data: options.MovedData = None,
    device: options.RunDevice = "cpu",
    trust: options.Trust = None,
    as_json: options.AsJson = False,
) -> None:
    """Choose a point of a RUN: the best under a constraint, the knee, or one near given values."""
    # first, while nothing but the options is local
    arguments = locals()
    run = load_run(folder, trust=trust or (), device=device)
    with warnings_as_notes():
        # inside, since reading data may warn, too
        problem = run.problem(data=data)
        choice = run.choose(
            weights=None if weights is None else options.parse_numbers(weights, "--weights"),
            near=options.parse_named_numbers("--near", near) or None,
            # loaded once, for the choice and for the labels below
            problem=problem,
            **options.collect_criteria(arguments),
        )
    if as_json:
        print_json({"run": str(folder), **choice.to_dict()})
    else:
        print_choice(run, choice, problem, confidence)


def print_choice(
    run: Run, choice: Choice, problem: Problem | None = None, confidence: float | None = None
) -> None:
    """Print the ray, its metrics on val and test with intervals, and the code to use it."""
    console = get_stdout()
    # metrics that were computed for this choice may be missing from the run's front
    measures = get_measures(problem, run.front, (*choice.val.metrics, *choice.test.metrics))
    # each weight by what it asks for, since a vector of numbers means nothing to most readers
    weights = ", ".join(
        f"{weight:.1%} on {measures[name].wish}"
        for weight, name in zip(choice.ray, run.front.names, strict=True)
    )
    ray = ", ".join(f"{weight:.4f}" for weight in choice.ray)
    print_markup(console, f"[bold]weights[/] {escape(weights)}: the ray {ray}")
    # 0.5 is what everybody expects, so it is not mentioned
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
    # what people understand comes first, then the objectives and all other metrics
    plain = find_plain_metrics(problem, run.front)
    # a dict as an ordered set: an objective can be a plain metric as well
    for name in dict.fromkeys([*plain, *choice.val.values, *choice.val.metrics]):
        if name == "misclassification":  # 1 - accuracy, which is listed
            continue
        measure = measures[name]
        label = f"[bold]{escape(measure.label)}[/]" if name in plain else escape(measure.label)
        numbers = (_format_number(point, name, measure) for point in (choice.val, choice.test))
        table.add_row(label, *numbers, measure.unit, escape(name))
    print_table(console, table)
    for name, limit in choice.val.limits.items():
        label = escape(named_label(name, measures[name]))
        print_markup(
            console,
            f"With a confidence of {confidence:.0%}, [bold]{label}[/] is "
            # a bound on a gap lies above its value, one on an accuracy below
            f"at {'most' if limit >= choice.val[name] else 'least'} {measures[name].said(limit)}.",
        )
    # adjusted networks keep bounds on more rows than those of validation
    for name, gap in choice.val.pooled.items():
        print_markup(
            console,
            f"[bold]{escape(name)}[/] is {gap:.4f} on the training and validation rows together, "
            "on which the bound is kept; on the validation rows alone it is mostly noise.",
        )
    print_markup(
        console,
        "In brackets: 95 % intervals. The choice was made on the validation rows, so their numbers "
        "are optimistic; the test rows were not used.",
    )
    # soft_wrap, so that code can be copied from a narrow terminal
    console.print("\n".join(["", *map(escape, _write_code(run, choice)), ""]), soft_wrap=True)
    print_next_command(*_suggest_next(run, choice))


def _suggest_next(run: Run, choice: Choice) -> list[object]:
    """Return the command to type next: `predict` with this choice, or `export`."""
    if run.table is None:
        return ["export", run.folder]
    threshold = [] if choice.threshold == MIDDLE else ["--threshold", f"{choice.threshold:g}"]
    return ["predict", run.folder, "new.csv", "--ray", _format_ray(choice, ","), *threshold]


def _format_ray(choice: Choice, separator: str = ", ") -> str:
    """Format the ray with nine digits: with fewer, a bound may no longer hold."""
    return separator.join(f"{weight:.9g}" for weight in choice.ray)


def _format_number(point: Point, name: str, measure: Measure) -> str:
    """Format a number with its interval, as a percentage if it has a unit."""
    # a unit means that the number is a share, shown in percent
    scale, spec = (100, ".1f") if measure.unit else (1, ".4f")
    numbers = (point[name], *point.intervals[name])
    value, low, high = (format(scale * number, spec) for number in numbers)
    # escaped, since rich reads square brackets as markup
    return f"{value} \\[{low}, {high}]"


def _write_code(run: Run, choice: Choice) -> list[str]:
    """Return Python code that uses the choice."""
    # each may be third-party code, which `load_run` imports only if it is trusted
    keys = ("problem", "method", "conditioning", "backbone")
    packages = modules_of((run.record[key] or {}).get("name") for key in keys)
    folder = f"{str(run.folder)!r}" + (f", trust={list(packages)}" if packages else "")
    # the ray and not the criteria, so that the code always gives this choice
    ray = _format_ray(choice)
    load = ["from paretocosmos import load_run", "", f"run = load_run({folder})"]
    if run.table is not None:
        decision = "" if choice.threshold == MIDDLE else f" > {choice.threshold!r}"
        return [*load, f"run.predict(rows, ray=[{ray}]){decision}  # rows: a DataFrame"]
    return ["import torch", *load, f"run.model(inputs, torch.tensor([{ray}]))"]
