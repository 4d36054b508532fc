"""What OpenAPI says of the bodies: as this run has them, with its columns and objectives."""

import math
from collections.abc import Callable
from typing import Any

from paretocosmos.runs.run import Run
from paretocosmos.serving._criteria import EVALUATIONS
from paretocosmos.serving._settings import Settings

__all__ = ["answered", "choose_schemas", "posted", "predict_schemas"]

Schema = dict[str, Any]
# Categories of a column that are listed; further ones would make the description unreadable.
LISTED = 20
NUMBER: Schema = {"type": "number"}
ERROR: Schema = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}
REFUSALS = {
    400: "No JSON.",
    401: "No token.",
    408: "The body did not arrive in time.",
    413: "Too many bytes or rows.",
    415: "Another type than JSON.",
    421: "Another name than localhost, without a token.",
    422: "What the JSON says cannot be answered; the sentence says why.",
    429: "Too much is waiting: try again.",
    503: "It took too long.",
}


def answered(schema: Schema, *, refusals: tuple[int, ...] = (401, 421)) -> dict[int | str, Any]:
    """The answers of an operation by status."""
    found: dict[int | str, Any] = {
        200: {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
    }
    for status in refusals:
        content = {"application/json": {"schema": ERROR}}
        found[status] = {"description": REFUSALS[status], "content": content}
    return found


def posted(
    handler: Callable[..., object], asked: Schema, answer: Schema, example: object
) -> Schema:
    """The description of a handler that has a body."""
    said = answered(answer, refusals=(400, 401, 408, 413, 415, 421, 422, 429, 503))
    return {
        "post": {
            "summary": handler.__name__.capitalize(),
            "description": handler.__doc__,
            "operationId": handler.__name__,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": asked, "example": example}},
            },
            "responses": {str(status): what for status, what in said.items()},
        }
    }


def predict_schemas(run: Run, settings: Settings) -> tuple[Schema, Schema, object]:
    """Of `/predict`: the body, the answer, and a body as an example."""
    ray = _ray(run)
    row, example = _row(run)
    several = {"type": "array", "items": row, "minItems": 1, "maxItems": settings.max_rows}
    asked = {
        "type": "object",
        "properties": {
            "inputs": {"anyOf": [row, several]},
            "preference": {"anyOf": [ray, {"type": "array", "items": ray, "minItems": 1}]},
        },
        "required": ["inputs", "preference"],
        "additionalProperties": False,
    }
    said: Schema = {
        "preference": {"description": "The ray that answered, or one for each row."},
        "warnings": {"type": "array", "items": {"type": "string"}},
    }
    if run.table is not None:
        text = {"type": ["string", "null"]}
        said["probabilities"] = {"type": "array", "items": NUMBER}
        said["decisions"] = {"type": "array", "items": {"type": "boolean"}}
        said |= {"target": text, "positive": text}
    else:
        said["outputs"] = {"description": "What the network gives for each row, by head."}
    answer = {"type": "object", "properties": said, "required": sorted(said)}
    even = [1 / run.front.objectives] * run.front.objectives
    return asked, answer, {"inputs": [example], "preference": even}


def choose_schemas(run: Run) -> tuple[Schema, Schema, object]:
    """Of `/choose`: the body, the answer, and a body as an example."""
    names = [*run.front.names, *run.front.metrics]
    bounds = {
        "type": "object",
        "properties": dict.fromkeys(names, NUMBER),
        "additionalProperties": False,
    }
    weights = {**_ray(run), "description": "How much each objective matters."}
    name, truth = {"type": "string", "enum": names}, {"type": "boolean"}
    asked = {
        "type": "object",
        "properties": {
            "max": bounds,
            "min": bounds,
            "minimize": name,
            "maximize": name,
            "knee": truth,
            "weights": weights,
            "near": {"anyOf": [bounds, weights]},
            "allow_constant": truth,
            "evaluations": {"type": "integer", "minimum": 2, "maximum": EVALUATIONS},
        },
        "additionalProperties": False,
    }
    count = {"type": "integer"}
    answer = {
        "type": "object",
        "properties": {
            "ray": _ray(run),
            "val": {"type": "object"},
            "test": {"type": ["object", "null"]},
            "evaluations": count,
            "note": {"type": "string", "description": "Where the data could not be had."},
        },
        "required": ["ray", "val", "test", "evaluations"],
    }
    return asked, answer, {"knee": True}


def _ray(run: Run) -> Schema:
    count = run.front.objectives
    part = {"type": "number", "minimum": 0, "maximum": 1}
    about = f"Sums to 1: {', '.join(run.front.names)}."
    limits = {"minItems": count, "maxItems": count}
    return {"type": "array", "items": part, **limits, "description": about}


def _row(run: Run) -> tuple[Schema, object]:
    """The schema of a row, and an example of one."""
    table = run.table
    if table is None:
        row: Schema = NUMBER
        example: object = 0.0
        for size in reversed(run.record["input_shape"]):
            row = {"type": "array", "items": row, "minItems": size, "maxItems": size}
            example = [example] * size
        small = math.prod(run.record["input_shape"]) <= 100
        return row, example if small else "numbers in the shape of the schema"
    columns: Schema = {name: {"type": ["number", "null"]} for name in table.numeric}
    for name, labels in table.categorical.items():
        known = ", ".join(labels[:LISTED]) + ", ..." * (len(labels) > LISTED)
        kinds = ["string", "number", "boolean", "null"]
        columns[name] = {"type": kinds, "description": f"Known: {known}."}
    some = {name: round(fill, 6) for name, fill in table.numeric.items()}
    first = {name: labels[0] for name, labels in table.categorical.items()}
    row = {"type": "object", "properties": columns, "required": list(columns)}
    return row, some | first
