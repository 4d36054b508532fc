"""The marked regions of README.md: from `results/` and from the examples."""

import re
from collections.abc import Iterator

from pages.common import RESULTS, ROOT, fence, load_result, write_table
from pages.measured import describe_conditioning_cost
from pages.results import ONE_PIECE
from paretocosmos.paper.published import get_paper_row, problem_title

__all__ = ["REGIONS"]


def write_reasons() -> Iterator[str]:
    """Yield what the default gains and costs, in numbers."""
    fronts = load_result("shapes")["fronts"]
    by_name = {(front["problem"], front["method"]): front for front in fronts}
    ours, plain = (by_name["zdt2", method]["hypervolume"] for method in ("default", "linear"))
    order = min(by_name[problem, "default"]["order"] for problem in ONE_PIECE)
    yield (
        f"On a concave front (ZDT2), the default reaches {ours:.1%} of the exact hypervolume, a weighted sum {plain:.1%}. "
        f"Weight and loss have a rank correlation of at least {order:.2f} on {len(ONE_PIECE)} analytic fronts. "
        f"{describe_conditioning_cost(link=False)}"
    )


def write_quick_start() -> Iterator[str]:
    """The code, what it takes and what it prints."""
    record = load_result("demo/run")
    yield from (fence(read_body("quick_start"), "python"), "")
    yield (
        f"This trains once ({record['seconds_training']:.0f} seconds on two CPU cores) and prints the lines below; any other limit works too. "
        "Open `report.html` in the run folder to try trade-offs with a slider ([what it shows](docs/howto/explorer.md))."
    )
    yield from ("", fence(read_output("quick_start")))


def write_table_1() -> Iterator[str]:
    """Yield Table 1's row of COSMOS beside ours."""
    cells = load_result("reproduction/table_1")["cells"]
    ours = {
        cell["problem"]: cell["volume"]["mean"]
        for cell in cells
        if (cell["method"], cell["protocol"]) == ("cosmos", "paper")
    }
    paper = [row["hypervolume"] for row in (get_paper_row(name, "cosmos") for name in ours) if row]
    yield from write_table(
        ["hypervolume of COSMOS, 5 seeds", *map(problem_title, ours)],
        [
            ["the paper", *(f"{volume:.2f}" for volume in paper)],
            ["`preset='paper'`", *(f"{volume:.3f}" for volume in ours.values())],
        ],
    )
    yield from ("", *write_reasons())


def get_own_table() -> str:
    """From a CSV to a model under a bound: the example without the making of its data."""
    source = (ROOT / "examples" / "fair_from_csv.py").read_text(encoding="utf-8")
    lines = [
        *("import pandas as pd", "from paretocosmos.estimators import ParetoClassifier", ""),
        *source[source.index("people = ") : source.index("others = ")].strip().splitlines(),
    ]
    assert all(line in source for line in lines[:2])
    return "\n".join(lines)


def write_own_model() -> Iterator[str]:
    """The code, and what the limits cost."""
    rows = [map(float, line.split()) for line in read_output("own_model").splitlines()[1:]]
    costs = ", ".join(f"{missing:.2f} where {spare:.2f} are spare" for spare, missing in rows)
    yield from (fence(read_body("own_model"), "python"), "")
    yield (
        f"This trains once, draws the front and finds the least that is missing within each limit, on data that the choice has not seen: {costs}. "
        "These points are on the exact front, which is known here ([the script](examples/own_model.py), a few seconds). "
        "`condition(network, objectives=2)` is the network for a loop of your own."
    )


def read_body(example: str) -> str:
    """An example without its docstring."""
    source = (ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8")
    body = source.partition('"""\n\n')[2]
    return re.sub(r"\n\n(?=(?:from|import) )", "\n", body.strip())


def read_output(example: str) -> str:
    """What an example printed."""
    return (RESULTS / f"{example}.txt").read_text(encoding="utf-8").rstrip()


REGIONS = {
    "quick_start": write_quick_start,
    "table_1": write_table_1,
    "own_table": lambda: [fence(get_own_table(), "python")],
    "own_model": write_own_model,
}
