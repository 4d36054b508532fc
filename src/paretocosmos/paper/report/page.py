"""A report as Markdown, and as one HTML page that loads nothing."""

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from string import Template
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from paretocosmos.io import palette
from paretocosmos.paper.report.tables import Section, Table


def render_markdown(
    sections: Sequence[Section],
    *,
    verdict: Sequence[Section] = (),
    title: str = "Reproduction",
    opening: str = "",
    folder: str = "figures",
) -> str:
    """Render all sections, with links to the pictures.

    Args:
        sections: in their order.
        verdict: what stands first.
        title: of the page.
        opening: Markdown that stands between both.
        folder: where the pictures are, from the page.

    >>> render_markdown([]).strip()
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
        yield from (f"> {_plain(claim.text)}", "", _plain(claim.verdict), "")
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
    for index, row in enumerate(table.rows):
        texts = [_plain(text) for text in row]
        texts = [f"**{t}**" if (index, n) in table.strong else t for n, t in enumerate(texts)]
        yield f"| {' | '.join(texts)} |"
    yield ""
    for mark, note in table.notes.items():
        yield from (f"({_plain(mark)}) {_plain(note)}", "")


def _plain(text: str) -> str:
    """Escape a text for Markdown and put it on one line.

    What stands in backticks stays as it is.
    """
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        piece.replace("|", "\\|")
        if piece.startswith("`")
        else re.sub(r"([\\*_<>|\[\]#&])", r"\\\1", piece)
        for piece in pieces
    )


def render_page(text: str, pictures: Mapping[str, bytes]) -> str:
    """Render a page with its pictures inside. There is no script, and no request is allowed.

    Args:
        text: Markdown; HTML in it is text.
        pictures: every PNG, by its address in the Markdown.

    >>> render_page("# Reproduction", {})[:15]
    '<!doctype html>'
    """
    converter = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    converter.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>\n')
    converter.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = converter.parse(text)
    links: list[str] = []
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open" and heading.tag == "h2":
            heading.attrSet("id", f"section-{len(links) + 1}")
            links.append(
                f'<li><a href="#section-{len(links) + 1}">{_heading_text(content)}</a></li>'
            )
        for image in content.children or ():
            if image.type == "image":
                png = base64.b64encode(pictures[str(image.attrGet("src"))]).decode()
                image.attrSet("src", f"data:image/png;base64,{png}")
    contents = f"<nav><ul>{''.join(links)}</ul></nav>" if len(links) > 1 else ""
    body = converter.renderer.render(tokens, converter.options, {})
    folder = files("paretocosmos.paper.report")
    style = palette.css() + folder.joinpath("page.css").read_text(encoding="utf-8")
    return Template(folder.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        title=next((_heading_text(token) for token in tokens if token.type == "inline"), ""),
        style=style,
        body=body.replace("</h1>", f"</h1>\n{contents}", 1),
    )


def _heading_text(heading: Token) -> str:
    return html.escape("".join(child.content for child in heading.children or ()))
