"""Rows, bodies and answers, as pydantic validates them and OpenAPI describes them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, final

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from paretocosmos.io.schema.models import Finite
from paretocosmos.pareto.rays import CLOSE
from paretocosmos.problems.tables import MISSING, Table, format_label
from paretocosmos.runs.run import PredictsAt

Numbers = npt.NDArray[np.float64]
# In the columns of a table; true counts as 1.
NUMBER: Any = Finite | bool | None
CATEGORY: Any = str | int | float | bool | None
# Categories of a column that are listed; further ones would make the description unreadable.
MAX_LISTED = 20


class Rows(ABC):
    """Rows in JSON, and their conversion to numbers ``[N, ...]`` and to a network's inputs.

    Attributes:
        row: the type of one, for pydantic.
        rule: for `inputs`, in words.
        example: one row.
        columns: of a table.
    """

    row: Any
    rule: str
    example: object
    columns: tuple[str, ...] = ()

    @abstractmethod
    def is_single(self, inputs: object) -> bool:
        """Return True if the inputs of a request are a single row, not a list of them."""

    @abstractmethod
    def to_numbers(self, rows: Sequence[Any]) -> tuple[Numbers, list[str]]:
        """Convert validated rows to numbers ``[N, ...]``, with warnings."""

    @abstractmethod
    def to_features(self, rows: Numbers) -> npt.NDArray[np.float32]:
        """Convert numbers, of one or several requests, to the network's inputs."""


@final
class NumberRows(Rows):
    """Nested lists of numbers, as the network takes them.

    Args:
        shape: of one row.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        row: Any = Finite
        example: object = 0.0
        for size in reversed(shape):
            # fail_fast: one mistake is reported, so the others need not be collected.
            row = Annotated[list[row], Field(min_length=size, max_length=size, fail_fast=True)]
            example = [example] * size
        self.row, self.example, self._axes = row, example, len(shape)
        wanted = "x".join(map(str, shape))
        self.rule = f"{wanted} finite numbers in nested lists, or a list of such rows"

    def is_single(self, inputs: object) -> bool:
        for _ in range(self._axes):
            if not isinstance(inputs, list) or not inputs:
                return False
            # the nesting of the first entry tells a row from a list of rows; pydantic checks the
            # others
            inputs = inputs[0]
        return not isinstance(inputs, list)

    def to_numbers(self, rows: Sequence[Any]) -> tuple[Numbers, list[str]]:
        return np.array(rows, dtype=np.float64), []

    def to_features(self, rows: Numbers) -> npt.NDArray[np.float32]:
        # the service refuses numbers beyond float32 first, but the largest may round to infinity
        with np.errstate(over="ignore"):
            return rows.astype(np.float32)


@final
class TableRows(Rows):
    """Objects, column by column, as the rows of a frame: without pandas, slow for a single row.

    A row is one number per column: numbers as they are, NaN where missing; categories by their
    index, -1 if they are not in the list.

    Args:
        table: the fitted preprocessing.
    """

    rule = "an object with the table's columns, or a list of such objects"

    def __init__(self, table: Table) -> None:
        self.columns, self._table = table.columns, table
        self._codes = {
            name: {label: float(code) for code, label in enumerate(labels)}
            for name, labels in table.categorical.items()
        }
        fields: dict[str, Any] = {}
        # pydantic takes a column's name as an alias, since it may be no Python identifier.
        for index, name in enumerate(table.columns):
            kind, about = NUMBER, None
            if name in table.categorical:
                labels = table.categorical[name]
                listed = ", ".join(labels[:MAX_LISTED]) + ", ..." * (len(labels) > MAX_LISTED)
                kind, about = CATEGORY, f"Known: {listed}."
            fields[f"column_{index}"] = (kind, Field(alias=name, description=about))
        self.row = create_model("Row", __config__=ConfigDict(strict=True), **fields)
        # Missing numbers are filled with the median: a typical row makes a good example.
        medians = {name: round(fill, 6) for name, fill in table.numeric.items()}
        self.example = medians | {name: labels[0] for name, labels in table.categorical.items()}

    def is_single(self, inputs: object) -> bool:
        return isinstance(inputs, dict)

    def to_numbers(self, rows: Sequence[Any]) -> tuple[Numbers, list[str]]:
        unseen: dict[str, set[str]] = {}
        first = len(self._table.numeric)
        # Plain lists: building a data frame would take longer than predicting a single row.
        numbers: list[list[float | None]] = []
        for row in rows:
            # in the order of the fields, which is that of the table's columns
            values = list(vars(row).values())
            for index, (name, codes) in enumerate(self._codes.items(), first):
                value = values[index]
                label = MISSING if value is None else format_label(value)
                values[index] = codes.get(label, -1.0)
                if label not in codes:
                    unseen.setdefault(name, set()).add(label)
            numbers.append(values)
        # numpy converts None to NaN
        warnings = []
        for name, labels in unseen.items():
            # a client may send anything: labels are cut, and three are enough
            few = ", ".join(f"`{label[:40]}`" for label in sorted(labels)[:3])
            warnings.append(
                f"the column `{name}` has values that were not in the training rows: {few}"
                f"{', ...' * (len(labels) > 3)}; they are treated as none of the known ones"
            )
        return np.array(numbers, dtype=np.float64), warnings

    def to_features(self, rows: Numbers) -> npt.NDArray[np.float32]:
        return self._table.standardise(rows)


STRICT = ConfigDict(strict=True, extra="forbid")
# Rays that one request to choose may ask for.
MAX_EVALUATIONS = 100
PROBABILITY: Any = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class Refusal(BaseModel):
    """Why there is no answer, in one sentence."""

    error: str


class _Prediction(BaseModel):
    preference: list[float] | list[list[float]] = Field(
        description="The ray that answered, or one for each row."
    )
    warnings: list[str]


class Probabilities(_Prediction):
    """The predictions for rows of a table."""

    probabilities: list[float]
    decisions: list[bool] = Field(description="Whether the probability is above the threshold.")
    threshold: float
    target: str | None
    positive: str | None


class Outputs(_Prediction):
    """The outputs for each row, by head if there are several."""

    outputs: Any
    probabilities: Any = Field(None, description="Of heads whose outputs are logits of classes.")


class Chosen(BaseModel):
    """A ray with its values."""

    ray: list[float]
    val: dict[str, Any]
    test: dict[str, Any] | None
    evaluations: int
    threshold: float = Field(description="To predict with, beside the ray.")
    asked: dict[str, Any] = Field(description="The criteria, as they were asked for.")
    note: str = Field("", description="Where the data could not be had.")


def make_question_model(rows: Rows, *, names: Sequence[str], most: int, default: PredictsAt) -> Any:
    """Build the model of the body of ``/predict``: `inputs` and `preference` become lists.

    Args:
        rows: what a row is.
        names: the J objectives.
        most: rows of a request.
        default: the preference and the threshold where none are given; a frozen run takes no other
            preference.
    """
    weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
    sizes: dict[str, Any] = {"min_length": len(names), "max_length": len(names), "fail_fast": True}
    check = AfterValidator(partial(_check_ray, default))
    ray = Annotated[list[weight], Field(**sizes), check]
    simplex = f"{len(names)} numbers from 0 to 1 that sum to 1 ({', '.join(names)})"
    about = f"one ray for all rows or one for each, {simplex}"
    if default.frozen and default.ray is not None:
        about = f"left out, or {list(default.ray)}, at which this run is frozen"

    def is_ray(value: object) -> bool:
        # what is no list at all counts as a ray, whose error message names what is wanted
        return not (isinstance(value, list) and value and isinstance(value[0], list))

    fields: dict[str, Any] = {
        "inputs": (_one_or_list(rows.row, rows.is_single, most), Field(description=rows.rule)),
        "preference": (
            _one_or_list(ray, is_ray, most),
            Field(... if default.ray is None else [list(default.ray)], description=about),
        ),
    }
    # only tables have decisions between two classes
    if rows.columns:
        rule = "the probability above which a decision is positive"
        fields["threshold"] = (PROBABILITY, Field(default.threshold, description=rule))
    return create_model("Question", __config__=STRICT, **fields)


def _one_or_list(single: Any, is_single: Callable[[object], bool], most: int) -> Any:
    """Return the type of a value or a list of values, which is read as a list."""
    many: Any = Annotated[list[single], Field(min_length=1, max_length=most, fail_fast=True)]
    wrapped = BeforeValidator(
        lambda value: [value] if is_single(value) else value, json_schema_input_type=single | many
    )
    return Annotated[many, wrapped]


def _check_ray(default: PredictsAt, ray: list[float]) -> list[float]:
    if abs(sum(ray) - 1) > CLOSE:
        raise ValueError("a ray sums to 1")
    if default.frozen and default.ray is not None and not np.allclose(ray, default.ray, atol=CLOSE):
        raise ValueError("this run is frozen at another ray")
    return ray


def make_criteria_model(names: Sequence[str]) -> type[BaseModel]:
    """Build the model of the body of ``/choose``: the arguments of `run.choose`.

    Args:
        names: the objectives and metrics.
    """
    # an enum in the description only: `run.choose` itself refuses a wrong name, with a suggestion
    name: Any = Annotated[str, Field(json_schema_extra={"enum": list(names)})]
    bounds, weights = dict[name, Finite], list[Finite]
    by_name, by_index = "an object of names and numbers", "a list with a number per objective"
    named, truth = "the name of an objective or a metric", "true or false"
    count: Any = Annotated[int, Field(ge=2, le=MAX_EVALUATIONS)]
    fields: dict[str, tuple[Any, str]] = {
        "max": (bounds, by_name),
        "min": (bounds, by_name),
        "minimize": (name | bounds, f"{named}, or an object of names and weights"),
        "maximize": (name, named),
        "knee": (bool, truth),
        "weights": (weights, by_index),
        "near": (weights | bounds, f"{by_index}, or {by_name}"),
        "allow_constant": (bool, truth),
        "confidence": (Finite, "a number above 0.5 and below 1"),
        "threshold": (PROBABILITY, "a number above 0 and below 1"),
        "evaluations": (count, f"a whole number from 2 to {MAX_EVALUATIONS}"),
    }
    optional: dict[str, Any] = {
        # `None` leaves a criterion out, as in Python
        key: (kind | None, Field(None, description=about))
        for key, (kind, about) in fields.items()
    }
    return create_model("Criteria", __config__=STRICT, **optional)
