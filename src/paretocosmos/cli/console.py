"""Print to the terminal: tables and JSON on stdout, notes and errors on stderr."""

import io
import json
import os
import re
import shlex
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import markup
from rich.console import Console
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
        ) from error
    sys.stdout.write(text)


def escape(text: object) -> str:
    r"""Return a text without rich's markup and without control characters.

    >>> print(escape("[bold]\x1b[31mred"))
    \[bold]\x1b[31mred
    """
    return markup.escape(sanitize(str(text)))


def shorten(message: str) -> str:
    r"""Return a message without control characters and with long words cut.

    >>> print(shorten("no file `\x1b[31mred`"))
    no file `\x1b[31mred`
    >>> len(shorten("x" * 1000))
    121
    """
    text = re.sub(
        rf"[^\s`'\"]{{{MAX_WORD},}}",
        lambda word: f"{word[0][:60]}...({len(word[0]):,} letters)...{word[0][-40:]}",
        sanitize(message, keep="\n"),
    )
    # the end is kept, too: it has the way out
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 500]} ... {text[-400:]}"


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
    # a word longer than a line gets its own, whole: a path that is cut could not be copied
    paragraph = Text.from_markup(text)
    breaks = _find_breaks(paragraph.plain, console.width) if console.is_terminal else []
    for line in paragraph.divide(breaks):
        line.rstrip()
        console.print(line, soft_wrap=True)


def _find_breaks(text: str, width: int) -> list[int]:
    """Find where to break a text into lines; a word longer than a line gets its own.

    Rich would cut such a word, and a path could not be copied.

    >>> _find_breaks("words are not broken", 10)
    [10]
    """
    breaks, start = [], 0
    for word in re.finditer(r"\S+", text):
        if word.end() - start > width and word.start() > start:
            start = word.start()
            breaks.append(start)
    return breaks


def print_fields(fields: Mapping[str, object]) -> None:
    """Print a line for each field: its name in bold, then its value with a hanging indent."""
    console = get_stdout()
    indent = max(map(len, fields)) + 4
    for name, value in fields.items():
        lines = textwrap.wrap(
            sanitize(str(value)),
            max(console.width - indent, 1),
            break_long_words=False,
            break_on_hyphens=False,
        )
        text = f"\n{' ' * indent}".join(map(markup.escape, lines))
        console.print(f"  [bold]{name:<{indent - 2}}[/]{text}", soft_wrap=True)


def print_value(value: object) -> None:
    """Print a front or a choice as a prompt of Python shows it."""
    text = sanitize(str(value), keep="\n")
    get_stdout().print(text, markup=False, emoji=False, soft_wrap=True)


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


def make_table(*heads: str, **options: Any) -> Table:
    """Return an empty table, the first column of which names the rows and the others hold numbers.

    >>> [column.justify for column in make_table("method", "time").columns]
    ['left', 'right']
    """
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", **options)
    for index, head in enumerate(heads):
        # folded where there is no room: a number that is cut would be another number
        table.add_column(escape(head), justify="right" if index else "left", overflow="fold")
    return table


def print_path(label: str, path: Path) -> None:
    """Print where a file is, if it was written."""
    if path.exists():
        get_stdout().print(f"[bold]{label}[/]  {escape(path)}", soft_wrap=True)


def print_next_command(*arguments: object) -> None:
    """Print the command to type next, ready to be copied into a shell."""
    command = shlex.join(["paretocosmos", *map(str, arguments)])
    get_stdout().print(f"[bold]next[/]  {escape(command)}", soft_wrap=True)
