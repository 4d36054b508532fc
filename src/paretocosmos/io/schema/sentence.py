"""From what pydantic found to one sentence of ours: the field, the rule, what was found."""

import reprlib
from collections.abc import Callable
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from paretocosmos.errors import ParetoCosmosError, unknown
from paretocosmos.io.formatting import sanitize_line

__all__ = ["Place", "mistakes_in", "path_of", "shown", "validated"]

Place = tuple[str | int, ...]
File = TypeVar("File", bound=BaseModel)

MISTAKES = 1000  # that are looked at: of a million, each would be an object of its own
LONGEST = 60  # letters of what was found

# By the names of pydantic's errors; what it was compared with goes in.
RULES = {
    "string_type": "must be text",
    "string_unicode": "must be text",
    "string_too_long": "must have at most {max_length} characters",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "literal_error": "must be {expected}",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
}


def validated(
    model: type[File], content: object, refusal: Callable[[str], ParetoCosmosError]
) -> File:
    """What a file holds, if it fits its model.

    Args:
        model: of that kind of file.
        content: what was read.
        refusal: makes an error of the first mistake.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise refusal(mistakes_in(error, model)[0][1]) from error


def mistakes_in(error: ValidationError, model: type[BaseModel]) -> list[tuple[Place, str]]:
    """Every mistake: where it is, and a sentence without its end.

    Args:
        error: of the validation.
        model: what was validated against, for the names it knows.
    """
    if error.error_count() > MISTAKES:
        return [((), f"it is wrong in {error.error_count():,} places")]
    return [(one["loc"], _sentence(one, model)) for one in error.errors(include_url=False)]


def _sentence(found: Any, model: type[BaseModel]) -> str:
    kind, place = found["type"], found["loc"]
    path = path_of(place)
    if kind == "missing":
        return f"`{path}` is missing"
    if kind == "extra_forbidden":
        *outer, last = place
        known = _model_at(model, tuple(outer)).model_fields
        within = f"`{path_of(tuple(outer))}`: " if outer else ""
        return sanitize_line(f"{within}{unknown('key', str(last)[:LONGEST], known)}")
    if kind == "value_error":
        said = sanitize_line(str(found["ctx"]["error"]))
        return f"`{path}`: {said}" if path else said
    what = f"`{path}`" if path else "it"
    if place and place[-1] == "[key]":
        what = f"a name in `{path_of(place[:-2])}`"
    rule = f"is invalid ({sanitize_line(found['msg'])})"
    if kind in RULES:
        rule = RULES[kind].format(**found.get("ctx", {})).replace("'", "`")
    return f"{what} {rule}, found {shown(found['input'])}"


def _model_at(model: type[BaseModel], place: Place) -> type[BaseModel]:
    """The model of a part of a file, in a list of such or by itself."""
    for name in place:
        if isinstance(name, str):
            kind = model.model_fields[name].annotation
            inner = [one for one in (kind, *get_args(kind)) if isinstance(one, type)]
            model = next(one for one in inner if issubclass(one, BaseModel))
    return model


def path_of(place: Place) -> str:
    """A place in a file, in words.

    >>> path_of(("grid", 0, "settings", "epochs"))
    'grid[0].settings.epochs'
    """
    parts = (
        f"[{key}]" if isinstance(key, int) else f".{sanitize_line(key)[:LONGEST]}" for key in place
    )
    return "".join(parts).removeprefix(".")


def shown(value: object) -> str:
    """What was found, shortened to one line.

    >>> shown(["x"] * 1000)
    "['x', 'x', 'x', 'x', 'x', 'x', ...]"
    """
    try:
        text = sanitize_line(_SHORT.repr(value))
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = LONGEST
