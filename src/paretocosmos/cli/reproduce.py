"""`paretocosmos reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli.console import (
    print_error,
    print_json,
    print_next_command,
    print_note,
    repeat_options,
)
from paretocosmos.cli.options import (
    AsJson,
    Device,
    Precision,
    Trust,
    describe_trust,
    parse_integers,
)
from paretocosmos.cli.reproduction_view import print_reproduction, show_experiments
from paretocosmos.runtime.device import sigterm_as_interrupt


def reproduce(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A name from `list`, or a TOML file.")
    ],
    out: Annotated[
        Path, typer.Option(help="The folder of all recipes; finished experiments are kept.")
    ] = Path("reproduction"),
    only: Annotated[
        str | None, typer.Option(help="Problems, methods or protocols, as adult,cosmos.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Instead of the recipe's seeds, as 1,2,3.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="For a rehearsal: a trial run, marked and stored separately.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A folder to search for data before the cache.")
    ] = None,
    device: Device = "auto",
    precision: Precision = "tf32",
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes on this machine, one experiment each; 0 for none.  [default: 1]"
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS]",
            help="Train on a Ray cluster; without ADDRESS, one on this machine.",
        ),
    ] = None,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Train everything for a table or figure of the paper; run it again to continue."""
    from paretocosmos.paper.reproduce import reproduce as reproduce_cells

    names = [name.strip() for name in (only or "").split(",") if name.strip()]
    try:
        with sigterm_as_interrupt(), show_experiments(quiet=as_json) as show:
            done = reproduce_cells(
                recipe,
                out=out,
                only=names,
                seeds=None if seeds is None else parse_integers(seeds),
                epochs=epochs,
                data=data,
                trust=trust or (),
                device=device,
                precision=precision,
                workers=(1 if cluster is None else 0) if workers is None else workers,
                cluster=cluster,
                progress=show,
            )
    except KeyboardInterrupt:
        print_note(
            f"interrupted; finished experiments are in {out}: run the same command to continue"
        )
        raise typer.Exit(130) from None
    if as_json:
        print_json(done.to_dict())
    else:
        for said in done.notes:
            print_note(said)
        print_reproduction(done)
        print_next_command("report", recipe, "--out", out, *repeat_options(seeds, epochs))
    for name, why in done.failures.items():
        print_error(f"{name}: {why}{describe_trust(done.untrusted.get(name, ()))}")
    if done.failures:
        raise typer.Exit(1)
