"""The marked regions of README.md: from `results/` and from the examples."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from faces import cost_of_conditioning
from fronts_page import PROBLEMS

from paretocosmos.paper.published import get_paper_row

__all__ = ["body_of", "fill", "output_of"]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"


def fill(readme: str) -> str:
    """The README with its marked regions written anew."""
    regions = {
        "why": "\n".join(why()),
        "quick_start": "\n".join(quick_start()),
        "own_table": fence(own_table(), "python"),
        "own_model": fence(body_of("own_model", until="for weight"), "python"),
        "table_1": "\n".join(table_1()),
    }

    def written(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- written: {name} -->\n{regions[name]}\n<!-- end -->"

    return re.sub(r"<!-- written: (\w+) -->\n.*?<!-- end -->", written, readme, flags=re.DOTALL)


# Analytic problems whose front is in one piece; the order along the others is worse, as
# docs/decisions/default_method.md says.
ONE_PIECE = ("toy_convex", "toy_concave", "zdt1", "zdt2", "dtlz2", "vlmop2")


def why() -> Iterator[str]:
    """Yield what the default gains and costs, in numbers."""
    fronts = json.loads((RESULTS / "shapes.json").read_text(encoding="utf-8"))["fronts"]
    by_name = {(front["problem"], front["method"]): front for front in fronts}
    ours, plain = (by_name["zdt2", method]["hypervolume"] for method in ("default", "linear"))
    order = min(by_name[problem, "default"]["order"] for problem in ONE_PIECE)
    yield (
        f"On a concave front (ZDT2), the default reaches {ours:.1%} of the exact hypervolume, a weighted sum {plain:.1%}. "
        f"Weight and loss have a rank correlation of at least {order:.2f} on {len(ONE_PIECE)} analytic fronts. "
        f"A step of COSMOS as published on EfficientNet-B4 takes {cost_of_conditioning():.3f} times as long as a step for a single task; "
        "the default conditions more layers and costs more."
    )


def quick_start() -> Iterator[str]:
    """The code, what it takes and what it prints."""
    record = json.loads((RESULTS / "demo" / "run.json").read_text(encoding="utf-8"))
    yield from (fence(body_of("quick_start"), "python"), "")
    yield (
        f"This trains once ({record['seconds_training']:.0f} seconds on two CPU cores) and prints the lines below; any other limit works too. "
        "Open `report.html` in the run folder to try trade-offs with a slider ([what it shows](docs/howto/explorer.md))."
    )
    yield from ("", fence(output_of("quick_start")))


def table_1() -> Iterator[str]:
    """Yield Table 1's row of COSMOS beside ours."""
    cells = json.loads((RESULTS / "reproduction" / "table_1.json").read_text(encoding="utf-8"))[
        "cells"
    ]
    ours = {
        cell["problem"]: cell["volume"]["mean"]
        for cell in cells
        if (cell["method"], cell["protocol"]) == ("cosmos", "paper")
    }
    paper = [row["hypervolume"] for row in (get_paper_row(name, "cosmos") for name in ours) if row]
    yield f"| hypervolume of COSMOS, 5 seeds | {' | '.join(PROBLEMS[name] for name in ours)} |"
    yield "|---" * (len(ours) + 1) + "|"
    yield f"| the paper | {' | '.join(f'{volume:.2f}' for volume in paper)} |"
    yield f"| `preset='paper'` | {' | '.join(f'{volume:.3f}' for volume in ours.values())} |"


def own_table() -> str:
    """From a CSV to a model under a bound: the example without the making of its data."""
    source = (ROOT / "examples" / "fair_from_csv.py").read_text(encoding="utf-8")
    lines = [
        *("import pandas as pd", "from paretocosmos.estimators import ParetoClassifier", ""),
        *source[source.index("people = ") : source.index("others = ")].strip().splitlines(),
    ]
    assert all(line in source for line in lines[:2])
    return "\n".join(lines)


def body_of(example: str, *, until: str | None = None) -> str:
    """An example without its docstring, and without what follows a line that starts so."""
    source = (ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8")
    body = source.partition('"""\n\n')[2]
    body = body if until is None else body.partition(f"\n{until}")[0]
    return re.sub(r"\n\n(?=(?:from|import) )", "\n", body.strip())


def output_of(example: str) -> str:
    """What an example printed."""
    return (RESULTS / f"{example}.txt").read_text(encoding="utf-8").rstrip()


def fence(text: str, language: str = "text") -> str:
    """A fenced block."""
    return f"```{language}\n{text}\n```"
