"""A page as one file: its parts joined, its data packed, nothing fetched."""

import base64
import hashlib
import html
import re
from importlib.resources import files
from pathlib import Path

from paretocosmos.errors import ConfigurationError
from paretocosmos.explorer._pack import as_json, packed
from paretocosmos.explorer._view import View
from paretocosmos.io import palette
from paretocosmos.io.files import write_bytes

__all__ = ["write_report"]

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
    style = palette.css() + _part("page.css")
    script = f'"use strict";\n(() => {{\n{"".join(map(_part, SCRIPTS))}}})();\n'
    parts = {
        "title": html.escape(_title(view)),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
    }
    frame = _part("page.html")
    for thin in (1, 2, 4, 8, 16):  # what is counted at fewer rays is shown at the nearest of them
        parts["data"] = as_json(packed(view, thin=thin))
        # One pass: a name in the data that looks like a placeholder stays what it is.
        page = re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], frame).encode()
        if len(page) <= LARGEST:
            write_bytes(path, page)
            return
    raise ConfigurationError(
        f"a page can have at most {LARGEST / 1e6:g} MB, found {len(page) / 1e6:.1f} MB for "
        f"{len(view.looks)} runs: show fewer of them, or evaluate fewer rays"
    )


def _title(view: View) -> str:
    if view.words.title:
        return view.words.title
    record = view.looks[0].record
    found = record.get("name") or record.get("problem")
    name = found.get("name") if isinstance(found, dict) else found
    return str(name or "Pareto front")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _part(name: str) -> str:
    return files("paretocosmos.explorer").joinpath("page", name).read_text(encoding="utf-8")
