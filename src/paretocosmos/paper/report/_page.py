"""A report as one HTML page that opens anywhere and asks the network for nothing."""

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files

from paretocosmos.paper.report._parts import LONG, Picture, Section, Table

__all__ = ["page"]


def page(sections: Sequence[Section], *, title: str = "Reproduction") -> str:
    """All sections; pictures are inside. There is no script, and no request is allowed.

    Args:
        sections: in their order.
        title: of the page.

    >>> page([])[:15]
    '<!doctype html>'
    """
    style = files("paretocosmos.paper.report").joinpath("page.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'"
    body = "\n".join(line for section in sections for line in _section(section))
    links = "".join(
        f'<li><a href="#{_anchor(s.name)}">{_plain(s.title)}</a></li>' for s in sections
    )
    contents = f"<nav><ul>{links}</ul></nav>" if len(sections) > 1 else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_plain(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body><main>\n<h1>{_plain(title)}</h1>\n{contents}\n{body}\n</main></body>\n</html>\n"
    )


def _section(section: Section) -> Iterator[str]:
    yield f'<section id="{_anchor(section.name)}"><h2>{_plain(section.title)}</h2>'
    if section.source:
        yield f'<p class="quiet"><code>{_plain(section.name)}</code>: {_plain(section.source)}.</p>'
    yield from (f"<p>{_plain(text)}</p>" for text in section.lead)
    if section.warning:
        yield f'<p class="warning">{_plain(section.warning)}</p>'
    for claim, found, details in section.claims:
        yield f"<blockquote>{_plain(claim)}</blockquote><p>{_plain(found)}</p>"
        yield from _items(details)
    yield from (_picture(picture) for picture in section.pictures)
    for table in section.tables:
        yield from _table(table)
    yield from _items(section.notes)
    yield "</section>"


def _items(texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield f"<ul>{''.join(f'<li>{_plain(text)}</li>' for text in texts)}</ul>"


def _picture(picture: Picture) -> str:
    source = f"data:image/png;base64,{base64.b64encode(picture.png).decode()}"
    return f'<figure><img src="{source}" alt="{_plain(picture.caption)}"></figure>'


def _table(table: Table) -> Iterator[str]:
    head = "".join(_cell('th scope="col"', _plain(t), n, table) for n, t in enumerate(table.head))
    yield f"<h3>{_plain(table.title)}</h3>"
    yield f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>'
    for at, row in enumerate(table.rows):
        texts = [
            f"<strong>{_plain(text)}</strong>" if (at, n) in table.strong else _plain(text)
            for n, text in enumerate(row)
        ]
        cells = "".join(_cell("td", text, n, table) for n, text in enumerate(texts) if n)
        yield f'<tr><th scope="row">{texts[0]}</th>{cells}</tr>'
    yield "</tbody></table></div>"
    for mark, note in table.notes.items():
        yield f'<p class="note">({_plain(mark)}) {_plain(note)}</p>'


def _cell(tag: str, content: str, column: int, table: Table) -> str:
    long = any(len(row[column]) > LONG for row in table.rows)
    name = ' class="text"' if long else ' class="name"' if column < table.named else ""
    return f"<{tag}{name}>{content}</{tag.partition(' ')[0]}>"


def _anchor(name: str) -> str:
    return html.escape(re.sub(r"[^\w.-]+", "-", name))


def _plain(text: str) -> str:
    """A text that means itself; what stands in backticks is code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))
