"""Model of a page: the runs on one problem, their counted answers, samples, and all labels."""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import Measure, measure_of
from paretocosmos.pareto.front import Array, Front
from paretocosmos.problems import Problem, Wording
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.problems.tables.groups import AND


@dataclass(frozen=True)
class Head:
    """Classification head of a network.

    Attributes:
        name: the name of its target.
        classes: the names of the classes; if binary, two, the positive one last.
        binary: whether a single logit decides.
    """

    name: str
    classes: tuple[str, ...]
    binary: bool


@dataclass(frozen=True)
class Cell:
    """Share that is shown as "of 100 women, 9 are selected".

    Attributes:
        who: the group, class or task.
        sentence: the sentence, with ``#`` for the number.
        head: the index of the head whose predictions are counted.
        group: the sensitive group, from 1; 0 for everybody.
        true_classes: the true classes of the rows that are counted; empty for all.
        counted: the predictions counted among them: ``"positive"``, ``"wrong"`` or ``"right"``.
    """

    who: str
    sentence: str
    head: int
    group: int
    true_classes: tuple[int, ...]
    counted: str


@dataclass(frozen=True)
class Outcome:
    """Consequence of a choice, counted for each group, class or task.

    Attributes:
        title: a heading, such as "Wrong answers".
        meaning: an explanation in one sentence.
        gap: the metric that is the gap between the groups; empty if there is none.
        cells: one per group, class or task.
        larger: whether larger is better; `None` if that is a matter of opinion.
        lead: whether the first sentence of the page includes the first cell.
    """

    title: str
    meaning: str
    gap: str
    cells: tuple[Cell, ...]
    # to select more people may be good or bad, which only the reader can say
    larger: bool | None = None
    lead: bool = False


@dataclass(frozen=True)
class Words:
    """Labels of a page.

    Attributes:
        title: the question that the model answers.
        rows: a noun for the samples, such as "people".
        data: where the samples come from.
        groups: the names of the sensitive groups.
        measures: the labels of objectives and metrics by name.
        instead: for some objectives, a metric that says the same in plainer numbers.
        outcomes: the consequences that are counted, the most important first.
        sizes: the number of rows of each split.
        threshold: the probability above which a binary prediction is positive; `None` if there is
            no binary head.
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
        rows: their row numbers.
        columns: the columns that are shown; empty for images.
        texts: the values of these columns, one tuple per sample.
        images: PNG files, one per sample; empty for a table.
        truth: the index of the true class ``[heads, S]``.
        changing: the number of samples, which come first, taken because their predictions
            change most along the rays.
        column_count: the number of columns of the table, including those not shown.
    """

    rows: tuple[int, ...]
    columns: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    images: tuple[bytes, ...]
    truth: npt.NDArray[np.int64]
    changing: int
    column_count: int = 0


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions of a run.

    Attributes:
        ray_indices: the indices of the rays at which predictions were counted.
        confusion: by split, one ``[rays, 1 + sensitive groups, C, C]`` per head: counts of true
            class (rows) and predicted class (columns), first of everybody.
        probabilities: one ``[S, N]`` per head: of the positive class, or of the predicted one.
        classes: one ``[S, N]`` per head: the index of the predicted class.
        shares: by split, ``[cells, rays, 3]``: the share of every cell of the page's outcomes, and
            the ends of its interval.
        gaps: by split and name, ``[rays, 2]``: the ends of the intervals of gaps.
    """

    ray_indices: npt.NDArray[np.int64]
    confusion: Mapping[str, tuple[npt.NDArray[np.int64], ...]]
    # empty where single samples were left out of the page
    probabilities: tuple[npt.NDArray[np.float64], ...] = ()
    classes: tuple[npt.NDArray[np.int64], ...] = ()
    shares: Mapping[str, Array] = field(default_factory=dict)
    gaps: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RunView:
    """One run as a page shows it.

    Attributes:
        record: the content of ``run.json``; every key is optional, unknown ones are listed.
        fronts: one front per split, with the same objectives.
        folder: the run folder that the page's code snippets refer to.
        answers: the predictions; `None` if the data could not be read.
        network: the arrays of the network, with which the page's script answers for new rows.
        network_note: a sentence for the page if there are none.
    """

    # a mapping, since pages can be made of records of other versions
    record: Mapping[str, Any]
    fronts: Sequence[Front]
    folder: str = "."
    answers: Answers | None = None
    network: Mapping[str, Any] | None = None
    network_note: str = ""


@dataclass(frozen=True, eq=False)
class PageModel:
    """Everything a page shows.

    Attributes:
        runs: the runs, of which the first is selected when the page opens.
        heads: the classification heads.
        groups: the sensitive groups for which predictions are counted, after everybody.
        samples: the samples, if any can be shown.
        samples_note: a sentence for the page if there are none.
        reason: the error that explains why, for whoever makes the page.
        words: the labels.
        columns: the columns of the table, and what turns their values into features.
        answer: what the outputs of a network on the table mean.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> PageModel([RunView({"name": "adult"}, [front])]).names
    ('loss', 'gap')
    """

    runs: Sequence[RunView]
    heads: tuple[Head, ...] = ()
    groups: tuple[str, ...] = ()
    samples: Samples | None = None
    samples_note: str = ""
    reason: str = ""
    words: Words = field(default_factory=Words)
    columns: Sequence[Mapping[str, Any]] = ()
    answer: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # checked here, so that the page's script may rely on it
        if not self.runs or not all(run.fronts for run in self.runs):
            raise ConfigurationError("a page needs at least one run with a front, found none")
        for front in (front for run in self.runs for front in run.fronts):
            # other objectives would need other axes
            if front.names != self.names:
                raise ConfigurationError(
                    "fronts in one page need the same objectives, found "
                    f"{', '.join(self.names)} and {', '.join(front.names)}: make two pages"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the objectives."""
        return self.runs[0].fronts[0].names


# Metrics that say the same as a loss in plainer numbers, used if a front has them.
# Names of groups that say little without their column: flags, codes and ranges.
_BARE = re.compile(r"yes|no|true|false|[<>=\d].*", re.IGNORECASE)

PLAIN_METRICS = {
    "binary_cross_entropy": "misclassification",
    "cross_entropy": "misclassification",
    "mean_squared_error": "rmse",
    "error_gap": "error_gap_in_units",
    "prediction_gap": "prediction_gap_in_units",
}


def build_words(problem: Problem | None, quantities: Sequence[str], name: str = "") -> Words:
    """Build the labels for a problem, or from names alone if the problem could not be built.

    Args:
        problem: the problem, if at hand.
        quantities: the names of objectives and metrics.
        name: the title if there is no problem.
    """
    # without data the page falls back on the names of the metrics
    wording = Wording() if problem is None else problem.wording
    groups = get_group_titles(problem)
    measures = {key: wording.measures.get(key) or measure_of(key) for key in quantities}
    if isinstance(problem, TabularProblem) and problem.compares_rates:
        # "selected" says little: the problem knows whether people are hired or denied
        measures |= _adapt_measures(problem, groups, measures)
    title = name
    if isinstance(problem, TabularProblem):
        target = problem.target.replace("_", " ")
        title = f"What is the {target}?"
        if problem.compares_rates:
            title = f"Is {target} “{problem.positive}”?"
    return Words(
        title=wording.title or title,
        rows=wording.rows,
        data=wording.data,
        groups=groups,
        measures=measures,
        instead={
            objective: metric
            # the problem's own choice last, so that it prevails
            for objective, metric in {**PLAIN_METRICS, **wording.instead}.items()
            if objective in quantities and metric in quantities
        },
    )


def get_group_titles(problem: Problem | None) -> tuple[str, ...]:
    """Return the names of the sensitive groups, from the wording if it names all of them."""
    if not isinstance(problem, TabularProblem) or problem.grouping is None:
        return ()
    names, titles = problem.grouping.names, problem.wording.groups
    # titles belong to the published groups, which a caller may have changed
    if len(titles) == len(names):
        return titles
    if not any(_BARE.fullmatch(part) for name in names for part in name.split(AND)):
        return tuple(names)
    return tuple(f"{problem.grouping.title}: {name}" for name in names)


def _adapt_measures(
    problem: TabularProblem, groups: Sequence[str], measures: dict[str, Measure]
) -> Iterable[tuple[str, Measure]]:
    """Yield the measures with "selected" replaced by what a positive prediction means here."""
    wording = problem.wording
    predicted = wording.told or f"predicted “{problem.positive}”"
    for name, measure in measures.items():
        label, goal = (s.replace("selected", predicted) for s in (measure.label, measure.goal))
        yield name, dataclasses.replace(measure, label=label, goal=goal)
    # metrics of groups are named after the groups, so they have no fixed label
    labels = {"positive_rate": f"{wording.rows} who are {predicted}"}
    for name, title in zip(problem.groups, groups, strict=True):
        label = f"{title} who are {predicted}" if wording.groups else f"{predicted} in “{title}”"
        labels[f"selection_rate_{name}"] = label
    # only those that the fronts have
    for rate in labels.keys() & measures.keys():
        yield rate, dataclasses.replace(measures[rate], label=labels[rate])
