"""Written parts of docs/results/fairness.md about limits, from results/constraint.json.

Methods are compared at equal gaps on test rows: of every method, the mean accuracy and the mean gap
over splits are taken at each tolerance or preference, and the accuracy at a gap is interpolated
between them. The band comes from leaving one split out at a time.
"""

from collections.abc import Iterator
from functools import cache
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from pages.common import describe_source, load_result, write_table

__all__ = [
    "OURS",
    "REGIONS",
    "RIVALS",
    "Way",
    "average_curve",
    "describe_difference",
    "list_curves",
]

TABLES = {
    "adult": "Adult",
    "compas": "COMPAS",
    "default_credit": "Default",
    "law_school": "Law school",
    "communities": "Communities",
    "german_credit": "German credit",
    "health": "Health",
    "hmda": "HMDA",
    "kdd_census": "KDD Census",
}
GAPS = {"demographic_parity": "selection", "tpr_gap": "TPR"}
BOUNDS = (0.02, 0.05, 0.1)


class Way(NamedTuple):
    """A method, what it adjusts, and how its predictions depend on the group."""

    method: str
    base: str
    group: str


OURS = {
    f'`group="{group}"`, {base}': Way("ours", base, group)
    for base, group in (
        ("trees", "input"),
        ("network", "input"),
        ("trees", "estimate"),
        ("network", "estimate"),
        ("network", "none"),
    )
}
RIVALS = {
    "`ThresholdOptimizer`, trees, group known": Way("ThresholdOptimizer", "trees", "input"),
    "linear programme, trees, group known": Way("programme", "trees", "input"),
    "OxonFair, trees, group known": Way("OxonFair", "trees", "input"),
    "OxonFair, trees, group inferred": Way("OxonFair", "trees", "estimate"),
    "`ExponentiatedGradient`, logistic regression": Way(
        "ExponentiatedGradient", "logistic", "none"
    ),
    "`GridSearch`, logistic regression": Way("GridSearch", "logistic", "none"),
}
# Ours, and what it is compared with: first those that know the group and adjust the same scores.
PAIRS = [
    (Way("ours", base, "input"), Way(method, base, "input"))
    for base, methods in (
        ("trees", ("ThresholdOptimizer", "programme", "OxonFair")),
        ("network", ("ThresholdOptimizer",)),
    )
    for method in methods
] + [
    (Way("ours", "trees", "estimate"), Way("OxonFair", "trees", "estimate")),
    *(
        (Way("ours", base, group), Way("ExponentiatedGradient", "logistic", "none"))
        for base, group in (("trees", "estimate"), ("network", "estimate"), ("network", "none"))
    ),
]
NAMES = {
    "programme": "linear programme",
    "ThresholdOptimizer": "`ThresholdOptimizer`",
    "ExponentiatedGradient": "`ExponentiatedGradient`",
}
Curve = dict[int, Any]  # [points, 3] by split: tolerance or preference, accuracy, gap


@cache
def list_curves() -> dict[tuple[str, str], dict[Way, Curve]]:
    """Return curves by table and gap, then by way and split."""
    found: dict[tuple[str, str], dict[Way, Curve]] = {}
    for one in load_result("constraint")["curves"]:
        ways = found.setdefault((one["table"], one["gap"]), {})
        way = Way(one["method"], one["base"], one["group"])
        ways.setdefault(way, {})[one["split"]] = np.array(one["points"])
    return found


def average_curve(curve: Curve, without: int | None = None) -> tuple[Any, Any]:
    """Return gaps, from small to large, and accuracies: means over splits, one left out."""
    kept = [points for split, points in curve.items() if split != without]
    _, accuracy, gap = np.mean(kept, axis=0).T
    order = np.argsort(gap)
    return gap[order], accuracy[order]


def compare(ours: Way, rival: Way) -> dict[str, Any]:
    """Return how much more accurate we are at equal gaps, in points.

    The gaps are the bounds that lie below the rival's gap without a limit, or the least gap that
    both reach.

    Returns:
        The mean, half the width of its 95 % band, and the difference of every comparison.
    """
    chosen = list_curves().values()
    splits = sorted({split for ways in chosen for split in ways[ours]})

    def subtract(without: int | None) -> list[float]:
        differences = []
        for ways in chosen:
            # which gaps are compared is decided on all splits
            largest = average_curve(ways[rival])[0].max()
            (gaps, accuracies), (theirs, their_accuracies) = (
                average_curve(ways[way], without) for way in (ours, rival)
            )
            for bound in BOUNDS:
                if bound < largest:
                    gap = max(bound, gaps.min(), theirs.min())
                    mine = np.interp(gap, gaps, accuracies)
                    differences.append(100 * (mine - np.interp(gap, theirs, their_accuracies)))
        return differences

    every = subtract(None)
    left_out = np.array([np.array(subtract(split)) for split in splits])
    count = len(splits)
    scale = student.ppf(0.975, count - 1) * np.sqrt((count - 1) / count)
    bands = scale * np.sqrt(((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    means = left_out.mean(axis=1)
    band = scale * np.sqrt(((means - means.mean()) ** 2).sum())
    return {"mean": fmean(every), "band": float(band), "every": every, "bands": bands.tolist()}


def _signed(number: float) -> str:
    return f"{number:+.2f}".replace("-", "−")


def _name(way: Way) -> str:
    found = [name for name, one in (OURS | RIVALS).items() if one == way]
    return found[0] if found else f"{NAMES[way.method]}, our network, group known"


@cache
def _compare_all() -> list[tuple[Way, Way, dict[str, Any]]]:
    return [(ours, rival, compare(ours, rival)) for ours, rival in PAIRS]


def _count(result: dict[str, Any]) -> tuple[int, int, int]:
    """Count comparisons: below by more than the band, above likewise, and all."""
    pairs = list(zip(result["every"], result["bands"], strict=True))
    return sum(d < -b for d, b in pairs), sum(d > b for d, b in pairs), len(pairs)


def write_equal_gaps() -> Iterator[str]:
    """Yield where others are better or limits break, then differences at equal gaps."""
    for ours, rival, result in sorted(_compare_all(), key=lambda found: found[2]["mean"]):
        less, more, count = _count(result)
        if less > more:
            yield (
                f"- {_name(ours)}: clearly less accurate than {_name(rival)} in {less} of {count} comparisons at equal gaps, clearly more in {more}; "
                f"on average {_describe(result)} points."
            )
    kept = {name: _hold(way, 0.05)[0] for name, way in OURS.items()}
    worst, best = min(kept, key=lambda name: kept[name]), max(kept, key=lambda name: kept[name])
    yield (
        f"- Of the choices for a gap of at most 5 points, {1 - kept[best]:.0%} ({best}) to {1 - kept[worst]:.0%} ({worst}) break the limit on test rows."
    )
    refused = [1 - _hold(way, 0.02)[1] for way in OURS.values()]
    sure = [1 - _hold(way, 0.05, " sure")[1] for way in OURS.values()]
    yield (
        f"- For at most 2 points, we refuse to choose in up to {max(refused):.0%} of cases; with `confidence=0.9`, for at most 5 points, in {min(sure):.0%} to {max(sure):.0%}."
    )
    yield ""
    yield from write_table(
        ["ours", "beside", "points of accuracy", "clearly less", "clearly more"],
        (
            [
                _name(ours),
                _name(rival),
                _describe(result),
                *(f"{number} of {_count(result)[2]}" for number in _count(result)[:2]),
            ]
            for ours, rival, result in _compare_all()
        ),
    )
    versions = ", ".join(
        f"{name} {version}" for name, version in load_result("constraint")["packages"].items()
    )
    yield from ("", _describe_source(f"; {versions}"))


def _describe_source(note: str = "") -> str:
    splits = len({one["split"] for one in load_result("constraint")["curves"]})
    return describe_source("constraint", f"{splits} splits of each table{note}")


def _describe(result: dict[str, Any]) -> str:
    return f"{_signed(result['mean'])} ± {result['band']:.2f}"


def describe_difference() -> str:
    """Describe the first comparison: on the same scores, with the group known."""
    ours, rival, result = _compare_all()[0]
    return (
        f"{_signed(result['mean'])} (± {result['band']:.2f}) points of accuracy beside {NAMES[rival.method]}, at equal gaps, on the same scores and "
        f"with the group known; a limit of 5 points holds on test rows in {_hold(ours, 0.05)[0]:.0%} of cases, theirs in {_hold(rival, 0.05)[0]:.0%}"
    )


def _hold(way: Way, bound: float, kind: str = "") -> tuple[float, float]:
    """Return the share of choices whose gap on test rows is within the bound, and of those made."""
    choices = [
        one["choices"].get(f"{bound:g}{kind}")
        for one in load_result("constraint")["curves"]
        if Way(one["method"], one["base"], one["group"]) == way
    ]
    made = [choice for choice in choices if choice is not None]
    kept = fmean(choice[1] <= bound for choice in made) if made else float("nan")
    return kept, len(made) / len(choices)


def write_bounds() -> Iterator[str]:
    """Yield how often bounds hold on test rows."""

    def describe(way: Way, bound: float, kind: str) -> str:
        kept, made = _hold(way, bound, kind)
        if not made:
            return "–"
        return f"{kept:.0%}" if made == 1 else f"{kept:.0%} of {made:.0%}"

    sides = [f"at most {100 * bound:g}" for bound in BOUNDS]
    yield from write_table(
        ["", *sides, *(f"`confidence=0.9`, {side}" for side in sides)],
        (
            [name, *(describe(way, bound, kind) for kind in ("", " sure") for bound in BOUNDS)]
            for name, way in (OURS | RIVALS).items()
        ),
    )
    ours = [one for one in load_result("constraint")["curves"] if one["method"] == "ours"]
    made = [(one, name, c) for one in ours for name, c in one["choices"].items() if c is not None]
    below = [(one, name, c) for one, name, c in made if c[0] < one["majority"]]
    silent = sum(name not in one["warned"] for one, name, _ in below)
    wrecked = sum(choice[0] < one["majority"] - 0.01 for one, _, choice in below)
    free = [
        abs(point[1] - one["trees"][0])
        for one in ours
        for point in one["points"]
        if one["base"] == "trees" and point[0] == 0
    ]
    yield ""
    yield (
        f"{len(below)} of our {len(made):,} choices are less accurate on test rows than the majority class, {wrecked} by over a point; in {len(below) - silent} cases a warning says so. Without a limit, `base=` "
        f"is at most {100 * max(free):.2f} points from the base itself."
    )
    yield from ("", _describe_source())


def write_group_cost() -> Iterator[str]:
    """Yield the accuracy at equal gaps by how predictions may depend on the group."""
    ways = [Way("ours", "network", group) for group in ("input", "estimate", "none")]

    def describe(table: str) -> Iterator[str]:
        for gap in GAPS:
            curves = [average_curve(list_curves()[table, gap][way]) for way in ways]
            place = max(BOUNDS[1], *(gaps[0] for gaps, _ in curves))
            known, *others = (100 * np.interp(place, *curve) for curve in curves)
            yield f"{known:.1f} at {100 * place:.0f}"
            yield from (_signed(other - known) for other in others)

    tables = [table for table in TABLES if (table, "tpr_gap") in list_curves()]
    uses = ("group known", "estimated", "neither")
    columns = [f"{gap} gap: {use}" for gap in GAPS.values() for use in uses]
    yield from write_table(["", *columns], ([TABLES[table], *describe(table)] for table in tables))
    yield from ("", _describe_source())


REGIONS = {
    "equal_gaps": write_equal_gaps,
    "bounds_on_test": write_bounds,
    "group_cost": write_group_cost,
}
