"""What the paper says of the penalty and of alpha, and whether our numbers say so too."""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from paretocosmos.io.schema.collected import AblationRow, CellResult, ClaimResult, Spread
from paretocosmos.paper._against import beyond
from paretocosmos.paper._claims import claimed, titles
from paretocosmos.paper._fronts import front_of, on_a_grid
from paretocosmos.paper.names import SetKey, set_key, settings_of_problem
from paretocosmos.pareto.metrics import covered

__all__ = ["LITTLE", "ablation_claims"]

Grid = dict[tuple[float, float], CellResult]
"""The cells of a set by penalty and alpha."""

LITTLE = 0.1
"""How much of the front of the smallest penalty others may dominate for it to count as optimal."""


def ablation_claims(cells: Sequence[CellResult]) -> list[ClaimResult]:
    """Both claims, problem by problem, from widths, hypervolumes and mean fronts.

    Wide is the span; optimal means that fronts of larger penalties dominate next to nothing of it.
    Alpha must change the hypervolume beyond the noise, and the width not. Where neither a claim nor
    its opposite is beyond the noise, of which one seed says nothing, it is open.
    """
    grids: dict[SetKey, Grid] = {}
    for at, cell in on_a_grid(cells):
        if cell.metrics["hypervolume"] is not None and cell.metrics["span"] is not None:
            grids.setdefault(set_key(cell), {})[at] = cell
    rows = [_row(grid) for grid in grids.values() if _is_whole(grid)]
    penalty = claimed("penalty", [_judge_penalty(row) for row in rows])
    narrower = [row for row in rows if _widened(row) < 0]
    if narrower:
        more = f" With a larger penalty the front is narrower on {titles(narrower)}."
        penalty = penalty.model_copy(update={"sentence": penalty.sentence + more})
    return [penalty, claimed("alpha", [_judge_alpha(row) for row in rows])]


def _is_whole(grid: Grid) -> bool:
    """Whether every penalty was tried with every alpha, two or more of each."""
    penalties, alphas = ({at[axis] for at in grid} for axis in (0, 1))
    return len(grid) == len(penalties) * len(alphas) and min(len(penalties), len(alphas)) > 1


def _row(grid: Grid) -> AblationRow:
    some = next(iter(grid.values()))
    penalties, alphas = (sorted({at[axis] for at in grid}) for axis in (0, 1))

    def numbers(axis: int, values: Sequence[float], key: str) -> list[Spread]:
        """Of all cells with one of these penalties or alphas."""
        found = (cell.metrics[key] for at, cell in grid.items() if at[axis] in values)
        return [number for number in found if number is not None]

    def means(axis: int, values: Sequence[float], key: str) -> list[float]:
        return [fmean(number.mean for number in numbers(axis, [v], key)) for v in values]

    def noise(axis: int, ends: Sequence[float], key: str) -> float | None:
        """The standard deviation of the difference of two means, each over a line of the grid."""
        at_ends = numbers(axis, ends, key)
        errors = [n.std / math.sqrt(len(n.each)) for n in at_ends if n.std is not None]
        one_seed = len(errors) < len(at_ends)
        return None if one_seed else math.hypot(*errors) / (len(at_ends) / len(ends))

    def ends(values: Sequence[float]) -> tuple[float, float]:
        return alphas[values.index(max(values))], alphas[values.index(min(values))]

    volumes, spans = means(1, alphas, "hypervolume"), means(1, alphas, "span")
    dominated = [
        max(covered(front_of(grid[penalties[0], a]), front_of(grid[p, a])) for p in penalties[1:])
        for a in alphas
    ]
    return AblationRow(
        problem=some.problem,
        settings=settings_of_problem(some),
        protocol=some.protocol,
        penalties=penalties,
        span_by_penalty=means(0, penalties, "span"),
        volume_by_penalty=means(0, penalties, "hypervolume"),
        alphas=alphas,
        span_by_alpha=spans,
        volume_by_alpha=volumes,
        span_deviation=noise(0, (penalties[0], penalties[-1]), "span"),
        span_deviation_by_alpha=noise(1, ends(spans), "span"),
        volume_deviation=noise(1, ends(volumes), "hypervolume"),
        smallest_dominated=fmean(dominated),
    )


def _widened(row: AblationRow) -> float:
    """How much wider the front of the largest penalty is, where that is beyond the noise."""
    wider = row.span_by_penalty[-1] - row.span_by_penalty[0]
    return wider if beyond(wider, row.span_deviation) else 0.0


def _judge_penalty(row: AblationRow) -> AblationRow:
    widened = _widened(row)
    optimal = row.smallest_dominated <= LITTLE
    spans, volumes = (
        " → ".join(f"{number:.3f}" for number in numbers)
        for numbers in (row.span_by_penalty, row.volume_by_penalty)
    )
    penalties = ", ".join(f"{penalty:g}" for penalty in row.penalties)
    first, *_, last = row.span_by_penalty
    judged = {
        "holds": False if not optimal else widened > 0 if widened else None,
        "sentence": f"width {spans} (± {_shown(row.span_deviation)} between the ends) and "
        f"hypervolume {volumes} with λ {penalties}; larger λ dominate "
        f"{row.smallest_dominated:.0%} of the front of λ {row.penalties[0]:g}",
        "short": f"width {first:.3f} → {last:.3f}, {row.smallest_dominated:.0%} dominated",
    }
    return row.model_copy(update=judged)


def _judge_alpha(row: AblationRow) -> AblationRow:
    spans, volumes, over_penalty = (
        float(np.ptp(numbers))
        for numbers in (row.span_by_alpha, row.volume_by_alpha, row.span_by_penalty)
    )
    moved = beyond(spans, row.span_deviation_by_alpha)
    more = f"over λ by {over_penalty:.3f}" if moved else f"hypervolume by {volumes:.3f}"
    judged = {
        "holds": False if moved else beyond(volumes, row.volume_deviation) or None,
        "sentence": f"over alpha the width varies by {spans:.3f} "
        f"(± {_shown(row.span_deviation_by_alpha)}; over λ by {over_penalty:.3f}), the "
        f"hypervolume by {volumes:.3f} (± {_shown(row.volume_deviation)})",
        "short": f"width varies by {spans:.3f}, {more}",
    }
    return row.model_copy(update=judged)


def _shown(deviation: float | None) -> str:
    return "?" if deviation is None else f"{deviation:.3f}"
