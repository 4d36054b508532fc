"""`paretocosmos list`."""

from typing import Annotated

import typer

from paretocosmos import registry
from paretocosmos.cli import console, options
from paretocosmos.config.settings import describe_pair, get_pairs
from paretocosmos.errors import unknown
from paretocosmos.paper.recipe import load_recipe, recipe_names

KINDS = ("problems", "methods", "conditioning", "backbones", "objectives")


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}, recipes; by default all."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List problems, methods, conditionings, backbones, objectives and recipes."""
    kinds = (*KINDS, "recipes")
    if kind is not None and kind not in kinds:
        raise unknown("kind", kind, kinds)
    # all kinds by default: a newcomer does not know them yet
    summaries: dict[str, dict[str, str]] = {}
    for name in kinds if kind is None else (kind,):
        if name == "recipes":
            summaries[name] = {recipe: load_recipe(recipe).title for recipe in recipe_names()}
            continue
        summaries[name] = {entry: registry.summary(name, entry) for entry in registry.names(name)}
        if name == "methods":
            # pairs of method and conditioning are methods to whoever names one
            summaries[name] |= {pair: str(describe_pair(pair)["summary"]) for pair in get_pairs()}
    if as_json:
        console.print_json(summaries)
        return
    for title, entries in summaries.items():
        console.print_markup(console.get_stdout(), f"[bold]{title}[/]")
        console.print_fields(entries)
    console.print_next_command("train", "adult")
