"""`paretocosmos report`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli._options import AsJson, Trust, Verify, whole_numbers
from paretocosmos.cli.output import note, print_json, print_report
from paretocosmos.errors import RunError
from paretocosmos.paper.recipe import load_recipe

__all__ = ["report"]


def report(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A name from `list`, or a TOML file; else all."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder that `reproduce` filled.")] = Path(
        "reproduction"
    ),
    seeds: Annotated[str | None, typer.Option(help="Others than the recipe's, as 1,2,3.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of a rehearsal to report on.")] = None,
    trust: Trust = None,
    verify: Verify = None,
    as_json: AsJson = False,
) -> None:
    """Show what was reproduced beside the paper: Markdown, HTML, JSON and figures."""
    from paretocosmos.paper.collected import collect, found_in
    from paretocosmos.paper.report import write_report

    folder = out.expanduser()
    try:
        folder.exists()
    except OSError as error:  # a name too long, a parent we may not look into
        raise RunError(
            f"cannot look into `{folder}` ({error.strerror}): choose another --out"
        ) from error
    wanted = (
        [load_recipe(recipe, trust=trust or ()).rehearsal(epochs)]
        if recipe
        else found_in(folder, epochs)
    )
    if not wanted:
        raise RunError(
            f"`{folder}` holds no recipe of this package that was begun: train one with "
            "`paretocosmos reproduce`, name the file of your own, or the folder with --out"
        )
    asked = None if seeds is None else whole_numbers(seeds)
    results = [
        collect(one.with_seeds(asked), folder, trust=trust or (), verify=verify) for one in wanted
    ]
    place = wanted[0].root(folder) / "report"
    for said in write_report(results, place):
        note(said)
    if as_json:
        print_json([result.to_dict() for result in results])
    else:
        print_report(results, place)
