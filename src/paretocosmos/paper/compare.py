"""Compare an experiment with the paper's numbers, and find the known reasons for differences."""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

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
    PaperComparison,
    Spread,
    compute_difference_deviation,
)

# Hypervolumes are printed with two digits after the point, those of faces with three.
LAST_DIGIT, LAST_DIGIT_OF_FACES = 0.01, 0.001


@dataclass(frozen=True)
class KnownReason:
    """Why numbers may differ from the paper's, and when that applies; see ``reasons.toml``."""

    sentence: str
    problems: Sequence[str] = ()
    methods: Sequence[str] = ()
    protocols: Sequence[str] = ()
    when: str | None = None
    least: float = -math.inf
    most: float = math.inf

    def applies(self, result: ExperimentResult, difference: float) -> bool:
        """Return True if it can explain a difference in hypervolume."""
        conditions = {
            "subset": any("CelebA" in caveat for caveat in result.made["caveats"]),
            "random_weights": "random" in result.made["weights"],
            "other_settings": bool(result.problem_settings or result.settings),
        }
        return (
            (not self.problems or result.problem in self.problems)
            and (not self.methods or result.method in self.methods)
            and (not self.protocols or result.protocol in self.protocols)
            and (self.when is None or conditions[self.when])
            # a reason such as another draw of images explains hundredths, not tenths
            and self.least < difference < self.most
        )


@cache
def load_known_reasons() -> list[KnownReason]:
    """Load the reasons for differences that are known."""
    text = files("paretocosmos.paper").joinpath("reasons.toml").read_text(encoding="utf-8")
    return [KnownReason(**entry) for entry in tomllib.loads(text)["reason"]]


def compare_to_paper(result: ExperimentResult) -> PaperComparison:
    """Compare an experiment with the paper's numbers; without a run there are only these.

    A rehearsal is not compared: it has no difference, and no reason for one.
    """
    paper = dict(get_paper_row(result.problem, result.method) or {})
    tasks = get_paper_tasks(result.problem, result.method)
    comparison = PaperComparison(paper, tasks=list(tasks or ()))
    if not result.seeds or result.rehearsal is not None or not (paper or tasks):
        return comparison
    faces = is_face_problem(result.problem)
    ours = {
        "hypervolume": result.volume.mean,
        "parameters": float(result.parameters),
        # Table 1 times a seed up to its selected epoch, the table of CelebA all epochs of a network
        "seconds": result.seconds["training"].mean / result.networks
        if faces
        else result.seconds["to_selected"].mean,
    }
    if result.mean_error is not None:
        ours["misclassification"] = result.mean_error.mean
    comparison = replace(comparison, ours=ours)
    gap = comparison.difference("hypervolume")
    if gap is not None:
        # `each` only counts the paper's seeds, whose single values are not in print
        seeds = len(get_published()["table_1"]["seeds"])
        theirs = Spread(paper["hypervolume"], paper.get("std"), [paper["hypervolume"]] * seeds)
        # where neither side has a deviation, only the rounding is allowed for
        noise = compute_difference_deviation(result.volume, theirs) or 0.0
        # the printed number was rounded, by at most half of its last digit
        digit = LAST_DIGIT_OF_FACES if faces else LAST_DIGIT
        allowed = digit / 2 + DEVIATIONS * noise
        comparison = replace(comparison, allowed=allowed, differs=abs(gap) > allowed)
    # where hypervolumes are the same there is nothing to explain
    if comparison.differs is False:
        return comparison
    settings = format_settings({**result.problem_settings, **result.settings})
    caveat = next((caveat for caveat in result.made["caveats"] if "CelebA" in caveat), "")
    reasons = [
        reason.sentence.format(settings=settings, caveat=caveat)
        for reason in load_known_reasons()
        # without a hypervolume in print the gap counts as 0, which bounds around 0 let through
        if reason.applies(result, gap or 0.0)
    ]
    return replace(comparison, reasons=reasons)
