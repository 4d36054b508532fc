"""What the paper says of how fast fronts converge, and whether our numbers say so too."""

from collections.abc import Mapping, Sequence
from typing import Any

from paretocosmos.paper._against import deviation_of_difference
from paretocosmos.paper._claim_rows import beyond, claimed
from paretocosmos.paper._sets import of_problem, variation

__all__ = ["convergence_claim"]

EPOCH = 10
WIDE = 0.5
RULE = f"Well spread is at least {WIDE:.0%} of the last front's width."
# Section 6: "our method converges fast and is able to generate a well-spread Pareto front after 10
# epochs" on the pairs of images.
CLAIM = f"COSMOS has a well-spread front after {EPOCH} epochs."

Cell = Mapping[str, Any]


def convergence_claim(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Set by set, how wide the validation front is after ten epochs, beside the last one.

    Args:
        cells: all of them, with their courses, see `cell_numbers`.
    """
    rows = []
    for cell in cells:
        course = {one["epoch"]: one for one in cell.get("course") or ()}
        if cell["method"] == "cosmos" and not variation(cell) and EPOCH in course:
            rows.append(_row(cell, course[EPOCH], course[max(course)]))
    return [claimed(CLAIM, rows, RULE)] if rows else []


def _row(cell: Cell, early: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    widths, volumes = (
        [one[key]["mean"] for one in (early, last)] for key in ("span", "hypervolume")
    )
    noise = deviation_of_difference(early["span"], _scaled(last["span"]))
    more = widths[0] - WIDE * widths[1]
    return {
        "problem": cell["problem"],
        "settings": of_problem(cell),
        "protocol": cell["protocol"],
        "widths": widths,
        "volumes": volumes,
        "deviation": noise,
        "holds": more > 0 if beyond(more, noise) else None,
        "short": f"width {widths[0]:.3f}, at the end {widths[1]:.3f}",
        "sentence": (
            f"width {_width(early)} after {EPOCH} epochs, {_width(last)} after "
            f"{last['epoch']}; hypervolume {volumes[0]:.3f} and {volumes[1]:.3f}"
        ),
    }


def _scaled(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The noise of that part of a width."""
    std = numbers["std"]
    return dict(numbers) | {"std": None if std is None else WIDE * std}


def _width(one: Mapping[str, Any]) -> str:
    std = one["span"]["std"]
    return f"{one['span']['mean']:.3f}" + ("" if std is None else f" ± {std:.3f}")
