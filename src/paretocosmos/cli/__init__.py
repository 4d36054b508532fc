"""The command line: parses and prints, nothing more. One file per command."""

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
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

# Plain help without rich, whose boxes are hard to copy and to read aloud.
app = typer.Typer(
    cls=Group,
    help="One network, trained once, gives the whole Pareto front.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# The address of `reproduce` for a cluster on this machine.
LOCAL = "local"


def main() -> None:
    """Run the command line; print a mistake as one sentence, and exit with code 2."""
    console.prepare_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = console.show_warning
            arguments = _check_arguments(fill_address(sys.argv[1:]))
            # Without standalone mode, Typer raises its errors instead of printing and exiting.
            code = app(arguments, prog_name="paretocosmos", standalone_mode=False)
        if sys.stdout is not None:  # it is closed in some services
            sys.stdout.flush()  # an error of writing is raised now
        sys.exit(code if isinstance(code, int) else 0)
    except ParetoCosmosError as error:
        rank = launched_rank()
        # An error that all processes of a training raise alike is printed by the first one only.
        if not (rank and error.shared):
            message = f"{error}{describe_options(error)}"
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


def describe_options(error: ParetoCosmosError) -> str:
    """Return the options that do what an error suggests to a caller in Python."""
    if isinstance(error, UntrustedError):
        from paretocosmos.cli.options import describe_trust

        return describe_trust(error.packages)
    hints = _collect_hints(error)
    options = ", ".join(_format_option(name, value) for name, value in hints.items())
    return f" (on the command line: {options})" if options else ""


def _collect_hints(error: BaseException | None) -> dict[str, object]:
    """Collect the arguments that resolve an error, including those of its cause."""
    if error is None:
        return {}
    return {**_collect_hints(error.__cause__), **getattr(error, "hints", {})}


def _format_option(name: str, value: object) -> str:
    """Format an argument as the option of that name, or as `--set` if no command has it."""
    flag = f"--{name.replace('_', '-')}"
    # imports all commands, which an error that ends the program can afford
    options = (option for command in get_commands().values() for option in command.params)
    if any(flag in option.opts for option in options):
        return flag if value is True else f"{flag} {'...' if value is None else value}"
    return f"--set {name}={'...' if value is None else 'true' if value is True else value}"


def fill_address(arguments: Sequence[str]) -> list[str]:
    """Add an address to a bare `--cluster`: Typer has no options with an optional value.

    >>> fill_address(["reproduce", "table_1", "--cluster", "--json"])
    ['reproduce', 'table_1', '--cluster', 'local', '--json']
    """
    filled: list[str] = []
    for argument, following in pairwise([*arguments, "--"]):
        filled.append(argument)
        if argument == "--cluster" and following.startswith("-") and arguments[0] == "reproduce":
            filled.append(LOCAL)
    return filled


def _check_arguments(arguments: list[str]) -> list[str]:
    """Raise if an argument is no valid UTF-8: it could not be stored in a run's files."""
    for argument in arguments:
        check_utf8(argument, "arguments")
    return arguments


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
