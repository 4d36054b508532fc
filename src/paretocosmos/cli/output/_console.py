"""Where things are shown: tables and JSON on stdout, notes and errors on stderr."""

import io
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from paretocosmos.errors import ConfigurationError
from paretocosmos.io.formatting import sanitize
from paretocosmos.io.progress import close_display, get_console
from paretocosmos.runtime.launch import launched_rank

err = get_console()
if launched_rank():  # of several processes that train together only the first prints
    err.quiet = True


# Letters of a message that are shown: of one word, and in all.
WORD, WHOLE = 300, 1800


def prepare_streams() -> None:
    """Make stdout and stderr take all that is printed: closed ones drop it, ASCII escapes it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell (`>&-`), or in a service
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_text(text: str) -> None:
    """Write a user's data to stdout, as it is or not at all."""
    close_display()
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"standard output takes only {encoding}, not {text[error.start]!a}: set "
            "PYTHONIOENCODING=utf-8, or choose a file with `out`"
        ).by({"out": None}) from error
    sys.stdout.write(text)


def safe(text: object) -> str:
    r"""A text for a table or a line, without markup of rich's and without control characters.

    >>> print(safe("[bold]\x1b[31mred"))
    \[bold]\x1b[31mred
    """
    return escape(sanitize(str(text)))


def shortened(message: str, *, most: int = WHOLE) -> str:
    r"""A message without what would steer a terminal, and without endless words.

    >>> print(shortened("no file `\x1b[31mred`"))
    no file `\x1b[31mred`
    >>> len(shortened("x" * 1000))
    121
    """
    said = re.sub(rf"[^\s`'\"]{{{WORD},}}", _cut, sanitize(message, keep="\n"))
    return said if len(said) <= most else f"{said[: most - 500]} ... {said[-400:]}"


def _cut(word: re.Match[str]) -> str:
    return f"{word[0][:60]}...({len(word[0]):,} letters)...{word[0][-40:]}"


def error(message: str) -> None:
    """One sentence on stderr."""
    close_display()
    loud = Console(stderr=True, highlight=False) if err.quiet else err
    said = shortened(message.replace("\n", "\\n"))
    say(loud, f"[bold red]error:[/] {escape(said)}")


def note(message: str) -> None:
    """Something to know, on stderr."""
    say(err, f"[yellow]note:[/] {escape(shortened(message))}")


def say(console: Console, text: str) -> None:
    """A paragraph in rich's markup: words stay whole in a terminal, and lines in a file."""
    shown = Text.from_markup(text)
    ends = _breaks(shown.plain, console.width) if console.is_terminal else []
    for line in shown.divide(ends):
        line.rstrip()
        console.print(line, soft_wrap=True)


def hanging(console: Console, head: str, text: str, indent: int) -> None:
    """A head and a text in rich's markup, whose further lines in a terminal begin below the text.

    A word that is longer than a line, such as a path, stays in one piece.
    """
    body = Text.from_markup(text)
    room = max(console.width - indent, 1)
    first, *more = body.divide(_breaks(body.plain, room) if console.is_terminal else [])
    line = Text.from_markup(head) + first
    for part in (line, *(Text(" " * indent) + part for part in more)):
        part.rstrip()
        console.print(part, soft_wrap=True)


def _breaks(text: str, width: int) -> list[int]:
    """Where lines end, between words; one that is longer than a line has its own, in one piece.

    >>> _breaks("words are not broken", 10)
    [10]
    """
    found, start = [], 0
    for word in re.finditer(r"\S+", text):
        if word.end() - start > width and word.start() > start:
            start = word.start()
            found.append(start)
    return found


def print_json(content: object) -> None:
    """One line of JSON on stdout."""
    close_display()
    sys.stdout.write(json.dumps(content) + "\n")


def wide() -> Console:
    """For results, once nothing moves any more: a pipe has no width to cut or fold anything at."""
    close_display()
    return Console(highlight=False, width=None if sys.stdout.isatty() else 1000)


@contextmanager
def notes() -> Iterator[None]:
    """Show warnings as notes on stderr, each once; an error drops them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        note(message)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning that nobody caught is a note, too, instead of a line of source."""
    note(str(message))
