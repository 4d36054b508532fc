"""The description as a page: plain HTML, so that nothing is fetched and nothing is run."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

__all__ = ["page"]

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
h2 code { background: none; padding: 0; font-size: 1.25rem; font-weight: 700; }
code, pre { font: 14px/1.45 ui-monospace, monospace; background: rgb(128 128 128 / 12%); }
code { padding: .1em .3em; border-radius: 3px; }
pre { padding: .8rem; border-radius: 6px; overflow-x: auto; }
dt { font-weight: 600; float: left; clear: left; width: 3.5rem; } dd { margin-left: 4rem; }
"""


def page(description: Mapping[str, Any]) -> str:
    """HTML for a description in OpenAPI's words; text of a run is shown, never run."""
    about = description["info"]
    parts = [
        "<!doctype html>",
        f'<html lang="en"><meta charset="utf-8"><title>{escape(about["title"])}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style>",
        f"<h1>{escape(about['title'])}</h1><p>{escape(about['description'])}</p>",
        '<p>For programs: <a href="openapi.json">openapi.json</a>.</p>',
    ]
    for path, operations in description["paths"].items():
        for verb, operation in operations.items():
            parts.append(_operation(verb.upper(), path, operation))
    return "\n".join(parts) + "\n"


def _operation(verb: str, path: str, operation: Mapping[str, Any]) -> str:
    lines = [
        f"<h2><code>{verb} {escape(path)}</code></h2>",
        f"<p>{escape(operation.get('description') or operation.get('summary', ''))}</p>",
    ]
    asked = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if asked is not None:
        lines.append(_block("For example", asked["example"]) + _more("Body", asked["schema"]))
    lines.append("<dl>")
    for status, answer in operation["responses"].items():
        lines.append(f"<dt>{escape(status)}</dt><dd>{escape(answer['description'])}</dd>")
    lines.append("</dl>")
    said = operation["responses"]["200"].get("content", {}).get("application/json", {})
    if said.get("schema"):
        lines.append(_more("Answer", said["schema"]))
    return "\n".join(lines)


def _block(title: str, content: object) -> str:
    return f"<p>{title}:</p><pre>{escape(json.dumps(content, indent=1))}</pre>"


def _more(title: str, content: object) -> str:
    text = escape(json.dumps(content, indent=1))
    return f"<details><summary>{title}</summary><pre>{text}</pre></details>"
