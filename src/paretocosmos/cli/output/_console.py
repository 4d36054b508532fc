"""Where things are shown: tables and JSON on stdout, notes and errors on stderr."""

import json
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from paretocosmos.io.text import printable
from paretocosmos.runtime.distributed import launched_rank

err = Console(stderr=True, highlight=False)
if launched_rank():  # of several processes that train together only the first prints
    err.quiet = True


# Letters of a message that are shown: of one word, and in all.
WORD, WHOLE = 300, 1800


def safe(text: object) -> str:
    r"""A text for a table or a line, without markup of rich's and without control characters.

    >>> print(safe("[bold]\x1b[31mred"))
    \[bold]\x1b[31mred
    """
    return escape(printable(str(text)))


def shortened(message: str, *, most: int = WHOLE) -> str:
    r"""A message without what would steer a terminal, and without endless words.

    >>> print(shortened("no file `\x1b[31mred`"))
    no file `\x1b[31mred`
    >>> len(shortened("x" * 1000))
    121
    """
    said = re.sub(rf"[^\s`'\"]{{{WORD},}}", _cut, printable(message, keep="\n"))
    return said if len(said) <= most else f"{said[: most - 500]} ... {said[-400:]}"


def _cut(word: re.Match[str]) -> str:
    return f"{word[0][:60]}...({len(word[0]):,} letters)...{word[0][-40:]}"


def error(message: str) -> None:
    """One sentence on stderr."""
    loud = Console(stderr=True, highlight=False) if err.quiet else err
    said = shortened(message.replace("\n", "\\n"))
    loud.print(f"[bold red]error:[/] {escape(said)}", soft_wrap=True)


def note(message: str) -> None:
    """Something to know, on stderr."""
    err.print(f"[yellow]note:[/] {escape(shortened(message))}", soft_wrap=True)


def print_json(content: object) -> None:
    """One line of JSON on stdout."""
    sys.stdout.write(json.dumps(content) + "\n")


def wide() -> Console:
    """For tables: a pipe has no width, so nothing needs to be cut or folded there."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 1000)


@contextmanager
def notes() -> Iterator[None]:
    """Show warnings as notes on stderr, each once; an error drops them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        note(message)
