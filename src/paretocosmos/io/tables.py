"""Small tables as text and as HTML, for what a prompt and a notebook show of a value."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from paretocosmos.io.text import printable

__all__ = ["Grid", "mean_of_numbers", "number", "spread"]

# What a notebook's own style leaves open; its colours stay, light or dark.
CELL = "padding:2px 10px;text-align:{side};white-space:nowrap"


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Attributes:
        title: a line above it.
        heads: of the columns.
        rows: each with a text per column.
        notes: lines below it.

    >>> print(Grid("Two", ["a", "b"], [["1", "2.5"]]).text())
    Two
      a    b
      1  2.5
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Columns to the right, for a prompt."""
        lines = [list(map(printable, row)) for row in (self.heads, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "".join(f"  {cell:>{width}}" for cell, width in zip(line, widths, strict=True))
            for line in lines
        ]
        return "\n".join(map(str.rstrip, [printable(self.title), *table, *self.notes]))

    def html(self) -> str:
        """A table without a style sheet; no text in it is ever read as HTML."""
        head = "".join(_cell("th", text, "right") for text in self.heads)
        rows = "".join(
            f"<tr>{''.join(_cell('td', text, 'right') for text in row)}</tr>" for row in self.rows
        )
        notes = "".join(f"<div>{html.escape(note)}</div>" for note in self.notes)
        return (
            f"<div><strong>{html.escape(self.title)}</strong></div>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"
        )


def _cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} style="{CELL.format(side=side)}">{html.escape(text)}</{tag}>'


def number(value: float | None) -> str:
    """Return four digits after the point, or a dash for a number that does not exist.

    >>> number(0.25), number(float("nan"))
    ('0.2500', '-')
    """
    return "-" if value is None or not math.isfinite(value) else f"{value:.4f}"


def mean_of_numbers(values: Sequence[float]) -> str:
    """Return their mean and, of several, their standard deviation; a dash if one does not exist.

    >>> mean_of_numbers([0.25, 0.75]), mean_of_numbers([0.25]), mean_of_numbers([float("nan")] * 2)
    ('0.5000 ± 0.3536', '0.2500', '-')
    """
    mean = number(fmean(values))
    known = len(values) > 1 and all(map(math.isfinite, values))
    return f"{mean} ± {stdev(values):.4f}" if known else mean


def spread(count: int, most: int) -> list[int]:
    """At most so many places of a sequence, from end to end.

    >>> spread(25, 5), spread(3, 5)
    ([0, 6, 12, 18, 24], [0, 1, 2])
    """
    if count <= most:
        return list(range(count))
    return [round(at * (count - 1) / (most - 1)) for at in range(most)]
