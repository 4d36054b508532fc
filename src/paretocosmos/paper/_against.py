"""A cell against the paper: its number, ours, the difference, and why, if that is known."""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from paretocosmos.io.schema.collected import Against, CellResult, Figure, PerTask, Reason, Spread
from paretocosmos.paper.names import settings_text
from paretocosmos.paper.published import is_face, paper_row, paper_tasks, published

__all__ = ["DEVIATIONS", "against_paper", "beyond", "deviation_of_difference", "known_reasons"]

DEVIATIONS = 2.0
"""Means differ if they are further apart than that many standard deviations of their difference."""

QUANTITIES = ("hypervolume", "seconds", "parameters", "misclassification")
# Of a hypervolume as the paper prints it, with two digits after the point; of faces with three.
LAST_DIGIT, LAST_DIGIT_OF_FACES = 0.01, 0.001


@dataclass(frozen=True)
class KnownReason:
    """Why numbers may differ from the paper's, and where that applies; see ``reasons.toml``."""

    quantities: list[str]
    sentence: str
    problems: Sequence[str] = ()
    methods: Sequence[str] = ()
    protocols: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    when: str | None = None
    least: float = -math.inf
    most: float = math.inf

    def applies(self, cell: CellResult, against: Against) -> bool:
        """Whether there is a difference it can explain."""
        figures = [getattr(against, quantity) for quantity in self.quantities]
        gap = against.hypervolume.difference or 0.0
        holds = {
            "subset": any("CelebA" in caveat for caveat in cell.made.caveats),
            "random_weights": "random" in cell.made.weights,
            "other_settings": bool(cell.settings),
        }
        return (
            any(_differs(figure) for figure in figures)
            and (not self.problems or cell.problem in self.problems)
            and (not self.methods or cell.method in self.methods)
            and (not self.protocols or cell.protocol in self.protocols)
            and all(cell.varied.get(key) == value for key, value in self.settings.items())
            and (self.when is None or holds[self.when])
            and self.least < gap < self.most
        )


@cache
def known_reasons() -> list[KnownReason]:
    """All that is known."""
    text = files("paretocosmos.paper").joinpath("reasons.toml").read_text(encoding="utf-8")
    return [KnownReason(**one) for one in tomllib.loads(text)["reason"]]


def against_paper(cell: CellResult) -> Against | None:
    """What the paper prints where a cell has a number; `None` if it prints nothing of this cell.

    A rehearsal is not compared: it has no difference, and no reason for one.
    """
    row = paper_row(cell.problem, cell.method)
    tasks = paper_tasks(cell.problem, cell.method)
    if row is None and tasks is None:
        return None
    compared = bool(cell.seeds) and cell.rehearsal is None
    ours = _ours(cell) if compared else {}
    found: dict[str, Any] = {}
    if row is not None:
        known = (key for key in QUANTITIES if key in row)
        found |= {key: _figure(row[key], ours.get(key)) for key in known}
        found["hypervolume"] = _judged(cell, found["hypervolume"], row.get("std"))
    if tasks is not None:
        found["tasks"] = _per_task(cell if compared else None, tasks)
    against = Against(**found)
    reasons = list(_reasons(cell, against)) if compared else []
    return against.model_copy(update={"reasons": reasons})


def beyond(difference: float, deviation: float | None) -> bool:
    """Whether means differ; one seed does not tell.

    >>> beyond(-0.3, 0.1), beyond(0.1, 0.1), beyond(1.0, None)
    (True, False, False)
    """
    return deviation is not None and abs(difference) > DEVIATIONS * deviation


def deviation_of_difference(one: Spread, other: Spread) -> float | None:
    """The standard deviation of the difference of two means; `None` if both have one seed.

    Where one of them has one seed, the deviation of the other's seeds stands for both.

    >>> one, other = (Spread(mean=1.0, std=s, each=[1.0] * n) for s, n in ((0.3, 9), (0.4, 4)))
    >>> f"{deviation_of_difference(one, other):.4f}"
    '0.2236'
    """
    known = [spread.std for spread in (one, other) if spread.std is not None]
    if not known:
        return None
    both = ((known[0] if x.std is None else x.std, len(x.each)) for x in (one, other))
    return math.hypot(*(std / math.sqrt(count) for std, count in both))


def _ours(cell: CellResult) -> dict[str, float]:
    """Our numbers in the paper's units: its seconds of faces are of all epochs and one network."""
    found = {"hypervolume": cell.volume.mean, "parameters": cell.parameters}
    if is_face(cell.problem):
        found["seconds"] = cell.seconds.training.mean / cell.networks
    else:
        found["seconds"] = cell.seconds.to_selected.mean
    return found | ({"misclassification": cell.tasks.mean.mean} if cell.tasks else {})


def _figure(paper: float, ours: float | None) -> Figure:
    if ours is None:
        return Figure(paper=paper)
    return Figure(paper=paper, ours=ours, difference=ours - paper)


def _judged(cell: CellResult, figure: Figure, std: float | None) -> Figure:
    """Whether a hypervolume is another than the paper's, given its rounding and the noise."""
    more: dict[str, Any] = {"paper_std": std}
    if figure.paper is not None and figure.difference is not None:
        digit = LAST_DIGIT_OF_FACES if is_face(cell.problem) else LAST_DIGIT
        seeds = len(published()["table_1"]["seeds"])
        theirs = Spread(mean=figure.paper, std=std, each=[figure.paper] * seeds)
        noise = deviation_of_difference(cell.volume, theirs) or 0.0
        more["allowed"] = digit / 2 + DEVIATIONS * noise
        more["differs"] = abs(figure.difference) > more["allowed"]
    return figure.model_copy(update=more)


def _per_task(cell: CellResult | None, paper: Sequence[float]) -> PerTask:
    if cell is None or cell.tasks is None:
        return PerTask(paper=list(paper))
    ours = [one.mean for one in cell.tasks.misclassification.values()]
    gaps = [one - other for one, other in zip(ours, paper, strict=True)]
    return PerTask(paper=list(paper), ours=ours, difference=gaps)


def _reasons(cell: CellResult, against: Against) -> Iterator[Reason]:
    """Those that apply, in words."""
    caveat = next((caveat for caveat in cell.made.caveats if "CelebA" in caveat), "")
    for reason in known_reasons():
        if reason.applies(cell, against):
            said = reason.sentence.format(settings=settings_text(cell.settings), caveat=caveat)
            yield Reason(quantities=reason.quantities, sentence=said)


def _differs(figure: Figure | PerTask | None) -> bool:
    """Whether ours is another number; where the noise is not known, any other is."""
    if isinstance(figure, Figure):
        return figure.difference is not None if figure.differs is None else figure.differs
    return figure is not None and bool(figure.difference)
