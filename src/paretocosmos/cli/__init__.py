"""The command line: parses and prints, nothing more. One file per command."""

import os
import sys
from typing import Annotated

import typer

from paretocosmos import __version__, printing
from paretocosmos.cli._choose import choose
from paretocosmos.cli._compare import compare
from paretocosmos.cli._evaluate import evaluate
from paretocosmos.cli._explore import explore
from paretocosmos.cli._export import export
from paretocosmos.cli._list import ROOMS, list_things
from paretocosmos.cli._report import report
from paretocosmos.cli._reproduce import reproduce, with_address
from paretocosmos.cli._serve import serve
from paretocosmos.cli._sign import sign
from paretocosmos.cli._train import train
from paretocosmos.distributed import launched_rank
from paretocosmos.errors import ParetoCosmosError, UntrustedError

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
app.command()(evaluate)
app.command()(choose)
app.command()(export)
app.command()(explore)
app.command()(compare)
app.command()(reproduce)
app.command()(report)
app.command()(serve)
app.command()(sign)


def main() -> None:
    """Run the command line; what we refuse is one sentence and exit code 2."""
    try:
        app(with_address(sys.argv[1:]))
    except ParetoCosmosError as error:
        rank = launched_rank()
        if not (rank and error.shared):
            said = f"{error}{hint(error)}"
            printing.error(f"process {rank}: {said}" if rank else said)
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def hint(error: ParetoCosmosError) -> str:
    """The options for what the library lets a caller do in Python."""
    packages = error.packages if isinstance(error, UntrustedError) else ()
    options = " ".join(f"--trust {package}" for package in packages)
    if options:
        return f" (here: {options})"
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
