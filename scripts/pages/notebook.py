"""A notebook as a page of the site, with the outputs it was saved with."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["page_of"]


def page_of(text: str) -> str:
    r"""Markdown of a notebook: cells as they are, then what they showed.

    Args:
        text: the notebook's JSON.

    >>> cells = [{"cell_type": "markdown", "source": ["# Title"]}]
    >>> page_of(json.dumps({"cells": cells}))
    '# Title\n'
    """
    return "\n\n".join(part for cell in json.loads(text)["cells"] for part in _parts(cell)) + "\n"


def _parts(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield re.sub(r"\$\$(.+?)\$\$", r"```math\n\1\n```", source)
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        shown = _shown(output)
        if shown:
            yield shown


def _shown(output: Mapping[str, Any]) -> str:
    """An output as a picture, a table or text: what it has first of these."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        return f"![output](data:image/png;base64,{''.join(data['image/png']).replace(chr(10), '')})"
    page = "".join(data.get("text/html", ""))
    if page and "<iframe" not in page:  # a whole page inside this one is for a notebook
        if "<table" in page:
            page = f'<div class="table-wrapper">{page}</div>'
        return f"````{{raw}} html\n{page}\n````"
    text = "".join(data.get("text/plain", "")).rstrip()
    return f"````text\n{text}\n````" if text else ""
