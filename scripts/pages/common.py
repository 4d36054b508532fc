"""What the written parts of all pages share: results, where they come from, tables and regions."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

__all__ = [
    "RESULTS",
    "ROOT",
    "Regions",
    "describe_device",
    "describe_source",
    "fence",
    "fill_regions",
    "load_result",
    "write_picture",
    "write_table",
]

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
REGION = re.compile(r"<!-- written: (\w+) -->\n.*?<!-- end -->", flags=re.DOTALL)
Regions = Mapping[str, Callable[[], Iterable[str]]]


def fill_regions(text: str, regions: Regions) -> str:
    r"""Return a page with its marked regions written anew.

    >>> page = "a\n<!-- written: b -->\nold\n<!-- end -->\nc"
    >>> fill_regions(page, {"b": lambda: ["new"]})
    'a\n<!-- written: b -->\nnew\n<!-- end -->\nc'
    """

    def rewrite(match: re.Match[str]) -> str:
        lines = "\n".join(regions[match[1]]())
        return f"<!-- written: {match[1]} -->\n{lines}\n<!-- end -->"

    return REGION.sub(rewrite, text)


@cache
def load_result(name: str) -> Any:
    """Return the content of a committed result, by its path in results/ without the ending."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def write_table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield the lines of a table.

    >>> list(write_table(["a", "b"], [[1, 2]]))
    ['| a | b |', '|---|---|', '| 1 | 2 |']
    """
    columns = list(head)
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"


def describe_source(name: str, note: str = "", *, content: Any = None) -> str:
    """Say when, with which version and on what a result was measured, and how to repeat it.

    Args:
        name: of the result, which the sentence links to, as from a folder of docs/.
        note: what else there is to say, such as the number of seeds.
        content: the part of the result that says so; the whole result unless given.
    """
    found = load_result(name) if content is None else content
    date = datetime.fromisoformat(found["written"])
    script = re.search(r"benchmarks\.(\w+)|(\w+)\.py", str(found["command"]))
    module = (script[1] or script[2]) if script else ""
    program = f", `python -m benchmarks.{module}`" * (ROOT / f"benchmarks/{module}.py").exists()
    return (
        f"*{note}{', ' * bool(note)}{date.day} {date:%B %Y}, version {found['version']}, "
        f"{describe_device(found['machine'])}{program}: [all numbers](../../results/{name}.json).*"
    )


def describe_device(machine: Mapping[str, Any]) -> str:
    """Name a machine.

    >>> describe_device({"device": "cpu", "threads": 1})
    'a CPU with one thread'
    """
    if machine["device"] != "cpu":
        return str(machine["device"])
    threads = machine["threads"]
    return f"a CPU with {'one thread' if threads == 1 else f'{threads} threads'}"


def write_picture(name: str, alt: str) -> str:
    """Return a picture of docs/, for light and for dark pages."""
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{name}-dark.png">'
    return f'<picture>{dark}<img src="{name}.png" alt="{escape(alt)}"></picture>'


def fence(text: str, language: str = "text") -> str:
    """Return a fenced block."""
    return f"```{language}\n{text}\n```"
