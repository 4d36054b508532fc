"""Compare an experiment with the paper's numbers, and find the known reasons for differences."""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from paretocosmos.paper.published import (
    format_settings,
    get_paper_row,
    get_paper_tasks,
    get_published,
    is_face_problem,
)
from paretocosmos.paper.results import (
    DEVIATIONS,
    ExperimentResult,
    Figure,
    PaperComparison,
    PerTask,
    Reason,
    Spread,
    compute_difference_deviation,
)

# Keys of a row in `published.toml`, which may lack some of them.
QUANTITIES = ("hypervolume", "seconds", "parameters", "misclassification")


# Hypervolumes are printed with two digits after the point, those of faces with three.
LAST_DIGIT, LAST_DIGIT_OF_FACES = 0.01, 0.001


@dataclass(frozen=True)
class KnownReason:
    """Why numbers may differ from the paper's, and when that applies; see ``reasons.toml``."""

    quantities: list[str]
    sentence: str
    problems: Sequence[str] = ()
    methods: Sequence[str] = ()
    protocols: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    when: str | None = None
    least: float = -math.inf
    most: float = math.inf

    def applies(self, result: ExperimentResult, comparison: PaperComparison) -> bool:
        """Return True if there is a difference that it can explain."""
        # without a hypervolume to compare the gap counts as 0, which bounds around 0 let through
        gap = comparison.hypervolume.difference or 0.0
        conditions = {
            "subset": any("CelebA" in caveat for caveat in result.made.caveats),
            "random_weights": "random" in result.made.weights,
            "other_settings": bool(result.settings),
        }
        return (
            any(_is_different(getattr(comparison, quantity)) for quantity in self.quantities)
            and (not self.problems or result.problem in self.problems)
            and (not self.methods or result.method in self.methods)
            and (not self.protocols or result.protocol in self.protocols)
            and all(result.varied.get(key) == value for key, value in self.settings.items())
            and (self.when is None or conditions[self.when])
            # a reason such as another draw of images explains hundredths, not tenths
            and self.least < gap < self.most
        )


@cache
def load_known_reasons() -> list[KnownReason]:
    """Load the reasons for differences that are known."""
    text = files("paretocosmos.paper").joinpath("reasons.toml").read_text(encoding="utf-8")
    return [KnownReason(**entry) for entry in tomllib.loads(text)["reason"]]


def compare_to_paper(result: ExperimentResult) -> PaperComparison | None:
    """Compare an experiment with the paper's numbers; `None` if the paper prints none of it.

    A rehearsal is not compared: it has no difference, and no reason for one.
    """
    row = get_paper_row(result.problem, result.method)
    tasks = get_paper_tasks(result.problem, result.method)
    if row is None and tasks is None:
        return None
    # without a run there is nothing of ours, but the paper's numbers are shown all the same
    compared = bool(result.seeds) and result.rehearsal is None
    ours = _in_paper_units(result) if compared else {}
    figures: dict[str, Any] = {}
    if row is not None:
        for quantity in (quantity for quantity in QUANTITIES if quantity in row):
            figures[quantity] = _compare_figure(row[quantity], ours.get(quantity))
        figures["hypervolume"] = _judge_volume(result, figures["hypervolume"], row.get("std"))
    if tasks is not None:
        figures["tasks"] = _compare_tasks(result if compared else None, tasks)
    # reasons come last: they depend on which of the figures differ
    comparison = PaperComparison(**figures)
    reasons = list(_find_reasons(result, comparison)) if compared else []
    return comparison.model_copy(update={"reasons": reasons})


def _in_paper_units(result: ExperimentResult) -> dict[str, float]:
    """Our numbers in the paper's units: its seconds of faces are of all epochs and one network."""
    numbers = {"hypervolume": result.volume.mean, "parameters": result.parameters}
    # Table 1 times a seed up to its selected epoch, the table of CelebA all epochs
    if is_face_problem(result.problem):
        numbers["seconds"] = result.seconds.training.mean / result.networks
    else:
        numbers["seconds"] = result.seconds.to_selected.mean
    if result.tasks:
        numbers["misclassification"] = result.tasks.mean.mean
    return numbers


def _compare_figure(paper: float, ours: float | None) -> Figure:
    if ours is None:
        return Figure(paper=paper)
    return Figure(paper=paper, ours=ours, difference=ours - paper)


def _judge_volume(result: ExperimentResult, figure: Figure, std: float | None) -> Figure:
    """Add whether a hypervolume differs from the paper's, given its rounding and the noise."""
    update: dict[str, Any] = {"paper_std": std}
    if figure.paper is not None and figure.difference is not None:
        # the printed number was rounded, by at most half of its last digit
        digit = LAST_DIGIT_OF_FACES if is_face_problem(result.problem) else LAST_DIGIT
        # `each` only counts the paper's seeds, whose single values are not in print
        seeds = len(get_published()["table_1"]["seeds"])
        theirs = Spread(mean=figure.paper, std=std, each=[figure.paper] * seeds)
        # where neither side has a deviation, only the rounding is allowed for
        noise = compute_difference_deviation(result.volume, theirs) or 0.0
        update["allowed"] = digit / 2 + DEVIATIONS * noise
        update["differs"] = abs(figure.difference) > update["allowed"]
    return figure.model_copy(update=update)


def _compare_tasks(result: ExperimentResult | None, paper: Sequence[float]) -> PerTask:
    if result is None or result.tasks is None:
        return PerTask(paper=list(paper))
    ours = [rate.mean for rate in result.tasks.misclassification.values()]
    # in the order of the paper's attributes, which is that of the objectives
    gaps = [rate - printed for rate, printed in zip(ours, paper, strict=True)]
    return PerTask(paper=list(paper), ours=ours, difference=gaps)


def _find_reasons(result: ExperimentResult, comparison: PaperComparison) -> Iterator[Reason]:
    # a reason may quote it: which of the images were there
    caveat = next((caveat for caveat in result.made.caveats if "CelebA" in caveat), "")
    for reason in load_known_reasons():
        if reason.applies(result, comparison):
            settings = format_settings(result.settings)
            sentence = reason.sentence.format(settings=settings, caveat=caveat)
            yield Reason(quantities=reason.quantities, sentence=sentence)


def _is_different(figure: Figure | PerTask | None) -> bool:
    """Return True if ours is another number; where the noise is unknown, any other is."""
    if isinstance(figure, Figure):
        return figure.difference is not None if figure.differs is None else figure.differs
    return figure is not None and bool(figure.difference)
