"""A report as one HTML page, from its Markdown; it asks the network for nothing."""

import base64
import hashlib
import html
from collections.abc import Mapping
from importlib.resources import files
from itertools import pairwise
from string import Template

from markdown_it import MarkdownIt
from markdown_it.token import Token

from paretocosmos.io import palette

__all__ = ["page"]


def page(text: str, pictures: Mapping[str, bytes]) -> str:
    """A page with its pictures inside. There is no script, and no request is allowed.

    Args:
        text: Markdown; HTML in it is text.
        pictures: every PNG, by its address in the Markdown.

    >>> page("# Reproduction", {})[:15]
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
            links.append(f'<li><a href="#section-{len(links) + 1}">{_title(content)}</a></li>')
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
        title=next((_title(token) for token in tokens if token.type == "inline"), ""),
        style=style,
        body=body.replace("</h1>", f"</h1>\n{contents}", 1),
    )


def _title(heading: Token) -> str:
    return html.escape("".join(part.content for part in heading.children or ()))
