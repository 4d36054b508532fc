"""Pydantic models of files: strict fields with limits, and one sentence for the first mistake.

A file is checked against its model before anything in it is used. This module imports pydantic, so
it is imported where a file is read.
"""

import reprlib
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from paretocosmos.errors import DataError, ParetoCosmosError, check_choice, unknown
from paretocosmos.io.formatting import sanitize_line
from paretocosmos.io.schema import MOST, SETTINGS, SHOWS, VALUES

One = TypeVar("One")


class Model(BaseModel):
    """A part of a file, strictly typed; unknown keys are ignored."""

    # strict, so that "1" is no number; a newer version may write keys that are not known here
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


def limit_entries(names: object) -> object:
    """Raise for too many names before each is validated, which may be a mistake each."""
    if isinstance(names, dict) and len(names) > SETTINGS:
        raise ValueError(f"at most {SETTINGS} entries, found {len(names)}")
    return names


def _limit_size(shape: list[int]) -> list[int]:
    if prod(shape) > VALUES:
        raise ValueError(f"at most {VALUES} values in all, found {prod(shape)}")
    return shape


def _limit_lists(settings: dict[str, Any]) -> dict[str, Any]:
    for name, value in settings.items():
        if isinstance(value, dict | list) and len(value) > SETTINGS:
            raise ValueError(
                f"`{name[:60]}` must have at most {SETTINGS} entries, found {len(value)}"
            )
    return settings


# `fail_fast`: a list is refused at its first wrong entry, not after a million of them.
Some = Annotated[list[One], Field(max_length=MOST, fail_fast=True)]
NonEmpty = Annotated[list[One], Field(min_length=1, max_length=MOST, fail_fast=True)]

ByName = Annotated[dict[str, One], BeforeValidator(limit_entries)]

# Away from the largest float64, so that sums of a few stay finite.
Number = Annotated[float, Field(gt=-1e300, lt=1e300)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Size = Annotated[int, Field(ge=1, le=MOST)]
Count = Annotated[int, Field(ge=1, le=10**9)]
# What a signed 64-bit number can hold.
Large = Annotated[int, Field(ge=0, le=2**63 - 1)]
Shape = Annotated[
    list[Count], Field(min_length=1, max_length=8, fail_fast=True), AfterValidator(_limit_size)
]
Settings = Annotated[ByName[Any], AfterValidator(_limit_lists)]
_check_show = AfterValidator(partial(check_choice, "value", known=SHOWS))
Shows = Annotated[str, Field(max_length=200), _check_show]


Place = tuple[str | int, ...]

MISTAKES = 1000  # that are listed one by one: a million would be as many objects
LONGEST = 60  # letters of a quoted value

# Sentences by the names of pydantic's errors, with the values in their context.
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


def check_content(
    model: type[BaseModel], content: object, refuse: Callable[[str], ParetoCosmosError]
) -> None:
    """Raise if the content of a file does not fit its model.

    Args:
        model: of that kind of file.
        content: of the file.
        refuse: makes an error of the first mistake.
    """
    try:
        model.model_validate(content)
    except ValidationError as error:
        # the first one, since others often follow from it
        raise refuse(mistakes_in(error, model)[0][1]) from error


def mistakes_in(error: ValidationError, model: type[BaseModel]) -> list[tuple[Place, str]]:
    """Return every mistake: its location, and a sentence without its end.

    Args:
        error: of the validation.
        model: the model that was violated, whose names are suggested.
    """
    if error.error_count() > MISTAKES:
        return [((), f"it is wrong in {error.error_count():,} places")]
    details = error.errors(include_url=False)
    return [(detail["loc"], _describe_mistake(detail, model)) for detail in details]


def _describe_mistake(detail: Any, model: type[BaseModel]) -> str:
    kind, location = detail["type"], detail["loc"]
    path = path_of(location)
    if kind == "missing":
        return f"`{path}` is missing"
    if kind == "extra_forbidden":
        *outer, last = location
        fields = _find_model(model, tuple(outer)).model_fields
        within = f"`{path_of(tuple(outer))}`: " if outer else ""
        return sanitize_line(f"{within}{unknown('key', str(last)[:LONGEST], fields)}")
    if kind == "value_error":
        message = sanitize_line(str(detail["ctx"]["error"]))
        return f"`{path}`: {message}" if path else message
    subject = f"`{path}`" if path else "it"
    # how pydantic marks a mistake in a key instead of its value
    if location and location[-1] == "[key]":
        subject = f"a name in `{path_of(location[:-2])}`"
    # pydantic's own words, for mistakes that hardly ever occur
    rule = f"is invalid ({sanitize_line(detail['msg'])})"
    if kind in RULES:
        # pydantic puts expected literals into single quotes
        rule = RULES[kind].format(**detail.get("ctx", {})).replace("'", "`")
    return f"{subject} {rule}, found {shorten(detail['input'])}"


def _find_model(model: type[BaseModel], location: Place) -> type[BaseModel]:
    """Return the model of a part of a file, in a list or by itself."""
    for name in location:
        if isinstance(name, str):
            kind = model.model_fields[name].annotation
            # the field is of the model itself, or of a list or union with it
            classes = [option for option in (kind, *get_args(kind)) if isinstance(option, type)]
            model = next(option for option in classes if issubclass(option, BaseModel))
    return model


def path_of(location: Place) -> str:
    """Write a location in a file.

    >>> path_of(("grid", 0, "settings", "epochs"))
    'grid[0].settings.epochs'
    """
    parts = (
        f"[{key}]" if isinstance(key, int) else f".{sanitize_line(key)[:LONGEST]}"
        for key in location
    )
    return "".join(parts).removeprefix(".")


def shorten(value: object) -> str:
    """Write a value, shortened to one line.

    >>> shorten(["x"] * 1000)
    "['x', 'x', 'x', 'x', 'x', 'x', ...]"
    """
    try:
        # `reprlib` writes only the beginning of a huge value
        text = sanitize_line(_SHORT.repr(value))
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = LONGEST


def check_part(model: type[BaseModel], content: Mapping[str, Any], noun: str) -> None:
    """Raise if content is not a front, or not a table.

    Args:
        model: of such a part.
        content: a mapping, as of JSON.
        noun: "front" or "table", for the message.
    """
    keys = ", ".join(model.model_fields)
    check_content(
        model,
        # in strict mode a mapping must be a dict
        dict(content) if isinstance(content, Mapping) else content,
        lambda mistake: DataError(f"this is not a {noun}: {mistake}; a {noun} has the keys {keys}"),
    )


class FrontFile(Model):
    """The content of a front: N rays of J objectives, with a value or none of each."""

    rays: NonEmpty[NonEmpty[Finite]]
    values: NonEmpty[NonEmpty[Finite | None]]
    names: NonEmpty[str]
    reference: NonEmpty[Finite]
    metrics: ByName[NonEmpty[Finite | None]]
    split: str
    provenance: dict[str, Any]

    @model_validator(mode="after")
    def _fits(self) -> "FrontFile":
        many, wide = len(self.rays), len(self.names)
        for key, rows in (("rays", self.rays), ("values", self.values)):
            if len(rows) != many or any(len(row) != wide for row in rows):
                raise ValueError(f"`{key}` are {many} rows of {wide}, one entry per name")
        if len(self.reference) != wide:
            raise ValueError(f"`reference` must have {wide} entries, found {len(self.reference)}")
        for name, numbers in self.metrics.items():
            if len(numbers) != many:
                raise ValueError(
                    f"`metrics.{sanitize_line(name)[:60]}` has a number for each of {many} rays"
                )
        return self


class TableFile(Model):
    """The content of a `Table`: columns, and a mean and a scale for every feature."""

    numeric: dict[str, Finite]
    flagged: Some[str]
    categorical: dict[str, Some[str]]
    mean: Some[Finite]
    scale: Some[Finite]

    @model_validator(mode="after")
    def _fits(self) -> "TableFile":
        if not {*self.flagged} <= self.numeric.keys():
            raise ValueError("`flagged` are columns that `numeric` has")
        categories = sum(map(len, self.categorical.values()))
        wide = len(self.numeric) + len(self.flagged) + categories
        # features are divided by their scale
        if not len(self.mean) == len(self.scale) == wide or 0 in self.scale:
            raise ValueError(
                f"`mean` and `scale`, which is not 0, have an entry for each of its {wide} "
                f"features, found {len(self.mean)} and {len(self.scale)}"
            )
        return self
