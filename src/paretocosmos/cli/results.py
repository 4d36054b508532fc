"""Say in plain words what a front trades, and what to do next."""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from paretocosmos.cli.console import (
    escape,
    get_stdout,
    print_markup,
    print_table,
)
from paretocosmos.errors import FrontWarning
from paretocosmos.objectives import Measure
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import front_report
from paretocosmos.problems import Problem
from paretocosmos.runs.run import PAGE, Run

if TYPE_CHECKING:
    from paretocosmos.explorer import Words

# Of the way from the best to the worst value of an objective, how far a suggested bound is.
NEAR = 0.15


def print_page(folder: Path) -> None:
    """Print where the page of a folder of runs is, if it was written."""
    if (folder / PAGE).exists():
        get_stdout().print(f"[bold]report[/]  {escape(folder / PAGE)}", soft_wrap=True)


def suggest_choice(run: Run) -> list[object]:
    """Suggest a command that chooses a point: under a bound that some ray keeps, or the knee.

    A table's last objective is what is fair or not; other objectives have no bound by nature.
    """
    front = run.front_val
    if len(front) == 1:
        return ["explore", run.folder]
    if run.table is None or front.objectives == 1 or np.isnan(front.values[:, -1]).all():
        return ["choose", run.folder, "--knee"]
    low, high = np.nanmin(front.values[:, -1]), np.nanmax(front.values[:, -1])
    bound = low + NEAR * (high - low)
    step = 10.0 ** (math.floor(math.log10(bound)) - 1) if bound > 0 else 1.0
    number = math.ceil(bound / step) * step  # two digits, so that the ray still keeps it
    return ["choose", run.folder, "--max", f"{front.names[-1]}={number:.2g}"]


SELECTED = "selection_rate_"


def _get_words(problem: Problem | None, front: Front, metrics: Sequence[str] = ()) -> "Words":
    from paretocosmos.explorer import build_words  # which commands that print nothing do without

    names = list(dict.fromkeys([*front.names, *front.metrics, *metrics]))
    return build_words(problem, names, str(front.provenance.get("problem")))


def get_measures(
    problem: Problem | None, front: Front, metrics: Sequence[str] = ()
) -> Mapping[str, Measure]:
    """Return the words for every objective and metric of a front, and for further metrics."""
    return _get_words(problem, front, metrics).measures


def find_leading(problem: Problem | None, front: Front) -> list[str]:
    """Return the metrics that say what is traded, in the plainest terms that a front has."""
    plain = dict(_get_words(problem, front).instead)
    if "accuracy" in front.metrics:  # rather than what is left to 1
        plain = {
            name: {"misclassification": "accuracy"}.get(one, one) for name, one in plain.items()
        }
    groups = [name for name in front.metrics if name.startswith(SELECTED)]
    return list(dict.fromkeys([*(plain.get(name, name) for name in front.names), *groups]))


def find_ends(front: Front) -> tuple[int, int] | None:
    """Return the points where the first and the second of two goals matter most.

    Of separate networks, whose rays need not order them, the best for each goal. `None` where
    there are more than two goals, whose front has no two ends.
    """
    if front.objectives != 2:
        return None
    if front.provenance.get("networks") is None:
        return 0, -1
    first, second = front.values.T
    return int(np.lexsort((second, first))[0]), int(np.lexsort((first, second))[0])


def format_span(front: Front, name: str, measure: Measure) -> str:
    """Format a number from one end of a front to the other, or from the least to the most."""
    column = (
        front.values[:, front.names.index(name)] if name in front.names else front.metrics[name]
    )
    if len(front) == 1:
        return measure.said(float(column[0]))
    places = find_ends(front)
    known = column[~np.isnan(column)]
    if places is not None or not len(known):
        ends = column[list(places or (0, -1))]
    else:
        ends = np.array([known.min(), known.max()])
    first, last = (measure.said(float(end)) for end in ends)
    unit = f" {measure.unit}" if measure.unit else ""
    return f"{first.removesuffix(unit)} to {last}" if last.endswith(unit) else f"{first} to {last}"


def print_consequences(run: Run) -> None:
    """Print what is traded, from one end of the front to the other, with the names to type."""
    front = run.front
    words = _get_words(run.trained_on, front)
    console = get_stdout()
    print_markup(console, f"[bold]{escape(words.title)}[/]")
    print_markup(console, escape(describe_heading(run)))
    table = Table(show_header=False, box=None, padding=(0, 2))
    for whole in (False, True, True):
        table.add_column(no_wrap=whole)
    for label, span, name in list_consequences(run):
        table.add_row(f"[bold]{escape(label)}[/]", escape(span), f"[dim]{escape(name)}[/]")
    print_table(console, table)
    if len(front) > 1:
        by_objective = compute_by_objective(front)["monotonicity"].values()
        order = ", ".join("-" if value is None else f"{value:.2f}" for value in by_objective)
        text = f"[bold]order[/] {order} (1: more weight on a goal always improves it)"
        print_markup(console, text)


def list_consequences(run: Run) -> list[tuple[str, str, str]]:
    """Return what is traded: a label, the values from one end to the other, the name to type."""
    front, problem = run.front, run.trained_on
    measures = get_measures(problem, front)
    return [
        (measures[name].label, format_span(front, name, measures[name]), name)
        for name in find_leading(problem, front)
    ]


def compute_by_objective(front: Front) -> dict[str, dict[str, float | None]]:
    """Compute the measures of single objectives, which older records do not have."""
    with warnings.catch_warnings():
        # whoever trained was told that no point counts
        warnings.simplefilter("ignore", FrontWarning)
        return front_report(front).to_dict()["by_objective"]


def describe_heading(run: Run) -> str:
    """Return what stands above the consequences of a run."""
    front = run.front
    words = _get_words(run.trained_on, front)
    goals: Sequence[str] = [words.measures[name].wish for name in front.names]
    if len(front) == 1:
        return "One point, on test:"
    if front.objectives == 2:
        alone = front.provenance.get("networks") is not None
        moving = "from the network best at" if alone else "as weight moves from"
        best = "the one best at " if alone else ""
        return f"On test, {moving} “{goals[0]}” to {best}“{goals[1]}”:"
    return f"On test, over all {len(front)} trade-offs, from the least to the most:"
