"""Results of a recipe as data, and each experiment compared with the paper's numbers.

`RecipeResult` is the content of ``results/reproduction/*.json`` and of the JSON that
``paretocosmos report`` writes.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from paretocosmos import registry
from paretocosmos.errors import RunError
from paretocosmos.paper.published import (
    format_settings,
    problem_title,
)

DEVIATIONS = 2.0
"""Means differ if they are further apart than that many standard deviations of their difference."""


BenchmarkKey = tuple[str, str, str | None]
"""A problem, its settings in words, and the protocol: equal for experiments on the same data."""


# `None`, which the types hide: code that reads such a field has checked `seeds` before.
PENDING: Any = None
"""Default of a field that only an experiment with a finished run has."""


class Result(BaseModel):
    """Base of all results, which are data and never change."""

    # unknown keys are ignored, so that files of a later version with more of them can be read

    # frozen, so that the report and the verdict can share one result
    model_config = ConfigDict(frozen=True)


class Spread(Result):
    """A number over seeds: the mean, the sample deviation (`None` for one seed), and each."""

    mean: float
    # by n - 1, which needs two seeds
    std: float | None
    each: list[float]


class Seconds(Result):
    """Seconds of a seed, up to the selected epoch and in all; of all seeds, by phase."""

    to_selected: Spread
    training: Spread
    all_training: float
    all_preparing: float
    all_evaluating: float


class Tasks(Result):
    """Misclassification task by task: with equal weights, or each by its own network."""

    judged: str
    misclassification: dict[str, Spread]
    mean: Spread


class Stage(Result):
    """The mean validation front after an epoch, and its numbers."""

    epoch: int
    hypervolume: Spread
    span: Spread
    # JSON has no NaN, so a value that does not exist is `None`
    values: list[list[float | None]]


class Origin(Result):
    """Origin of the numbers: each distinct answer of the seeds."""

    device: list[str]
    threads: list[int]
    version: list[str]
    source: list[str]
    torch: list[str]
    precision: list[str]
    engine: list[str]
    seeds_together: list[int]
    images: list[str]
    weights: list[str]
    caveats: list[str]
    side_by_side: int = 1  # absent from older files


class Figure(Result):
    """A number of the paper and ours beside it, each where there is one."""

    paper: float | None = None
    paper_std: float | None = None
    ours: float | None = None
    difference: float | None = None
    allowed: float | None = None
    differs: bool | None = None


class PerTask(Result):
    """The paper's numbers task by task, and ours."""

    paper: list[float]
    # pydantic copies defaults, so a list is safe here
    ours: list[float] = []
    difference: list[float] = []


class Reason(Result):
    """A reason why some numbers differ from the paper's."""

    quantities: list[str]
    sentence: str


class PaperComparison(Result):
    """An experiment beside what the paper prints of it."""

    hypervolume: Figure = Figure()
    seconds: Figure = Figure()
    parameters: Figure = Figure()
    misclassification: Figure = Figure()
    tasks: PerTask | None = None
    reasons: list[Reason] = []


class BenchmarkResult(Result):
    """Base of what is reported of a benchmark: a problem with its settings, under a protocol."""

    problem: str
    settings: dict[str, Any] = {}
    protocol: str | None

    @property
    def problem_settings(self) -> dict[str, Any]:
        """The settings that make the problem another, such as the rule its images follow.

        >>> settings = {"rule": "text", "penalty": 1.0}
        >>> result = BenchmarkResult(problem="multi_mnist", settings=settings, protocol=None)
        >>> result.problem_settings, result.variation
        ({'rule': 'text'}, {'penalty': 1.0})
        """
        # most experiments change nothing: their problem need not be imported
        if not self.settings:
            return {}
        parameters = registry.parameters(registry.find("problems", self.problem))
        return {
            key: value
            for key, value in self.settings.items()
            # a prefix tells a problem's setting from a method's of the same name
            if key.removeprefix("problem.") in parameters
        }

    @property
    def variation(self) -> dict[str, Any]:
        """The other settings: those of the method or its training that are not the preset's."""
        of_problem = self.problem_settings
        return {key: value for key, value in self.settings.items() if key not in of_problem}

    @property
    def benchmark(self) -> BenchmarkKey:
        """The benchmark, to tell it from others.

        >>> settings = {"rule": "text"}
        >>> BenchmarkResult(problem="multi_mnist", settings=settings, protocol="paper").benchmark
        ('multi_mnist', 'rule text', 'paper')
        """
        return self.problem, format_settings(self.problem_settings), self.protocol

    def benchmark_title(self, *, protocol: bool = True) -> str:
        """Return the title of the benchmark.

        >>> settings = {"rule": "text"}
        >>> result = BenchmarkResult(problem="multi_mnist", settings=settings, protocol="paper")
        >>> result.benchmark_title(), result.benchmark_title(protocol=False)
        ('Multi-MNIST, rule text, paper', 'Multi-MNIST, rule text')
        """
        problem, settings, protocol_name = self.benchmark
        parts = [problem_title(problem), settings, protocol_name if protocol else None]
        return ", ".join(filter(None, parts))

    @property
    def is_harder(self) -> bool:
        """True for images drawn as Lin et al. describe, which are harder than the paper's."""
        return self.problem_settings.get("rule") == "text"


class ExperimentResult(BenchmarkResult):
    """Result of an experiment; numbers are means over its seeds.

    What follows `comparison` is set if a run is finished.
    """

    name: str
    method: str
    preset: str = "paper"  # the only one of older files
    rehearsal: int | None
    seeds: list[int]
    missing: list[int]
    error: str | None
    # the alias is the key in files, which keep the names of earlier versions
    comparison: PaperComparison | None = Field(default=None, alias="against")

    volume: Spread = PENDING
    volume_of: Literal["front", "ideal point"] = PENDING
    metrics: dict[str, Spread | None] = PENDING
    seconds: Seconds = PENDING
    networks: int = PENDING
    separate: bool = PENDING
    parameters: int = PENDING
    epochs: int = PENDING
    epochs_selected: list[int] = PENDING
    varied: dict[str, Any] = PENDING
    objectives: list[str] = PENDING
    reference: list[float] = PENDING
    rays: list[list[float | None]] = PENDING
    front: list[list[float | None]] = PENDING
    tasks: Tasks | None = PENDING
    made: Origin = PENDING
    course: list[Stage] = []

    @property
    def paper(self) -> PaperComparison:
        """The comparison with the paper, empty where the paper prints nothing."""
        return self.comparison or PaperComparison()


class RivalComparison(BenchmarkResult):
    """COSMOS and another method on a benchmark."""

    method: str
    difference: float
    in_deviations: float | None
    verdict: str


class JudgedRow(BenchmarkResult):
    """The verdict on a claim for a benchmark, in a sentence, and in short."""

    holds: bool | None = None
    sentence: str = ""
    short: str = ""


class AblationRow(JudgedRow):
    """Width and hypervolume by penalty and by alpha, and the noise of their differences."""

    penalties: list[float]
    span_by_penalty: list[float]
    volume_by_penalty: list[float]
    alphas: list[float]
    span_by_alpha: list[float]
    volume_by_alpha: list[float]
    span_deviation: float | None
    span_deviation_by_alpha: float | None
    volume_deviation: float | None
    smallest_dominated: float


class ConvergenceRow(JudgedRow):
    """Width and hypervolume of an early front and of the last one."""

    widths: list[float]
    volumes: list[float]
    deviation: float | None


class ClaimResult(Result):
    """A claim of the paper, whether it holds, and the benchmarks or comparisons that show it."""

    claim: str
    holds: bool | None
    sentence: str
    deviations: float | None = None
    # pydantic tells the rows of a file apart by their required fields
    rows: list[AblationRow | ConvergenceRow | RivalComparison]


class TotalSeconds(Result):
    """Seconds that all experiments took, by what they went into."""

    training: float
    preparing: float
    evaluating: float


class RecipeResult(Result):
    """All experiments of a recipe, what they took, and the paper's claims."""

    format: int
    recipe: Annotated[str, Field(max_length=100, pattern=r"^[^/\\\x00-\x1f]+$")]  # a file's name
    title: str
    section: str
    shows: str
    rehearsal: int | None
    # experiments were called cells when the first results were published
    experiments: list[ExperimentResult] = Field(alias="cells")
    seconds: TotalSeconds
    claims: list[ClaimResult]

    @property
    def done(self) -> list[ExperimentResult]:
        """The experiments that have a finished run."""
        return [experiment for experiment in self.experiments if experiment.seeds]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value, which `from_dict` reads."""
        # without what was not set: an experiment without a run has no numbers to write
        return self.model_dump(exclude_unset=True, by_alias=True)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], file: Path) -> "RecipeResult":
        """Return the results that a JSON value holds.

        Args:
            content: of the file.
            file: its name in an error.
        """
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise RunError(
                f"`{file}` is damaged: {first_mistake(error)}; write it again from the run folders"
            ) from error


def first_mistake(error: ValidationError) -> str:
    """Return the key of the first invalid value, and what is wrong with it."""
    # the first is enough: a damaged file is written again, not mended
    mistake = error.errors(include_url=False)[0]
    return f"`{'.'.join(map(str, mistake['loc']))}`: {mistake['msg']}"


def is_significant(difference: float, deviation: float | None) -> bool:
    """Return True if means differ beyond the noise, which is unknown with one seed.

    >>> is_significant(-0.3, 0.1), is_significant(0.1, 0.1), is_significant(1.0, None)
    (True, False, False)
    """
    return deviation is not None and abs(difference) > DEVIATIONS * deviation


def compute_difference_deviation(first: Spread, second: Spread) -> float | None:
    """Return the standard deviation of the difference of two means; `None` if both have one seed.

    Where one of them has one seed, the deviation of the other's seeds stands for both.

    >>> first, second = (Spread(mean=1.0, std=s, each=[1.0] * n) for s, n in ((0.3, 9), (0.4, 4)))
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
