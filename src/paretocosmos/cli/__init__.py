"""The command line: parses and prints, nothing more. One file per command.

Each command is imported when it is used: torch alone takes a second.
"""

import errno
import importlib
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from paretocosmos._version import __version__
from paretocosmos.cli import console
from paretocosmos.errors import ParetoCosmosError, UntrustedError
from paretocosmos.io.files import check_utf8
from paretocosmos.io.progress import close_display, status
from paretocosmos.registry import parameters
from paretocosmos.runtime.launch import launched_rank

# An argument in a message, as `out`, resume=True or device="cpu".
ARGUMENT = re.compile(r"`([a-z_]+)`|\b([a-z_]+)=\"?([\w.+-]*)")


class Entry(NamedTuple):
    """A command: a summary in a few words, and two examples."""

    summary: str
    examples: tuple[str, str]


# In the order in which a new user needs them.
GROUPS: dict[str, dict[str, Entry]] = {
    "Begin here": {
        "demo": Entry(
            "Train COSMOS as published, beside the paper's numbers.",
            ("demo", "demo --out demo"),
        ),
        "list": Entry(
            "List problems, methods, networks, objectives and recipes.",
            ("list", "list problems"),
        ),
    },
    "Train": {
        "train": Entry(
            "Train one network for the whole front of a problem or a table.",
            ("train adult", "train people.csv --target income --sensitive sex"),
        ),
        "compare": Entry(
            "Train several methods: one table, one picture.",
            ("compare compas", "compare adult --methods linear,cosmos --seeds 1,2,3"),
        ),
        "sweep": Entry(
            "Search settings, judged on validation data.",
            (
                "sweep adult --grid hidden='32 64,64' --seeds 1,2,3",
                "sweep compas --grid method='cosmos linear' --workers 2",
            ),
        ),
    },
    "Decide": {
        "explore": Entry(
            "Explore the trade-off in the browser, with a slider.",
            ("explore RUN", "explore RUN RUN --out explore.html --no-open"),
        ),
        "choose": Entry(
            "Choose a point: the best within bounds, or the knee.",
            ("choose RUN --max tpr_gap=0.02 --maximize accuracy", "choose RUN --knee"),
        ),
        "predict": Entry(
            "Predict the rows of a table at one trade-off.",
            (
                "predict RUN people.csv --ray 0.3,0.7",
                "predict RUN people.csv --max tpr_gap=0.02 --out predicted.csv",
            ),
        ),
        "evaluate": Entry(
            "Evaluate a run again, on other rays, splits or rows.",
            ("evaluate RUN", "evaluate RUN --split val --ray 0.3,0.7"),
        ),
    },
    "Deploy": {
        "check": Entry(
            "Check on new labelled rows whether bounds are kept.",
            (
                "check RUN new.csv --max tpr_gap=0.05",
                "check RUN new.csv --ray 0.3,0.7 --max tpr_gap=0.05",
            ),
        ),
        "export": Entry(
            "Write a run as one ONNX file, with a model card.",
            ("export RUN", "export RUN --out model.onnx"),
        ),
        "serve": Entry(
            "Serve predictions at any preference over HTTP.",
            ("serve RUN", "serve RUN --port 8080"),
        ),
    },
    "The paper": {
        "reproduce": Entry(
            "Train the experiments of a table or figure of the paper.",
            (
                "reproduce table_1 --only compas,cosmos,paper --seeds 1",
                "reproduce table_1 --data DIR",
            ),
        ),
        "report": Entry(
            "Compare reproduced results with the paper's numbers.",
            ("report", "report table_1 --seeds 1"),
        ),
    },
}
# A command is a function of its name in a module of its name, but for a name that Python has.
LOCATIONS = {"list": ("listing", "list_names")}
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


COMMANDS = _Commands()
"""All commands by name."""


class Group(TyperGroup):
    """Group of all commands, which `--help` lists without importing them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Typer expects a dictionary, which would import every command for `--help`.
        self.commands = COMMANDS  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(ENTRIES)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        # padded, so that the summaries of all groups line up
        width = max(map(len, ENTRIES))
        for group, entries in GROUPS.items():
            with formatter.section(group):
                rows = [(name.ljust(width), entry.summary) for name, entry in entries.items()]
                formatter.write_dl(rows)


@cache
def _load_command(name: str, entry: Entry) -> TyperCommand:
    examples = "\n".join(f"  paretocosmos {example}" for example in entry.examples)
    # a Typer application of its own: it is how Typer builds one command
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    try:
        # Importing torch takes long enough for a user to wonder.
        with status("starting"):
            module, function = LOCATIONS.get(name, (name, name))
            callback = getattr(importlib.import_module(f"paretocosmos.cli.{module}"), function)
    except KeyboardInterrupt:
        raise typer.Abort from None
    # \b keeps the line breaks of the paragraph
    single.command(name, cls=Command, epilog=f"\b\nExamples:\n{examples}")(callback)
    command = typer.main.get_command(single)
    # with a single command Typer makes no group
    assert isinstance(command, TyperCommand)
    return command


# Plain help without rich, whose boxes are hard to copy and to read aloud.
app = typer.Typer(
    cls=Group,
    help="One network, trained once, gives the whole Pareto front.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# The address of a cluster on this machine.
LOCAL = "local"


def main() -> None:
    """Run the command line; print a mistake as one sentence, and exit with code 2."""
    console.prepare_streams()
    try:
        with warnings.catch_warnings():
            # without the line of source that Python prints
            warnings.showwarning = lambda message, *_, **__: console.print_note(str(message))
            arguments = fill_address(sys.argv[1:])
            for argument in arguments:  # others could not be stored in a run's files
                check_utf8(argument, "arguments")
            # Without standalone mode, Typer raises its errors instead of printing and exiting.
            code = app(arguments, prog_name="paretocosmos", standalone_mode=False)
        if sys.stdout is not None:  # it is closed in some services
            sys.stdout.flush()  # an error of writing is raised now
        sys.exit(code if isinstance(code, int) else 0)
    except ParetoCosmosError as error:
        rank = launched_rank()
        # An error that all processes of a training raise alike is printed by the first one only.
        if not (rank and error.shared):
            message = f"{error}{describe_options(error, *sys.argv[1:2])}"
            console.print_error(f"process {rank}: {message}" if rank else message)
        sys.exit(2)
    except typer.Abort:  # Ctrl-C where nothing is saved
        console.print_error("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output, such as `head`, has ended
        _discard_stdout()
        sys.exit(1)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _discard_stdout()
            console.print_error(
                "the disk is full, so the output cannot be written: free some space, or write it "
                "elsewhere"
            )
            sys.exit(1)
        # Usage errors of click, whichever module this version of Typer defines them in.
        if not hasattr(error, "format_message"):
            raise
        _print_usage_error(error)
        sys.exit(2)


def _discard_stdout() -> None:
    """Send what is still buffered to nowhere: Python flushes at exit and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_usage_error(error: Any) -> None:
    """Print an error of Typer: the usage of the command, and a sentence like all other errors."""
    close_display()
    context: Any = getattr(error, "ctx", None)
    is_help = type(error).__name__ == "NoArgsIsHelpError"  # the command without arguments
    text = ""
    if is_help:
        text = context.get_help()
    elif context is not None:
        text = f"{context.get_usage()}\nTry '{context.command_path} --help' for help."
    for line in text.splitlines():
        console.print_markup(console.err, console.escape(line))
    if not is_help:
        console.print_error(error.format_message())


def describe_options(error: ParetoCosmosError, command: str = "") -> str:
    """Return the options of a command that are the arguments which an error names.

    >>> from paretocosmos.errors import RunError
    >>> describe_options(RunError("`a` exists; choose another `out`, or set resume=True"), "train")
    ' (on the command line: --out ..., --resume)'
    """
    if isinstance(error, UntrustedError):
        from paretocosmos.cli.options import describe_trust

        return describe_trust(error.packages)
    options = {
        flag[2:].replace("-", "_"): flag if getattr(option, "is_flag", False) else f"{flag} {{}}"
        for option in (COMMANDS[command].params if command in COMMANDS else ())
        for flag in option.opts
        if flag.startswith("--")
    }
    if "set" in options:
        # here, since torch is imported for them
        from paretocosmos.config.settings import Training
        from paretocosmos.problems.tables import table

        settings = parameters(Training).keys() | parameters(table).keys()
        options |= {name: f"--set {name}={{}}" for name in settings - options.keys()}
    named: dict[str, str] = {}
    # the argument that begins the sentence is the mistake, not the way out
    for quoted, name, value in ARGUMENT.findall(re.sub("^`[a-z_]+`", "", str(error))):
        if (option := options.get(quoted or name)) is not None:
            named[option] = value or named.get(option, "")
    listed = ", ".join(option.format(value or "...") for option, value in named.items())
    return f" (on the command line: {listed})" if listed else ""


def fill_address(arguments: Sequence[str]) -> list[str]:
    """Add an address to a bare `--cluster`: Typer has no options with an optional value.

    >>> fill_address(["reproduce", "table_1", "--cluster", "--json"])
    ['reproduce', 'table_1', '--cluster', 'local', '--json']
    """
    filled: list[str] = []
    for argument, following in pairwise([*arguments, "--"]):
        filled.append(argument)
        if argument == "--cluster" and following.startswith("-"):
            filled.append(LOCAL)
    return filled


def _print_version(requested: bool) -> None:
    if requested:
        sys.stdout.write(f"paretocosmos {__version__}\n")
        raise typer.Exit


@app.callback()
def set_common_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """One network, trained once, gives the whole Pareto front."""
