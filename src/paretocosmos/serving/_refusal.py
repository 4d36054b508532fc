"""From the bytes of a body to what its model has, or to a refusal of one sentence."""

import json
from collections.abc import Collection
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException

__all__ = ["read_json", "shown"]

Asked = TypeVar("Asked", bound=BaseModel)
# Letters of what a client sent, in a sentence that answers it, and mistakes that are looked at.
LONGEST, MISTAKES = 60, 1000


def shown(value: object) -> str:
    """A value of a client's JSON in few letters, however large it is.

    >>> shown({"knee": None})
    '{"knee": null}'
    """
    text = json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def read_json(model: type[Asked], body: bytes, *, columns: Collection[str] = ()) -> Asked:
    """What a body says; whatever is wrong with it is refused.

    Args:
        model: of the body, each field described as the rest of "`field` must be ...".
        body: the JSON.
        columns: of the rows in `inputs`, where they are a table's.
    """
    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        why = f"the body must be JSON ({error})"
        raise HTTPException(400, f"{why}; write null for a missing value") from error
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _refusal(error, model, columns) from error


def _refusal(
    error: ValidationError, model: type[BaseModel], columns: Collection[str]
) -> HTTPException:
    if error.error_count() > MISTAKES:
        return HTTPException(422, f"the body is wrong in {error.error_count():,} places: see /docs")
    mistakes: list[Any] = list(error.errors(include_url=False))
    first = min(mistakes, key=lambda one: len(one["loc"]))  # the one nearest to the top
    place, kind, known = first["loc"], first["type"], model.model_fields
    name, found, status = place[0] if place else "", shown(first["input"]), 422
    if not place:
        why = f"the body must be a JSON object, found {found}"
    elif kind == "extra_forbidden":
        why = f"unknown key {shown(name)}; known: {', '.join(known)}"
    elif kind == "missing" and len(place) == 1:
        why = f"the body needs {' and '.join(f'`{key}`' for key in known)}, found no `{name}`"
    elif kind == "too_long" and place == ("inputs",):
        status, limits = 413, first["ctx"]
        found = f"found {limits['actual_length']:,}: send several"
        why = f"a request can have at most {limits['max_length']:,} rows, {found}"
    elif len(place) > 2 and place[2] in columns:
        lacking = [f"`{one['loc'][2]}`" for one in mistakes if one["type"] == "missing"]
        why = f"row {place[1]} {_of_row(first, lacking, columns)}"
    else:
        where = f" in row {place[1]}" if len(place) > 1 and "inputs" in known else ""
        why = f"`{name}` must be {known[name].description}, found {found}{where}"
    return HTTPException(status, why)


def _of_row(mistake: Any, lacking: list[str], columns: Collection[str]) -> str:
    if not lacking:
        rule = "one category" if mistake["type"] == "string_type" else "a finite number"
        column, found = mistake["loc"][2], shown(mistake["input"])
        return f"needs {rule} or null in the column `{column}`, found {found}"
    others = ", ".join([shown(name) for name in mistake["input"] if name not in columns][:10])
    also = f"; not known here: {others}" if others else ""
    named = ", ".join(lacking[:20]) + ", ..." * (len(lacking) > 20)
    return f"lacks {named}: name every column, with null where a value is missing{also}"
