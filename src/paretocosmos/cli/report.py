"""`paretocosmos report`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli import console, options
from paretocosmos.errors import RunError
from paretocosmos.io.files import path_exists, user_path
from paretocosmos.paper.recipe import load_recipe


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
    seeds: options.RecipeSeeds = None,
    epochs: Annotated[
        int | None, typer.Option(help="Report on the rehearsal with so many epochs.")
    ] = None,
    trust: options.Trust = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare reproduced results with the paper's, in Markdown, HTML, JSON and figures."""
    # imported here, so that `report --help` is fast
    from paretocosmos.paper.collect import collect_results, find_recipes
    from paretocosmos.paper.report import (
        describe_progress,
        format_epochs,
        summarize_claim,
        write_report,
    )

    folder = user_path(out)
    path_exists(folder)  # raises if the folder cannot be read
    if recipe:
        recipes = [load_recipe(recipe, trust=trust or ()).rehearsal(epochs)]
    else:
        # a recipe file of one's own cannot be found this way: it has to be named
        recipes = find_recipes(folder, epochs)
    if not recipes:
        raise RunError(
            f"`{folder}` has no results of this package's recipes: train one with `paretocosmos "
            "reproduce`, name your own recipe file, or give the folder with --out"
        )
    parsed_seeds = options.parse_seeds(seeds)
    results = [
        collect_results(item.with_seeds(parsed_seeds), folder, trust=trust or ())
        for item in recipes
    ]
    # all recipes of a reproduction or of a rehearsal have the same root
    report_folder = recipes[0].root(folder) / "report"
    for note in write_report(results, report_folder):
        console.print_note(note)
    if as_json:
        console.print_json([result.to_dict() for result in results])
        return
    stdout = console.get_stdout()
    for result in results:
        mark = f"REHEARSAL, {format_epochs(result)}: " if result.rehearsal else ""
        title = f"{mark}{result.recipe}: {result.title}"
        console.print_markup(stdout, f"[bold]{console.escape(title)}[/]")
        stdout.print(f"  {describe_progress(result.experiments)}")
        # a rehearsal judges no claims
        for claim in () if mark else result.claims:
            console.print_markup(stdout, console.escape(f"{claim.claim} {summarize_claim(claim)}"))
    console.print_path("report", report_folder / "report.html")
    # the next thing to do is to train what is missing
    incomplete = [
        result.recipe
        for result in results
        if any(experiment.missing for experiment in result.experiments)
    ]
    if incomplete:
        same_options = options.format_options(out=out, seeds=seeds, epochs=epochs)
        console.print_next_command("reproduce", incomplete[0], *same_options)
    else:
        console.print_next_command("list", "recipes")
