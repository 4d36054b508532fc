"""The pages of a server: plain HTML, so that nothing is fetched from elsewhere."""

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from paretocosmos.objectives import measure_of, named_label
from paretocosmos.pareto.front import Front
from paretocosmos.runs.run import Run
from paretocosmos.serving.schemas import Rows

FOLDER = Path(__file__).parent
SCRIPT = (FOLDER / "form.js").read_text(encoding="utf-8")
# Columns that have a field each; a body with more is written by hand.
MAX_FIELDS = 40
# Points of the front that are listed, and metrics beside the objectives.
MAX_POINTS, MAX_METRICS = 5, 3
# 1 - accuracy, which is listed.
HIDDEN = ("misclassification",)
# Letters of a body that is pasted; an image's is longer.
MAX_LETTERS = 4000


def make_security_policy(script: str = "") -> str:
    """Return the Content-Security-Policy of a page: styles, and just this script."""
    rules = ["default-src 'none'", "style-src 'unsafe-inline'", "img-src data:"]
    rules += ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        # by its hash, so that text of a run that gets into the page cannot run as a script
        rules += [f"script-src 'sha256-{digest}'", "connect-src 'self'"]
    return "; ".join(rules)


def format_curl(address: str, path: str, data: str | None = None, *, token: bool) -> str:
    r"""Format a line to paste into a shell.

    Args:
        address: of the server.
        path: of the request.
        data: its body, quoted for the shell; `None` for a request without one.
        token: whether the server wants one.

    >>> print(format_curl("http://localhost:8000", "/choose", "'{}'", token=False))
    curl http://localhost:8000/choose -H 'Content-Type: application/json' -d '{}'
    """
    words = [f"curl {address}{path}"]
    if token:
        # double quotes, so that the shell fills in the token, which is never shown
        words.append('-H "Authorization: Bearer $PARETOCOSMOS_TOKEN"')
    if data is not None:
        words.append(f"-H 'Content-Type: application/json' -d {data}")
    return " ".join(words)


PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FOLDER),
    autoescape=True,  # texts of a run may hold markup
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
PAGES.globals |= {"format_curl": format_curl, "quote": shlex.quote, "dump_json": json.dumps}


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
    return PAGES.get_template("docs.html.jinja").render(
        title=description["info"]["title"],
        script=SCRIPT,
        description=description,
        rows=rows,
        fields=rows.example if 0 < len(rows.columns) <= MAX_FIELDS else {},
        names=names,
        address=address,
        token=token,
    )


def render_index(run: Run, example: object, address: str, *, token: bool) -> str:
    """Render `/`: the trade-off of the model, and how to ask it.

    Args:
        run: what is served.
        example: a body of ``/predict``.
        address: of this server, as the reader called it.
        token: whether it wants one.
    """
    curl = format_curl(address, "/predict", shlex.quote(json.dumps(example)), token=token)
    if len(curl) > MAX_LETTERS:
        # an image would fill the page, while a choice needs no input
        curl = format_curl(address, "/choose", "'{\"knee\": true}'", token=token)
    about, meanings = run.record["about"], []
    if about.get("target") is not None:
        positive = "" if about.get("positive") is None else f" = {about['positive']}"
        meanings.append(("It predicts", f"{about['target']}{positive}"))
    for name in run.front.names:
        measure = measure_of(name)
        if measure.meaning:
            meanings.append((named_label(name, measure), measure.meaning))
    return PAGES.get_template("index.html.jinja").render(
        title=f"{run.record['name']} by {run.record['label']}",
        script="",
        goals=[measure_of(name).wish for name in run.front.names],
        meanings=meanings,
        front_rows=_tabulate_front(run.front),
        curl=curl,
        token=token,
    )


def _tabulate_front(front: Front) -> list[tuple[str, list[str]]]:
    """Return the rows of a table whose columns are points, from one end of the front to the other.

    A row is its head and its cells: the weights, then the objectives, then metrics.
    """
    # `unique` drops repetitions where the front has fewer points
    indices = np.unique(np.linspace(0, len(front) - 1, MAX_POINTS).round().astype(int))
    metrics = [name for name in front.metrics if name not in (*front.names, *HIDDEN)][:MAX_METRICS]
    columns = dict(zip(front.names, front.values.T, strict=True))
    columns |= {name: front.metrics[name] for name in metrics}
    table = [
        (f"weight on {measure_of(name).wish}", [f"{weight:.3g}" for weight in weights[indices]])
        for name, weights in zip(front.names, front.rays.T, strict=True)
    ]
    for name, column in columns.items():
        measure = measure_of(name)
        cells = [measure.said(float(column[index])) for index in indices]
        table.append((named_label(name, measure), cells))
    return table
