"""`paretocosmos choose`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli._options import AsJson, Trust, Verify, named_numbers, numbers_of
from paretocosmos.cli.output import notes, print_choice, print_json
from paretocosmos.runs.load import load_run

__all__ = ["choose"]

Bounds = list[str] | None


def choose(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    at_most: Annotated[
        Bounds,
        typer.Option("--max", metavar="NAME=NUMBER", help="The largest allowed; repeatable."),
    ] = None,
    at_least: Annotated[
        Bounds,
        typer.Option("--min", metavar="NAME=NUMBER", help="The smallest allowed; repeatable."),
    ] = None,
    minimize: Annotated[
        str | None, typer.Option(help="What is to be small; the first objective without a bound.")
    ] = None,
    maximize: Annotated[str | None, typer.Option(help="What is to be large, as accuracy.")] = None,
    knee: Annotated[bool, typer.Option("--knee", help="Where giving way gains least.")] = False,
    weights: Annotated[
        str | None, typer.Option(help="How much each objective matters, as 0.7,0.3.")
    ] = None,
    near: Annotated[
        Bounds, typer.Option(metavar="NAME=NUMBER", help="A value wished for; repeatable.")
    ] = None,
    allow_constant: Annotated[
        bool, typer.Option("--allow-constant", help="Take a constant classifier, too.")
    ] = False,
    evaluations: Annotated[int, typer.Option(help="Rays to evaluate at most.")] = 20,
    data: Annotated[str | None, typer.Option(help="Where the data lies now, if moved.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1.")] = "cpu",
    trust: Trust = None,
    verify: Verify = None,
    as_json: AsJson = False,
) -> None:
    """Choose a point of a RUN: the best under a constraint, the knee, or one near given values."""
    run = load_run(folder, trust=trust or (), verify=verify, device=device)
    with notes():
        choice = run.choose(
            max=named_numbers("--max", at_most),
            min=named_numbers("--min", at_least),
            minimize=minimize,
            maximize=maximize,
            knee=knee,
            weights=None if weights is None else numbers_of(weights, "--weights"),
            near=named_numbers("--near", near) or None,
            allow_constant=allow_constant,
            evaluations=evaluations,
            problem=run.problem(data=data),
        )
    if as_json:
        print_json({"run": str(folder), **choice.to_dict()})
    else:
        print_choice(run, choice)
