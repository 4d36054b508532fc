"""`/`: what the model trades, and how to ask it."""

from collections.abc import Iterator
from contextlib import suppress
from html import escape

import numpy as np

from paretocosmos import registry
from paretocosmos.errors import ParetoCosmosError
from paretocosmos.pareto.front import Front
from paretocosmos.runs.run import Run
from paretocosmos.serving._page import curl_line
from paretocosmos.serving._style import framed

__all__ = ["home_page"]

# Points of the front that are listed, and metrics beside the objectives.
POINTS, METRICS = 5, 3
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
    plain = [_plain(name) for name in run.front.names]
    names = " and ".join([", ".join(plain[:-1]), plain[-1]])
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>One network that trades <b>{escape(names)}</b>: every request says how much each of "
        "them matters, and gets the answer of the network for just that preference.</p>",
        f"<dl>{''.join(_about(run))}</dl>",
        "<h2>What it trades</h2><p>Along the front, on test data. More weight on an objective is "
        f"meant to make it smaller.</p>{_table(run.front)}",
        f'<h2>Ask it</h2>{secret}<pre class="wrapped" id="curl">{escape(line)}</pre>',
        '<p>With a form, and all that can be asked: <a href="docs">/docs</a>. For programs: '
        '<a href="openapi.json">/openapi.json</a>. The whole front: <a href="front">/front</a>. '
        'For whoever runs it: <a href="health">/health</a>, <a href="metrics">/metrics</a>.</p>',
    ]
    return framed(title, "\n".join(parts))


def _about(run: Run) -> Iterator[str]:
    about = run.record["about"]
    if about.get("target") is not None:
        positive = about.get("positive")
        what = f"{about['target']}" if positive is None else f"{about['target']} = {positive}"
        yield f"<dt>It predicts</dt><dd>{escape(what)}</dd>"
    for name, spec in zip(run.front.names, run.record["objective_specs"], strict=True):
        with suppress(ParetoCosmosError):  # one of somebody's own has a name alone
            told = (registry.find("objectives", spec["name"]).__doc__ or "").partition("\n")[0]
            if told and "``" not in told:  # shapes are for those who read code
                yield f"<dt>{escape(_plain(name))}</dt><dd>{escape(told)}</dd>"


def _table(front: Front) -> str:
    """Some points from one end of the front to the other."""
    places = np.unique(np.linspace(0, len(front) - 1, POINTS).round().astype(int))
    metrics = [name for name in front.metrics if name not in front.names][:METRICS]
    heads = [*(f"weight of {name}" for name in front.names), *front.names, *metrics]
    columns = [*front.rays.T, *front.values.T, *(front.metrics[name] for name in metrics)]
    rows = [
        f'<tr><th scope="row">{escape(_plain(head))}</th>'
        + "".join(f"<td>{column[at]:.3g}</td>" for at in places)
        + "</tr>"
        for head, column in zip(heads, columns, strict=True)
    ]
    return f'<div class="scroll" tabindex="0"><table>{"".join(rows)}</table></div>'


def _plain(name: str) -> str:
    """A name as words, which a line can break between."""
    return name.replace("_", " ")
