"""The marked regions of README.md: from `results/` and from the examples."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from faces import cost_of_conditioning
from fronts_page import PROBLEMS, ahead_of_separate, grouped, mean_of
from using_page import constraint_rows

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
        "results": "\n".join(results_table()),
    }

    def written(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- written: {name} -->\n{regions[name]}\n<!-- end -->"

    return re.sub(r"<!-- written: (\w+) -->\n.*?<!-- end -->", written, readme, flags=re.DOTALL)


# Analytic problems whose front is in one piece; the order along the others is worse, as
# docs/decisions/default_method.md says.
ONE_PIECE = ("toy_convex", "toy_concave", "zdt1", "zdt2", "dtlz2", "vlmop2")


def why() -> Iterator[str]:
    """Three reasons, each with numbers."""
    fronts = json.loads((RESULTS / "shapes.json").read_text(encoding="utf-8"))["fronts"]
    by_name = {(front["problem"], front["method"]): front for front in fronts}
    ours, plain = (by_name["zdt2", method]["hypervolume"] for method in ("default", "linear"))
    order = min(by_name[problem, "default"]["order"] for problem in ONE_PIECE)
    yield (
        f"- **Fronts of any shape.** On a concave front (ZDT2) the default reaches {ours:.1%} of the exact hypervolume, a weighted sum {plain:.1%}. "
        f"On pairs of images, one network had {ahead_of_separate():.3f} more than nine separately trained ones (version 0.2)."
    )
    yield (
        f"- **A preference you can rely on.** More weight on a goal lowers its loss: on {len(ONE_PIECE)} analytic fronts the rank correlation is "
        f"at least {order:.2f}, where the loss as published reverses it."
    )
    yield (
        "- **For the price of one training.** A step of COSMOS as published on EfficientNet-B4 takes "
        f"{cost_of_conditioning():.3f} times as long as a step for a single task; the default conditions more layers and costs more."
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


def results_table() -> Iterator[str]:
    """The default beside separate networks and the paper's recipe, where all were trained."""
    yield "| hypervolume (order), 5 seeds | one network, version 0.2 | nine separate networks | the paper's recipe |"
    yield "|---|---|---|---|"
    for (problem, set_up), arms in grouped().items():
        if set_up in ("published", "demographic_parity"):
            cells = " | ".join(_cell(arms.get(arm)) for arm in ("default", "separate", "paper"))
            yield f"| {PROBLEMS[problem]} | {cells} |"
    behind = [row["ahead"] for row in constraint_rows() if row["ours"]]
    yield ""
    yield (
        "The default of version 0.2 on images was the weighted sum; [since then](docs/decisions/default_method.md) it is COSMOS pulled to 1/r. "
        "Order is the rank correlation between an objective's weight and minus its loss; 1 is best. Under a fixed fairness bound, our accuracy differs by "
        f"{100 * fmean(behind):+.2f} points on average from fairlearn's best method, ".replace(
            "-", "−"
        )
        + "which is refitted for each bound and may need the group of everyone it predicts for ([numbers](docs/results.md#under-a-constraint)). "
        "[All results](docs/results.md). [The paper, reproduced](docs/reproduction.md)."
    )


def _cell(runs: list[dict[str, Any]] | None) -> str:
    if not runs:
        return "–"
    volume, order = (mean_of(runs, name) for name in ("hypervolume", "monotonicity"))
    return f"{volume:.3f} ({order:.2f})".replace("-", "−")


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
