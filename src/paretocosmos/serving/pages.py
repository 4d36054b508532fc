"""The pages of a server: plain HTML, so that nothing is fetched from elsewhere."""

import base64
import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from paretocosmos.objectives import measure_of, named_label
from paretocosmos.pareto.front import Front
from paretocosmos.runs.run import Run
from paretocosmos.serving.schemas import Rows

STYLE = files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def render_page(title: str, body: str, *, script: str = "") -> str:
    """Render a whole page.

    Args:
        title: as text; texts of a run are always escaped.
        body: as HTML.
        script: of this package, which its policy allows by its hash.
    """
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head>'
    )
    run = f"<script>{script}</script>" if script else ""
    return f"{head}<body><main>{body}</main>{run}</body></html>"


def make_security_policy(script: str = "") -> str:
    """Return the Content-Security-Policy of a page: styles, and just this script."""
    rules = ["default-src 'none'", "style-src 'unsafe-inline'", "img-src data:"]
    rules += ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules += [f"script-src 'sha256-{digest}'", "connect-src 'self'"]
    return "; ".join(rules)


SCRIPT = files(__package__).joinpath("form.js").read_text(encoding="utf-8")
# Columns that have a field each; a body with more is written by hand.
MAX_FIELDS = 40


def begin_curl(address: str, path: str, *, token: bool) -> str:
    """Format a curl line up to its body."""
    secret = ' -H "Authorization: Bearer $PARETOCOSMOS_TOKEN"' if token else ""
    return f"curl {address}{path}{secret} -H 'Content-Type: application/json' -d "


def format_curl(address: str, path: str, body: object, *, token: bool) -> str:
    r"""Format a line to paste into a shell.

    >>> print(format_curl("http://localhost:8000", "/choose", {"knee": True}, token=False))
    curl http://localhost:8000/choose -H 'Content-Type: application/json' -d '{"knee": true}'
    """
    return begin_curl(address, path, token=token) + shlex.quote(json.dumps(body))


def render_docs(
    description: Mapping[str, Any], rows: Rows, names: Sequence[str], address: str, *, token: bool
) -> str:
    """Render `/docs`: the description as a page, with a form to try each question.

    Args:
        description: in OpenAPI's words.
        rows: what a row is.
        names: the objectives.
        address: of this server, as the reader called it.
        token: whether it wants one.
    """
    title = description["info"]["title"]
    elements = [f"<h1>{escape(title)}</h1><p>{escape(description['info']['description'])}"]
    elements.append(
        ' <a href="./">About this model</a>, <a href="openapi.json">openapi.json</a>.</p>'
    )
    for path, verbs in description["paths"].items():
        for verb, operation in verbs.items():
            elements.append(f'<h2 class="path">{verb.upper()} {path}</h2>')
            elements.append(f"<p>{escape(operation['description'])}</p>")
            for body in operation.get("requestBody", {}).get("content", {}).values():
                fields = _render_fields(rows, names) if path == "/predict" else ""
                elements.append(_render_form(path, body["example"], fields, address, token=token))
            if "requestBody" not in operation:
                secret = ' -H "Authorization: Bearer $PARETOCOSMOS_TOKEN"' if token else ""
                elements.append(f'<pre class="wrapped">curl {escape(address)}{path}{secret}</pre>')
            elements.append(_list_statuses(operation["responses"]))
    models = escape(json.dumps(description["components"]["schemas"], indent=1))
    elements.append(f"<details><summary>Bodies and answers</summary><pre>{models}</pre></details>")
    return render_page(title, "\n".join(elements), script=SCRIPT)


def _list_statuses(responses: Mapping[str, Any]) -> str:
    items = (f"<dt>{code}</dt><dd>{escape(a['description'])}</dd>" for code, a in responses.items())
    return f'<details><summary>Answers</summary><dl class="codes">{"".join(items)}</dl></details>'


def _render_form(path: str, example: object, fields: str, address: str, *, token: bool) -> str:
    start = escape(begin_curl(address, path, token=token))
    line = escape(format_curl(address, path, example, token=token))
    body = escape(json.dumps(example, indent=1))
    return (
        f'<form data-path="{path.removeprefix("/")}">{fields}'
        f'<label>The body<textarea spellcheck="false">{body}</textarea></label>'
        f'<pre class="wrapped curl" data-start="{start}">{line}</pre>'
        f'<button>Send</button><pre class="wrapped"><output>The answer comes here.</output></pre>'
        "</form>"
    )


def _render_fields(rows: Rows, names: Sequence[str]) -> str:
    """Render a slider for every objective, and a field for every column of a table."""
    even = 100 // len(names)
    sliders = [
        f'<label>weight of {escape(name)} <b>{even} %</b><input type="range" min="0" max="100" '
        f'value="{even}" data-weight></label>'
        for name in names
    ]
    cells = list(_render_columns(rows)) if len(rows.columns) <= MAX_FIELDS else []
    return f'<div class="fields">{"".join([*sliders, *cells])}</div>'


def _render_columns(rows: Rows) -> Iterator[str]:
    example = rows.example if isinstance(rows.example, Mapping) else {}
    for name, value in example.items():
        column = f'data-column="{escape(name)}"'
        labels = rows.categories.get(name)
        if labels is None:
            field = f'<input type="number" step="any" value="{escape(str(value))}" {column}>'
        else:
            options = "".join(f"<option>{escape(label)}</option>" for label in labels)
            field = f'<select {column}>{options}<option value="">(missing)</option></select>'
        yield f"<label>{escape(name)}{field}</label>"


# Points of the front that are listed, and metrics beside the objectives.
MAX_POINTS, MAX_METRICS = 5, 3
# 1 - accuracy, which is listed.
HIDDEN = ("misclassification",)
# Letters of a body that is pasted; an image's is longer.
MAX_LETTERS = 4000


def render_index(run: Run, example: object, address: str, *, token: bool) -> str:
    """Render `/`: the trade-off of the model, and how to ask it.

    Args:
        run: what is served.
        example: a body of ``/predict``.
        address: of this server, as the reader called it.
        token: whether it wants one.
    """
    title = f"{run.record['name']} by {run.record['label']}"
    line = format_curl(address, "/predict", example, token=token)
    if len(line) > MAX_LETTERS:
        line = format_curl(address, "/choose", {"knee": True}, token=token)
    secret = "<p>Clients send a token: set PARETOCOSMOS_TOKEN to it first.</p>" if token else ""
    goals = [measure_of(name).wish for name in run.front.names]
    names = " against ".join(goals)
    elements = [
        f"<h1>{escape(title)}</h1>",
        f"<p>One network that trades <b>{escape(names)}</b>. Every request says how much each of "
        "them matters and gets the network's answer for that preference.</p>",
        f"<dl>{''.join(_describe_run(run))}</dl>",
        "<h2>What it trades</h2><p>Some points of the front, on test data. More weight on a goal "
        f"is meant to help it.</p>{_render_front(run.front)}",
        f'<h2>Ask it</h2>{secret}<pre class="wrapped" id="curl">{escape(line)}</pre>',
        '<p>A form and every request: <a href="docs">/docs</a>. For programs: '
        '<a href="openapi.json">/openapi.json</a>. The whole front: <a href="front">/front</a>. '
        'For operators: <a href="health">/health</a>, <a href="metrics">/metrics</a>.</p>',
    ]
    return render_page(title, "\n".join(elements))


def _describe_run(run: Run) -> Iterator[str]:
    about = run.record["about"]
    if about.get("target") is not None:
        positive = about.get("positive")
        what = f"{about['target']}" if positive is None else f"{about['target']} = {positive}"
        yield f"<dt>It predicts</dt><dd>{escape(what)}</dd>"
    for name in run.front.names:
        measure = measure_of(name)
        if measure.meaning:
            yield f"<dt>{escape(named_label(name, measure))}</dt><dd>{escape(measure.meaning)}</dd>"


def _render_front(front: Front) -> str:
    """Render points from one end of the front to the other."""
    indices = np.unique(np.linspace(0, len(front) - 1, MAX_POINTS).round().astype(int))
    metrics = [name for name in front.metrics if name not in (*front.names, *HIDDEN)][:MAX_METRICS]
    columns = dict(zip(front.names, front.values.T, strict=True))
    columns |= {name: front.metrics[name] for name in metrics}
    rows = [
        _render_row(
            f"weight on {measure_of(name).wish}", (f"{weight:.3g}" for weight in ray[indices])
        )
        for name, ray in zip(front.names, front.rays.T, strict=True)
    ]
    for name, column in columns.items():
        measure = measure_of(name)
        cells = (measure.said(float(column[index])) for index in indices)
        rows.append(_render_row(named_label(name, measure), cells))
    return f'<div class="scroll" tabindex="0"><table>{"".join(rows)}</table></div>'


def _render_row(head: str, cells: Iterable[str]) -> str:
    body = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr><th scope="row">{escape(head)}</th>{body}</tr>'
