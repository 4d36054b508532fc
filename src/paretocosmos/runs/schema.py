"""The schema of `run.json`.

The part of `run.json` that records settings is derived from `Configuration`, which declares them.
"""

import dataclasses
import functools
import operator
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, Field, create_model, model_validator

from paretocosmos.config.settings import Configuration
from paretocosmos.errors import RunError
from paretocosmos.io.schema import FILES, MOST, NETWORKS
from paretocosmos.io.schema.models import (
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
    check_content,
    limit_entries,
)
from paretocosmos.problems.tables.groups import GROUP_USES
from paretocosmos.registry import Spec


def check_record(record: object, file: Path) -> None:
    """Raise if a field of a record is missing or invalid.

    Args:
        record: content of `run.json`.
        file: its path, for the message.
    """

    # only the first mistake is told: a damaged file is restored, not mended
    def refuse(mistake: str) -> RunError:
        return RunError(
            f"`{file}` is damaged: {mistake}; restore the original file, or train again"
        )

    is_begun = isinstance(record, dict) and record.get("status") == "training"
    check_content(BegunFile if is_begun else RecordFile, record, refuse)
    if isinstance(record, dict) and "table.json" in record.get("files", ()):
        check_content(_TableRecord, record, refuse)


class _Spec(Model, extra="forbid"):
    name: str
    settings: Settings


# A ray's entries sum to 1, give or take the rounding of float32.
Share = Annotated[float, Field(ge=0, lt=1.001)]
Networks = Field(min_length=1, max_length=NETWORKS, fail_fast=True)
Numbers = ByName[Number | None]


# Metrics may be anything a problem defines; these two are always there.
class _Summary(Model, extra="allow"):
    __pydantic_extra__: dict[str, Number | None]
    hypervolume: Number | None
    hypervolume_ideal: Number | None


class _Metrics(Model, extra="allow"):
    __pydantic_extra__: dict[str, Numbers]
    test: Annotated[_Summary, BeforeValidator(limit_entries)]
    val: Annotated[_Summary, BeforeValidator(limit_entries)]


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
    frozen: bool = False


class _Answer(Model):
    task: Literal["binary", "classes", "number"]
    classes: Some[str]
    mean: Number
    scale: Number


class _Attribute(Model):
    name: str
    labels: NonEmpty[str]
    edges: Some[Number]


class _Grouping(Model):
    attributes: NonEmpty[_Attribute]
    names: NonEmpty[str]
    cells: NonEmpty[NonEmpty[Large]]
    places: NonEmpty[Large]

    @model_validator(mode="after")
    def _fits(self) -> "_Grouping":
        wide = len(self.attributes)
        if len(self.cells) != len(self.places) or any(len(cell) != wide for cell in self.cells):
            raise ValueError(f"`cells` have a place each, and {wide} entries, one per attribute")
        if {*self.places} != {*range(len(self.names))}:
            raise ValueError("`places` are the indices of `names`")
        return self


# What other problems say of themselves may be anything.
class _AboutTable(Model):
    target: str
    positive: str | None = None
    negative: str | None = None
    answer: _Answer | None = None
    sensitive: str = ""
    groups: Some[str] = Field(default_factory=list)
    grouping: _Grouping | None = None
    group_use: Literal[GROUP_USES] = "estimate"  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _fits(self) -> "_AboutTable":
        if self.answer is None and None in (self.positive, self.negative):
            raise ValueError("`positive` and `negative` name the classes, or `answer` does")
        if self.answer is not None:
            count, task = len(self.answer.classes), self.answer.task
            if not {"binary": count == 2, "classes": count > 1, "number": not count}[task]:
                raise ValueError(f"`answer` has {count} classes for the task `{task}`")
        return self


class _TableRecord(Model):
    about: _AboutTable


def derive_field(hint: Any) -> Any:
    """Return the type of a field of a file, given that of a setting.

    Numbers get the limits of all numbers in files beside those that the setting declares.
    """
    if get_origin(hint) is Annotated:
        return Annotated[derive_field(hint.__origin__), *hint.__metadata__]
    # `Optional[X]` and `X | None` have different origins
    if get_origin(hint) in (Union, types.UnionType):
        return functools.reduce(operator.or_, map(derive_field, get_args(hint)))
    if get_origin(hint) is tuple:
        entries = Field(max_length=MOST, fail_fast=True)
        return Annotated[list[derive_field(get_args(hint)[0])], entries]  # type: ignore[misc]
    if hint is Spec:  # of any part, whose settings are checked where it is built
        return _Spec
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return create_model(hint.__name__, __base__=Model, **derive_fields(hint))
    # plain numbers in a file may be too large for torch
    return {int: Large, float: Number}.get(hint, hint)


def derive_fields(settings: Any) -> dict[str, Any]:
    """Return the fields of a pydantic model for a dataclass of settings; all of them are required.

    >>> list(derive_fields(Configuration))[:3]
    ['preset', 'problem', 'method']
    """
    hints = get_type_hints(settings, include_extras=True)
    return {f.name: (derive_field(hints[f.name]), ...) for f in dataclasses.fields(settings)}


BegunFile = create_model(
    "BegunFile",
    __base__=Model,
    name=(str, ...),
    objective_specs=(NonEmpty[_Spec], ...),
    **derive_fields(Configuration),
)
"""The record of a run in training."""


class _Record(Model):
    """Content of `run.json` beside the settings, once the run is finished."""

    status: Literal["training", "finished"]
    name: str
    label: str
    about: dict[str, Any]
    protocol: str
    objectives: Size
    names: NonEmpty[str]
    input_shape: Shape
    outputs: Annotated[
        ByName[Size],
        # a single output without a name is a number in files
        BeforeValidator(lambda outputs: outputs if isinstance(outputs, dict) else {"all": outputs}),
    ]
    fixed_rays: Annotated[list[NonEmpty[Share]], Networks] | None
    parameters: Large
    caveats: Some[str]
    version: str
    metrics: Annotated[_Metrics, BeforeValidator(limit_entries)]
    epoch_selected: Large
    networks: Annotated[list[_Network], Networks]
    evaluations: Some[_Evaluation]
    samples_per_second: Number | None
    share_waiting: Number
    peak_memory: Number | None
    seeds_together: Count
    processes: Count
    engine: str
    data: str
    seconds_training: Number
    seconds_to_selected: Number
    seconds_preparing: Number
    seconds_evaluating: Number
    files: Annotated[dict[Literal[FILES], str], BeforeValidator(limit_entries)]  # type: ignore[valid-type]

    # descriptions, which earlier versions did not write
    answers: str | None = None
    data_hash: str | None = None
    objective_specs: NonEmpty[_Spec]
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
    predicts_at: _PredictsAt | None = None  # of a saved estimator, or a frozen run
    sha256: str = ""

    @model_validator(mode="after")
    def _check_complete(self) -> "_Record":
        count = self.objectives
        if len(self.names) != count:
            raise ValueError(f"it has {count} objectives and {len(self.names)} names")
        reference = getattr(self, "training").reference  # noqa: B009 - a derived field
        if reference is not None and len(reference) != count:
            raise ValueError("`training.reference` has an entry for every objective")
        # lengths that depend on each other are beyond the types above
        if self.predicts_at is not None and len(self.predicts_at.ray) != count:
            raise ValueError("`predicts_at.ray` has an entry for every objective")
        if any(len(ray) != count for ray in self.fixed_rays or ()):
            raise ValueError("`fixed_rays` have an entry for every objective")
        return self


RecordFile = create_model("RecordFile", __base__=_Record, **derive_fields(Configuration))
"""The record of a finished run."""
