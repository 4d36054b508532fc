"""Markdown in which names from data mean themselves."""

import html
import re
from collections.abc import Iterable, Sequence


def plain(text: object) -> str:
    r"""A text as one line, with nothing in it that a reader of Markdown or HTML takes for markup.

    >>> print(plain("a|b <script> native_country"))
    a\|b &lt;script&gt; native_country
    """
    line = html.escape(" ".join(str(text).split()), quote=False)
    # an underscore between letters is no emphasis
    signs = r"[\\`*\[\]|~#$]|(?<![^\W_])_|_(?![^\W_])"
    line = re.sub(signs, lambda found: f"\\{found[0]}", line)
    # a bare address would become a link
    return re.sub(r"(?i)(https?|ftp|www)([:.])", r"\1\\\2", line)


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table."""
    lines = [[plain(text) for text in row] for row in (head, *rows)]
    lines.insert(1, ["---"] * len(head))
    return ["| " + " | ".join(line) + " |" for line in lines]


def code(text: str, language: str = "python") -> list[str]:
    """The lines of a block of code, in a fence longer than any inside."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *text.splitlines(), fence]
