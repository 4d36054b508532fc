"""The report: one HTML file that shows a run and its fronts, offline, without Python."""

import base64
import hashlib
import html
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.files import write_bytes
from paretocosmos.front import Front
from paretocosmos.metrics import summary

__all__ = ["write_report"]


def write_report(path: Path, record: Mapping[str, Any], fronts: Sequence[Front]) -> None:
    """Write a run as one HTML file that opens anywhere and asks the network for nothing.

    Its content security policy allows the one script and the one style sheet inside it, by their
    hashes, and no request at all; names from data are shown as text and never run.

    Args:
        path: where the page goes; the folder it is in is the run the page's Python refers to.
        record: what ``run.json`` holds; every key is optional, unknown ones are listed.
        fronts: the fronts with the same objectives, the one shown first (test) first.

    >>> import tempfile
    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(path, {"problem": {"name": "adult"}, "seed": 0}, [front])
    >>> path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    if len(fronts) == 0:
        raise ConfigurationError("`fronts` needs at least one front to report, found none")
    for front in fronts:
        if front.names != fronts[0].names:
            raise ConfigurationError(
                "fronts in one report need the same objectives, found "
                f"{', '.join(fronts[0].names)} and {', '.join(front.names)}: write two reports"
            )
    style, script = _part("report.css"), _part("report.js")
    parts = {
        "title": html.escape(_title(record)),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "data": _embed(_data(path, record, fronts)),
    }
    # One pass: a name in the data that looks like a placeholder stays what it is.
    page = re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _part("report.html"))
    write_bytes(path, page.encode())


def _data(path: Path, record: Mapping[str, Any], fronts: Sequence[Front]) -> dict[str, Any]:
    """What the script reads; the rest of an evaluation but its hypervolume is not drawn."""
    shown = {str(key): _plain(value) for key, value in record.items()}
    settings = shown["problem"].get("settings") if isinstance(shown.get("problem"), dict) else None
    if isinstance(settings, dict) and isinstance(settings.get("data"), str):
        settings["data"] = Path(settings["data"]).name  # a report is shown to others
    if isinstance(shown.get("evaluations"), list):
        keep = ("epoch", "hypervolume_val")
        shown["evaluations"] = [
            {key: one[key] for key in keep if key in one}
            for one in shown["evaluations"]
            if isinstance(one, dict)
        ]
    with warnings.catch_warnings():
        # Whoever evaluated the front was told already.
        warnings.simplefilter("ignore", FrontWarning)
        summaries = [_plain(summary(front)) for front in fronts]
    return {
        "record": shown,
        "fronts": [_plain(front.to_dict(), absent=None) for front in fronts],
        "dominated": [(~front.non_dominated).tolist() for front in fronts],
        "summaries": summaries,
        "folder": str(path.parent),
    }


def _title(record: Mapping[str, Any]) -> str:
    found = (
        record.get("name") or record.get("problem"),
        record.get("label") or record.get("method"),
    )
    names = [one.get("name") if isinstance(one, Mapping) else one for one in found]
    return " · ".join(str(name) for name in names if name) or "Pareto front"


def _plain(value: Any, *, absent: str | None = "not a number") -> Any:
    """Values as JSON has them; what JSON cannot say becomes text."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(one, absent=absent) for key, one in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_plain(one, absent=absent) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return absent if math.isnan(value) else ("infinity" if value > 0 else "-infinity")
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _embed(data: object) -> str:
    r"""JSON that no HTML parser can leave: ``<``, ``>`` and ``&`` are written as ``\u`` escapes."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _part(name: str) -> str:
    return files("paretocosmos.explorer").joinpath(name).read_text(encoding="utf-8")
