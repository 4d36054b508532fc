"""What a page calls things: the problem's own words, else those of this package, else the names."""

import dataclasses
from collections.abc import Iterable, Sequence

from paretocosmos.explorer._view import Words
from paretocosmos.objectives import Measure, measure_of
from paretocosmos.problems import Problem, Wording
from paretocosmos.problems.tables import TableProblem, TabularProblem

# What says the same as a loss in numbers that people know, wherever a front has it.
INSTEAD = {
    "binary_cross_entropy": "misclassification",
    "cross_entropy": "misclassification",
    "mean_squared_error": "rmse",
    "error_gap": "error_gap_in_units",
    "prediction_gap": "prediction_gap_in_units",
}


def words_of(problem: Problem | None, quantities: Sequence[str], name: str = "") -> Words:
    """The words for a problem, or for the names of a front where the problem is not at hand."""
    wording = Wording() if problem is None else problem.wording
    groups = groups_of(problem)
    measures = {one: wording.measures.get(one) or measure_of(one) for one in quantities}
    if isinstance(problem, TabularProblem):
        measures |= _of_people(problem, groups, measures)
    return Words(
        title=wording.title or _title(problem, name),
        rows=wording.rows,
        data=wording.data,
        groups=groups,
        measures=measures,
        instead={
            one: plain
            for one, plain in {**INSTEAD, **wording.instead}.items()
            if one in quantities and plain in quantities
        },
    )


def groups_of(problem: Problem | None) -> tuple[str, ...]:
    """The sensitive groups, in the problem's own words where it has as many."""
    if not isinstance(problem, TableProblem) or problem.grouping is None:
        return ()
    names = problem.grouping.names
    own = problem.wording.groups
    return own if len(own) == len(names) else tuple(names)


def _title(problem: Problem | None, name: str) -> str:
    if isinstance(problem, TabularProblem):
        return f"Is {problem.target.replace('_', ' ')} “{problem.positive}”?"
    if isinstance(problem, TableProblem):
        return f"What is the {problem.target.replace('_', ' ')}?"
    return name


def _of_people(
    problem: TabularProblem, groups: Sequence[str], measures: dict[str, Measure]
) -> Iterable[tuple[str, Measure]]:
    """Who is told what."""
    told = problem.wording.told or f"predicted “{problem.positive}”"
    for name, measure in measures.items():
        label, goal = (text.replace("selected", told) for text in (measure.label, measure.goal))
        yield name, dataclasses.replace(measure, label=label, goal=goal)
    if "positive_rate" in measures:
        every = f"{problem.wording.rows} who are {told}"
        yield "positive_rate", dataclasses.replace(measures["positive_rate"], label=every)
    for own, group in zip(problem.groups, groups, strict=True):
        rate = f"selection_rate_{own}"
        if rate in measures:
            worded = problem.wording.groups
            label = f"{group} who are {told}" if worded else f"{told} in “{group}”"
            yield rate, dataclasses.replace(measures[rate], label=label)
