"""Numbers, amounts and texts of others, as a terminal, a sentence or a notebook shows them."""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

# Characters that would steer a terminal or turn the direction of reading, and half characters.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# A notebook's own style decides the colours, light or dark.
CELL_STYLE = "padding:2px 10px;text-align:right;white-space:nowrap"


def sanitize(text: str, *, keep: str = "") -> str:
    r"""Write control characters as escapes, so that a text from a file cannot steer a terminal.

    Args:
        text: any text, such as one from a file.
        keep: control characters that stay, such as line breaks.

    >>> print(sanitize("a\n\x1b[2J"))
    a\n\x1b[2J
    """
    return CONTROL.sub(lambda m: m[0] if m[0] in keep else ascii(m[0])[1:-1], text)


def sanitize_line(text: str) -> str:
    r"""Return a text as one line without control characters.

    >>> print(sanitize_line("a\n\x1b[2J"))
    a \x1b[2J
    """
    return sanitize(" ".join(text.split()))


def format_number(value: float | None) -> str:
    """Return four digits after the point, or a dash for a number that does not exist.

    >>> format_number(0.25), format_number(float("nan"))
    ('0.2500', '-')
    """
    return "-" if value is None or not math.isfinite(value) else f"{value:.4f}"


def format_mean(values: Sequence[float]) -> str:
    """Return the mean and, of several, the standard deviation; a dash if one does not exist.

    >>> format_mean([0.25, 0.75]), format_mean([0.25]), format_mean([float("nan")] * 2)
    ('0.5000 ± 0.3536', '0.2500', '-')
    """
    mean = format_number(fmean(values))
    # a single value has no deviation
    finite = len(values) > 1 and all(map(math.isfinite, values))
    return f"{mean} ± {stdev(values):.4f}" if finite else mean


def format_bytes(size: int) -> str:
    """Format a number of bytes.

    >>> format_bytes(3_140_000_000), format_bytes(84_000_000)
    ('3.1 GB', '84 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def format_share(share: float) -> str:
    """Format a percentage; small values print as <1 %.

    >>> format_share(0.0), format_share(0.001), format_share(0.034)
    ('0 %', '<1 %', '3 %')
    """
    # 0 % would say that there is nothing at all
    return "<1 %" if 0 < share < 0.005 else f"{share:.0%}".replace("%", " %")


def format_duration(seconds: float) -> str:
    """Format hours, minutes and seconds.

    >>> format_duration(3725.4), format_duration(-1)
    ('1:02:05', '0:00:00')
    """
    total = max(0, round(seconds))
    return f"{total // 3600}:{total // 60 % 60:02}:{total % 60:02}"


def pick_evenly(count: int, most: int) -> list[int]:
    """Return at most so many indices of a sequence, evenly spread from end to end.

    >>> pick_evenly(25, 5), pick_evenly(3, 5)
    ([0, 6, 12, 18, 24], [0, 1, 2])
    """
    if count <= most:
        return list(range(count))
    # scaled so that the first and the last are always among them
    return [round(index * (count - 1) / (most - 1)) for index in range(most)]


@dataclass(frozen=True)
class Grid:
    """A small table of texts, for what a prompt and a notebook show of a value.

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
        """Return the table with its columns aligned to the right, for a prompt."""
        # escaped before the widths are measured, since that changes them
        lines = [list(map(sanitize, row)) for row in (self.heads, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "".join(f"  {cell:>{width}}" for cell, width in zip(line, widths, strict=True))
            for line in lines
        ]
        return "\n".join(map(str.rstrip, [sanitize(self.title), *table, *self.notes]))

    def html(self) -> str:
        """Return the table without a style sheet; no text in it is ever read as HTML."""

        def join_cells(tag: str, texts: Sequence[str]) -> str:
            return "".join(
                f'<{tag} style="{CELL_STYLE}">{html.escape(text)}</{tag}>' for text in texts
            )

        rows = "".join(f"<tr>{join_cells('td', row)}</tr>" for row in self.rows)
        notes = "".join(
            re.sub(r"`(.+?)`", r"<code>\1</code>", f"<div>{html.escape(note)}</div>")
            for note in self.notes
        )
        return (
            f"<div><strong>{html.escape(self.title)}</strong></div><table><thead>"
            f"<tr>{join_cells('th', self.heads)}</tr></thead><tbody>{rows}</tbody></table>{notes}"
        )
