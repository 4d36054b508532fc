"""The page of a server: plain HTML, so that nothing is fetched from elsewhere."""

import json
import shlex
from pathlib import Path

import jinja2
import numpy as np

from paretocosmos.objectives import measure_of, named_label
from paretocosmos.pareto.front import Front
from paretocosmos.runs.run import Run

FOLDER = Path(__file__).parent
# Styles alone: text of a run that gets into the page cannot run as a script.
SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
# Points of the front that are listed, and metrics beside the objectives.
MAX_POINTS, MAX_METRICS = 5, 3
# 1 - accuracy, which is listed.
HIDDEN = ("misclassification",)
# Letters of a body that is pasted; an image's is longer.
MAX_LETTERS = 4000


PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FOLDER),
    autoescape=True,  # texts of a run may hold markup
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def render_index(run: Run, example: object, address: str, *, token: bool) -> str:
    """Render `/`: the trade-off of the model, and how to ask it.

    Args:
        run: what is served.
        example: a body of ``/predict``.
        address: of this server, as the reader called it.
        token: whether it wants one.
    """
    bodies = {"/predict": json.dumps(example), "/choose": '{"knee": true}'}
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
        goals=[measure_of(name).wish for name in run.front.names],
        meanings=meanings,
        front_rows=_tabulate_front(run.front),
        # an image would fill the page, while a choice needs no input
        requests=[(k, shlex.quote(v)) for k, v in bodies.items() if len(v) <= MAX_LETTERS],
        address=address,
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
