"""What `report` writes of a recipe, `results/reproduction/*.json`: its cells and the paper's."""

from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from paretocosmos.errors import RunError
from paretocosmos.io.schema.kinds import (
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
)
from paretocosmos.io.schema.sentence import validated

__all__ = ["CollectedFile", "check_collected"]

Rows = NonEmpty[NonEmpty[Finite | None]]


def check_collected(content: object, file: Path) -> "CollectedFile":
    """What a recipe gave, if it is that.

    Args:
        content: what the file holds.
        file: what it is called in a refusal.
    """

    def refusal(mistake: str) -> RunError:
        return RunError(f"`{file}` is damaged: {mistake}; write it again from the run folders")

    return validated(CollectedFile, content, refusal)


class _Spread(Model):
    mean: Finite
    std: Finite | None
    each: NonEmpty[Finite]


class _Seconds(Model):
    to_selected: _Spread | None
    training: _Spread | None
    all_training: Finite
    all_preparing: Finite
    all_evaluating: Finite


class _Tasks(Model):
    judged: str
    misclassification: ByName[_Spread | None]
    mean: _Spread | None


class _Stage(Model):
    epoch: Large
    hypervolume: _Spread | None
    span: _Spread | None
    values: Rows


class _Made(Model):
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


class _Figure(Model):
    paper: Finite
    paper_std: Finite | None = None
    ours: Finite | None = None
    difference: Finite | None = None
    allowed: Finite | None = None
    differs: bool | None = None


class _PerTask(Model):
    paper: NonEmpty[Finite]
    ours: NonEmpty[Finite] = Field(default_factory=list)
    difference: NonEmpty[Finite] = Field(default_factory=list)


class _Reason(Model):
    quantities: Some[str]
    sentence: str


class _Against(Model):
    hypervolume: _Figure | None = None
    seconds: _Figure | None = None
    parameters: _Figure | None = None
    misclassification: _Figure | None = None
    tasks: _PerTask | None = None
    reasons: Some[_Reason]


class _Cell(Model):
    name: str
    problem: str
    protocol: str | None
    method: str
    settings: Settings
    rehearsal: Size | None
    seeds: Some[Large]
    missing: Some[Large]
    error: str | None
    against: _Against | None

    # what one with a finished run has
    volume: _Spread | None = LATER
    volume_of: str = LATER
    metrics: ByName[_Spread | None] = LATER
    seconds: _Seconds = LATER
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
    tasks: _Tasks | None = LATER
    made: _Made = LATER
    course: Some[_Stage] = Field(default_factory=list)

    @model_validator(mode="after")
    def _whole(self) -> "_Cell":
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


class _Claim(Model):
    claim: str
    holds: bool | None
    sentence: str
    deviations: Finite | None = None
    rows: Some[dict[str, Any]]


class _Spent(Model):
    training: Finite
    preparing: Finite
    evaluating: Finite


class CollectedFile(Model):
    """All cells of a recipe, what they took, and the paper's claims."""

    format: int
    recipe: FileName
    title: str
    section: str
    shows: Shows
    rehearsal: Size | None
    cells: Some[_Cell]
    seconds: _Spent
    claims: Some[_Claim]
