"""Where things are shown: tables and JSON on stdout, notes and errors on stderr."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from paretocosmos.distributed import launched_rank

__all__ = ["err", "error", "note", "notes", "print_json", "wide"]

err = Console(stderr=True, highlight=False)
if launched_rank():  # of several processes that train together the first one speaks
    err.quiet = True


def error(message: str) -> None:
    """One sentence on stderr."""
    loud = Console(stderr=True, highlight=False) if err.quiet else err
    loud.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


def note(message: str) -> None:
    """Something to know, on stderr."""
    err.print(f"[yellow]note:[/] {escape(message)}", soft_wrap=True)


def print_json(content: object) -> None:
    """One line of JSON on stdout."""
    sys.stdout.write(json.dumps(content) + "\n")


def wide() -> Console:
    """For tables: a pipe has no width, so nothing needs to be cut or folded there."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 1000)


@contextmanager
def notes() -> Iterator[None]:
    """Show warnings as notes on stderr, each once; a refusal stands alone."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        note(message)
