"""Schemas of a recipe's TOML file and of `cell.json`; names and settings are checked elsewhere."""

from collections import Counter
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from paretocosmos.errors import RunError, unknown
from paretocosmos.io.files import read_json
from paretocosmos.io.schema import CELL, PRESETS, PROTOCOLS, SETTINGS
from paretocosmos.io.schema.models import (
    Large,
    Model,
    NonEmpty,
    Place,
    Settings,
    Shows,
    few,
    mistakes_in,
    shown,
    validated,
)


def check_recipe(content: Mapping[str, Any]) -> tuple["RecipeFile", list[str]]:
    """A recipe and every mistake in its form; with some, the recipe has what can be read of it.

    Args:
        content: of the file.
    """
    try:
        return RecipeFile.model_validate(content), []
    except ValidationError as error:
        mistakes = mistakes_in(error, RecipeFile)
    wrong = [place for place, _ in mistakes]
    readable = [] if {(), ("grid",)} & {*wrong} else content["grid"]
    grids = [_readable(grid, ("grid", at), wrong) for at, grid in enumerate(readable)]
    return RecipeFile.model_construct(grid=grids), [sentence for _, sentence in mistakes]


def _readable(grid: Any, place: Place, wrong: list[Place]) -> "Grid":
    """A grid without what is wrong in it."""
    inside = {one[2] for one in wrong if one[:2] == place and len(one) > 2}
    good = {} if place in wrong else {key: grid[key] for key in grid if key not in inside}
    return Grid.model_construct(**{"problems": [], "methods": []} | good)


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError(f"a text, found {shown(value)}")
    return value


def _protocol(value: str) -> str:
    if value not in PROTOCOLS:
        raise unknown("protocol", value, PROTOCOLS)
    return value


def _preset(value: str) -> str:
    if value not in PRESETS:
        raise unknown("preset", value, PRESETS)
    return value


def _once(names: list[str]) -> list[str]:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"each name once, found `{twice[0]}` twice")
    return names


def _different(seeds: list[int]) -> list[int]:
    if len({*seeds}) < len(seeds):
        raise ValueError(f"different whole numbers, found {shown(seeds)}")
    return seeds


def _tables(grids: object) -> object:
    if not (isinstance(grids, list) and grids):
        raise ValueError("a table or several: begin each with [[grid]]")
    return grids


def _within(value: Any) -> Any:
    """Refuse whole numbers beyond the 64 bits of TOML, some of which Python could not print."""
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("a whole number has at most 64 bits")
    inner = value.values() if isinstance(value, dict) else value
    for one in inner if isinstance(value, dict | list) else ():
        _within(one)
    return value


Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, AfterValidator(_text)]
Value = Annotated[Any, AfterValidator(_within)]
Few = Field(min_length=1, max_length=SETTINGS)
Protocol = Annotated[Name, AfterValidator(_protocol)]
Names = Annotated[list[Name], Few, AfterValidator(_once)]
Seeds = Annotated[list[Large], Few, AfterValidator(_different)]


class Grid(Model, extra="forbid"):
    """Problems by protocols by methods by what is varied: a cell for each."""

    preset: Annotated[Name, AfterValidator(_preset)] = "paper"
    problems: Names
    protocols: Annotated[list[Protocol], Few, AfterValidator(_once)] | None = None
    methods: Names
    seeds: Seeds | None = None
    settings: Annotated[dict[Name, Value], BeforeValidator(few)] = Field(default_factory=dict)
    vary: Annotated[dict[Name, NonEmpty[Value]], BeforeValidator(few)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _not_too_many(self) -> "Grid":
        protocols = 1 if self.protocols is None else len(self.protocols)
        many = len(self.problems) * protocols * len(self.methods)
        many *= prod(map(len, self.vary.values()))
        if many > SETTINGS:
            raise ValueError(f"at most {SETTINGS} cells, found {many}")
        return self


class RecipeFile(Model, extra="forbid"):
    """What a table or a figure is made of."""

    title: Text
    section: Text
    shows: Shows
    seeds: Seeds
    grid: Annotated[list[Grid], Field(max_length=SETTINGS), BeforeValidator(_tables)]


Seconds = Annotated[float, Field(ge=0, lt=1e300)]


class CellFile(Model):
    """What a reproduction keeps of a cell beside its runs."""

    problem: str = ""
    protocol: str | None = None
    method: str = ""
    settings: Settings = Field(default_factory=dict)
    rehearsal: Large | None = None
    error: str | None = None
    seconds: Seconds = 0.0
    share: Seconds = 0.0


def read_cell(folder: Path) -> CellFile:
    """What the cell of a folder says, if anything; damage to it is not worth a refusal."""
    path = folder / CELL
    try:
        content: Mapping[str, Any] = read_json(path) if path.exists() else {}
        return validated(CellFile, content, RunError)
    except RunError:
        return CellFile()
