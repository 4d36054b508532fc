"""`run.json`: what a run is, and once it is finished what it gave."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from paretocosmos.errors import RunError
from paretocosmos.io.schema import FILES, NETWORKS
from paretocosmos.io.schema.kinds import (
    LATER,
    ByName,
    Count,
    Large,
    Model,
    NonEmpty,
    Number,
    Settings,
    Shape,
    Size,
    Some,
    few,
    lacking,
)
from paretocosmos.io.schema.sentence import shown, validated

__all__ = ["check_record"]


def check_record(record: object, file: Path) -> None:
    """Refuse a record with a field that is missing or not what it should be.

    Args:
        record: what `run.json` holds.
        file: what it is called in a refusal.
    """

    def refusal(mistake: str) -> RunError:
        return RunError(
            f"`{file}` is damaged: {mistake}; restore the original file, or train again"
        )

    validated(RecordFile, record, refusal)


def _nothing_else(spec: object) -> object:
    if isinstance(spec, dict) and not spec.keys() <= {"name", "settings"}:
        raise ValueError(f"an entry needs a `name` and `settings`, found {shown(list(spec))}")
    return spec


def _by_name(outputs: object) -> object:
    return outputs if isinstance(outputs, dict) else {"all": outputs}


def _known(files: dict[str, str]) -> dict[str, str]:
    if not files.keys() <= {*FILES}:
        raise ValueError(f"hashes of {', '.join(FILES)}, found {shown(list(files))}")
    return files


class _Spec(Model):
    name: str
    settings: Settings


Share = Annotated[float, Field(ge=0, lt=1.001)]
Networks = Field(min_length=1, max_length=NETWORKS, fail_fast=True)
Spec = Annotated[_Spec, BeforeValidator(_nothing_else)]
Numbers = ByName[Number | None]


class _Training(Model):
    epochs: Size
    batch_size: Count
    groups: Count
    accumulate: Count
    evaluate_every: Count
    rays: Size
    learning_rate: Number
    weight_decay: Number
    decay: Number
    optimizer: str = "adam"
    schedule: str = "steps"
    warmup: Number = 0.0
    average: Number = 0.0
    clip: Number = 0.0
    scale_losses: bool = False
    calibrate: bool = False
    patience: Large = 0
    milestones: Some[Large]
    reference: NonEmpty[Number] | None


class _Summary(Model, extra="allow"):
    __pydantic_extra__: dict[str, Number | None]
    hypervolume: Number | None
    hypervolume_ideal: Number | None


class _Metrics(Model, extra="allow"):
    __pydantic_extra__: dict[str, Numbers]
    test: Annotated[_Summary, BeforeValidator(few)]
    val: Annotated[_Summary, BeforeValidator(few)]


class _Network(Model):
    epoch_selected: Large


class _Evaluation(Model):
    epoch: Large
    values: NonEmpty[NonEmpty[Number | None]]


class _Finding(Model):
    kind: str
    text: str


class _Centre(Model):
    values: dict[str, Any] = Field(default_factory=dict)
    metrics: Numbers = Field(default_factory=dict)


class _PredictsAt(Model):
    ray: NonEmpty[Share]
    threshold: Annotated[float, Field(gt=0, lt=1)]


class RecordFile(Model):
    """A run's record, begun or finished."""

    status: Literal["training", "finished"]
    name: str
    preset: str = "paper"
    problem: Spec | None
    method: Spec
    conditioning: Spec | None
    backbone: Spec | None
    training: _Training
    seed: Large

    label: str = LATER
    about: dict[str, Any] = LATER
    protocol: str = LATER
    objectives: Size = LATER
    names: NonEmpty[str] = LATER
    input_shape: Shape = LATER
    outputs: Annotated[ByName[Size], BeforeValidator(_by_name)] = LATER
    fixed_rays: Annotated[list[NonEmpty[Share]], Networks] | None = LATER
    parameters: Large = LATER
    caveats: Some[str] = LATER
    device: str = LATER
    precision: str = LATER
    version: str = LATER
    metrics: Annotated[_Metrics, BeforeValidator(few)] = LATER
    epoch_selected: Large = LATER
    networks: Annotated[list[_Network], Networks] = LATER
    evaluations: Some[_Evaluation] = LATER
    samples_per_second: Number | None = LATER
    share_waiting: Number = LATER
    peak_memory: Number | None = LATER
    seeds_together: Count = LATER
    processes: Count = LATER
    engine: str = LATER
    data: str = LATER
    seconds_training: Number = LATER
    seconds_to_selected: Number = LATER
    seconds_preparing: Number = LATER
    seconds_evaluating: Number = LATER
    files: Annotated[ByName[str], AfterValidator(_known)] = LATER

    # what further describes a run
    answers: str | None = None
    data_hash: str | None = None
    objective_specs: NonEmpty[Spec] | None = None  # since 0.1; older folders have none
    deterministic: bool = False
    source: str = ""
    versions: dict[str, Any] = Field(default_factory=dict)
    machine: dict[str, Any] = Field(default_factory=dict)
    git: dict[str, Any] | None = None
    command: str = ""
    written: str = ""
    centre: _Centre | None = None
    sensitivity: Number | None = None
    findings: Some[_Finding] = Field(default_factory=list)
    by_objective: ByName[ByName[Numbers]] = Field(default_factory=dict)
    predicts_at: _PredictsAt | None = None  # of an estimator that was saved
    sha256: str = ""

    @model_validator(mode="after")
    def _whole(self) -> "RecordFile":
        if self.status == "training":
            return self
        lacking(self)
        many = self.objectives
        if len(self.names) != many:
            raise ValueError(f"it has {many} objectives and {len(self.names)} names")
        if self.training.reference is not None and len(self.training.reference) != many:
            raise ValueError("`training.reference` has an entry for every objective")
        if self.predicts_at is not None and len(self.predicts_at.ray) != many:
            raise ValueError("`predicts_at.ray` has an entry for every objective")
        if any(len(ray) != many for ray in self.fixed_rays or ()):
            raise ValueError("`fixed_rays` have an entry for every objective")
        return self
