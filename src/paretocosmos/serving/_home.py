"""`/`: what the model trades, and how to ask it."""

from collections.abc import Iterable, Iterator
from html import escape

import numpy as np

from paretocosmos.objectives import measure_of, named_label
from paretocosmos.pareto.front import Front
from paretocosmos.runs.run import Run
from paretocosmos.serving._page import curl_line
from paretocosmos.serving._style import framed

__all__ = ["home_page"]

# Points of the front that are listed, and metrics beside the objectives.
POINTS, METRICS = 5, 3
# 1 - accuracy, which is listed.
HIDDEN = ("misclassification",)
# Letters of a body that is pasted; an image's is longer.
LONGEST = 4000


def home_page(run: Run, example: object, address: str, *, token: bool) -> str:
    """The page.

    Args:
        run: what is served.
        example: a body of ``/predict``.
        address: of this server, as the reader called it.
        token: whether it wants one.
    """
    title = f"{run.record['name']} by {run.record['label']}"
    line = curl_line(address, "/predict", example, token=token)
    if len(line) > LONGEST:
        line = curl_line(address, "/choose", {"knee": True}, token=token)
    secret = "<p>Clients send a token: set PARETOCOSMOS_TOKEN to it first.</p>" if token else ""
    goals = [measure_of(name).wish for name in run.front.names]
    names = " against ".join(goals)
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>One network that trades <b>{escape(names)}</b>. Every request says how much each of "
        "them matters and gets the network's answer for that preference.</p>",
        f"<dl>{''.join(_about(run))}</dl>",
        "<h2>What it trades</h2><p>Some points of the front, on test data. More weight on a goal "
        f"is meant to help it.</p>{_table(run.front)}",
        f'<h2>Ask it</h2>{secret}<pre class="wrapped" id="curl">{escape(line)}</pre>',
        '<p>A form and every request: <a href="docs">/docs</a>. For programs: '
        '<a href="openapi.json">/openapi.json</a>. The whole front: <a href="front">/front</a>. '
        'For operators: <a href="health">/health</a>, <a href="metrics">/metrics</a>.</p>',
    ]
    return framed(title, "\n".join(parts))


def _about(run: Run) -> Iterator[str]:
    about = run.record["about"]
    if about.get("target") is not None:
        positive = about.get("positive")
        what = f"{about['target']}" if positive is None else f"{about['target']} = {positive}"
        yield f"<dt>It predicts</dt><dd>{escape(what)}</dd>"
    for name in run.front.names:
        measure = measure_of(name)
        if measure.meaning:
            yield f"<dt>{escape(named_label(name, measure))}</dt><dd>{escape(measure.meaning)}</dd>"


def _table(front: Front) -> str:
    """Some points from one end of the front to the other."""
    places = np.unique(np.linspace(0, len(front) - 1, POINTS).round().astype(int))
    metrics = [name for name in front.metrics if name not in (*front.names, *HIDDEN)][:METRICS]
    columns = dict(zip(front.names, front.values.T, strict=True))
    columns |= {name: front.metrics[name] for name in metrics}
    rows = [
        _row(f"weight on {measure_of(name).wish}", (f"{ray[at]:.3g}" for at in places))
        for name, ray in zip(front.names, front.rays.T, strict=True)
    ]
    for name, column in columns.items():
        measure = measure_of(name)
        cells = (measure.said(float(column[at])) for at in places)
        rows.append(_row(named_label(name, measure), cells))
    return f'<div class="scroll" tabindex="0"><table>{"".join(rows)}</table></div>'


def _row(head: str, cells: Iterable[str]) -> str:
    body = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr><th scope="row">{escape(head)}</th>{body}</tr>'
