"""What an exported file says of itself, so that its user needs nothing else."""

import json
from typing import TYPE_CHECKING, Any, Literal

from paretocosmos._version import __version__
from paretocosmos.problems.tables import Answer
from paretocosmos.runs.like import predicts_at

if TYPE_CHECKING:
    from paretocosmos.export._deployed import Shared
    from paretocosmos.runs.run import Run

__all__ = [
    "KEY",
    "TAKES",
    "Takes",
    "about",
    "classes_of",
    "decides_by_one",
]

KEY = "paretocosmos"
"""Its key in the file's metadata."""

Takes = Literal["any", "each", "one"]

TAKES: dict[Takes, str] = {
    "any": "one for all rows, [1, {j}], or one for each, [N, {j}]",
    "each": "one for each row, [N, {j}]",
    "one": "one for all rows, [1, {j}]",
}
"""How many preferences a file takes, in words."""


def decides_by_one(run: "Run") -> bool:
    """Whether the file gives the probability of one class, which a decision follows from."""
    return run.table is not None and Answer.from_about(run.record["about"]).task == "binary"


def classes_of(run: "Run") -> list[str]:
    """What the places in a decision stand for; empty where a number is predicted."""
    said = run.record["about"]
    answer = Answer.from_about(said)
    if answer.task != "binary":
        return list(answer.classes)
    positive = str(said.get("positive", 1))
    return [str(said.get("negative", f"not {positive}")), positive]


def about(run: "Run", shared: "Shared", takes: Takes, threshold: float) -> str:
    """JSON: columns and categories, objectives, the meaning of the output, the version."""
    record = run.record
    said: dict[str, Any] = {
        "version": __version__,
        "problem": record["name"],
        "objectives": list(run.front.names),
        "x": ["N", *shared.row],
        "preference": TAKES[takes].format(j=shared.objectives),
        "outputs": list(shared.outputs),
    }
    chosen = predicts_at(run).ray
    if chosen is not None:
        said["predicts_at"] = list(chosen)
    if run.table is not None:
        said |= {key: record["about"].get(key) for key in ("target", "positive")}
        said["classes"] = classes_of(run)
        if decides_by_one(run):
            said["threshold"] = threshold
        said["columns"] = [
            {"name": name, "categories": run.table.categorical.get(name)}
            for name in run.table.columns
        ]
    return json.dumps(said)
