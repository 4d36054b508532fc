"""`paretocosmos reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli.console import print_json, print_next_command, print_note
from paretocosmos.cli.options import (
    AsJson,
    Cluster,
    Device,
    Precision,
    Trust,
    Workers,
    format_options,
    parse_seeds,
)
from paretocosmos.cli.reproduction_view import (
    end_interrupted_recipe,
    exit_on_failures,
    print_reproduction,
    show_experiments,
)
from paretocosmos.runtime.device import convert_sigterm


def reproduce(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A name from `list`, or a TOML file.")
    ],
    out: Annotated[
        Path, typer.Option(help="The folder for all recipes; finished experiments are kept.")
    ] = Path("reproduction"),
    only: Annotated[
        str | None,
        typer.Option(help="Train only these problems, methods or protocols, e.g. adult,cosmos."),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Seeds instead of the recipe's, e.g. 1,2,3.")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Rehearse with so few epochs; results are marked and kept apart."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A folder to search for data before the cache.")
    ] = None,
    device: Device = "auto",
    precision: Precision = "tf32",
    workers: Workers = 1,
    cluster: Cluster = None,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Train the experiments of a table or figure of the paper; run it again to continue."""
    from paretocosmos.paper.reproduction import reproduce as reproduce_recipe

    # "a, b" in quotes is as good as "a,b"
    names = [name.strip() for name in (only or "").split(",") if name.strip()]
    try:
        # a scheduler's SIGTERM ends it like Ctrl-C, with everything saved
        with convert_sigterm(), show_experiments(quiet=as_json) as show:
            reproduction = reproduce_recipe(
                recipe,
                out=out,
                only=names,
                seeds=parse_seeds(seeds),
                epochs=epochs,
                data=data,
                trust=trust or (),
                device=device,
                precision=precision,
                # one by default, so that a crash in it does not end the recipe
                workers=0 if cluster is not None and workers == 1 else workers,
                cluster=cluster,
                progress=show,
            )
    except KeyboardInterrupt:
        raise end_interrupted_recipe(out) from None
    if as_json:
        print_json(reproduction.to_dict())
    else:
        # kept back until the live display has ended
        for note in reproduction.notes:
            print_note(note)
        print_reproduction(reproduction)
        print_next_command("report", recipe, *format_options(out=out, seeds=seeds, epochs=epochs))
    # after the results: those that were reached are worth printing
    exit_on_failures(reproduction)
