"""A report in Markdown."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from paretocosmos.paper.report._parts import Section, Table

__all__ = ["markdown"]


def markdown(
    sections: Sequence[Section],
    *,
    verdict: Sequence[Section] = (),
    title: str = "Reproduction",
    opening: str = "",
    folder: str = "figures",
) -> str:
    """All sections, with links to the pictures.

    Args:
        sections: in their order.
        verdict: what stands first.
        title: of the page.
        opening: Markdown that stands between both.
        folder: where the pictures are, from the page.

    >>> markdown([]).strip()
    '# Reproduction'
    """
    lines = [f"# {_plain(title)}", ""]
    for section in verdict:
        lines += _section(section, folder)
    lines += [opening, ""] if opening else []
    for section in sections:
        lines += _section(section, folder)
    return "\n".join(lines)


def _section(section: Section, folder: str) -> Iterator[str]:
    yield from (f"## {_plain(section.title)}", "")
    if section.source:
        yield from (f"`{section.name}`: {_plain(section.source)}.", "")
    if section.lead:
        yield from (_plain(section.lead), "")
    if section.warning:
        yield from (f"> **{_plain(section.warning)}**", "")
    for claim in section.claims:
        yield from (f"> {_plain(claim.text)}", "", _plain(claim.found), "")
        yield from _items(claim.details)
    for picture in section.pictures:
        caption = _plain(picture.caption)
        yield from (f"![{caption}]({quote(f'{folder}/{picture.name}.png')})", "")
    for table in section.tables:
        yield from _table(table)
    yield from _items(section.notes)


def _items(texts: Sequence[str]) -> Iterator[str]:
    yield from (f"- {_plain(text)}" for text in texts)
    yield from [""] if texts else []


def _table(table: Table) -> Iterator[str]:
    yield from (f"### {_plain(table.title)}", "")
    yield f"| {' | '.join(_plain(text) for text in table.head)} |"
    yield "|---" * len(table.head) + "|"
    for at, row in enumerate(table.rows):
        texts = [_plain(text) for text in row]
        texts = [f"**{t}**" if (at, n) in table.strong else t for n, t in enumerate(texts)]
        yield f"| {' | '.join(texts)} |"
    yield ""
    for mark, note in table.notes.items():
        yield from (f"({_plain(mark)}) {_plain(note)}", "")


def _plain(text: str) -> str:
    """A text that means itself: one line, nothing in it that Markdown reads as markup.

    What stands in backticks stays as it is.
    """
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        part.replace("|", "\\|")
        if part.startswith("`")
        else re.sub(r"([\\*_<>|\[\]#&])", r"\\\1", part)
        for part in parts
    )
