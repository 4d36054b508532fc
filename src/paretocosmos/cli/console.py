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


# A message is cut if a word of it, or all of it, has more letters than this.
MAX_WORD, MAX_MESSAGE = 300, 1800


def prepare_streams() -> None:
    """Make stdout and stderr accept any text: escaped if they are ASCII, dropped if closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell (`>&-`), or in a service
            # Otherwise the first `print` would fail, and so would libraries that expect a stream.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_text(text: str) -> None:
    """Write a user's data to stdout; raise if it cannot be written unchanged."""
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


def shorten(message: str, *, most: int = MAX_MESSAGE) -> str:
    r"""Return a message without control characters and with long words cut.

    >>> print(shorten("no file `\x1b[31mred`"))
    no file `\x1b[31mred`
    >>> len(shorten("x" * 1000))
    121
    """
    text = re.sub(rf"[^\s`'\"]{{{MAX_WORD},}}", _cut_word, sanitize(message, keep="\n"))
    # the end is kept, too: it has the way out
    return text if len(text) <= most else f"{text[: most - 500]} ... {text[-400:]}"


def _cut_word(word: re.Match[str]) -> str:
    return f"{word[0][:60]}...({len(word[0]):,} letters)...{word[0][-40:]}"


def print_error(message: str) -> None:
    """Print one sentence to stderr."""
    close_display()
    console = Console(stderr=True, highlight=False) if err.quiet else err
    # One line per error, so that scripts can read them.
    sentence = shorten(message.replace("\n", "\\n"))
    print_markup(console, f"[bold red]error:[/] {escape(sentence)}")


def print_note(message: str) -> None:
    """Print a note to stderr."""
    print_markup(err, f"[yellow]note:[/] {escape(shorten(message))}")


def print_markup(console: Console, text: str) -> None:
    """Print a paragraph in rich's markup, wrapped between words if it goes to a terminal."""
    paragraph = Text.from_markup(text)
    breaks = _find_breaks(paragraph.plain, console.width) if console.is_terminal else []
    for line in paragraph.divide(breaks):
        line.rstrip()
        console.print(line, soft_wrap=True)


def print_hanging(console: Console, head: str, text: str, indent: int) -> None:
    """Print a head and a text in rich's markup, with a hanging indent in a terminal.

    A word that is longer than a line, such as a path, stays in one piece.
    """
    body = Text.from_markup(text)
    width = max(console.width - indent, 1)
    first, *further_lines = body.divide(
        _find_breaks(body.plain, width) if console.is_terminal else []
    )
    lines = [Text.from_markup(head) + first, *(Text(" " * indent) + line for line in further_lines)]
    for line in lines:
        line.rstrip()
        console.print(line, soft_wrap=True)


def _find_breaks(text: str, width: int) -> list[int]:
    """Find where to break a text into lines; a word longer than a line gets its own.

    >>> _find_breaks("words are not broken", 10)
    [10]
    """
    breaks, start = [], 0
    for word in re.finditer(r"\S+", text):
        if word.end() - start > width and word.start() > start:
            start = word.start()
            breaks.append(start)
    return breaks


def print_json(content: object) -> None:
    """Print one line of JSON to stdout."""
    close_display()
    sys.stdout.write(json.dumps(content) + "\n")


def get_stdout() -> Console:
    """Return the console for results, after closing the live display."""
    close_display()
    # a pipe has no width: lines that wrap would break what a program reads
    return Console(highlight=False, width=None if sys.stdout.isatty() else 1000)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print warnings as notes after the block, each once; after an error, print none."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(record.message) for record in records):
        print_note(message)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as a note, without the line of source that Python prints."""
    print_note(str(message))


# Wider than any table.
UNLIMITED = 10_000


def print_table(console: Console, table: Table) -> None:
    """Print a table, or a block for each row if the terminal is narrower than the table's words.

    The first column names the rows.
    """
    for column in table.columns:
        # rich cuts such a column where there is no room; the minimum makes the table count as too
        # wide
        if column.no_wrap:
            texts = (Text.from_markup(str(cell)) for cell in (column.header, *column.cells))
            column.min_width = max(text.cell_len for text in texts)
    # The minimum width of a table depends on the width that it may take.
    options = console.options.update(max_width=UNLIMITED)
    if Measurement.get(console, options, table).minimum <= console.width:
        console.print(table)
        return
    heads = [str(column.header) for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        title, *cells = map(str, row)
        print_markup(console, f"[bold]{heads[0]} {title}[/]".replace("[bold] ", "[bold]"))
        block = Table(show_header=False, box=None, padding=(0, 2, 0, 2), pad_edge=True)
        for head, cell in zip(heads[1:], cells, strict=True):
            # an empty cell would be a heading without a value
            if cell:
                block.add_row(head, cell)
        console.print(block)


def print_path(label: str, path: Path) -> None:
    """Print where a file is, if it was written."""
    if path.exists():
        get_stdout().print(f"[bold]{label}[/]  {escape(path)}", soft_wrap=True)


def print_next_command(*arguments: object) -> None:
    """Print the command to type next, ready to be copied into a shell."""
    console = get_stdout()
    words = ["paretocosmos", *(escape(shlex.quote(str(word))) for word in arguments)]
    width = console.width if console.is_terminal else UNLIMITED
    console.print(f"[bold]next[/]  {_wrap_command(words, width - 8)}", soft_wrap=True)


def _wrap_command(words: Sequence[str], width: int) -> str:
    r"""Wrap the words of a command into lines that a shell reads as one.

    >>> print(_wrap_command(["paretocosmos", "choose", "runs/adult", "--max", "tpr_gap=0.02"], 30))
    paretocosmos choose runs/adult \
          --max tpr_gap=0.02
    """
    lines = [words[0]]
    for word in words[1:]:
        longer = f"{lines[-1]} {word}"
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return " \\\n      ".join(lines)
