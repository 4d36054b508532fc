"""What a report is made of: sections of sentences, tables and pictures."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from paretocosmos.io.schema.collected import CellResult

__all__ = ["NONE", "Claim", "Columns", "Footnotes", "Picture", "Section", "Table", "table_of"]

NONE = "–"
"""Stands where there is no number."""

Columns = Sequence[tuple[str, Callable[[CellResult], str]]]
"""The columns of a table that has a row per cell: their names, and what they show of a cell."""


@dataclass(frozen=True)
class Table:
    """Texts in rows and columns.

    Attributes:
        title: what stands above it.
        head: the columns' names; the first column names the rows.
        rows: as many texts each.
        strong: rows and columns of what is best.
        notes: sentences below, by their marks, such as "1".
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    notes: dict[str, str] = field(default_factory=dict)


def table_of(title: str, cells: Iterable[CellResult], columns: Columns) -> Table:
    """A table with a row per cell."""
    rows = tuple(tuple(text(cell) for _, text in columns) for cell in cells)
    return Table(title, tuple(name for name, _ in columns), rows)


class Footnotes:
    """Sentences below a table, each once, with a mark of its own.

    >>> notes = Footnotes()
    >>> notes.mark("So it is."), notes.mark("Or so."), notes.mark("So it is.")
    ('1', '2', '1')
    """

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def mark(self, sentence: str) -> str:
        """The mark of a sentence."""
        return self._marks.setdefault(sentence, str(len(self._marks) + 1))

    def by_mark(self) -> dict[str, str]:
        """The sentences by their marks."""
        return {mark: sentence for sentence, mark in self._marks.items()}


@dataclass(frozen=True)
class Picture:
    """A drawn figure: the stem of its files, what it shows, and its PNG."""

    name: str
    caption: str
    png: bytes = field(repr=False)


@dataclass(frozen=True)
class Claim:
    """What the paper says, what is found, and of what that is made up."""

    text: str
    found: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """All there is to say of one recipe, or of all of them.

    Attributes:
        name: the recipe's.
        title: the recipe's.
        source: where the paper has it; empty if it is on all of them.
        warning: that it was a rehearsal; empty if not.
        claims: what the paper says, and what is found.
        tables: the numbers.
        pictures: the figures.
        notes: what is missing, what failed, where it was made.
        lead: a paragraph that stands first.
    """

    name: str
    title: str
    source: str = ""
    warning: str = ""
    claims: tuple[Claim, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    lead: str = ""
