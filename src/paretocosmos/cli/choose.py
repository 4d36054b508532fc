"""`paretocosmos choose`."""

from typing import Annotated

import typer

from paretocosmos.cli import console, options
from paretocosmos.evaluation.choose import Choice
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.registry import modules_of
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import Run


def choose(
    folder: options.RunFolder,
    at_most: options.AtMost = None,
    at_least: options.AtLeast = None,
    minimize: options.Minimize = None,
    maximize: options.Maximize = None,
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
    confidence: options.Confidence = None,
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
    with console.warnings_as_notes():
        choice = run.choose(
            weights=None if weights is None else options.parse_numbers(weights, "--weights"),
            near=options.parse_named_numbers("--near", near) or None,
            # inside, since reading data may warn, too
            problem=run.problem(data=data),
            **options.collect_criteria(arguments),
        )
    if as_json:
        console.print_json({"run": str(folder), **choice.to_dict()})
    else:
        print_choice(run, choice)


def print_choice(run: Run, choice: Choice) -> None:
    """Print a choice as a prompt of Python shows it, and code that uses it."""
    stdout = console.get_stdout()
    console.print_value(choice)
    console.print_markup(
        stdout,
        "The choice was made on the validation rows, so their numbers are optimistic; the test "
        "rows were not used.",
    )
    # soft_wrap, so that code can be copied from a narrow terminal
    stdout.print(
        "\n".join(["", *map(console.escape, _write_code(run, choice)), ""]), soft_wrap=True
    )
    ray = _format_ray(choice, ",")
    if run.table is None:
        console.print_next_command("export", run.folder, "--ray", ray)
        return
    threshold = [] if choice.threshold == MIDDLE else ["--threshold", f"{choice.threshold:g}"]
    console.print_next_command("predict", run.folder, "new.csv", "--ray", ray, *threshold)


def _format_ray(choice: Choice, separator: str = ", ") -> str:
    """Format the ray with nine digits: with fewer, a bound may no longer hold."""
    return separator.join(f"{weight:.9g}" for weight in choice.ray)


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
