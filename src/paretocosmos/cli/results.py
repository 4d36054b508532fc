"""Describe in plain words what a front trades, and suggest what to do next."""

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from paretocosmos.cli import console
from paretocosmos.errors import FrontWarning
from paretocosmos.objectives import Measure
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import front_report
from paretocosmos.problems import Problem
from paretocosmos.runs.run import Run

if TYPE_CHECKING:
    from paretocosmos.explorer import Words

# A suggested bound lies at this share of the way from the best value of an objective to the worst.
BOUND_SHARE = 0.15
# Start of the names of metrics that are the selection rate of a group.
SELECTION_RATE = "selection_rate_"


def suggest_choice(run: Run) -> list[object]:
    """Return a command that chooses a point: under a bound that some ray keeps, or the knee.

    Only the last objective of a table, a gap between groups, has natural bounds.
    """
    front = run.front_val
    if len(front) == 1 or not front.values[:, -1].any():  # no gap to bound, as of a constant answer
        return ["explore", run.folder]
    if run.table is None or front.objectives == 1 or np.isnan(front.values[:, -1]).all():
        return ["choose", run.folder, "--knee"]
    low, high = np.nanmin(front.values[:, -1]), np.nanmax(front.values[:, -1])
    bound = low + BOUND_SHARE * (high - low)
    # The second significant digit of the bound.
    step = 10.0 ** (math.floor(math.log10(bound)) - 1) if bound > 0 else 1.0
    number = math.ceil(bound / step) * step  # rounded up to two digits, so that it can be kept
    return ["choose", run.folder, "--max", f"{front.names[-1]}={number:.2g}"]


def get_words(problem: Problem | None, front: Front) -> "Words":
    """Return the labels and units of a front's objectives and metrics, and a title."""
    # a slow import, which `--json` does without
    from paretocosmos.explorer import build_words

    names = list(dict.fromkeys([*front.names, *front.metrics]))
    return build_words(problem, names, str(front.provenance.get("problem")))


def find_plain_metrics(problem: Problem | None, front: Front) -> list[str]:
    """Return the plainest metrics of what is traded: one per objective, and selection rates."""
    plain = dict(get_words(problem, front).instead)
    names = [plain.get(name, name) for name in front.names]
    # people speak of the share that is right, not of the share that is wrong
    if "accuracy" in front.metrics:
        names = ["accuracy" if name == "misclassification" else name for name in names]
    rates = [name for name in front.metrics if name.startswith(SELECTION_RATE)]
    # a dict as an ordered set: two objectives may have the same plain metric
    return list(dict.fromkeys([*names, *rates]))


def format_span(front: Front, name: str, measure: Measure) -> str:
    """Format a metric's range: from one end of the front to the other, or from least to most."""
    column = (
        front.values[:, front.names.index(name)] if name in front.names else front.metrics[name]
    )
    if len(front) == 1:
        return measure.said(float(column[0]))
    indices = [0, -1]
    if front.objectives == 2 and front.provenance.get("networks") is not None:
        # separate networks need not be ordered by their rays: take the best for each objective
        one, other = front.values.T
        indices = [np.lexsort((other, one))[0], np.lexsort((one, other))[0]]
    finite = column[~np.isnan(column)]
    # without finite values there is no least one: the ends then print NaN
    if front.objectives == 2 or not len(finite):
        ends = column[indices]
    else:
        ends = np.array([finite.min(), finite.max()])
    first, last = (measure.said(float(end)) for end in ends)
    unit = f" {measure.unit}" if measure.unit else ""
    return f"{first.removesuffix(unit)} to {last}" if last.endswith(unit) else f"{first} to {last}"


def print_consequences(run: Run) -> None:
    """Print the range of what is traded, with the names to use in commands."""
    front = run.front
    words = get_words(run.trained_on, front)
    stdout = console.get_stdout()
    console.print_markup(stdout, f"[bold]{console.escape(words.title)}[/]")
    goals = [words.measures[name].wish for name in front.names]
    if len(front) == 1:
        heading = "One point, on test:"
    elif front.objectives != 2:
        heading = f"On test, over all {len(front)} trade-offs, from the least to the most:"
    elif front.provenance.get("networks") is None:
        heading = f"On test, as weight moves from “{goals[0]}” to “{goals[1]}”:"
    else:
        heading = f"On test, from the network best at “{goals[0]}” to the one best at “{goals[1]}”:"
    console.print_markup(stdout, console.escape(heading))
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column()
    for _ in range(2):
        table.add_column(no_wrap=True)
    for name in find_plain_metrics(run.trained_on, front):
        measure = words.measures[name]
        span = format_span(front, name, measure)
        table.add_row(
            f"[bold]{console.escape(measure.label)}[/]",
            console.escape(span),
            f"[dim]{console.escape(name)}[/]",
        )
    stdout.print(table)
    if len(front) > 1:
        by_objective = compute_by_objective(front)["monotonicity"].values()
        order = ", ".join("-" if value is None else f"{value:.2f}" for value in by_objective)
        text = f"[bold]order[/] {order} (1: more weight on a goal always improves it)"
        console.print_markup(stdout, text)


def compute_by_objective(front: Front) -> dict[str, dict[str, float | None]]:
    """Compute the metrics of single objectives, which older records lack."""
    with warnings.catch_warnings():
        # the training warned already if all points lie beyond the reference point
        warnings.simplefilter("ignore", FrontWarning)
        return front_report(front).to_dict()["by_objective"]
