"""`paretocosmos list`."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from paretocosmos import find
from paretocosmos.cli._options import AsJson
from paretocosmos.experiments.recipe import load_recipe, recipe_names
from paretocosmos.printing import print_json
from paretocosmos.settings import about_pair, pairs

__all__ = ["ROOMS", "list_things"]

ROOMS = ("problems", "methods", "conditioning", "backbones", "objectives")


def list_things(as_json: AsJson = False) -> None:
    """List problems, methods, conditionings, backbones, objectives and recipes."""
    found = {room: {n: find.summary(room, n) for n in find.names(room)} for room in ROOMS}
    found["methods"] |= {name: about_pair(name)["summary"] for name in pairs()}
    found["recipes"] = {name: load_recipe(name).title for name in recipe_names()}
    if as_json:
        print_json(found)
        return
    for room, things in found.items():
        table = Table(title=room, title_justify="left", box=None, show_header=False, padding=(0, 2))
        for name, line in things.items():
            table.add_row(f"[bold]{name}[/]", escape(line))
        Console().print(table)
