"""Where things are shown: tables and JSON on stdout, notes and errors on stderr."""

import json
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from paretocosmos.runtime.distributed import launched_rank

__all__ = ["err", "error", "note", "notes", "plain", "print_json", "wide"]

err = Console(stderr=True, highlight=False)
if launched_rank():  # of several processes that train together the first one speaks
    err.quiet = True


# What would steer a terminal, turn the direction of reading, or is half a character.
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Letters of one word, and of all of it, that are shown of what somebody wrote.
WORD, WHOLE = 300, 1800


def plain(message: str, *, most: int = WHOLE) -> str:
    r"""A message as it may be shown, whatever somebody wrote that it quotes.

    >>> print(plain("no file `\x1b[31mred`"))
    no file `\x1b[31mred`
    >>> len(plain("x" * 1000))
    121
    """
    shown = STEERING.sub(lambda sign: ascii(sign[0])[1:-1], message)
    shown = re.sub(rf"[^\s`'\"]{{{WORD},}}", _cut, shown)
    return shown if len(shown) <= most else f"{shown[: most - 500]} ... {shown[-400:]}"


def _cut(word: re.Match[str]) -> str:
    return f"{word[0][:60]}...({len(word[0]):,} letters)...{word[0][-40:]}"


def error(message: str) -> None:
    """One sentence on stderr."""
    loud = Console(stderr=True, highlight=False) if err.quiet else err
    said = plain(message.replace("\n", "\\n"))
    loud.print(f"[bold red]error:[/] {escape(said)}", soft_wrap=True)


def note(message: str) -> None:
    """Something to know, on stderr."""
    err.print(f"[yellow]note:[/] {escape(plain(message))}", soft_wrap=True)


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
