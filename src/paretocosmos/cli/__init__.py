"""The command line: parses and prints, nothing more. One file per command."""

import errno
import io
import os
import sys
import warnings
from typing import Annotated

import typer

from paretocosmos._version import __version__
from paretocosmos.cli._choose import choose
from paretocosmos.cli._compare import compare
from paretocosmos.cli._evaluate import evaluate
from paretocosmos.cli._explore import explore
from paretocosmos.cli._export import export
from paretocosmos.cli._list import ROOMS, list_things
from paretocosmos.cli._options import how_to_trust
from paretocosmos.cli._predict import predict
from paretocosmos.cli._report import report
from paretocosmos.cli._reproduce import reproduce, with_address
from paretocosmos.cli._serve import serve
from paretocosmos.cli._sign import sign
from paretocosmos.cli._train import train
from paretocosmos.cli._watch import watch
from paretocosmos.cli.output import _console as console
from paretocosmos.errors import ConfigurationError, ParetoCosmosError, UntrustedError
from paretocosmos.io.display import close
from paretocosmos.runtime.distributed import launched_rank

__all__ = ["ROOMS", "app", "hint", "main"]

app = typer.Typer(
    help="One network, trained once, gives the whole Pareto front.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("list")(list_things)
app.command()(train)
app.command()(watch)
app.command()(evaluate)
app.command()(choose)
app.command()(predict)
app.command()(export)
app.command()(explore)
app.command()(compare)
app.command()(reproduce)
app.command()(report)
app.command()(serve)
app.command()(sign)


MOST, HELP = 1500, 10_000  # letters of what Typer says


def main() -> None:
    """Run the command line; what we refuse is one sentence and exit code 2."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = console.show_warning
            code = app(_texts(with_address(sys.argv[1:])), standalone_mode=False)
        if sys.stdout is not None:  # it is closed in some services
            sys.stdout.flush()  # an error of writing is raised now
        sys.exit(code if isinstance(code, int) else 0)
    except ParetoCosmosError as error:
        rank = launched_rank()
        if not (rank and error.shared):
            said = f"{error}{hint(error)}"
            console.error(f"process {rank}: {said}" if rank else said)
        sys.exit(2)
    except typer.Abort:  # Ctrl-C where nothing is saved
        console.error("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            console.error("no room is left for what this prints: make some, or print elsewhere")
            sys.exit(1)
        if not hasattr(error, "format_message"):
            raise
        close()
        # what Typer refuses: it has its own usage to show, and quotes what was typed
        shown = io.StringIO()
        error.show(file=shown)  # type: ignore[attr-defined]
        most = HELP if type(error).__name__ == "NoArgsIsHelpError" else MOST
        for line in console.shortened(shown.getvalue().rstrip(), most=most).splitlines():
            console.say(console.err, console.safe(line))
        sys.exit(2)


def hint(error: ParetoCosmosError) -> str:
    """The options for what the library lets a caller do in Python."""
    if isinstance(error, UntrustedError):
        return how_to_trust(error.packages)
    ways = ", ".join(_option(name, value) for name, value in _ways(error).items())
    return f" (on the command line: {ways})" if ways else ""


def _ways(error: BaseException | None) -> dict[str, object]:
    """The arguments that lead out of an error, or of what it was made from."""
    if error is None:
        return {}
    return {**_ways(error.__cause__), **getattr(error, "ways", {})}


def _option(name: str, value: object) -> str:
    """An argument as an option: one of its own where some command has it, else a setting."""
    commands = typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
    if any(name == own.name for command in commands for own in command.params):
        flag = f"--{name.replace('_', '-')}"
        return flag if value is True else f"{flag} {'...' if value is None else value}"
    return f"--set {name}={'...' if value is None else 'true' if value is True else value}"


def _texts(arguments: list[str]) -> list[str]:
    """The arguments, if all of them can be printed, and written to a file that can be read."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise ConfigurationError(
                f"arguments must be UTF-8 text, found {argument!a}: rename the file"
            ) from error
    return arguments


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"paretocosmos {__version__}\n")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """One network, trained once, gives the whole Pareto front."""
