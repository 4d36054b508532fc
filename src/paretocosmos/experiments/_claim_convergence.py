"""What the paper says of how fast fronts converge, and whether our numbers say so too."""

from collections.abc import Mapping, Sequence
from typing import Any

from paretocosmos.experiments._names import problem_title

__all__ = ["convergence_claim"]

EPOCH = 10
WIDE = 0.5
"""How much of the last front's width one needs to count as well spread."""
# Section 6: "our method converges fast and is able to generate a well-spread Pareto front after 10
# epochs" on the pairs of images.
CLAIM = f"COSMOS has a well-spread front after {EPOCH} epochs."

Cell = Mapping[str, Any]


def convergence_claim(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Set by set, how wide the validation front is after ten epochs, beside the last one.

    Args:
        cells: those that have finished runs, with their courses, see `cell_numbers`.
    """
    rows = []
    for cell in cells:
        course = {one["epoch"]: one for one in cell.get("course") or ()}
        if cell["method"] == "cosmos" and not cell["settings"] and EPOCH in course:
            rows.append(_row(cell, course[EPOCH], course[max(course)]))
    if not rows:
        return []
    so, not_so = (
        [problem_title(row["problem"], row["protocol"]) for row in rows if row["holds"] is wanted]
        for wanted in (True, False)
    )
    parts = [f"Taken as at least {WIDE:.0%} of the last front's width:"]
    parts += [f"so on {'; '.join(so)}."] if so else []
    parts += [f"{'Not' if so else 'not'} so on {'; '.join(not_so)}."] if not_so else []
    sentence = " ".join(parts)
    return [{"claim": CLAIM, "holds": not not_so, "sentence": sentence, "rows": rows}]


def _row(cell: Cell, early: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    widths, volumes = (
        [one[key]["mean"] for one in (early, last)] for key in ("span", "hypervolume")
    )
    return {
        "problem": cell["problem"],
        "protocol": cell["protocol"],
        "widths": widths,
        "volumes": volumes,
        "holds": widths[0] >= WIDE * widths[1],
        "sentence": (
            f"width {widths[0]:.3f} after {EPOCH} epochs, {widths[1]:.3f} after {last['epoch']}; "
            f"hypervolume {volumes[0]:.3f} and {volumes[1]:.3f}"
        ),
    }
