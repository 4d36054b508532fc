"""The description as a page: plain HTML, so that nothing is fetched and nothing is run."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

__all__ = ["page"]

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; font: 700 1.25rem ui-monospace, monospace; }
pre { padding: .8rem; overflow-x: auto; background: rgb(128 128 128 / 12%); }
dt { font-weight: 600; float: left; clear: left; width: 3.5rem; } dd { margin-left: 4rem; }
"""


def page(description: Mapping[str, Any]) -> str:
    """HTML for a description in OpenAPI's words; text of a run is shown, never run."""
    return "\n".join(_parts(description))


def _parts(description: Mapping[str, Any]) -> Iterator[str]:
    title, about = (escape(description["info"][key]) for key in ("title", "description"))
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{STYLE}</style><h1>{title}</h1><p>{about}</p>"
    yield '<p>For programs: <a href="openapi.json">openapi.json</a>.</p>'
    for path, verbs in description["paths"].items():
        for verb, operation in verbs.items():
            yield f"<h2>{verb.upper()} {path}</h2><p>{escape(operation['description'])}</p>"
            for body in operation.get("requestBody", {}).get("content", {}).values():
                yield f"<p>For example:</p>{_block(body['example'])}"
            answers = operation["responses"].items()
            yield "<dl>"
            yield from (
                f"<dt>{code}</dt><dd>{escape(a['description'])}</dd>" for code, a in answers
            )
            yield "</dl>"
    models = _block(description["components"]["schemas"])
    yield f"<details><summary>Bodies and answers</summary>{models}</details>"


def _block(content: object) -> str:
    return f"<pre>{escape(json.dumps(content, indent=1))}</pre>"
