"""A view as JSON: numbers as base64 of their bytes, names as text that no HTML parser can leave."""

import base64
import json
import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import FrontWarning
from paretocosmos.explorer._view import Answers, Look, Samples, View, Words
from paretocosmos.io.files import json_value
from paretocosmos.objectives import measure_of
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import MEANINGS, front_report
from paretocosmos.pareto.selection import find_constant


def packed(view: View, *, thin: int = 1) -> dict[str, Any]:
    """What the page's script reads.

    Args:
        view: what is shown.
        thin: answers counted at every so many-th ray only.
    """
    metrics = {name: None for look in view.looks for f in look.fronts for name in f.metrics}
    labels = _labels(view.looks)
    measures = {
        name: view.words.measures.get(name) or measure_of(name) for name in (*view.names, *metrics)
    }
    separate = {
        front.split: front
        for look in view.looks
        if _named(look.record, "method") == "separate"
        for front in look.fronts
    }
    return {
        "names": list(view.names),
        "metrics": list(metrics),
        "larger": [name for name in metrics if measures[name].larger],
        "measures": {name: measure.to_dict() for name, measure in measures.items()},
        "words": _words(view.words),
        "meanings": dict(MEANINGS),
        "runs": [
            _run(look, label, thin, separate)
            for look, label in zip(view.looks, labels, strict=True)
        ],
        "heads": [{"name": h.name, "classes": list(h.classes)} for h in view.heads],
        "binary": [h.binary for h in view.heads],
        "groups": list(view.groups),
        "samples": None if view.samples is None else _samples(view.samples),
        "without": view.without,
    }


def _words(words: Words) -> dict[str, Any]:
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


def as_json(data: object) -> str:
    r"""JSON for a page: ``<``, ``>`` and ``&`` are written as ``\u`` escapes.

    >>> as_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _run(look: Look, label: str, thin: int, separate: Mapping[str, Front]) -> dict[str, Any]:
    return {
        "label": label,
        "folder": look.folder,
        "record": _record(look.record),
        "fronts": [_front(front, separate.get(front.split)) for front in look.fronts],
        "answers": None if look.answers is None else _answers(look.answers, thin),
    }


def _front(front: Front, separate: Front | None) -> dict[str, Any]:
    with warnings.catch_warnings():
        # The evaluation of the front warned already.
        warnings.simplefilter("ignore", FrontWarning)
        report = front_report(front, separate).to_dict()
    return {
        "split": front.split,
        "count": len(front),
        "rays": _base64(front.rays, "<f8"),
        "values": _base64(front.values.T, "<f8"),
        "metrics": {name: _base64(value, "<f8") for name, value in front.metrics.items()},
        "reference": front.reference.tolist(),
        "dominated": _base64(~front.non_dominated, "u1"),
        "constant": _base64(find_constant(front), "u1"),
        "report": report,
    }


def _answers(answers: Answers, thin: int) -> dict[str, Any]:
    return {
        "at": answers.at[::thin].tolist(),
        "confusion": {
            split: [_base64(one[::thin], "<u4") for one in of_heads]
            for split, of_heads in answers.confusion.items()
        },
        "chances": [_base64((65535 * one).round(), "<u2") for one in answers.chances],
        "answers": [_base64(one, "<u2") for one in answers.answers],
        "shares": {split: _base64(one[:, ::thin], "<f4") for split, one in answers.shares.items()},
        "gaps": {
            split: {name: _base64(ends[::thin], "<f4") for name, ends in by_name.items()}
            for split, by_name in answers.gaps.items()
        },
    }


def _samples(samples: Samples) -> dict[str, Any]:
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


def _labels(looks: Sequence[Look]) -> list[str]:
    """A name for every run: its method, then its seed, then its folder, until no two are alike."""
    labels = [
        str(_named(look.record, "label", "method") or f"run {at + 1}")
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


def _named(record: Mapping[str, Any], *keys: str) -> object:
    for key in keys:
        found = record.get(key)
        found = found.get("name") if isinstance(found, Mapping) else found
        if found:
            return found
    return None


def _record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A run's record; the rest of an evaluation but its hypervolume is not drawn."""
    shown: dict[str, Any] = json_value(record, _text)
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


def _base64(array: npt.NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode()


def _text(value: Any) -> Any:
    """What JSON cannot say: arrays and sets as lists, the rest as text."""
    if isinstance(value, np.generic | np.ndarray):
        return json_value(value.tolist(), _text)
    if isinstance(value, float):
        return "not a number" if math.isnan(value) else ("infinity" if value > 0 else "-infinity")
    return json_value(list(value), _text) if isinstance(value, set | frozenset) else str(value)
