"""What the paper says of the penalty and of alpha, and whether our numbers say so too."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from paretocosmos.paper._claim_rows import beyond, claimed, sets
from paretocosmos.paper._sets import Place, of_problem, place_of
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import covered

__all__ = ["LITTLE", "ablation_claims"]

Cell = Mapping[str, Any]
Grid = dict[tuple[float, float], Cell]

# Section 6, "Ablation study"; appendix "Additional figures" on fairness.
PENALTY = (
    "A small penalty gives an optimal but narrow front, a larger one a wider front; for fairness "
    "it matters less."
)
ALPHA = "Alpha changes the quality of the front, not its width."
LITTLE = 0.1
"""How much of the front of the smallest penalty others may dominate for it to count as optimal."""


def ablation_claims(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Both claims, problem by problem, from widths, hypervolumes and mean fronts.

    Wide is the span; optimal means that fronts of larger penalties dominate next to nothing of it.
    Alpha must change the hypervolume beyond the noise, and the width not. Where neither a claim nor
    its opposite is beyond the noise, of which one seed says nothing, it is open.

    Args:
        cells: all of them, see `cell_numbers`.
    """
    grids: dict[Place, Grid] = {}
    for cell in (cell for cell in cells if cell["seeds"]):
        own = cell["varied"]
        numbers = all(cell["metrics"][key] is not None for key in ("hypervolume", "span"))
        if numbers and {"penalty", "alpha"} <= own.keys() and not isinstance(own["alpha"], list):
            at = (float(own["penalty"]), float(own["alpha"]))
            grids.setdefault(place_of(cell), {})[at] = cell
    rows = [_row(grid) for grid in grids.values() if _is_grid(grid)]
    penalty, alpha = (
        claimed(
            claim, [r | {"holds": holds(r), "sentence": told(r), "short": short(r)} for r in rows]
        )
        for claim, holds, told, short in (
            (PENALTY, _wider, _of_penalty, _penalty_in_short),
            (ALPHA, _apart, _of_alpha, _alpha_in_short),
        )
    )
    narrower = [row for row in rows if _widened(row) < 0]
    if narrower:
        penalty["sentence"] += f" With a larger penalty it is narrower on {sets(narrower)}."
    return [penalty, alpha]


def _is_grid(grid: Grid) -> bool:
    """Whether every penalty was tried with every alpha, two or more of each."""
    penalties, alphas = ({at[axis] for at in grid} for axis in (0, 1))
    return len(grid) == len(penalties) * len(alphas) and min(len(penalties), len(alphas)) > 1


def _row(grid: Grid) -> dict[str, Any]:
    some = next(iter(grid.values()))
    penalties, alphas = (sorted({at[axis] for at in grid}) for axis in (0, 1))

    def means(axis: int, values: Sequence[float], number: Callable[[Cell], float]) -> list[float]:
        return [fmean(number(c) for at, c in grid.items() if at[axis] == v) for v in values]

    def width(cell: Cell) -> float:
        return float(cell["metrics"]["span"]["mean"])

    def volume(cell: Cell) -> float:
        return float(cell["metrics"]["hypervolume"]["mean"])

    def noise(axis: int, ends: Sequence[float], key: str) -> float | None:
        """The standard deviation of the difference of two means, each over a line of the grid."""
        at_ends = [cell["metrics"][key] for at, cell in grid.items() if at[axis] in ends]
        if any(numbers["std"] is None for numbers in at_ends):
            return None
        errors = (numbers["std"] / math.sqrt(len(numbers["each"])) for numbers in at_ends)
        return math.hypot(*errors) / (len(at_ends) / len(ends))

    def ends(values: Sequence[float]) -> tuple[float, float]:
        return alphas[values.index(max(values))], alphas[values.index(min(values))]

    volumes, spans = means(1, alphas, volume), means(1, alphas, width)
    dominated = [
        max(covered(_front(grid[penalties[0], a]), _front(grid[p, a])) for p in penalties[1:])
        for a in alphas
    ]
    return {
        "problem": some["problem"],
        "settings": of_problem(some),
        "protocol": some["protocol"],
        "penalties": penalties,
        "span_by_penalty": means(0, penalties, width),
        "volume_by_penalty": means(0, penalties, volume),
        "alphas": alphas,
        "span_by_alpha": spans,
        "volume_by_alpha": volumes,
        "span_deviation": noise(0, (penalties[0], penalties[-1]), "span"),
        "span_deviation_by_alpha": noise(1, ends(spans), "span"),
        "volume_deviation": noise(1, ends(volumes), "hypervolume"),
        "smallest_dominated": fmean(dominated),
    }


def _front(cell: Cell) -> Front:
    return Front(
        np.array(cell["rays"], dtype=np.float64),
        np.array(cell["front"], dtype=np.float64),
        tuple(cell["objectives"]),
        np.array(cell["reference"]),
    )


def _widened(row: Mapping[str, Any]) -> float:
    """How much wider the front of the largest penalty is, where that is beyond the noise."""
    wider = float(row["span_by_penalty"][-1] - row["span_by_penalty"][0])
    return wider if beyond(wider, row["span_deviation"]) else 0.0


def _wider(row: Mapping[str, Any]) -> bool | None:
    if row["smallest_dominated"] > LITTLE:
        return False
    return _widened(row) > 0 if _widened(row) else None


def _apart(row: Mapping[str, Any]) -> bool | None:
    if beyond(np.ptp(row["span_by_alpha"]), row["span_deviation_by_alpha"]):
        return False
    return True if beyond(np.ptp(row["volume_by_alpha"]), row["volume_deviation"]) else None


def _of_penalty(row: Mapping[str, Any]) -> str:
    spans = " → ".join(f"{span:.3f}" for span in row["span_by_penalty"])
    volumes = " → ".join(f"{volume:.3f}" for volume in row["volume_by_penalty"])
    penalties = ", ".join(f"{penalty:g}" for penalty in row["penalties"])
    return (
        f"width {spans} (± {_shown(row['span_deviation'])} between the ends) and hypervolume "
        f"{volumes} with λ {penalties}; "
        f"larger ones dominate {row['smallest_dominated']:.0%} of the front of λ "
        f"{row['penalties'][0]:g}"
    )


def _penalty_in_short(row: Mapping[str, Any]) -> str:
    first, *_, last = row["span_by_penalty"]
    return f"width {first:.3f} → {last:.3f}, {row['smallest_dominated']:.0%} dominated"


def _alpha_in_short(row: Mapping[str, Any]) -> str:
    spans, volumes = (np.ptp(row[f"{key}_by_alpha"]) for key in ("span", "volume"))
    more = f"hypervolume by {volumes:.3f}"
    if _apart(row) is False:
        more = f"over λ by {np.ptp(row['span_by_penalty']):.3f}"
    return f"width moves by {spans:.3f}, {more}"


def _of_alpha(row: Mapping[str, Any]) -> str:
    spans, volumes = row["span_by_alpha"], row["volume_by_alpha"]
    return (
        f"over alpha the width moves by {np.ptp(spans):.3f} "
        f"(± {_shown(row['span_deviation_by_alpha'])}; over λ by "
        f"{np.ptp(row['span_by_penalty']):.3f}), the hypervolume by {np.ptp(volumes):.3f} "
        f"(± {_shown(row['volume_deviation'])})"
    )


def _shown(deviation: float | None) -> str:
    return "?" if deviation is None else f"{deviation:.3f}"
