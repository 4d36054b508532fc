"""`paretocosmos list`."""

from rich.table import Table

from paretocosmos import registry
from paretocosmos.cli._options import AsJson
from paretocosmos.cli.output._console import print_json, safe, wide
from paretocosmos.cli.output._next import next_command
from paretocosmos.config.settings import about_pair, pairs
from paretocosmos.paper.recipe import load_recipe, recipe_names

ROOMS = ("problems", "methods", "conditioning", "backbones", "objectives")


def list_things(as_json: AsJson = False) -> None:
    """List problems, methods, conditionings, backbones, objectives and recipes."""
    found = {room: {n: registry.summary(room, n) for n in registry.names(room)} for room in ROOMS}
    found["methods"] |= {name: about_pair(name)["summary"] for name in pairs()}
    found["recipes"] = {name: load_recipe(name).title for name in recipe_names()}
    if as_json:
        print_json(found)
        return
    for room, things in found.items():
        table = Table(title=room, title_justify="left", box=None, show_header=False, padding=(0, 2))
        for name, line in things.items():
            table.add_row(f"[bold]{name}[/]", safe(line))
        wide().print(table)
    next_command("train", "adult")
