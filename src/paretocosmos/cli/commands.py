"""The commands, in groups. Each is imported when it is used: torch alone takes a second."""

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from paretocosmos.io.progress import status


class Entry(NamedTuple):
    """A command: `module:function`, a summary in a few words, and two examples."""

    location: str
    summary: str
    examples: tuple[str, str]


# In the order in which a new user needs them.
GROUPS: dict[str, dict[str, Entry]] = {
    "Begin here": {
        "demo": Entry(
            "demo:demo",
            "Train COSMOS as published, beside the paper's numbers.",
            ("demo", "demo --out demo"),
        ),
        "list": Entry(
            "listing:list_names",
            "List problems, methods, networks, objectives and recipes.",
            ("list", "list problems"),
        ),
    },
    "Train": {
        "train": Entry(
            "train:train",
            "Train one network for the whole front of a problem or a table.",
            ("train adult", "train people.csv --target income --sensitive sex"),
        ),
        "compare": Entry(
            "compare:compare",
            "Train several methods: one table, one picture.",
            ("compare compas", "compare adult --methods linear,cosmos --seeds 1,2,3"),
        ),
    },
    "Decide": {
        "explore": Entry(
            "explore:explore",
            "Explore the trade-off in the browser, with a slider.",
            ("explore RUN", "explore RUN RUN --out explore.html --no-open"),
        ),
        "choose": Entry(
            "choose:choose",
            "Choose a point: the best within bounds, or the knee.",
            ("choose RUN --max tpr_gap=0.02 --maximize accuracy", "choose RUN --knee"),
        ),
        "predict": Entry(
            "predict:predict",
            "Predict the rows of a table at one trade-off.",
            (
                "predict RUN people.csv --ray 0.3,0.7",
                "predict RUN people.csv --max tpr_gap=0.02 --out predicted.csv",
            ),
        ),
        "evaluate": Entry(
            "evaluate:evaluate",
            "Evaluate a run again, on other rays, splits or rows.",
            ("evaluate RUN", "evaluate RUN --split val --ray 0.3,0.7"),
        ),
    },
    "Deploy": {
        "export": Entry(
            "export:export",
            "Write a run as one ONNX file, with a model card.",
            ("export RUN", "export RUN --out model.onnx"),
        ),
        "serve": Entry(
            "serve:serve",
            "Serve predictions at any preference over HTTP.",
            ("serve RUN", "serve RUN --port 8080"),
        ),
    },
    "The paper": {
        "reproduce": Entry(
            "reproduce:reproduce",
            "Train the experiments of a table or figure of the paper.",
            (
                "reproduce table_1 --only compas,cosmos,paper --seeds 1",
                "reproduce table_1 --data DIR",
            ),
        ),
        "report": Entry(
            "report:report",
            "Compare reproduced results with the paper's numbers.",
            ("report", "report table_1 --seeds 1"),
        ),
    },
}
ENTRIES = {name: entry for entries in GROUPS.values() for name, entry in entries.items()}


# The group of options that every command has, which `--help` lists last.
LAST_GROUP = "Options"


class Command(TyperCommand):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            # Typer shows these panels with rich alone, which `--help` does without
            default = "Arguments" if parameter.param_type_name == "argument" else LAST_GROUP
            record = parameter.get_help_record(ctx)
            if record is not None:
                group = getattr(parameter, "rich_help_panel", None) or default
                groups.setdefault(group, []).append(record)
        # `sorted` is stable: the other groups keep the order of the options
        for group in sorted(groups, key=lambda group: group == LAST_GROUP):
            with formatter.section(group):
                formatter.write_dl(groups[group])


class _Commands(Mapping[str, Any]):
    """Commands by name, imported when they are looked up."""

    def __getitem__(self, name: str) -> TyperCommand:
        # a KeyError becomes `None` in `Mapping.get`, by which click notices an unknown name
        return _load_command(name, ENTRIES[name])

    def __iter__(self) -> Iterator[str]:
        return iter(ENTRIES)

    def __len__(self) -> int:
        return len(ENTRIES)


class Group(TyperGroup):
    """Group of all commands, which `--help` lists without importing them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Typer expects a dictionary, which would import every command for `--help`.
        self.commands = _Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(ENTRIES)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        # padded, so that the summaries of all groups line up
        width = max(map(len, ENTRIES))
        for group, entries in GROUPS.items():
            with formatter.section(group):
                rows = [(name.ljust(width), entry.summary) for name, entry in entries.items()]
                formatter.write_dl(rows)


def get_commands() -> Mapping[str, Any]:
    """Return all commands by name."""
    return _Commands()


@cache
def _load_command(name: str, entry: Entry) -> TyperCommand:
    module, _, function = entry.location.partition(":")
    examples = "\n".join(f"  paretocosmos {example}" for example in entry.examples)
    # a Typer application of its own: it is how Typer builds one command
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    try:
        # Importing torch takes long enough for a user to wonder.
        with status("starting"):
            callback = getattr(importlib.import_module(f"paretocosmos.cli.{module}"), function)
    except KeyboardInterrupt:
        raise typer.Abort from None
    # \b keeps the line breaks of the paragraph
    single.command(name, cls=Command, epilog=f"\b\nExamples:\n{examples}")(callback)
    command = typer.main.get_command(single)
    # with a single command Typer makes no group
    assert isinstance(command, TyperCommand)
    return command
