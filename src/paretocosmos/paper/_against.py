"""A cell against the paper: its number, ours, the difference, and why, if that is known."""

import math
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from paretocosmos.paper._names import settings_text
from paretocosmos.paper.published import paper_row, paper_tasks, published

__all__ = ["DEVIATIONS", "against_paper", "deviation_of_difference"]

DEVIATIONS = 2.0
"""Means differ if they are further apart than that many standard deviations of their difference."""

# The tables of the paper whose hypervolumes have two digits after the point, and those with three.
LAST_DIGIT = {"table_1": 0.01, "table_celeba": 0.001}


def against_paper(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the paper prints where a cell has a number; `None` if it prints nothing of this cell.

    A rehearsal is not compared: it has no difference, and no reason for one.

    Args:
        told: a cell's numbers, see `cell_numbers`.
    """
    row = paper_row(told["problem"], told["method"])
    tasks = paper_tasks(told["problem"], told["method"])
    if row is None and tasks is None:
        return None
    found: dict[str, Any] = {}
    if row is not None:
        found["hypervolume"] = {"paper": row["hypervolume"], "paper_std": row.get("std")}
        found["seconds"] = {"paper": row["seconds"]}
        for key in ("parameters", "misclassification"):
            if key in row:
                found[key] = {"paper": row[key]}
    if tasks is not None:
        found["tasks"] = {"paper": list(tasks)}
    if told["seeds"] and told["rehearsal"] is None:
        for key, value in _ours(told).items():
            if key in found and value is not None:
                found[key] |= {"ours": value, "difference": value - found[key]["paper"]}
        if tasks is not None and told["tasks"] is not None:
            ours = [one["mean"] for one in told["tasks"]["misclassification"].values()]
            gaps = [one - other for one, other in zip(ours, tasks, strict=True)]
            found["tasks"] |= {"ours": ours, "difference": gaps}
        _judge(told, found)
    found["reasons"] = list(_reasons(told, found))
    return found


def deviation_of_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    """The standard deviation of the difference of two means; `None` if both have one seed.

    Where one of them has one seed, the deviation of the other's seeds stands for both.

    >>> a = {"mean": 1.0, "std": 0.3, "each": [0.0] * 9}
    >>> f'{deviation_of_difference(a, {"mean": 1.0, "std": 0.4, "each": [0.0] * 4}):.4f}'
    '0.2236'
    """
    known = [x["std"] for x in (one, other) if x["std"] is not None]
    if not known:
        return None
    both = ((known[0] if x["std"] is None else x["std"], len(x["each"])) for x in (one, other))
    return math.hypot(*(std / math.sqrt(count) for std, count in both))


def _ours(told: Mapping[str, Any]) -> dict[str, float | None]:
    """Our numbers in the paper's units: its seconds of faces are of all epochs and one network."""
    faces = _is_face(told["problem"])
    seconds = told["seconds"]["training" if faces else "to_selected"]["mean"]
    return {
        "hypervolume": None if told["volume"] is None else told["volume"]["mean"],
        "seconds": seconds / told["networks"] if faces else seconds,
        "parameters": told["parameters"],
        "misclassification": told["tasks"]["mean"]["mean"] if told["tasks"] else None,
    }


def _is_face(problem: str) -> bool:
    return problem in published()["table_celeba"]["problems"]


def _judge(told: Mapping[str, Any], found: dict[str, Any]) -> None:
    """Whether a hypervolume is another than the paper's, given its rounding and the noise."""
    own = found.get("hypervolume")
    if own is None or "difference" not in own:
        return
    digit = LAST_DIGIT["table_celeba" if _is_face(told["problem"]) else "table_1"]
    theirs = {"std": own["paper_std"], "each": published()["table_1"]["seeds"]}
    noise = deviation_of_difference(told["volume"], theirs) or 0.0
    own["allowed"] = digit / 2 + DEVIATIONS * noise
    own["differs"] = abs(own["difference"]) > own["allowed"]


@cache
def _known() -> list[dict[str, Any]]:
    text = files("paretocosmos.paper").joinpath("reasons.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["reason"])


def _reasons(told: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Those that apply, where there is a difference they can explain."""
    if not told["seeds"] or told["rehearsal"] is not None:
        return
    made = told["made"]
    holds = {
        "subset": any("CelebA" in caveat for caveat in made["caveats"]),
        "random_weights": "random" in made["weights"],
        "other_settings": bool(told["settings"]),
    }
    words = {
        "settings": settings_text(told["settings"]),
        "caveat": next((c for c in made["caveats"] if "CelebA" in c), ""),
    }
    gap = found.get("hypervolume", {}).get("difference", 0.0)
    for reason in _known():
        own = told["varied"]
        if (
            any(_differs(found.get(quantity, {})) for quantity in reason["quantities"])
            and told["problem"] in reason.get("problems", [told["problem"]])
            and told["method"] in reason.get("methods", [told["method"]])
            and told["protocol"] in reason.get("protocols", [told["protocol"]])
            and all(own.get(key) == value for key, value in reason.get("settings", {}).items())
            and holds.get(reason.get("when", ""), "when" not in reason)
            and reason.get("least", -math.inf) < gap < reason.get("most", math.inf)
        ):
            sentence = reason["sentence"].format(**words)
            yield {"quantities": reason["quantities"], "sentence": sentence}


def _differs(numbers: Mapping[str, Any]) -> bool:
    return bool(numbers.get("differs", "difference" in numbers))
