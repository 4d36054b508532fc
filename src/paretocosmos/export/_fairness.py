"""What a card says of fairness: what was measured, and what was not."""

from collections.abc import Iterator

from paretocosmos.choosing import constant
from paretocosmos.export._markdown import plain
from paretocosmos.run import Run

__all__ = ["fairness"]

# What is measured by each, and what it leaves open, in the words of its file.
MEASURES = {
    "tpr_gap": (
        "of those who belong to the positive class, the share that is found, largest minus "
        "smallest over the groups (equal opportunity). It says nothing of those wrongly taken for "
        "positive, of how well the probabilities are calibrated, or of how the groups came to "
        "differ"
    ),
    "deo": (
        "the difference of how many positives are found in the groups, over all rows. It compares "
        "counts: groups of different sizes have different ones even where their chances are equal, "
        "so read `tpr_gap` for the gap between rates"
    ),
    "demographic_parity": (
        "the share that is predicted positive, largest minus smallest over the groups, whether "
        "rightly or not"
    ),
}


def fairness(run: Run) -> Iterator[str]:
    """What was compared between which groups; nothing where no groups were."""
    about, front = run.record["about"], run.front
    if "sensitive" in about:
        named = about.get("groups", [])
        groups = ", ".join(
            plain(group) for group in (named if isinstance(named, list | tuple) else [named])
        )
        yield (
            f"The groups of {plain(about['sensitive'])} are compared: {groups}. That column is not "
            "an input; other columns may still tell much of it."
        )
        yield ""
        known = [name for name in MEASURES if name in front.names or name in front.metrics]
        yield from (f"- {name}: {MEASURES[name]}." for name in known)
        yield (
            f"- All of this was measured on the {plain(front.split)} split of this data, with a "
            "decision at probability 0.5. Another threshold, other people or another time have "
            "other gaps."
        )
        yield "- A gap that is small for these groups may be large for others, or within them."
    same = constant(front)
    if same.any():
        rays = "; ".join(
            "(" + ", ".join(f"{weight:.2f}" for weight in ray) + ")" for ray in front.rays[same]
        )
        yield (
            f"- CONSTANT: at {int(same.sum())} of {len(front)} preferences all rows of the "
            f"{plain(front.split)} split get the same class, which is fair and of no use: {rays}."
        )
