"""What `docs/results.md` says of intervals: from `results/intervals.json`."""

import json
from pathlib import Path
from typing import Any

__all__ = ["intervals_note", "intervals_table"]

RESULTS = Path(__file__).parents[1] / "results"
KINDS = ("fixed", "chosen, val", "chosen, test")
# What is to be reached: coverage of 95 % intervals, and their width beside an oracle's.
LEAST, MOST, WIDEST = 0.935, 0.97, 1.3


def intervals_table() -> list[str]:
    """A row for every kind of table: coverage and width, missed targets marked."""
    rows = [
        "| rows | groups | true gap | given point | chosen, on val | chosen, on test |",
        "|---|---|---|---|---|---|",
    ]
    cells = _cells()
    places = dict.fromkeys((c["rows"], c["smaller_group"], c["gap"]) for c in cells["fixed"])
    for place in places:
        count, share, gap = place
        shown = [_shown([c for c in cells[kind] if _place(c) == place]) for kind in KINDS]
        groups = f"{1 - share:.0%} / {share:.0%}"
        rows.append(f"| {count:,} | {groups} | {gap:g} | {' | '.join(shown)} |")
    return rows


def intervals_note() -> list[str]:
    """What misses its target, what a confidence buys, and more than two groups."""
    cells = _cells()
    core = [c for kind in KINDS for c in cells[kind]]
    under = [c for c in core if c["coverage"] < LEAST]
    over = [c for c in core if c["gap"] > 0 and c["coverage"] > MOST]
    wide = [c for c in core if c["ratio"] > WIDEST]
    on_val = sum(c["kind"] == "chosen, val" for c in over)
    fewest, *_, most = sorted(c["intervals"] for c in cells["chosen, val"])
    sure = cells["confidence"]
    strict, loose = ([c for c in sure if c["gap"] == gap] for gap in (0.02, 0.1))
    others = [
        f"{kind}, true gap {c['gap']:g}: {c['coverage']:.1%}, {c['ratio']:.2f}"
        for kind in ("four groups", "equalized odds")
        for c in cells[kind]
    ]
    shares = cells["a share"]
    return [
        f"Of {len(core)} cells, {len(under)} cover less than {LEAST:.1%}, {len(wide)} are wider "
        f"than {WIDEST} times the oracle's, and {len(over)} with a true gap above 0 cover more "
        f"than {MOST:.0%} (marked `>`), {on_val} of them for points chosen on validation rows: such "
        "a choice keeps only estimates below the bound, and if the bound is within the noise, an "
        "interval that is wide enough for one of them contains the truth in all. In "
        f"{fewest:,} to {most:,} of the 2,000 tables a ray keeps the bound.",
        "",
        f"`choose(..., confidence=0.9)` on sloped fronts: the true gap of the chosen ray breaks the "
        f"bound in at most {max(c['broken'] for c in sure):.1%} of the tables (10 % allowed), that "
        "of the best ray among all that pass in at most "
        f"{max(c['broken_unordered'] for c in sure):.1%}, and without confidence in "
        f"{_range(sure, 'broken_without')}. The price: only {_range(strict, 'found')} of these tables "
        f"support a bound of 0.02, and {_range(loose, 'found')} one of 0.1; the fewest are those with "
        "300 rows and 15 positives in the smaller group.",
        "",
        f"With more than one pair of rates, 1,500 rows (coverage, width relative to the oracle's): "
        f"{'; '.join(others)}. These intervals are safe, but wider than necessary. For shares such as "
        "the accuracy, 50 % to 98 % of 300 to 5,000 rows, the coverage is "
        f"{_range(shares, 'coverage')}.",
    ]


def _range(cells: list[dict[str, Any]], key: str) -> str:
    numbers = [c[key] for c in cells]
    return f"{min(numbers):.1%} to {max(numbers):.1%}"


def _shown(cells: list[dict[str, Any]]) -> str:
    """Coverage and width, of a flat and a sloped front where the point is chosen."""
    return "; ".join(
        ("`<` " if c["coverage"] < LEAST else "")
        + ("`>` " if c["gap"] > 0 and c["coverage"] > MOST else "")
        + f"{c['coverage']:.1%}, {c['ratio']:.2f}"
        for c in cells
    )


def _place(cell: dict[str, Any]) -> tuple[int, float, float]:
    return cell["rows"], cell["smaller_group"], cell["gap"]


def _cells() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in json.loads((RESULTS / "intervals.json").read_text())["cells"]:
        found.setdefault(cell["kind"], []).append(cell)
    return found
