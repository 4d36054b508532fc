"""What the paper says of the penalty and of alpha, and whether our numbers say so too."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from paretocosmos.experiments._names import problem_title
from paretocosmos.front import Front
from paretocosmos.metrics import covered

__all__ = ["ablation_claims"]

Cell = Mapping[str, Any]
Grid = dict[tuple[float, float], Cell]

PENALTY = "A small penalty gives an optimal but narrow front, a larger one a wider front."
ALPHA = "Alpha changes the quality of the front, not its width."
# How much of the front of the smallest penalty others may dominate for it to count as optimal.
LITTLE = 0.1


def ablation_claims(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Both claims, problem by problem, from widths, hypervolumes and mean fronts.

    Wide is the span; optimal means that fronts of larger penalties dominate next to nothing of it.
    Alpha changes the width less than the penalty does, or else it is not as the paper says.

    Args:
        cells: those that have finished runs, see `cell_numbers`.
    """
    grids: dict[tuple[str, str | None], Grid] = {}
    for cell in cells:
        own = cell["varied"]
        numbers = cell["volume"] is not None and cell["metrics"]["span"] is not None
        if numbers and {"penalty", "alpha"} <= own.keys() and not isinstance(own["alpha"], list):
            at = (float(own["penalty"]), float(own["alpha"]))
            grids.setdefault((cell["problem"], cell["protocol"]), {})[at] = cell
    rows = [_row(*key, grid) for key, grid in grids.items() if _is_grid(grid)]
    return [_claimed(PENALTY, rows, _wider, _of_penalty), _claimed(ALPHA, rows, _apart, _of_alpha)]


def _is_grid(grid: Grid) -> bool:
    """Whether every penalty was tried with every alpha, two or more of each."""
    penalties, alphas = ({at[axis] for at in grid} for axis in (0, 1))
    return len(grid) == len(penalties) * len(alphas) and min(len(penalties), len(alphas)) > 1


def _row(problem: str, protocol: str | None, grid: Grid) -> dict[str, Any]:
    penalties, alphas = (sorted({at[axis] for at in grid}) for axis in (0, 1))

    def means(axis: int, values: Sequence[float], number: Callable[[Cell], float]) -> list[float]:
        return [fmean(number(c) for at, c in grid.items() if at[axis] == v) for v in values]

    def width(cell: Cell) -> float:
        return float(cell["metrics"]["span"]["mean"])

    def volume(cell: Cell) -> float:
        return float(cell["volume"]["mean"])

    dominated = [
        max(covered(_front(grid[penalties[0], a]), _front(grid[p, a])) for p in penalties[1:])
        for a in alphas
    ]
    return {
        "problem": problem,
        "protocol": protocol,
        "penalties": penalties,
        "span_by_penalty": means(0, penalties, width),
        "volume_by_penalty": means(0, penalties, volume),
        "alphas": alphas,
        "span_by_alpha": means(1, alphas, width),
        "volume_by_alpha": means(1, alphas, volume),
        "smallest_dominated": fmean(dominated),
    }


def _front(cell: Cell) -> Front:
    return Front(
        np.array(cell["rays"], dtype=np.float64),
        np.array(cell["front"], dtype=np.float64),
        tuple(cell["objectives"]),
        np.array(cell["reference"]),
    )


def _wider(row: Mapping[str, Any]) -> bool:
    spans = row["span_by_penalty"]
    return bool(spans[-1] > spans[0] and row["smallest_dominated"] <= LITTLE)


def _apart(row: Mapping[str, Any]) -> bool:
    by_alpha, by_penalty = (np.ptp(row[f"span_by_{key}"]) for key in ("alpha", "penalty"))
    return bool(by_alpha < by_penalty)


def _of_penalty(row: Mapping[str, Any]) -> str:
    spans = " → ".join(f"{span:.3f}" for span in row["span_by_penalty"])
    volumes = " → ".join(f"{volume:.3f}" for volume in row["volume_by_penalty"])
    penalties = ", ".join(f"{penalty:g}" for penalty in row["penalties"])
    return (
        f"width {spans} and hypervolume {volumes} with λ {penalties}; "
        f"larger ones dominate {row['smallest_dominated']:.0%} of the front of λ "
        f"{row['penalties'][0]:g}"
    )


def _of_alpha(row: Mapping[str, Any]) -> str:
    spans, volumes = row["span_by_alpha"], row["volume_by_alpha"]
    return (
        f"over alpha the width moves by {np.ptp(spans):.3f} (over λ by "
        f"{np.ptp(row['span_by_penalty']):.3f}), the hypervolume by {np.ptp(volumes):.3f}"
    )


def _claimed(
    claim: str,
    rows: Sequence[Mapping[str, Any]],
    holds: Callable[[Mapping[str, Any]], bool],
    told: Callable[[Mapping[str, Any]], str],
) -> dict[str, Any]:
    judged = [dict(row) | {"holds": holds(row), "sentence": told(row)} for row in rows]
    so, not_so = (
        [problem_title(row["problem"], row["protocol"]) for row in judged if row["holds"] is wanted]
        for wanted in (True, False)
    )
    said = [f"So on {'; '.join(so)}."] if so else []
    said += [f"Not so on {'; '.join(not_so)}."] if not_so else []
    return {
        "claim": claim,
        "holds": not not_so if rows else None,
        "sentence": " ".join(said) or "No grid is complete, so this cannot be said.",
        "rows": judged,
    }
