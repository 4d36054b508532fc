"""Results of a recipe as data, and each experiment beside the paper's numbers.

`RecipeResult` is the content of ``results/reproduction/*.json`` and of the JSON that
``paretocosmos report`` writes.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from pydantic import TypeAdapter, ValidationError

from paretocosmos.errors import RunError
from paretocosmos.io.files import read_json
from paretocosmos.paper.published import format_settings, problem_title

FORMAT = 2
"""Raised when a file of today could not be read by yesterday's code."""

DEVIATIONS = 2.0
"""Means differ if they are further apart than that many standard deviations of their difference."""

UNEXPLAINED = "This differs from the paper for no known reason."

BenchmarkKey = tuple[str, str, str | None]
"""A problem, its settings in words, and the protocol: equal for experiments on the same data."""

# `None`, which the types hide: code that reads such a field has checked `seeds` before.
PENDING: Any = None
"""Default of a field that only an experiment with a finished run has."""


@dataclass(frozen=True)
class Spread:
    """A number over seeds: the mean, the sample deviation (`None` for one seed), and each."""

    mean: float
    std: float | None
    each: list[float]

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of some values.

        >>> Spread.of([1.0, 2.0, 3.0])
        Spread(mean=2.0, std=1.0, each=[1.0, 2.0, 3.0])
        """
        # by n - 1: a handful of seeds stand for all that could have been drawn
        deviation = stdev(values) if len(values) > 1 else None
        return cls(fmean(values), deviation, list(map(float, values)))

    @property
    def error(self) -> float | None:
        """The standard error of the mean, `None` for one seed."""
        return None if self.std is None else self.std / math.sqrt(len(self.each))


@dataclass(frozen=True)
class Stage:
    """The mean validation front after an epoch, and its numbers."""

    epoch: int
    hypervolume: Spread
    span: Spread
    # JSON has no NaN, so a value that does not exist is `None`
    values: list[list[float | None]]


@dataclass(frozen=True)
class PaperComparison:
    """An experiment beside what the paper prints of it.

    Attributes:
        paper: hypervolume, std, seconds, parameters and misclassification, those that are in print.
        ours: the same of ours, in the paper's units; empty without a run, or for a rehearsal.
        tasks: misclassification of each task in print.
        allowed: by how much hypervolumes may differ: the rounding in print, and the noise.
        differs: whether ours does; `None` where there is nothing to compare.
        reasons: known reasons for differences.
    """

    paper: dict[str, float] = field(default_factory=dict)
    ours: dict[str, float] = field(default_factory=dict)
    tasks: list[float] = field(default_factory=list)
    allowed: float | None = None
    differs: bool | None = None
    reasons: list[str] = field(default_factory=list)

    @property
    def explanations(self) -> list[str]:
        """The known reasons for a difference, or that there is none."""
        return self.reasons or [UNEXPLAINED] * bool(self.differs)

    def difference(self, quantity: str) -> float | None:
        """Return ours less the paper's, `None` if one of them does not exist."""
        if quantity not in self.paper or quantity not in self.ours:
            return None
        return self.ours[quantity] - self.paper[quantity]


@dataclass(frozen=True)
class ExperimentResult:
    """Result of an experiment; numbers are means over its seeds.

    What follows `comparison` is set if a run is finished.

    Attributes:
        problem_settings: those that make the problem another, such as the rule of its images.
        settings: those of the method or its training that are not the preset's.
        volume: hypervolume; of one network per objective that of their `ideal` point.
        separate: whether each ray has a network of its own.
        seconds: of each seed, up to its selected epoch and in all.
        total_seconds: of all seeds, by phase.
        tasks: misclassification with equal weights, or of each network for its own task.
        made: distinct answers of the seeds to each question about their origin.
        course: fronts on the way, where the recipe shows convergence.
    """

    name: str
    problem: str
    method: str
    protocol: str | None = None
    problem_settings: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    preset: str = "paper"
    rehearsal: int | None = None
    seeds: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    error: str | None = None
    comparison: PaperComparison = field(default_factory=PaperComparison)

    volume: Spread = PENDING
    ideal: bool = False
    metrics: dict[str, Spread | None] = PENDING
    seconds: dict[str, Spread] = PENDING
    total_seconds: dict[str, float] = field(default_factory=dict)
    networks: int = PENDING
    separate: bool = PENDING
    parameters: int = PENDING
    epochs: int = PENDING
    epochs_selected: list[int] = PENDING
    varied: dict[str, Any] = field(default_factory=dict)
    objectives: list[str] = PENDING
    reference: list[float] = PENDING
    rays: list[list[float | None]] = PENDING
    front: list[list[float | None]] = PENDING
    tasks: dict[str, Spread] = field(default_factory=dict)
    made: dict[str, list[Any]] = field(default_factory=dict)
    course: list[Stage] = field(default_factory=list)

    @property
    def benchmark(self) -> BenchmarkKey:
        """The benchmark, to tell it from others.

        >>> rule = {"rule": "text"}
        >>> ExperimentResult("a", "multi_mnist", "mgda", "paper", problem_settings=rule).benchmark
        ('multi_mnist', 'rule text', 'paper')
        """
        return self.problem, format_settings(self.problem_settings), self.protocol

    @property
    def is_harder(self) -> bool:
        """True for images drawn as Lin et al. describe, which are harder than the paper's."""
        return self.problem_settings.get("rule") == "text"

    @property
    def mean_error(self) -> Spread | None:
        """Misclassification, the mean over all tasks."""
        by_seed = list(zip(*(rate.each for rate in self.tasks.values()), strict=True))
        return Spread.of(list(map(fmean, by_seed))) if by_seed else None


def title_benchmark(key: BenchmarkKey, *, protocol: bool = False) -> str:
    """Return the title of a benchmark.

    >>> title_benchmark(("multi_mnist", "rule text", "paper"), protocol=True)
    'Multi-MNIST, rule text, paper'
    """
    problem, settings, protocol_name = key
    parts = [problem_title(problem), settings, protocol_name if protocol else None]
    return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class ClaimRow:
    """The verdict on a claim for a benchmark, in short, and with all numbers in a sentence."""

    benchmark: BenchmarkKey
    holds: bool | None
    short: str
    sentence: str = ""


@dataclass(frozen=True)
class ClaimResult:
    """A claim of the paper, and the benchmarks or comparisons that show whether it holds."""

    claim: str
    rows: list[ClaimRow]
    # on images that are harder than the paper's
    harder: bool = False

    @property
    def holds(self) -> bool | None:
        """False if one row refutes it, else None if one is open, else True."""
        return combine_verdicts(self.rows)


def combine_verdicts(rows: Sequence[ClaimRow]) -> bool | None:
    """Return False if one row does not hold, else None if one is open, else True."""
    states = [row.holds for row in rows]
    return False if False in states else None if None in states or not rows else True


@dataclass(frozen=True)
class RecipeResult:
    """All experiments of a recipe, and the paper's claims."""

    recipe: str
    title: str
    section: str
    shows: str
    rehearsal: int | None
    experiments: list[ExperimentResult]
    claims: list[ClaimResult] = field(default_factory=list)

    @property
    def done(self) -> list[ExperimentResult]:
        """The experiments that have a finished run."""
        return [experiment for experiment in self.experiments if experiment.seeds]

    def sum_seconds(self, phase: str) -> float:
        """Return the seconds that all seeds of all experiments took for a phase."""
        return sum(experiment.total_seconds[phase] for experiment in self.done)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a JSON file, which `read` reads."""
        content = asdict(self)
        # an experiment without a run has no numbers to write
        cells = [
            {key: value for key, value in experiment.items() if value is not None}
            for experiment in content.pop("experiments")
        ]
        for claim, result in zip(content["claims"], self.claims, strict=True):
            claim["holds"] = result.holds
        # experiments were called cells when the first results were published
        return {"format": FORMAT, **content, "cells": cells}

    @classmethod
    def read(cls, file: Path) -> "RecipeResult":
        """Read results from a file with what `to_dict` returned."""
        content = read_json(file)
        # another format would fail with a sentence that helps nobody
        if content.get("format") != FORMAT:
            raise RunError(
                f"`{file}` was not written by this version of `paretocosmos report` (its `format` "
                f"is not {FORMAT}): write it again from the run folders"
            )
        fields = {**content, "experiments": content.get("cells")}
        try:
            return TypeAdapter(cls).validate_python(fields)
        except ValidationError as error:
            # the first mistake is enough: a damaged file is written again, not mended
            mistake = error.errors(include_url=False)[0]
            place = ".".join(map(str, mistake["loc"]))
            raise RunError(
                f"`{file}` is damaged: `{place}`: {mistake['msg']}; write it again from the run "
                "folders"
            ) from error


def is_significant(difference: float, deviation: float | None) -> bool:
    """Return True if means differ beyond the noise, which is unknown with one seed.

    >>> is_significant(-0.3, 0.1), is_significant(0.1, 0.1), is_significant(1.0, None)
    (True, False, False)
    """
    return deviation is not None and abs(difference) > DEVIATIONS * deviation


def compute_difference_deviation(first: Spread, second: Spread) -> float | None:
    """Return the standard deviation of the difference of two means; `None` if both have one seed.

    Where one of them has one seed, the deviation of the other's seeds stands for both.

    >>> first, second = Spread(1.0, 0.3, [1.0] * 9), Spread(1.0, 0.4, [1.0] * 4)
    >>> f"{compute_difference_deviation(first, second):.4f}"
    '0.2236'
    """
    # Welch's standard error: the two methods need not scatter alike
    deviations = [spread.std for spread in (first, second) if spread.std is not None]
    if not deviations:
        return None
    return math.hypot(
        *(
            # the error of a mean falls with the root of the number of seeds
            (deviations[0] if spread.std is None else spread.std) / math.sqrt(len(spread.each))
            for spread in (first, second)
        )
    )
