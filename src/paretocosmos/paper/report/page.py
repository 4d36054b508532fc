"""A report: its verdict, its Markdown, and one HTML page of it that loads nothing."""

import base64
import hashlib
import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import jinja2
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from paretocosmos.io import palette
from paretocosmos.paper.published import device_title, method_title, problem_title
from paretocosmos.paper.report import tables
from paretocosmos.paper.report.figures import Picture
from paretocosmos.paper.results import (
    ClaimResult,
    ClaimRow,
    ExperimentResult,
    RecipeResult,
    combine_verdicts,
    title_benchmark,
)

FOLDER = Path(__file__).parent
# Lin et al. describe a draw of the images that is harder than the published files.
DRAW = " Here on a harder draw than the paper's."
KINDS = {"yes": "on every set", "on": "on some sets only", "no": "on none", "open": "still open"}


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
            "mark": f" (rehearsal, {tables.format_epochs(result)})" if result.rehearsal else "",
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
        "format_epochs": tables.format_epochs,
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


def arrange_verdict(results: Sequence[RecipeResult]) -> dict[str, Any] | None:
    """Arrange the verdict; `None` where no number and no claim of the paper was judged.

    Args:
        results: what `collect_results` returned for each recipe; rehearsals are left aside.
    """
    # a rehearsal of a few epochs reproduces nothing
    finished = [result for result in results if result.rehearsal is None]
    by_name: dict[str, ExperimentResult] = {}
    for experiment in (e for result in finished for e in result.experiments):
        # a variation or another protocol has no number in print
        is_in_paper = not experiment.settings and experiment.protocol != "clean"
        if is_in_paper and experiment.comparison.differs is not None:
            by_name.setdefault(experiment.name, experiment)  # recipes share experiments
    experiments = list(by_name.values())
    claims = [(claim, result.recipe) for result in finished for claim in result.claims]
    if not experiments and not claims:
        return None
    # the paper's own draw first: `sort` is stable, so recipes keep their order otherwise
    claims.sort(key=lambda pair: pair[0].harder)
    notes = tables.Footnotes()
    # the paper makes its claims about its own draw, so the others do not count
    lead = _describe_reproduced(experiments, [claim for claim, _ in claims if not claim.harder])
    return {
        "lead": " ".join(lead),
        "numbers": [
            _compare_benchmark([e for e in experiments if e.benchmark == key], notes)
            for key in tables.list_benchmarks(experiments)
        ],
        "notes": notes,
        "claims": [
            (
                claim.claim + (DRAW if claim.harder else ""),
                _answer_claim(claim),
                summarize_claim(claim),
                f"`{recipe}`",
            )
            for claim, recipe in claims
        ],
    }


def _count_same(experiments: Sequence[ExperimentResult]) -> str:
    """Count the hypervolumes that are the paper's within the noise."""
    same = sum(not experiment.comparison.differs for experiment in experiments)
    return f"{same} of {len(experiments)}"


def _describe_reproduced(
    experiments: Sequence[ExperimentResult], claims: Sequence[ClaimResult]
) -> Iterator[str]:
    """Yield a sentence on the main claim, one on all numbers, and one on all claims."""
    answers = [_answer_claim(claim) for claim in claims]
    if claims:
        # the first recipe is Table 1, whose first claim is the paper's main one
        verbs = {"yes": "holds", "no": "does not hold", "open": "is open"}
        verb = verbs.get(answers[0], f"holds {answers[0]}")
        yield f"The paper's main claim {verb}: {claims[0].claim}"
    if experiments:
        cosmos = [experiment for experiment in experiments if experiment.method == "cosmos"]
        tail = f", {_count_same(cosmos)} for COSMOS" if cosmos else ""
        same = _count_same(experiments)
        yield f"{same} published hypervolumes are the same within the noise{tail}."
    if len(claims) > 1:
        # "on 3 of 5 sets" counts as "on"
        count = Counter(answer.partition(" ")[0] for answer in answers)
        counts = [f"{count[kind]} {words}" for kind, words in KINDS.items() if count[kind]]
        yield f"Where its {len(claims)} claims hold: {', '.join(counts)}."


def _answer_claim(claim: ClaimResult) -> str:
    """Answer whether a claim holds, or on how many benchmarks."""
    if claim.holds is not False:
        return "yes" if claim.holds else "open"
    states = [combine_verdicts(rows) for rows in _group_rows(claim).values()]
    return f"on {states.count(True)} of {len(states)} sets" if True in states else "no"


def _compare_benchmark(
    experiments: Sequence[ExperimentResult], notes: tables.Footnotes
) -> tuple[str, ...]:
    """Return a row: the set, COSMOS beside the paper, and how many methods are the same.

    Args:
        experiments: those of one benchmark.
        notes: what the marks of reasons refer to.
    """
    order = tables.sort_methods(experiments)
    different = [e.method for e in experiments if e.comparison.differs]
    counts = _count_same(experiments)
    # names help only if some are the same: "0 of 5" says it all
    if 0 < len(different) < len(experiments):
        counts += f", not {', '.join(method_title(m) for m in order if m in different)}"
    title = problem_title(experiments[0].problem)
    cosmos = next((e for e in experiments if e.method == "cosmos"), None)
    if cosmos is None:
        return title, tables.NONE, tables.NONE, tables.NONE, counts
    comparison, answer = cosmos.comparison, "yes"
    if comparison.differs:
        marks = "".join(f" ({notes.mark(reason)})" for reason in comparison.explanations)
        answer = f"no, {tables.format_difference(comparison.difference('hypervolume'))}{marks}"
    paper = tables.format_printed(comparison.paper, deviation=True)
    return title, tables.format_spread(cosmos.volume), paper, answer, counts


def summarize_claim(claim: ClaimResult) -> str:
    """Return a sentence: on which benchmarks a claim holds, on which it does not, and why."""
    by_title = _group_rows(claim)
    # in the order of the sentence: where it holds, where not, where it is open
    starts = {True: "holds on", False: "does not hold on", None: "open on"}
    titles: dict[bool | None, list[str]] = {state: [] for state in starts}
    for title, rows in by_title.items():
        state = combine_verdicts(rows)
        protocols = {row.benchmark[2] for row in rows}
        # who is ahead by how much, or the numbers of the benchmark in short
        reasons = [
            row.short + (f", {row.benchmark[2]}" if len(protocols) > 1 else "")
            for row in rows
            if row.holds is state and not state
        ]
        titles[state].append(f"{title} ({'; '.join(reasons)})" if reasons else title)
    if len(titles[True]) == len(by_title) > 1:
        return f"Holds on all {len(by_title)} sets."
    parts = [f"{starts[state]} {', '.join(names)}" for state, names in titles.items() if names]
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _group_rows(claim: ClaimResult) -> dict[str, list[ClaimRow]]:
    """Group rows by benchmark, whatever the protocol."""
    by_title: dict[str, list[ClaimRow]] = {}
    for row in claim.rows:
        # that a claim is about the harder draw is said once
        problem, settings, _ = row.benchmark
        title = title_benchmark((problem, "" if claim.harder else settings, None))
        by_title.setdefault(title, []).append(row)
    return by_title


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
