"""`paretocosmos report`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paretocosmos.cli.console import (
    escape,
    get_stdout,
    print_json,
    print_markup,
    print_next_command,
    print_note,
    repeat_options,
)
from paretocosmos.cli.options import AsJson, Trust, Verify, parse_integers
from paretocosmos.errors import RunError
from paretocosmos.io.files import path_exists, user_path
from paretocosmos.paper.recipe import load_recipe

if TYPE_CHECKING:
    from paretocosmos.paper.results import RecipeResult


def report(
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE", help="A name from `list`, or a TOML file; by default all."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder that `reproduce` filled.")] = Path(
        "reproduction"
    ),
    seeds: Annotated[
        str | None, typer.Option(help="Instead of the recipe's seeds, as 1,2,3.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="The epochs of a rehearsal to report on.")
    ] = None,
    trust: Trust = None,
    verify: Verify = None,
    as_json: AsJson = False,
) -> None:
    """Compare what was reproduced with the paper: Markdown, HTML, JSON and figures."""
    from paretocosmos.paper.collect import collect_results, find_recipes
    from paretocosmos.paper.report import write_report

    folder = user_path(out)
    path_exists(folder)  # or a sentence why it cannot be looked at
    wanted = (
        [load_recipe(recipe, trust=trust or ()).rehearsal(epochs)]
        if recipe
        else find_recipes(folder, epochs)
    )
    if not wanted:
        raise RunError(
            f"`{folder}` has no recipe of this package that was started: train one with "
            "`paretocosmos reproduce`, name your own recipe file, or give the folder with --out"
        )
    asked = None if seeds is None else parse_integers(seeds)
    results = [
        collect_results(one.with_seeds(asked), folder, trust=trust or (), verify=verify)
        for one in wanted
    ]
    place = wanted[0].root(folder) / "report"
    for said in write_report(results, place):
        print_note(said)
    if as_json:
        print_json([result.to_dict() for result in results])
    else:
        print_report(results, place)
        left = [
            result.recipe for result in results if any(cell.missing for cell in result.experiments)
        ]
        more = ["--out", out, *repeat_options(seeds, epochs)]
        print_next_command(*(("reproduce", left[0], *more) if left else ("list", "recipes")))


def print_report(results: "Sequence[RecipeResult]", folder: Path) -> None:
    """Print a few lines for each recipe.

    Args:
        results: what `collect_results` gave for each recipe.
        folder: where the report is.
    """
    from paretocosmos.paper.report import describe_progress

    console = get_stdout()
    for result in results:
        epochs = result.rehearsal
        mark = "" if epochs is None else f"REHEARSAL, {epochs} epoch{'s' * (epochs > 1)}: "
        title = f"{mark}{result.recipe}: {result.title}"
        print_markup(console, f"[bold]{escape(title)}[/]")
        console.print(f"  {describe_progress(result.experiments)}")
        for claim in result.claims if epochs is None else ():
            print_markup(console, escape(f"{claim.claim} {claim.sentence}"))
    console.print(f"[bold]report[/]  {escape(folder / 'report.html')}", soft_wrap=True)
