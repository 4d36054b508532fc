"""Print to the terminal: tables and JSON on stdout, notes and errors on stderr."""

import io
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import markup
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
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
        ).with_hint({"out": None}) from error
    sys.stdout.write(text)


def escape(text: object) -> str:
    r"""Return a text without rich's markup and without control characters.

    >>> print(escape("[bold]\x1b[31mred"))
    \[bold]\x1b[31mred
    """
    return markup.escape(sanitize(str(text)))


def shorten(message: str, *, most: int = WHOLE) -> str:
    r"""Return a message without what would steer a terminal, and without endless words.

    >>> print(shorten("no file `\x1b[31mred`"))
    no file `\x1b[31mred`
    >>> len(shorten("x" * 1000))
    121
    """
    said = re.sub(rf"[^\s`'\"]{{{WORD},}}", _cut_word, sanitize(message, keep="\n"))
    return said if len(said) <= most else f"{said[: most - 500]} ... {said[-400:]}"


def _cut_word(word: re.Match[str]) -> str:
    return f"{word[0][:60]}...({len(word[0]):,} letters)...{word[0][-40:]}"


def print_error(message: str) -> None:
    """Print one sentence to stderr."""
    close_display()
    loud = Console(stderr=True, highlight=False) if err.quiet else err
    said = shorten(message.replace("\n", "\\n"))
    print_markup(loud, f"[bold red]error:[/] {escape(said)}")


def print_note(message: str) -> None:
    """Print something to know to stderr."""
    print_markup(err, f"[yellow]note:[/] {escape(shorten(message))}")


def print_markup(console: Console, text: str) -> None:
    """Print a paragraph in rich's markup: words stay whole in a terminal, and lines in a file."""
    shown = Text.from_markup(text)
    ends = _find_breaks(shown.plain, console.width) if console.is_terminal else []
    for line in shown.divide(ends):
        line.rstrip()
        console.print(line, soft_wrap=True)


def print_hanging(console: Console, head: str, text: str, indent: int) -> None:
    """Print a head and a text in rich's markup, with a hanging indent in a terminal.

    A word that is longer than a line, such as a path, stays in one piece.
    """
    body = Text.from_markup(text)
    room = max(console.width - indent, 1)
    first, *more = body.divide(_find_breaks(body.plain, room) if console.is_terminal else [])
    line = Text.from_markup(head) + first
    for part in (line, *(Text(" " * indent) + part for part in more)):
        part.rstrip()
        console.print(part, soft_wrap=True)


def _find_breaks(text: str, width: int) -> list[int]:
    """Return where lines end, between words; a word longer than a line has its own.

    >>> _find_breaks("words are not broken", 10)
    [10]
    """
    found, start = [], 0
    for word in re.finditer(r"\S+", text):
        if word.end() - start > width and word.start() > start:
            start = word.start()
            found.append(start)
    return found


def print_json(content: object) -> None:
    """Print one line of JSON to stdout."""
    close_display()
    sys.stdout.write(json.dumps(content) + "\n")


def get_stdout() -> Console:
    """Return the console for results, after closing the live display; a pipe has no width."""
    close_display()
    return Console(highlight=False, width=None if sys.stdout.isatty() else 1000)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings as notes on stderr, each once; an error drops them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print_note(message)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning that nobody caught as a note, instead of a line of source."""
    print_note(str(message))


# As wide as no table is.
WIDEST = 10_000


def print_table(console: Console, table: Table) -> None:
    """Print a table; where the terminal is narrower than its words, a block for each row instead.

    The first column names the rows.
    """
    for column in table.columns:
        if column.no_wrap:
            texts = (Text.from_markup(str(cell)) for cell in (column.header, *column.cells))
            column.min_width = max(text.cell_len for text in texts)
    options = console.options.update(max_width=WIDEST)
    if Measurement.get(console, options, table).minimum <= console.width:
        console.print(table)
        return
    heads = [str(column.header) for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        title, *cells = map(str, row)
        print_markup(console, f"[bold]{heads[0]} {title}[/]".replace("[bold] ", "[bold]"))
        block = Table(show_header=False, box=None, padding=(0, 2, 0, 2), pad_edge=True)
        for head, cell in zip(heads[1:], cells, strict=True):
            if cell:
                block.add_row(head, cell)
        console.print(block)


def repeat_options(seeds: str | None, epochs: int | None) -> list[object]:
    """Return the options that `reproduce` and `report` share, as they were given."""
    given = {"--seeds": seeds, "--epochs": epochs}
    return [word for flag, value in given.items() if value is not None for word in (flag, value)]


def print_next_command(*parts: object) -> None:
    """Print the command to type next, so that it can be copied."""
    console = get_stdout()
    words = ["paretocosmos", *(escape(shlex.quote(str(part))) for part in parts)]
    room = console.width if console.is_terminal else WIDEST
    console.print(f"[bold]next[/]  {_wrap_command(words, room - 8)}", soft_wrap=True)


def _wrap_command(words: Sequence[str], room: int) -> str:
    r"""Wrap the words of a command, in lines that a shell reads as one.

    >>> print(_wrap_command(["paretocosmos", "choose", "runs/adult", "--max", "tpr_gap=0.02"], 30))
    paretocosmos choose runs/adult \
          --max tpr_gap=0.02
    """
    lines = [words[0]]
    for word in words[1:]:
        longer = f"{lines[-1]} {word}"
        if len(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return " \\\n      ".join(lines)
