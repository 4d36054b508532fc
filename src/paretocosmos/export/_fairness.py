"""What a card says of fairness: what was measured, and what was not."""

from collections.abc import Iterator

from paretocosmos.export.markdown import plain
from paretocosmos.objectives import GroupObjective, fairness_objectives
from paretocosmos.pareto.selection import find_constant
from paretocosmos.runs.run import Run


def fairness(run: Run) -> Iterator[str]:
    """What was compared between which groups; nothing where no groups were."""
    about, front = run.record["about"], run.front
    if "sensitive" in about:
        named = about.get("groups", [])
        groups = ", ".join(
            plain(group) for group in (named if isinstance(named, list | tuple) else [named])
        )
        inputs = _groups_among_inputs(run)
        known = (
            f"Its input {' and '.join(inputs)} tells the network the group: ask whether this is "
            "allowed where it is used."
            if inputs
            else "That column is not an input; other columns may still tell much of it."
        )
        yield f"The groups of {plain(about['sensitive'])} are compared: {groups}. {known}"
        yield ""
        if disclosure := getattr(run.model, "disclosure", ""):
            yield f"- {disclosure}"
        measures = _measures(run)
        shown = (name for name in (*front.names, *front.metrics) if name in measures)
        yield from (f"- {plain(name)}: {measures[name]}." for name in shown)
        yield (
            f"- All of this was measured on the {plain(front.split)} split of this data, with a "
            "decision at probability 0.5. Another threshold, other people or another time have "
            "other gaps."
        )
        yield "- A gap that is small for these groups may be large for others, or within them."
    same = find_constant(front)
    if same.any():
        rays = "; ".join(
            "(" + ", ".join(f"{weight:.2f}" for weight in ray) + ")" for ray in front.rays[same]
        )
        yield (
            f"- CONSTANT: at {int(same.sum())} of {len(front)} preferences all rows of the "
            f"{plain(front.split)} split get the same class, which is fair and of no use: {rays}."
        )


def _groups_among_inputs(run: Run) -> list[str]:
    """Return the columns that make the groups and are inputs, too, as `X` of an estimator may."""
    about = run.record["about"]
    attributes = about.get("grouping", {}).get("attributes", [{"name": about["sensitive"]}])
    inputs = () if run.table is None else run.table.columns
    return [plain(one["name"]) for one in attributes if one["name"] in inputs]


def _measures(run: Run) -> dict[str, str]:
    """What each gap between groups measures, and what it leaves open, in the words of its file."""
    ours = fairness_objectives("classes") | fairness_objectives("numbers")
    own = () if run.trained_on is None else run.trained_on.objectives
    found = {name: kind.meaning for name, kind in ours.items()}
    found |= {
        objective.name: objective.meaning
        for objective in own
        if isinstance(objective, GroupObjective)
    }
    return {name: meaning for name, meaning in found.items() if meaning}
