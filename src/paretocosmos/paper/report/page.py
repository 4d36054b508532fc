"""A report as Markdown, rendered from templates, and as one HTML page that loads nothing."""

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import jinja2
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from paretocosmos.io import palette
from paretocosmos.paper.published import device_title, method_title
from paretocosmos.paper.report import tables
from paretocosmos.paper.report.figures import Picture
from paretocosmos.paper.report.verdict import arrange_verdict, summarize_claim
from paretocosmos.paper.results import RecipeResult, title_benchmark

FOLDER = Path(__file__).parent


def render_report(
    results: Sequence[RecipeResult],
    pictures: Mapping[str, Sequence[Picture]] | None = None,
    *,
    title: str = "Reproduction",
    opening: str = "",
    folder: str = "figures",
) -> str:
    """Render a report of some recipes as Markdown: the verdict, and a section for each.

    Args:
        results: what `collect_results` returned for each recipe.
        pictures: of each recipe, by its name.
        title: of the page.
        opening: Markdown that stands after the verdict.
        folder: where the pictures are, from the page.

    >>> render_report([]).strip()
    '# Reproduction'
    """
    sections = [
        {
            "result": result,
            "labels": tables.label_experiments(result.experiments),
            "pictures": (pictures or {}).get(result.recipe, ()),
            "notes": list(_list_notes(result)),
            "mark": f" (rehearsal, {format_epochs(result)})" if result.rehearsal else "",
            **(tables.TABLES[result.shows](result) if result.shows in tables.TABLES else {}),
        }
        for result in results
    ]
    text = (
        _create_environment()
        .get_template("report.md.jinja")
        .render(
            title=title,
            verdict=arrange_verdict(results),
            opening=opening,
            sections=sections,
            folder=folder,
        )
    )
    # parts of a template that are left out leave their blank lines
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def format_epochs(result: RecipeResult) -> str:
    """Format the epochs of a rehearsal."""
    return f"{result.rehearsal} epoch{'s' * (result.rehearsal != 1)}"


@cache
def _create_environment() -> jinja2.Environment:
    """Create what templates of Markdown are rendered in: every expression is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        trim_blocks=True,
        lstrip_blocks=True,
        # a misspelt name raises, instead of leaving a gap in a report
        undefined=jinja2.StrictUndefined,
        # with autoescape macros return `Markup`, which `escape_markdown` does not escape again
        autoescape=True,
        finalize=escape_markdown,
    )
    environment.filters |= {
        "difference": tables.format_difference,
        "duration": tables.format_duration,
        "printed": tables.format_printed,
        "rate": tables.format_rate,
        "ratio": tables.format_ratio,
        "spread": tables.format_spread,
        "thousands": tables.format_thousands,
        # `Markup`, so that what is in backticks is not escaped
        "code": lambda name: Markup(f"`{name}`"),
        "mark_in": lambda sentence, notes: notes.mark(sentence),
    }
    environment.globals |= {
        "NONE": tables.NONE,
        "format_epochs": format_epochs,
        "method_title": method_title,
        "summarize_claim": summarize_claim,
        "tables": tables,
        "title_benchmark": title_benchmark,
    }
    return environment


def escape_markdown(value: object) -> Markup:
    r"""Escape a text for Markdown and put it on one line; code in backticks stays as it is.

    >>> print(escape_markdown("a_b | `c_d`\n<i>"))
    a\_b \| `c_d` \<i\>
    """
    if isinstance(value, Markup):
        return value
    # the group keeps the code among the pieces: without it, `split` drops what it matches
    pieces = re.split(r"(`[^`]*`)", re.sub(r"\s+", " ", str(value)))
    return Markup(
        "".join(
            # a pipe would end the cell of a table even inside of code
            piece.replace("|", "\\|")
            if piece.startswith("`")
            else re.sub(r"([\\*_<>|\[\]#&])", r"\\\1", piece)
            for piece in pieces
        )
    )


def _list_notes(result: RecipeResult) -> Iterator[str]:
    """Yield what is missing, how long it took, how it was produced, and its caveats."""
    done, total = result.done, len(result.experiments)
    missing: dict[tuple[int, ...], list[str]] = {}
    for experiment in result.experiments:
        if experiment.error is not None:
            yield f"Failed: `{experiment.name}`: {experiment.error}"
        if experiment.missing:
            missing.setdefault(tuple(experiment.missing), []).append(f"`{experiment.name}`")
    for seeds, names in missing.items():
        # a list of all experiments would only hide that it is all of them
        scope = "all experiments" if len(names) == total else ", ".join(names)
        yield f"Missing: seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))} of {scope}."
    phases = ("training", "preparing", "evaluating")
    times = (f"{tables.format_duration(result.sum_seconds(p))} {p}" for p in phases)
    yield f"Time: {', '.join(times)}."

    def distinct(key: str) -> str:
        answers = (str(answer) for experiment in done for answer in experiment.made[key])
        return " and ".join(dict.fromkeys(map(device_title, answers))) or "unknown"

    yield (
        f"Produced by paretocosmos {distinct('version')} (source hash {distinct('source')}) on "
        f"{distinct('device')}, threads {distinct('threads')}, torch {distinct('torch')}, "
        f"precision {distinct('precision')}, engine {distinct('engine')}, seeds trained together: "
        f"{distinct('seeds_together')}."
    )
    images = (f"{title_benchmark(e.benchmark)}: {t}." for e in done for t in e.made["images"])
    yield from dict.fromkeys([*images, *(text for e in done for text in e.made["caveats"])])


def render_page(text: str, pictures: Mapping[str, bytes]) -> str:
    """Render a page with its pictures inside. There is no script, and no request is allowed.

    Args:
        text: Markdown; HTML in it is text.
        pictures: every PNG, by its address in the Markdown.

    >>> render_page("# Reproduction", {})[:15]
    '<!doctype html>'
    """
    # names and errors may come from third-party code: HTML in them must stay text
    converter = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    # a wide table scrolls by itself, by keyboard too, which is what `tabindex` is for
    converter.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>\n')
    converter.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = converter.parse(text)
    links: list[str] = []
    # the text of a heading is in the token after the one that opens it
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open" and heading.tag == "h2":
            anchor = f"section-{len(links) + 1}"
            heading.attrSet("id", anchor)
            links.append(f'<li><a href="#{anchor}">{_get_heading_text(content)}</a></li>')
        for image in content.children or ():
            if image.type == "image":
                # inside of the page, which has to open anywhere without its folder
                png = base64.b64encode(pictures[str(image.attrGet("src"))]).decode()
                image.attrSet("src", f"data:image/png;base64,{png}")
    contents = f"<nav><ul>{''.join(links)}</ul></nav>" if len(links) > 1 else ""
    body = converter.renderer.render(tokens, converter.options, {})
    style = palette.css() + (FOLDER / "page.css").read_text(encoding="utf-8")
    page = (FOLDER / "page.html.jinja").read_text(encoding="utf-8")
    rendered: str = jinja2.Template(page, keep_trailing_newline=True).render(
        # the security policy allows this style alone, by its hash
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        title=next((_get_heading_text(token) for token in tokens if token.type == "inline"), ""),
        style=style,
        # right below the title, the only heading of the first level
        body=body.replace("</h1>", f"</h1>\n{contents}", 1),
    )
    return rendered


def _get_heading_text(heading: Token) -> str:
    return html.escape("".join(child.content for child in heading.children or ()))
