"""Write a page: its data as JSON, joined with its assets into one file, and show it."""

import base64
import dataclasses
import hashlib
import html
import json
import math
import re
import tempfile
import warnings
import webbrowser
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataWarning, FrontWarning
from paretocosmos.explorer.evaluate_page import build_page_model
from paretocosmos.explorer.page_model import Answers, PageModel, RunView
from paretocosmos.io import palette
from paretocosmos.io.files import to_json_value, user_path, write_bytes
from paretocosmos.io.progress import status
from paretocosmos.objectives import measure_of
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import MEANINGS, front_report
from paretocosmos.pareto.selection import find_constant
from paretocosmos.runs.run import Run, SupportsToRun, to_run


def serialize_page(page: PageModel, *, thinning: int = 1) -> dict[str, Any]:
    """Return the data that the page's script reads.

    Args:
        page: the model of the page.
        thinning: 2 to leave out the counts at every other ray, and so on.
    """
    metrics = dict.fromkeys(name for run in page.runs for f in run.fronts for name in f.metrics)
    labels = _make_run_labels(page.runs)
    measures = {
        name: page.words.measures.get(name) or measure_of(name) for name in (*page.names, *metrics)
    }
    # other fronts are measured by their distance to those of separate networks
    separate = {
        front.split: front
        for run in page.runs
        if _get_name(run.record, "method") == "separate"
        for front in run.fronts
    }
    samples = None
    if page.samples is not None:
        pngs = (base64.b64encode(png).decode() for png in page.samples.images)
        images = [f"data:image/png;base64,{png}" for png in pngs]
        samples = vars(page.samples) | {"images": images, "truth": page.samples.truth.tolist()}
    return {
        "names": list(page.names),
        "metrics": list(metrics),
        "larger": [name for name in metrics if measures[name].larger],
        "measures": {name: measure.to_dict() for name, measure in measures.items()},
        "words": dataclasses.asdict(dataclasses.replace(page.words, measures={})),
        # the words of the tables in the terminal, so that both say the same
        "meanings": dict(MEANINGS),
        "runs": [
            {
                "label": label,
                "folder": run.folder,
                "record": _serialize_record(run.record),
                "fronts": [_serialize_front(f, separate.get(f.split)) for f in run.fronts],
                "answers": run.answers and _serialize_answers(run.answers, thinning),
                "network": _encode_arrays(run.network),
                "network_note": run.network_note,
            }
            for run, label in zip(page.runs, labels, strict=True)
        ],
        "heads": [dataclasses.asdict(head) for head in page.heads],
        "groups": list(page.groups),
        "samples": samples,
        "samples_note": page.samples_note,
        "columns": list(page.columns),
        "answer": dict(page.answer),
    }


def to_json(data: object) -> str:
    r"""Write JSON for a page: ``<``, ``>`` and ``&`` become ``\u`` escapes, so no tag can end.

    >>> to_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    # NaN is no JSON: the browser would refuse all of the data
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _serialize_front(front: Front, separate: Front | None) -> dict[str, Any]:
    with warnings.catch_warnings():
        # the evaluation of the front has warned already
        warnings.simplefilter("ignore", FrontWarning)
        report = front_report(front, separate).to_dict()
    return {
        "split": front.split,
        "count": len(front),
        "rays": _encode_base64(front.rays, "<f8"),
        "values": _encode_base64(front.values.T, "<f8"),
        "metrics": {name: _encode_base64(value, "<f8") for name, value in front.metrics.items()},
        "reference": front.reference.tolist(),
        "dominated": _encode_base64(~front.non_dominated, "u1"),
        # The page never picks a classifier that predicts the same for everybody unless told to.
        "constant": _encode_base64(find_constant(front), "u1"),
        "report": report,
    }


def _serialize_answers(answers: Answers, thinning: int) -> dict[str, Any]:
    return {
        "ray_indices": answers.ray_indices[::thinning].tolist(),
        "confusion": {
            split: [_encode_base64(counts[::thinning], "<u4") for counts in heads]
            for split, heads in answers.confusion.items()
        },
        # 16 bits: a percentage on the page has two digits
        "probabilities": [
            _encode_base64((65535 * values).round(), "<u2") for values in answers.probabilities
        ],
        "classes": [_encode_base64(classes, "<u2") for classes in answers.classes],
        "shares": {
            split: _encode_base64(shares[:, ::thinning], "<f4")
            for split, shares in answers.shares.items()
        },
        "gaps": {
            split: {name: _encode_base64(ends[::thinning], "<f4") for name, ends in by_name.items()}
            for split, by_name in answers.gaps.items()
        },
    }


def _make_run_labels(runs: Sequence[RunView]) -> list[str]:
    """Label runs by method; add the seed, and then the folder, where labels would be equal."""
    labels = [
        str(_get_name(run.record, "label", "method") or f"run {number}")
        for number, run in enumerate(runs, start=1)
    ]
    pairs = list(zip(labels, runs, strict=True))
    with_seeds = [f"{label}, seed {run.record.get('seed')}" for label, run in pairs]
    with_folders = [f"{label}, {run.folder}" for label, run in zip(with_seeds, runs, strict=True)]
    # only where labels clash: most pages need the method alone
    for longer_labels in (with_seeds, with_folders):
        counts = Counter(labels)
        labels = [
            longer if counts[label] > 1 else label
            for label, longer in zip(labels, longer_labels, strict=True)
        ]
    return labels


def _get_name(record: Mapping[str, Any], *keys: str) -> object:
    # a record may hold the name itself, or a table that has one
    for key in keys:
        value = record.get(key)
        name = value.get("name") if isinstance(value, Mapping) else value
        if name:
            return name
    return None


def _serialize_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a run's record to JSON; of each evaluation keep the hypervolume, which is drawn."""
    content: dict[str, Any] = to_json_value(record, _to_text)
    problem = content.get("problem")
    settings = problem.get("settings") if isinstance(problem, dict) else None
    if isinstance(settings, dict) and isinstance(settings.get("data"), str):
        # a page is passed on: it must not tell where data lies on this machine
        settings["data"] = Path(settings["data"]).name
    if isinstance(content.get("evaluations"), list):
        # the values of every epoch would make up most of the page
        keys = ("epoch", "hypervolume_val")
        content["evaluations"] = [
            {key: evaluation[key] for key in keys if key in evaluation}
            for evaluation in content["evaluations"]
            if isinstance(evaluation, dict)
        ]
    return content


def _encode_base64(array: npt.NDArray[Any], kind: str) -> str:
    # binary: as decimal numbers the arrays would take several times the space
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode()


def _encode_arrays(content: Any) -> Any:
    """Return nested mappings and lists with float32 arrays as base64."""
    if isinstance(content, np.ndarray):
        return _encode_base64(content, "<f4")
    if isinstance(content, Mapping):
        return {key: _encode_arrays(value) for key, value in content.items()}
    return list(map(_encode_arrays, content)) if isinstance(content, list) else content


def _to_text(value: Any) -> Any:
    """Convert what JSON does not have: arrays and sets to lists, the rest to text."""
    if isinstance(value, np.generic | np.ndarray):
        return to_json_value(value.tolist(), _to_text)
    if isinstance(value, float):
        return "not a number" if math.isnan(value) else ("infinity" if value > 0 else "-infinity")
    return (
        to_json_value(list(value), _to_text) if isinstance(value, set | frozenset) else str(value)
    )


# Small enough to be sent by mail.
MAX_BYTES = 6_000_000
# Joined in this order into one script: a file may use what the files before it define.
SCRIPTS = (
    *("logic.js", "network.js", "rows.js", "dom.js", "data.js", "words.js", "state.js", "plot.js"),
    *("window.js", "plane.js", "space.js", "lines.js", "chart.js", "bounds.js", "consequences.js"),
    *("cost.js", "pins.js", "preference.js", "point.js", "answers.js", "samples.js", "case.js"),
    *(
        "own.js",
        "questions.js",
        "code.js",
        "exports.js",
        "record.js",
        "rays.js",
        "about.js",
        "main.js",
    ),
)


def write_report(path: Path, page: PageModel) -> None:
    """Write runs as one HTML file that opens anywhere and makes no request.

    Its content security policy allows its own script and style sheet, by their hashes, and
    nothing else; names from data are shown as text and never run.

    Args:
        path: the file to write.
        page: the model of the page, as `build_page_model` returns it.

    >>> import tempfile
    >>> from paretocosmos.explorer import PageModel, RunView
    >>> from paretocosmos.pareto.front import Front
    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(path, PageModel([RunView({"name": "adult", "seed": 0}, [front])]))
    >>> path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    style = palette.css() + _read_asset("page.css")
    # a function around all scripts keeps their names out of the global scope
    script = f'"use strict";\n(() => {{\n{"".join(map(_read_asset, SCRIPTS))}}})();\n'
    name = _get_name(page.runs[0].record, "name", "problem")
    parts = {
        # the only text that Python puts into the markup; the script sets the others as text
        "title": html.escape(page.words.title or str(name or "Pareto front")),
        "style": style,
        # the content security policy names hashes, so an injected script does not run
        "style_hash": _hash_source(style),
        "script": script,
        "script_hash": _hash_source(script),
    }
    template = _read_asset("page.html")
    # counts at fewer rays make a smaller page, which shows the nearest ones
    for thinning in (1, 2, 4, 8, 16):
        parts["data"] = to_json(serialize_page(page, thinning=thinning))
        # in one pass: data that looks like a placeholder must not be replaced
        content = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template).encode()
        if len(content) <= MAX_BYTES:
            write_bytes(path, content)
            return
    raise ConfigurationError(
        f"a page can have at most {MAX_BYTES / 1e6:g} MB, found {len(content) / 1e6:.1f} MB for "
        f"{len(page.runs)} runs: show fewer of them, or evaluate fewer rays"
    )


def _hash_source(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _read_asset(name: str) -> str:
    return files("paretocosmos.explorer").joinpath("page", name).read_text(encoding="utf-8")


# Enough for the plot and the slider, which are used together.
HEIGHT = 820


@dataclass(frozen=True)
class Page:
    """Page that was written; a notebook shows it below the cell.

    Attributes:
        path: the file, which opens in any browser, without Python.
        height: the height in a notebook, in pixels.
        reason: the reason why it has no counted answers; empty if it has.
    """

    path: Path
    height: int = HEIGHT
    reason: str = ""

    def open(self) -> bool:
        """Open the page in a browser; return False if there is none."""
        return webbrowser.open(self.path.absolute().as_uri())

    def _repr_html_(self) -> str:
        # the whole page as an attribute: a notebook cannot load a local file into a frame
        content = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        # without allow-same-origin, the page's script cannot reach the notebook
        permissions = "allow-scripts allow-downloads allow-popups allow-modals"
        return (
            f'<iframe title="Explorer" sandbox="{permissions}" srcdoc="{content}" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def write_page(
    runs: Sequence[Run],
    path: Path,
    *,
    data: str | None = None,
    samples: bool = False,
    threshold: float | None = None,
    network: bool = True,
    height: int = HEIGHT,
) -> Page:
    """Write and return the page of runs on one problem.

    Args:
        runs: the runs; the first is selected when the page opens.
        path: the file to write.
        data: the new location of the problem's data, if it has moved.
        samples: whether to show a dozen samples.
        threshold: the probability above which a binary prediction is positive.
        network: whether a page about a table has the weights, and so answers for new rows.
        height: the height in a notebook, in pixels.
    """
    with status("writing the page"):
        # everything is computed before the file is touched
        model = build_page_model(
            runs, data=data, samples=samples, threshold=threshold, network=network
        )
        write_report(path, model)
    return Page(path, height, model.reason)


def explore(
    *runs: Run | SupportsToRun,
    out: str | Path | None = None,
    samples: bool = False,
    threshold: float | None = None,
    network: bool = True,
    show: bool = True,
) -> Page:
    """Write a page about runs on one problem, or about an estimator, and open it in the browser.

    Args:
        runs: runs from `fit` or `load_run`, a fitted estimator, or a pipeline that ends in one.
        out: the ``.html`` file to write; one in a new temporary folder if `None`.
        samples: whether to show a dozen rows. Whoever gets the page then gets these rows.
        threshold: the probability above which a binary prediction is positive; if `None`, that of
            the estimator, and 0.5 for a run.
        network: whether a page about a table has the weights, and so answers for new rows.
        show: whether to open the page in a browser.

    Returns:
        The page, which a notebook shows below the cell; its `path` is the file.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from paretocosmos.estimators import ParetoClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> classifier = ParetoClassifier(random_state=0, epochs=1).fit(X[:, :5], y)
    >>> page = explore(classifier, out=tempfile.mkdtemp() + "/front.html", show=False)
    >>> page.path.name, page.path.read_text()[:15]
    ('front.html', '<!doctype html>')
    """
    # a folder of its own, so that two pages of one session do not replace each other
    path = Path(tempfile.mkdtemp(prefix="paretocosmos-"), "explore.html") if out is None else out
    page = write_page(
        [to_run(run) for run in runs],
        user_path(path),
        samples=samples,
        threshold=threshold,
        network=network,
    )
    if page.reason:
        # warned of here, since the page leaves out the reason
        message = f"the page has no counted answers: {page.reason}"
        warnings.warn(message, DataWarning, stacklevel=2)
    if show:
        # no browser is no error: the path is returned all the same
        page.open()
    return page
