"""Serialize a page: its data as JSON, its parts joined into one file that fetches nothing."""

import base64
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
from paretocosmos.explorer.page_model import Answers, Look, Samples, View, Words
from paretocosmos.io import palette
from paretocosmos.io.files import json_value, write_bytes
from paretocosmos.objectives import measure_of
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import MEANINGS, front_report
from paretocosmos.pareto.selection import find_constant


def serialize_view(view: View, *, thin: int = 1) -> dict[str, Any]:
    """Return the data that the page's script reads.

    Args:
        view: what is shown.
        thin: answers counted at every so many-th ray only.
    """
    metrics = {name: None for look in view.looks for f in look.fronts for name in f.metrics}
    labels = _label_looks(view.looks)
    measures = {
        name: view.words.measures.get(name) or measure_of(name) for name in (*view.names, *metrics)
    }
    separate = {
        front.split: front
        for look in view.looks
        if _get_name(look.record, "method") == "separate"
        for front in look.fronts
    }
    return {
        "names": list(view.names),
        "metrics": list(metrics),
        "larger": [name for name in metrics if measures[name].larger],
        "measures": {name: measure.to_dict() for name, measure in measures.items()},
        "words": _serialize_words(view.words),
        "meanings": dict(MEANINGS),
        "runs": [
            _serialize_look(look, label, thin, separate)
            for look, label in zip(view.looks, labels, strict=True)
        ],
        "heads": [{"name": h.name, "classes": list(h.classes)} for h in view.heads],
        "binary": [h.binary for h in view.heads],
        "groups": list(view.groups),
        "samples": None if view.samples is None else _serialize_samples(view.samples),
        "without": view.without,
    }


def _serialize_words(words: Words) -> dict[str, Any]:
    return {
        "title": words.title,
        "rows": words.rows,
        "data": words.data,
        "groups": list(words.groups),
        "instead": dict(words.instead),
        "sizes": dict(words.sizes),
        "threshold": words.threshold,
        "outcomes": [
            {
                "title": one.title,
                "meaning": one.meaning,
                "gap": one.gap,
                "larger": one.larger,
                "lead": one.lead,
                "cells": [
                    {"who": c.who, "sentence": c.sentence, "group": c.group} for c in one.cells
                ],
            }
            for one in words.outcomes
        ],
    }


def to_json(data: object) -> str:
    r"""JSON for a page: ``<``, ``>`` and ``&`` are written as ``\u`` escapes.

    >>> to_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _serialize_look(
    look: Look, label: str, thin: int, separate: Mapping[str, Front]
) -> dict[str, Any]:
    return {
        "label": label,
        "folder": look.folder,
        "record": _serialize_record(look.record),
        "fronts": [_serialize_front(front, separate.get(front.split)) for front in look.fronts],
        "answers": None if look.answers is None else _serialize_answers(look.answers, thin),
    }


def _serialize_front(front: Front, separate: Front | None) -> dict[str, Any]:
    with warnings.catch_warnings():
        # The evaluation of the front warned already.
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
        "constant": _encode_base64(find_constant(front), "u1"),
        "report": report,
    }


def _serialize_answers(answers: Answers, thin: int) -> dict[str, Any]:
    return {
        "at": answers.at[::thin].tolist(),
        "confusion": {
            split: [_encode_base64(one[::thin], "<u4") for one in of_heads]
            for split, of_heads in answers.confusion.items()
        },
        "chances": [_encode_base64((65535 * one).round(), "<u2") for one in answers.chances],
        "answers": [_encode_base64(one, "<u2") for one in answers.answers],
        "shares": {
            split: _encode_base64(one[:, ::thin], "<f4") for split, one in answers.shares.items()
        },
        "gaps": {
            split: {name: _encode_base64(ends[::thin], "<f4") for name, ends in by_name.items()}
            for split, by_name in answers.gaps.items()
        },
    }


def _serialize_samples(samples: Samples) -> dict[str, Any]:
    return {
        "rows": list(samples.rows),
        "columns": list(samples.columns),
        "texts": [list(row) for row in samples.texts],
        "images": [
            f"data:image/png;base64,{base64.b64encode(image).decode()}" for image in samples.images
        ],
        "truth": samples.truth.tolist(),
        "moved": samples.moved,
        "whole": samples.whole,
    }


def _label_looks(looks: Sequence[Look]) -> list[str]:
    """A name for every run: its method, then its seed, then its folder, until no two are alike."""
    labels = [
        str(_get_name(look.record, "label", "method") or f"run {at + 1}")
        for at, look in enumerate(looks)
    ]
    seeds = [
        f"{label}, seed {look.record.get('seed')}"
        for label, look in zip(labels, looks, strict=True)
    ]
    folders = [f"{label}, {look.folder}" for label, look in zip(seeds, looks, strict=True)]
    for finer in (seeds, folders):
        often = Counter(labels)
        labels = [finer[at] if often[label] > 1 else label for at, label in enumerate(labels)]
    return labels


def _get_name(record: Mapping[str, Any], *keys: str) -> object:
    for key in keys:
        found = record.get(key)
        found = found.get("name") if isinstance(found, Mapping) else found
        if found:
            return found
    return None


def _serialize_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A run's record; the rest of an evaluation but its hypervolume is not drawn."""
    shown: dict[str, Any] = json_value(record, _to_text)
    settings = shown["problem"].get("settings") if isinstance(shown.get("problem"), dict) else None
    if isinstance(settings, dict) and isinstance(settings.get("data"), str):
        settings["data"] = Path(settings["data"]).name  # a page is shown to others
    if isinstance(shown.get("evaluations"), list):
        keep = ("epoch", "hypervolume_val")
        shown["evaluations"] = [
            {key: one[key] for key in keep if key in one}
            for one in shown["evaluations"]
            if isinstance(one, dict)
        ]
    return shown


def _encode_base64(array: npt.NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode()


def _to_text(value: Any) -> Any:
    """Convert what JSON does not have: arrays and sets to lists, the rest to text."""
    if isinstance(value, np.generic | np.ndarray):
        return json_value(value.tolist(), _to_text)
    if isinstance(value, float):
        return "not a number" if math.isnan(value) else ("infinity" if value > 0 else "-infinity")
    return json_value(list(value), _to_text) if isinstance(value, set | frozenset) else str(value)


LARGEST = 6_000_000
# Joined in this order, one script: what a file defines, those after it use.
SCRIPTS = (
    *("logic.js", "dom.js", "data.js", "words.js", "state.js", "plot.js", "window.js", "plane.js"),
    *("space.js", "lines.js", "chart.js", "bounds.js", "consequences.js", "cost.js", "pins.js"),
    *("preference.js", "point.js", "answers.js", "samples.js", "code.js", "exports.js"),
    *("record.js", "rays.js", "about.js", "main.js"),
)


def write_report(path: Path, view: View) -> None:
    """Write runs as one HTML file that opens anywhere and asks the network for nothing.

    Its content security policy allows the one script and the one style sheet inside it, by their
    hashes, and no request at all; names from data are shown as text and never run.

    Args:
        path: where the page goes.
        view: what it shows, as `look_at` gives it.

    >>> import tempfile
    >>> from paretocosmos.explorer import Look
    >>> from paretocosmos.pareto.front import Front
    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(path, View([Look({"name": "adult", "seed": 0}, [front])]))
    >>> path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    style = palette.css() + _read_asset("page.css")
    script = f'"use strict";\n(() => {{\n{"".join(map(_read_asset, SCRIPTS))}}})();\n'
    parts = {
        "title": html.escape(_page_title(view)),
        "style": style,
        "style_hash": _hash_source(style),
        "script": script,
        "script_hash": _hash_source(script),
    }
    frame = _read_asset("page.html")
    for thin in (1, 2, 4, 8, 16):  # what is counted at fewer rays is shown at the nearest of them
        parts["data"] = to_json(serialize_view(view, thin=thin))
        # One pass: a name in the data that looks like a placeholder stays what it is.
        page = re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], frame).encode()
        if len(page) <= LARGEST:
            write_bytes(path, page)
            return
    raise ConfigurationError(
        f"a page can have at most {LARGEST / 1e6:g} MB, found {len(page) / 1e6:.1f} MB for "
        f"{len(view.looks)} runs: show fewer of them, or evaluate fewer rays"
    )


def _page_title(view: View) -> str:
    if view.words.title:
        return view.words.title
    record = view.looks[0].record
    found = record.get("name") or record.get("problem")
    name = found.get("name") if isinstance(found, dict) else found
    return str(name or "Pareto front")


def _hash_source(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _read_asset(name: str) -> str:
    return files("paretocosmos.explorer").joinpath("page", name).read_text(encoding="utf-8")
