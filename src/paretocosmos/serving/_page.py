"""`/docs`: the description as a page, with a form to try each question."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from paretocosmos.serving._rows import Rows
from paretocosmos.serving._style import framed

__all__ = ["SCRIPT", "curl_line", "curl_start", "docs_page"]

SCRIPT = files(__package__).joinpath("form.js").read_text(encoding="utf-8")
# Columns that have a field each; a body with more is written by hand.
FIELDS = 40


def curl_start(address: str, path: str, *, token: bool) -> str:
    """A curl line up to its body."""
    secret = ' -H "Authorization: Bearer $PARETOCOSMOS_TOKEN"' if token else ""
    return f"curl {address}{path}{secret} -H 'Content-Type: application/json' -d "


def curl_line(address: str, path: str, body: object, *, token: bool) -> str:
    r"""A line to paste into a shell.

    >>> print(curl_line("http://localhost:8000", "/choose", {"knee": True}, token=False))
    curl http://localhost:8000/choose -H 'Content-Type: application/json' -d '{"knee": true}'
    """
    return curl_start(address, path, token=token) + shlex.quote(json.dumps(body))


def docs_page(
    description: Mapping[str, Any], rows: Rows, names: Sequence[str], address: str, *, token: bool
) -> str:
    """The page.

    Args:
        description: in OpenAPI's words.
        rows: what a row is.
        names: the objectives.
        address: of this server, as the reader called it.
        token: whether it wants one.
    """
    title = description["info"]["title"]
    parts = [f"<h1>{escape(title)}</h1><p>{escape(description['info']['description'])}"]
    parts.append(' <a href="./">About this model</a>, <a href="openapi.json">openapi.json</a>.</p>')
    for path, verbs in description["paths"].items():
        for verb, operation in verbs.items():
            parts.append(f'<h2 class="path">{verb.upper()} {path}</h2>')
            parts.append(f"<p>{escape(operation['description'])}</p>")
            for body in operation.get("requestBody", {}).get("content", {}).values():
                fields = _fields(rows, names) if path == "/predict" else ""
                parts.append(_form(path, body["example"], fields, address, token=token))
            if "requestBody" not in operation:
                secret = ' -H "Authorization: Bearer $PARETOCOSMOS_TOKEN"' if token else ""
                parts.append(f'<pre class="wrapped">curl {escape(address)}{path}{secret}</pre>')
            parts.append(_codes(operation["responses"]))
    models = escape(json.dumps(description["components"]["schemas"], indent=1))
    parts.append(f"<details><summary>Bodies and answers</summary><pre>{models}</pre></details>")
    return framed(title, "\n".join(parts), script=SCRIPT)


def _codes(responses: Mapping[str, Any]) -> str:
    said = (f"<dt>{code}</dt><dd>{escape(a['description'])}</dd>" for code, a in responses.items())
    return f'<details><summary>Answers</summary><dl class="codes">{"".join(said)}</dl></details>'


def _form(path: str, example: object, fields: str, address: str, *, token: bool) -> str:
    start = escape(curl_start(address, path, token=token))
    line = escape(curl_line(address, path, example, token=token))
    body = escape(json.dumps(example, indent=1))
    return (
        f'<form data-path="{path.removeprefix("/")}">{fields}'
        f'<label>The body<textarea spellcheck="false">{body}</textarea></label>'
        f'<pre class="wrapped curl" data-start="{start}">{line}</pre>'
        f'<button>Send</button><pre class="wrapped"><output>The answer comes here.</output></pre>'
        "</form>"
    )


def _fields(rows: Rows, names: Sequence[str]) -> str:
    """A slider for every objective, and a field for every column of a table."""
    even = 100 // len(names)
    sliders = [
        f'<label>weight of {escape(name)} <b>{even} %</b><input type="range" min="0" max="100" '
        f'value="{even}" data-weight></label>'
        for name in names
    ]
    cells = list(_cells(rows)) if len(rows.columns) <= FIELDS else []
    return f'<div class="fields">{"".join([*sliders, *cells])}</div>'


def _cells(rows: Rows) -> Iterator[str]:
    example = rows.example if isinstance(rows.example, Mapping) else {}
    for name, value in example.items():
        column = f'data-column="{escape(name)}"'
        labels = rows.categories.get(name)
        if labels is None:
            field = f'<input type="number" step="any" value="{escape(str(value))}" {column}>'
        else:
            several = "".join(f"<option>{escape(label)}</option>" for label in labels)
            field = f'<select {column}>{several}<option value="">(missing)</option></select>'
        yield f"<label>{escape(name)}{field}</label>"
