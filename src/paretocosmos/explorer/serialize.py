"""Serialize a page: its data as JSON, joined with its assets into one file."""

import base64
import dataclasses
import hashlib
import html
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.explorer.page_model import Answers, PageModel, RunView, Samples
from paretocosmos.io import palette
from paretocosmos.io.files import to_json_value, write_bytes
from paretocosmos.objectives import measure_of
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import MEANINGS, front_report
from paretocosmos.pareto.selection import find_constant


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
    return {
        "names": list(page.names),
        "metrics": list(metrics),
        "larger": [name for name in metrics if measures[name].larger],
        "measures": {name: measure.to_dict() for name, measure in measures.items()},
        "words": dataclasses.asdict(dataclasses.replace(page.words, measures={})),
        # the words of the tables in the terminal, so that both say the same
        "meanings": dict(MEANINGS),
        "runs": [
            _serialize_run(run, label, thinning, separate)
            for run, label in zip(page.runs, labels, strict=True)
        ],
        "heads": [dataclasses.asdict(head) for head in page.heads],
        "groups": list(page.groups),
        "samples": None if page.samples is None else _serialize_samples(page.samples),
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


def _serialize_run(
    run: RunView, label: str, thinning: int, separate: Mapping[str, Front]
) -> dict[str, Any]:
    return {
        "label": label,
        "folder": run.folder,
        "record": _serialize_record(run.record),
        "fronts": [_serialize_front(front, separate.get(front.split)) for front in run.fronts],
        "answers": None if run.answers is None else _serialize_answers(run.answers, thinning),
        "network": _encode_arrays(run.network),
        "network_note": run.network_note,
    }


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


def _serialize_samples(samples: Samples) -> dict[str, Any]:
    images = [f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in samples.images]
    return vars(samples) | {"images": images, "truth": samples.truth.tolist()}


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
    parts = {
        # the only text that Python puts into the markup; the script sets the others as text
        "title": html.escape(_make_title(page)),
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


def _make_title(page: PageModel) -> str:
    name = _get_name(page.runs[0].record, "name", "problem")
    return page.words.title or str(name or "Pareto front")


def _hash_source(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _read_asset(name: str) -> str:
    return files("paretocosmos.explorer").joinpath("page", name).read_text(encoding="utf-8")
