"""A report in LaTeX: a document of its own, with booktabs; no text in it is a command."""

import re
from collections.abc import Iterator, Sequence

from paretocosmos.paper.report._parts import LONG, Section, Table

__all__ = ["latex"]

HEAD = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,landscape,margin=15mm]{geometry}
\usepackage{booktabs}
\usepackage{longtable}
\usepackage{graphicx}
\setlength{\tabcolsep}{4pt}
\setlength{\LTcapwidth}{\linewidth}
\begin{document}
"""

# What LaTeX would read as a command, and letters it may have no glyph for.
LETTERS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # after a line's end or an item it would be an argument, and a star a command
    "]": "{]}",
    "*": "{*}",
    "`": r"\textasciigrave{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "×": r"$\times$",
    "→": r"$\to$",
    "–": "--",
    "λ": r"$\lambda$",
    "α": r"$\alpha$",
}


def latex(sections: Sequence[Section], *, folder: str = "figures") -> str:
    r"""All sections as one document.

    Args:
        sections: in their order.
        folder: where the pictures are, from the document, as PDF.

    >>> latex([]).splitlines()[-1]
    '\\end{document}'
    """
    lines = [HEAD.rstrip()]
    for section in sections:
        lines += _section(section, folder)
    return "\n".join([*lines, r"\end{document}", ""])


def _section(section: Section, folder: str) -> Iterator[str]:
    yield rf"\section{{{_plain(section.title)}}}"
    if section.source:
        yield from (rf"\texttt{{{_plain(section.name)}}}: {_plain(section.source)}.", "")
    for text in section.lead:
        yield from (_plain(text), "")
    if section.warning:
        yield from (rf"\textbf{{{_plain(section.warning)}}}", "")
    for claim, found, details in section.claims:
        yield from (rf"\emph{{{_plain(claim)}}} {_plain(found)}", "")
        yield from _items(details)
    for picture in section.pictures:
        yield r"\begin{figure}[htbp]\centering"
        size = r"width=\linewidth,height=.85\textheight,keepaspectratio"
        yield rf"\includegraphics[{size}]{{{folder}/{picture.name}.pdf}}"
        yield from (rf"\caption{{{_plain(picture.caption)}}}", r"\end{figure}", "")
    for table in section.tables:
        yield from _table(table)
    yield from _items(section.notes)


def _items(texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield r"\begin{itemize}"
        yield from (rf"\item {_plain(text)}" for text in texts)
        yield from (r"\end{itemize}", "")


def _table(table: Table) -> Iterator[str]:
    """A long table: it may go over a page."""
    yield r"{\footnotesize"
    yield rf"\begin{{longtable}}{{{_columns(table)}}}"
    yield rf"\caption{{{_plain(table.title)}}}\\"
    yield r"\toprule"
    yield _row(table.head) + r" \midrule \endfirsthead"
    yield r"\toprule"
    yield _row(table.head) + r" \midrule \endhead"
    yield r"\bottomrule \endfoot"
    for at, row in enumerate(table.rows):
        yield _row(row, [(at, n) in table.strong for n in range(len(row))])
    yield r"\end{longtable}}"
    for mark, note in table.notes.items():
        yield from (rf"({_plain(mark)}) {_plain(note)}", "")
    yield ""


def _columns(table: Table) -> str:
    """Names to the left, numbers to the right; columns of long texts share the page."""
    long = [any(len(text) > LONG for text in texts) for texts in zip(*table.rows, strict=True)] or [
        False
    ] * len(table.head)
    broken = rf"p{{{0.7 / max(sum(long), 1):.2f}\linewidth}}"
    short = "l" * table.named + "r" * (len(table.head) - table.named)
    return "".join(broken if b else s for s, b in zip(short, long, strict=True))


def _row(texts: Sequence[str], strong: Sequence[bool] = ()) -> str:
    plain = [_plain(text) for text in texts]
    bold = [*strong, *[False] * (len(plain) - len(strong))]
    shown = [rf"\textbf{{{t}}}" if b else t for t, b in zip(plain, bold, strict=True)]
    return " & ".join(shown) + r" \\"


def _plain(text: str) -> str:
    """A text that means itself; a letter that cannot be set becomes a question mark."""
    line = re.sub(r"`([^`]*)`", r"\1", " ".join(text.split()))
    return "".join(LETTERS.get(c, c if ord(c) < 256 else "?") for c in line)
