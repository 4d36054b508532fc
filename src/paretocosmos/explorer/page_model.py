"""The model of a page: runs on one problem, what can be seen of their answers, and its words."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import Measure, measure_of
from paretocosmos.pareto.front import Array, Front
from paretocosmos.problems import Problem, Wording
from paretocosmos.problems.tables import TableProblem, TabularProblem


@dataclass(frozen=True)
class Head:
    """One question that a network answers with a class.

    Attributes:
        name: of the target.
        classes: the names of the answers; two where one logit decides, the positive one last.
        binary: whether one logit decides.
    """

    name: str
    classes: tuple[str, ...]
    binary: bool


@dataclass(frozen=True)
class Cell:
    """A share that people understand: of 100 of somebody, so many.

    Attributes:
        who: of whom, or of what.
        sentence: with ``#`` for the number.
        head: which question is counted.
        group: 0 for everybody, else the sensitive group, from 1.
        of: the true classes of the rows that are counted; empty for all.
        hit: what is counted among them: ``"positive"`` answers, ``"wrong"`` or ``"right"`` ones.
    """

    who: str
    sentence: str
    head: int
    group: int
    of: tuple[int, ...]
    hit: str


@dataclass(frozen=True)
class Outcome:
    """A consequence of a choice, told for each group or task.

    Attributes:
        title: what happens to them.
        meaning: one sentence.
        gap: the metric that is the gap between the groups, if there is one.
        cells: one per group or task.
        larger: whether more of it is better; `None` where that is for others to say.
        lead: whether the first cell belongs into the first sentence of a page.
    """

    title: str
    meaning: str
    gap: str
    cells: tuple[Cell, ...]
    larger: bool | None = None
    lead: bool = False


@dataclass(frozen=True)
class Words:
    """Labels of a page.

    Attributes:
        title: what is asked.
        rows: what the samples are.
        data: where they come from.
        groups: the sensitive groups.
        measures: objectives and metrics by name.
        instead: the metric that tells of an objective in plainer numbers.
        outcomes: what is counted, the most telling first.
        sizes: how many rows each split has.
        threshold: the probability above which an answer of yes or no is counted as a yes; `None`
            where there is no such answer.
    """

    title: str = ""
    rows: str = "rows"
    data: str = ""
    groups: tuple[str, ...] = ()
    measures: Mapping[str, Measure] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    threshold: float | None = None


@dataclass(frozen=True)
class Samples:
    """A dozen samples of the test data, the same for every run of a page.

    Attributes:
        rows: which ones.
        columns: of a table; empty for images.
        texts: the values of a table's columns, one tuple per sample.
        images: PNG files, one per sample; empty for a table.
        truth: ``[heads, S]``, the place of the true class.
        moved: how many of the first ones were taken because their answers change most.
        whole: how many columns the table has, of which the first are shown.
    """

    rows: tuple[int, ...]
    columns: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    images: tuple[bytes, ...]
    truth: npt.NDArray[np.int64]
    moved: int
    whole: int = 0


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of a run.

    Attributes:
        at: places of the rays at which answers were counted.
        confusion: by split, one ``[rays, 1 + sensitive groups, C, C]`` per head: counts of the true
            class (rows) and the answer (columns), first of everybody.
        chances: one ``[S, N]`` per head: the probability of the positive class, or of the answer.
        answers: one ``[S, N]`` per head: the place of the answer.
        shares: by split, ``[cells, rays, 3]``: the share of every cell of the page's outcomes, and
            the ends of its interval.
        gaps: by split and name, ``[rays, 2]``: the ends of the intervals of gaps.
    """

    at: npt.NDArray[np.int64]
    confusion: Mapping[str, tuple[npt.NDArray[np.int64], ...]]
    chances: tuple[npt.NDArray[np.float64], ...] = ()
    answers: tuple[npt.NDArray[np.int64], ...] = ()
    shares: Mapping[str, Array] = field(default_factory=dict)
    gaps: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Look:
    """One run as a page shows it.

    Attributes:
        record: what ``run.json`` holds; every key is optional, unknown ones are listed.
        fronts: with the same objectives, one per split.
        folder: the run folder that the page's code refers to.
        answers: where the data is at hand.
    """

    record: Mapping[str, Any]
    fronts: Sequence[Front]
    folder: str = "."
    answers: Answers | None = None


@dataclass(frozen=True, eq=False)
class View:
    """Everything a page shows.

    Attributes:
        looks: the runs; the first is chosen from at first.
        heads: the questions that are answered with a class.
        groups: the sensitive groups that answers are counted for, after everybody.
        samples: where some can be shown.
        without: that there are no samples, a sentence for the page.
        why: the reason, for the maker of the page.
        words: what the page calls things.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> View([Look({"name": "adult"}, [front])]).names
    ('loss', 'gap')
    """

    looks: Sequence[Look]
    heads: tuple[Head, ...] = ()
    groups: tuple[str, ...] = ()
    samples: Samples | None = None
    without: str = ""
    why: str = ""
    words: Words = field(default_factory=Words)

    def __post_init__(self) -> None:
        if not self.looks or not all(look.fronts for look in self.looks):
            raise ConfigurationError("a page needs at least one run with a front, found none")
        for front in (front for look in self.looks for front in look.fronts):
            if front.names != self.names:
                raise ConfigurationError(
                    "fronts in one page need the same objectives, found "
                    f"{', '.join(self.names)} and {', '.join(front.names)}: make two pages"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives."""
        return self.looks[0].fronts[0].names


# What says the same as a loss in numbers that people know, wherever a front has it.
INSTEAD = {
    "binary_cross_entropy": "misclassification",
    "cross_entropy": "misclassification",
    "mean_squared_error": "rmse",
    "error_gap": "error_gap_in_units",
    "prediction_gap": "prediction_gap_in_units",
}


def build_words(problem: Problem | None, quantities: Sequence[str], name: str = "") -> Words:
    """The words for a problem, or for the names of a front where the problem is not at hand."""
    wording = Wording() if problem is None else problem.wording
    groups = group_titles(problem)
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


def group_titles(problem: Problem | None) -> tuple[str, ...]:
    """The sensitive groups, in the problem's own words where it has as many."""
    if not isinstance(problem, TableProblem) or problem.grouping is None:
        return ()
    names, wording = problem.grouping.names, problem.wording.groups
    return wording if len(wording) == len(names) else tuple(names)


def _title(problem: Problem | None, name: str) -> str:
    if isinstance(problem, TabularProblem):
        return f"Is {problem.target.replace('_', ' ')} “{problem.positive}”?"
    if isinstance(problem, TableProblem):
        return f"What is the {problem.target.replace('_', ' ')}?"
    return name


def _of_people(
    problem: TabularProblem, groups: Sequence[str], measures: dict[str, Measure]
) -> Iterable[tuple[str, Measure]]:
    """Yield the measures, worded for the people of a table."""
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
