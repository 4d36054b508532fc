"""What `report` writes of a recipe, `results/reproduction/*.json`: its cells and the paper's."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from paretocosmos.errors import RunError
from paretocosmos.io.schema.models import (
    LATER,
    ByName,
    FileName,
    Finite,
    Large,
    Model,
    NonEmpty,
    Settings,
    Shows,
    Size,
    Some,
    lacking,
    validated,
)

__all__ = [
    "AblationRow",
    "Against",
    "CellResult",
    "ClaimResult",
    "Comparison",
    "ConvergenceRow",
    "Figure",
    "JudgedRow",
    "Origin",
    "PerTask",
    "Reason",
    "RecipeResult",
    "Seconds",
    "SetResult",
    "Spent",
    "Spread",
    "Stage",
    "Tasks",
    "check_collected",
]

Rows = NonEmpty[NonEmpty[Finite | None]]


def check_collected(content: object, file: Path) -> "RecipeResult":
    """What a recipe gave, if it is that.

    Args:
        content: what the file holds.
        file: what it is called in a refusal.
    """

    def refusal(mistake: str) -> RunError:
        return RunError(f"`{file}` is damaged: {mistake}; write it again from the run folders")

    return validated(RecipeResult, content, refusal)


class Spread(Model):
    """A number over seeds: the mean, the deviation of a sample (one seed has none), and each."""

    mean: Finite
    std: Finite | None
    each: NonEmpty[Finite]


class Seconds(Model):
    """Of a seed: to the selected epoch, and in all; of all seeds: what the time went into."""

    to_selected: Spread
    training: Spread
    all_training: Finite
    all_preparing: Finite
    all_evaluating: Finite


class Tasks(Model):
    """Misclassification task by task: with equal weights, or each by its own network."""

    judged: str
    misclassification: ByName[Spread]
    mean: Spread


class Stage(Model):
    """The mean validation front after an epoch, and its numbers."""

    epoch: Large
    hypervolume: Spread
    span: Spread
    values: Rows


class Origin(Model):
    """Where numbers come from: every answer that seeds give, each once."""

    device: Some[str]
    threads: Some[Large]
    version: Some[str]
    source: Some[str]
    torch: Some[str]
    precision: Some[str]
    engine: Some[str]
    seeds_together: Some[Size]
    images: Some[str]
    weights: Some[str]
    caveats: Some[str]
    side_by_side: Size = 1  # what was written before has none


class Figure(Model):
    """A number of the paper and ours beside it, each where there is one."""

    paper: Finite | None = None
    paper_std: Finite | None = None
    ours: Finite | None = None
    difference: Finite | None = None
    allowed: Finite | None = None
    differs: bool | None = None


class PerTask(Model):
    """The paper's numbers task by task, and ours."""

    paper: NonEmpty[Finite]
    ours: NonEmpty[Finite] = Field(default_factory=list)
    difference: NonEmpty[Finite] = Field(default_factory=list)


class Reason(Model):
    """Why some numbers differ from the paper's."""

    quantities: Some[str]
    sentence: str


class Against(Model):
    """A cell beside what the paper prints of it."""

    hypervolume: Figure = Figure()
    seconds: Figure = Figure()
    parameters: Figure = Figure()
    misclassification: Figure = Figure()
    tasks: PerTask | None = None
    reasons: Some[Reason] = Field(default_factory=list)


class SetResult(Model):
    """What is told of a set: a problem as it is set up, under a protocol."""

    problem: str
    settings: Settings = Field(default_factory=dict)
    protocol: str | None


class CellResult(SetResult):
    """What a cell reached; numbers are means over its seeds."""

    name: str
    method: str
    preset: str = "paper"  # the only one of what was written before
    rehearsal: Size | None
    seeds: Some[Large]
    missing: Some[Large]
    error: str | None
    against: Against | None = None

    # what one with a finished run has
    volume: Spread = LATER
    volume_of: Literal["front", "ideal point"] = LATER
    metrics: ByName[Spread | None] = LATER
    seconds: Seconds = LATER
    networks: Size = LATER
    separate: bool = LATER
    parameters: Large = LATER
    epochs: Size = LATER
    epochs_selected: NonEmpty[Large] = LATER
    varied: Settings = LATER
    objectives: NonEmpty[str] = LATER
    reference: NonEmpty[Finite] = LATER
    rays: Rows = LATER
    front: Rows = LATER
    tasks: Tasks | None = LATER
    made: Origin = LATER
    course: Some[Stage] = Field(default_factory=list)

    @model_validator(mode="after")
    def _whole(self) -> "CellResult":
        if self.seeds:
            lacking(self)
            wide = len(self.objectives)
            rows = [*self.rays, *self.front]
            if len(self.reference) != wide or any(len(row) != wide for row in rows):
                raise ValueError(
                    "`reference`, `rays` and `front` have an entry for every objective"
                )
            if len(self.rays) != len(self.front):
                raise ValueError("`rays` and `front` have a row for every ray")
        return self


class Comparison(SetResult):
    """COSMOS and another method on a set."""

    method: str
    difference: Finite
    in_deviations: Finite | None
    verdict: str


class JudgedRow(SetResult):
    """Whether a claim holds on a set, in a sentence, and in short."""

    holds: bool | None = None
    sentence: str = ""
    short: str = ""


class AblationRow(JudgedRow):
    """Width and hypervolume by penalty and by alpha, and the noise of their differences."""

    penalties: NonEmpty[Finite]
    span_by_penalty: NonEmpty[Finite]
    volume_by_penalty: NonEmpty[Finite]
    alphas: NonEmpty[Finite]
    span_by_alpha: NonEmpty[Finite]
    volume_by_alpha: NonEmpty[Finite]
    span_deviation: Finite | None
    span_deviation_by_alpha: Finite | None
    volume_deviation: Finite | None
    smallest_dominated: Finite


class ConvergenceRow(JudgedRow):
    """Width and hypervolume of an early front and of the last one."""

    widths: NonEmpty[Finite]
    volumes: NonEmpty[Finite]
    deviation: Finite | None


def _kind(row: object) -> str:
    has = row if isinstance(row, dict) else getattr(row, "__dict__", {})
    return "ablation" if "alphas" in has else "convergence" if "widths" in has else "comparison"


Row = Annotated[
    Annotated[Comparison, Tag("comparison")]
    | Annotated[AblationRow, Tag("ablation")]
    | Annotated[ConvergenceRow, Tag("convergence")],
    Discriminator(_kind),
]


class ClaimResult(Model):
    """What the paper says, whether it is so, and the sets or comparisons that say it."""

    claim: str
    holds: bool | None
    sentence: str
    deviations: Finite | None = None
    rows: Some[Row]


class Spent(Model):
    """What the time of all cells went into, in seconds."""

    training: Finite
    preparing: Finite
    evaluating: Finite


class RecipeResult(Model):
    """All cells of a recipe, what they took, and the paper's claims."""

    format: int
    recipe: FileName
    title: str
    section: str
    shows: Shows
    rehearsal: Size | None
    cells: Some[CellResult]
    seconds: Spent
    claims: Some[ClaimResult]

    @property
    def done(self) -> list[CellResult]:
        """The cells that have a finished run."""
        return [cell for cell in self.cells if cell.seeds]

    def to_dict(self) -> dict[str, Any]:
        """A JSON value, which `check_collected` reads."""
        return self.model_dump(exclude_unset=True)
