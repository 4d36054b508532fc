"""Numbers of fronts in plain words: what a person reads first, and the names to type."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from paretocosmos.cli.output._console import safe, say, wide
from paretocosmos.cli.output._table import print_table
from paretocosmos.errors import FrontWarning
from paretocosmos.objectives import Measure
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import front_report
from paretocosmos.problems import Problem
from paretocosmos.runs.run import Run

if TYPE_CHECKING:
    from paretocosmos.explorer import Words

__all__ = [
    "leading",
    "measures_by_objective",
    "measures_of",
    "print_consequences",
    "span_of",
]

SELECTED = "selection_rate_"


def _words(problem: Problem | None, front: Front) -> "Words":
    from paretocosmos.explorer import words_of  # which commands that print nothing do without

    return words_of(problem, [*front.names, *front.metrics], str(front.provenance.get("problem")))


def measures_of(problem: Problem | None, front: Front) -> Mapping[str, Measure]:
    """The words for every objective and metric of a front."""
    return _words(problem, front).measures


def leading(problem: Problem | None, front: Front) -> list[str]:
    """The numbers that say what is traded, in the plainest terms that a front has."""
    plain = dict(_words(problem, front).instead)
    if "accuracy" in front.metrics:  # rather than what is left to 1
        plain = {
            name: {"misclassification": "accuracy"}.get(one, one) for name, one in plain.items()
        }
    groups = [name for name in front.metrics if name.startswith(SELECTED)]
    return list(dict.fromkeys([*(plain.get(name, name) for name in front.names), *groups]))


def span_of(front: Front, name: str, measure: Measure) -> str:
    """A number from one end of a front to the other; in no order, from the least to the most."""
    column = (
        front.values[:, front.names.index(name)] if name in front.names else front.metrics[name]
    )
    if len(front) == 1:
        return measure.said(float(column[0]))
    ordered = front.objectives == 2 and front.provenance.get("networks") is None
    known = column[~np.isnan(column)]
    ends = column[[0, -1]] if ordered or not len(known) else [known.min(), known.max()]
    first, last = (measure.said(float(end)) for end in ends)
    unit = f" {measure.unit}" if measure.unit else ""
    return f"{first.removesuffix(unit)} to {last}" if last.endswith(unit) else f"{first} to {last}"


def print_consequences(run: Run) -> None:
    """What is traded, from one end of the front to the other, with the names to type."""
    front, problem = run.front, run.trained_on
    words = _words(problem, front)
    console = wide()
    say(console, f"[bold]{safe(words.title)}[/]")
    say(console, safe(_heading(front, words)))
    table = Table(show_header=False, box=None, padding=(0, 2))
    for whole in (False, True, True):
        table.add_column(no_wrap=whole)
    for name in leading(problem, front):
        measure = words.measures[name]
        table.add_row(
            f"[bold]{safe(measure.label)}[/]",
            safe(span_of(front, name, measure)),
            f"[dim]{safe(name)}[/]",
        )
    print_table(console, table)
    if len(front) > 1:
        say(
            console,
            (f"[bold]order[/] {_order(front)} (1: more weight on a goal always improves it)"),
        )


def _order(front: Front) -> str:
    found = measures_by_objective(front)["monotonicity"].values()
    return ", ".join("-" if one is None else f"{one:.2f}" for one in found)


def measures_by_objective(front: Front) -> dict[str, dict[str, float | None]]:
    """The measures of single objectives; of the front, as older records do not have them."""
    with warnings.catch_warnings():
        # whoever trained was told that no point counts
        warnings.simplefilter("ignore", FrontWarning)
        return front_report(front).to_dict()["by_objective"]


def _heading(front: Front, words: "Words") -> str:
    goals: Sequence[str] = [words.measures[name].wish for name in front.names]
    if len(front) == 1:
        return "One point, on test:"
    if front.objectives == 2 and front.provenance.get("networks") is None:
        return f"On test, as weight moves from “{goals[0]}” to “{goals[1]}”:"
    return f"On test, over all {len(front)} trade-offs, from the least to the most:"
