"""`paretocosmos list`."""

from typing import Annotated

import typer

from paretocosmos import registry
from paretocosmos.cli.console import (
    get_stdout,
    print_fields,
    print_json,
    print_markup,
    print_next_command,
)
from paretocosmos.cli.options import AsJson
from paretocosmos.config.settings import describe_pair, get_pairs
from paretocosmos.errors import unknown
from paretocosmos.paper.recipe import load_recipe, recipe_names

KINDS = ("problems", "methods", "conditioning", "backbones", "objectives")


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}, recipes; by default all."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List problems, methods, conditionings, backbones, objectives and recipes."""
    kinds = (*KINDS, "recipes")
    if kind is not None and kind not in kinds:
        raise unknown("kind", kind, kinds)
    # all kinds by default: a newcomer does not know them yet
    summaries = {name: _load_summaries(name) for name in (kinds if kind is None else (kind,))}
    if as_json:
        print_json(summaries)
        return
    for title, entries in summaries.items():
        print_markup(get_stdout(), f"[bold]{title}[/]")
        print_fields(entries)
    print_next_command("train", "adult")


def _load_summaries(kind: str) -> dict[str, str]:
    """Return the names of a kind, each with a summary in one line."""
    if kind == "recipes":
        return {name: load_recipe(name).title for name in recipe_names()}
    summaries = {name: registry.summary(kind, name) for name in registry.names(kind)}
    if kind == "methods":
        # pairs of method and conditioning are methods to whoever names one
        summaries |= {name: str(describe_pair(name)["summary"]) for name in get_pairs()}
    return summaries
