"""What bodies and answers hold, as pydantic checks them and OpenAPI describes them."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from paretocosmos.io.schema.models import Finite
from paretocosmos.pareto.rays import CLOSE
from paretocosmos.serving._rows import Rows

__all__ = ["Chosen", "Outputs", "Probabilities", "Refusal", "criteria_model", "question_model"]

STRICT = ConfigDict(strict=True, extra="forbid")
# Rays that one request to choose may ask for.
EVALUATIONS = 100
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
    """What a network says of the rows of a table."""

    probabilities: list[float]
    decisions: list[bool] = Field(description="Whether the probability is above the threshold.")
    threshold: float
    target: str | None
    positive: str | None


class Outputs(_Prediction):
    """What a network gives for each row, by head where it has several."""

    outputs: Any
    probabilities: Any = Field(None, description="Of heads whose outputs are logits of classes.")


class Chosen(BaseModel):
    """A ray, and what it gives."""

    ray: list[float]
    val: dict[str, Any]
    test: dict[str, Any] | None
    evaluations: int
    threshold: float = Field(description="To predict with, beside the ray.")
    asked: dict[str, Any] = Field(description="The criteria, as they were asked for.")
    note: str = Field("", description="Where the data could not be had.")


def question_model(rows: Rows, *, names: Sequence[str], most: int, threshold: float) -> Any:
    """The body of ``/predict``: its `inputs` and `preference` are read as lists, always.

    Args:
        rows: what a row is.
        names: the J objectives.
        most: rows of a request.
        threshold: at which decisions are made if none is given.
    """
    part = Annotated[float, Field(ge=0, allow_inf_nan=False)]
    sizes: dict[str, Any] = {"min_length": len(names), "max_length": len(names), "fail_fast": True}
    ray = Annotated[list[part], Field(**sizes), AfterValidator(_on_simplex)]
    simplex = f"{len(names)} numbers from 0 to 1 that sum to 1 ({', '.join(names)})"
    about = f"one ray for all rows or one for each, {simplex}"

    def is_ray(given: object) -> bool:
        return not (isinstance(given, list) and given and isinstance(given[0], list))

    fields: dict[str, Any] = {
        "inputs": (_several(rows.row, rows.is_one, most), Field(description=rows.rule)),
        "preference": (_several(ray, is_ray, most), Field(description=about)),
    }
    if rows.columns:
        decided = "the probability above which a decision is positive"
        fields["threshold"] = (PROBABILITY, Field(threshold, description=decided))
    return create_model("Question", __config__=STRICT, **fields)


def _several(one: Any, is_one: Callable[[object], bool], most: int) -> Any:
    """The type of one thing or a list of such, which is read as a list."""
    several: Any = Annotated[list[one], Field(min_length=1, max_length=most, fail_fast=True)]
    wrapped = BeforeValidator(
        lambda given: [given] if is_one(given) else given, json_schema_input_type=one | several
    )
    return Annotated[several, wrapped]


def _on_simplex(ray: list[float]) -> list[float]:
    if abs(sum(ray) - 1) > CLOSE:
        raise ValueError("a ray sums to 1")
    return ray


def criteria_model(names: Sequence[str]) -> type[BaseModel]:
    """The body of ``/choose``: arguments of `run.choose`, which checks what they mean.

    Args:
        names: the objectives and metrics.
    """
    name: Any = Annotated[str, Field(json_schema_extra={"enum": list(names)})]
    bounds, weights = dict[name, Finite], list[Finite]
    by_name, by_place = "an object of names and numbers", "a list with a number per objective"
    named, truth = "the name of an objective or a metric", "true or false"
    count: Any = Annotated[int, Field(ge=2, le=EVALUATIONS)]
    fields: dict[str, tuple[Any, str]] = {
        "max": (bounds, by_name),
        "min": (bounds, by_name),
        "minimize": (name, named),
        "maximize": (name, named),
        "knee": (bool, truth),
        "weights": (weights, by_place),
        "near": (weights | bounds, f"{by_place}, or {by_name}"),
        "allow_constant": (bool, truth),
        "confidence": (Finite, "a number above 0.5 and below 1"),
        "threshold": (PROBABILITY, "a number above 0 and below 1"),
        "evaluations": (count, f"a whole number from 2 to {EVALUATIONS}"),
    }
    optional: dict[str, Any] = {
        key: (kind | None, Field(None, description=about)) for key, (kind, about) in fields.items()
    }
    return create_model("Criteria", __config__=STRICT, **optional)
