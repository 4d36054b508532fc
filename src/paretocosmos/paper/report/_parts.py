"""What a report is made of, whatever it is written in: sections of sentences, tables, pictures."""

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["LONG", "NONE", "Claim", "Picture", "Section", "Table"]

NONE = "–"
"""Stands where there is no number."""

LONG = 60
"""Letters in a cell of a table from which on its column is broken into lines."""


@dataclass(frozen=True)
class Table:
    """Texts in rows and columns.

    Attributes:
        title: what stands above it.
        head: the columns' names; the first column names the rows.
        rows: as many texts each.
        strong: rows and columns of what is best.
        notes: sentences below, by their marks, such as "1".
        named: how many columns at the left are names, not numbers.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    notes: dict[str, str] = field(default_factory=dict)
    named: int = 1


@dataclass(frozen=True)
class Picture:
    """A drawn figure: the stem of its files, what it shows, and its PNG."""

    name: str
    caption: str
    png: bytes = field(repr=False)


class Claim(NamedTuple):
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
        lead: paragraphs that stand first.
    """

    name: str
    title: str
    source: str
    warning: str
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...]
    notes: tuple[str, ...]
    lead: tuple[str, ...] = ()
