"""What fields hold, of whatever file: strict kinds, each with its limits."""

from math import prod
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from paretocosmos.errors import unknown
from paretocosmos.io.schema import MOST, SETTINGS, SHOWS, VALUES

__all__ = [
    "LATER",
    "ByName",
    "Count",
    "FileName",
    "Finite",
    "Large",
    "Model",
    "NonEmpty",
    "Number",
    "Settings",
    "Shape",
    "Shows",
    "Size",
    "Some",
    "few",
    "lacking",
]

One = TypeVar("One")

LATER: Any = object()
"""The default of a field that only a finished thing has to have; see `lacking`."""


class Model(BaseModel):
    """A part of a file: true is no number, "3" is none, and what is not asked for is let be."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


def lacking(part: Model) -> None:
    """Refuse a finished thing that lacks a field."""
    for name in type(part).model_fields:
        if getattr(part, name) is LATER:
            raise ValueError(f"`{name}` is missing")


def few(names: object) -> object:
    """Refuse too many names before each of them is looked at, and each may be a mistake."""
    if isinstance(names, dict) and len(names) > SETTINGS:
        raise ValueError(f"at most {SETTINGS} entries, found {len(names)}")
    return names


def _drawn(value: str) -> str:
    if value not in SHOWS:
        raise unknown("value", value, SHOWS)
    return value


def _small(shape: list[int]) -> list[int]:
    if prod(shape) > VALUES:
        raise ValueError(f"at most {VALUES} values in all, found {prod(shape)}")
    return shape


def _short(settings: dict[str, Any]) -> dict[str, Any]:
    for name, value in settings.items():
        if isinstance(value, dict | list) and len(value) > SETTINGS:
            raise ValueError(
                f"`{name[:60]}` must have at most {SETTINGS} entries, found {len(value)}"
            )
    return settings


# A list with a wrong entry is refused at the first, not after a million of them.
Some = Annotated[list[One], Field(max_length=MOST, fail_fast=True)]
NonEmpty = Annotated[list[One], Field(min_length=1, max_length=MOST, fail_fast=True)]

ByName = Annotated[dict[str, One], BeforeValidator(few)]

Number = Annotated[float, Field(gt=-1e300, lt=1e300)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
FileName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^/\\\x00-\x1f]+$")]
Size = Annotated[int, Field(ge=1, le=MOST)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Large = Annotated[int, Field(ge=0, le=2**63 - 1)]
Shape = Annotated[
    list[Count], Field(min_length=1, max_length=8, fail_fast=True), AfterValidator(_small)
]
Settings = Annotated[ByName[Any], AfterValidator(_short)]
Shows = Annotated[str, Field(max_length=200), AfterValidator(_drawn)]
