"""The command line: parses and prints, nothing more. One file per command."""

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from paretocosmos._version import __version__
from paretocosmos.cli import console
from paretocosmos.cli.commands import Group, get_commands
from paretocosmos.errors import ParetoCosmosError, UntrustedError
from paretocosmos.io.files import check_utf8
from paretocosmos.io.progress import close_display
from paretocosmos.runtime.launch import launched_rank

__all__ = ["app", "main"]

app = typer.Typer(
    cls=Group,
    help="One network, trained once, gives the whole Pareto front.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

LOCAL = "local"


def main() -> None:
    """Run the command line; what we refuse is one sentence and exit code 2."""
    console.prepare_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = console.show_warning
            arguments = _check_arguments(fill_address(sys.argv[1:]))
            code = app(arguments, prog_name="paretocosmos", standalone_mode=False)
        if sys.stdout is not None:  # it is closed in some services
            sys.stdout.flush()  # an error of writing is raised now
        sys.exit(code if isinstance(code, int) else 0)
    except ParetoCosmosError as error:
        rank = launched_rank()
        if not (rank and error.shared):
            said = f"{error}{describe_options(error)}"
            console.print_error(f"process {rank}: {said}" if rank else said)
        sys.exit(2)
    except typer.Abort:  # Ctrl-C where nothing is saved
        console.print_error("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            console.print_error(
                "no room is left for what this prints: make some, or print elsewhere"
            )
            sys.exit(1)
        if not hasattr(error, "format_message"):
            raise
        _print_usage_error(error)
        sys.exit(2)


def _print_usage_error(error: Any) -> None:
    """Print what Typer refuses: its usage, and the sentence in the form of all errors."""
    close_display()
    context: Any = getattr(error, "ctx", None)
    nothing_given = type(error).__name__ == "NoArgsIsHelpError"
    text = ""
    if nothing_given:
        text = context.get_help()
    elif context is not None:
        text = f"{context.get_usage()}\nTry '{context.command_path} --help' for help."
    for line in text.splitlines():
        console.print_markup(console.err, console.escape(line))
    if not nothing_given:
        console.print_error(error.format_message())


def describe_options(error: ParetoCosmosError) -> str:
    """Describe the options for what the library lets a caller do in Python."""
    if isinstance(error, UntrustedError):
        from paretocosmos.cli.options import describe_trust

        return describe_trust(error.packages)
    ways = ", ".join(_format_option(name, value) for name, value in _collect_hints(error).items())
    return f" (on the command line: {ways})" if ways else ""


def _collect_hints(error: BaseException | None) -> dict[str, object]:
    """Collect the arguments that resolve an error, or those of its cause."""
    if error is None:
        return {}
    return {**_collect_hints(error.__cause__), **getattr(error, "hints", {})}


def _format_option(name: str, value: object) -> str:
    """Format an argument as an option: its own where some command has it, else a setting."""
    flag = f"--{name.replace('_', '-')}"
    if any(flag in own.opts for command in get_commands().values() for own in command.params):
        return flag if value is True else f"{flag} {'...' if value is None else value}"
    return f"--set {name}={'...' if value is None else 'true' if value is True else value}"


def fill_address(arguments: Sequence[str]) -> list[str]:
    """Add an address to a bare `--cluster`, which Typer cannot express.

    >>> fill_address(["reproduce", "table_1", "--cluster", "--json"])
    ['reproduce', 'table_1', '--cluster', 'local', '--json']
    """
    filled: list[str] = []
    for at, argument in enumerate(arguments):
        filled.append(argument)
        bare = at + 1 == len(arguments) or arguments[at + 1].startswith("-")
        if argument == "--cluster" and bare and arguments[0] == "reproduce":
            filled.append(LOCAL)
    return filled


def _check_arguments(arguments: list[str]) -> list[str]:
    """Check that all arguments can be printed and written to a file that can be read."""
    for argument in arguments:
        check_utf8(argument, "arguments")
    return arguments


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"paretocosmos {__version__}\n")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """One network, trained once, gives the whole Pareto front."""
