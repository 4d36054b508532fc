"""The TOML file of a recipe: its schema, and its mistakes in one answer."""

import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from math import prod
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from paretocosmos import registry
from paretocosmos.config.settings import get_pairs
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.files import check_depth, one_line
from paretocosmos.io.formatting import sanitize_line
from paretocosmos.io.schema import SETTINGS
from paretocosmos.io.schema.models import ByName, Large, Model, NonEmpty, Shows, mistakes_in
from paretocosmos.io.trust import check_names, check_trust


def _check_distinct(values: list[Any]) -> list[Any]:
    # an entry twice is more likely a slip than a wish to train it twice
    for value, count in Counter(values).items():
        if count > 1:
            raise ValueError(f"each entry once, found `{value}` {count} times")
    return values


def _check_tables(grids: object) -> object:
    if not (isinstance(grids, list) and grids):
        raise ValueError("a table or several: begin each with [[grid]]")
    return grids


Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(pattern=r"\S")]  # a title of spaces would leave a heading empty
# The limit keeps a hostile or mistaken file from asking for millions of checks.
Few = Field(min_length=1, max_length=SETTINGS)
Names = Annotated[list[Name], Few, AfterValidator(_check_distinct)]
Seeds = Annotated[list[Large], Few, AfterValidator(_check_distinct)]
Protocols = Annotated[list[Literal["paper", "clean"]], Few, AfterValidator(_check_distinct)]


# Unknown keys are mistakes here: a misspelt `setings` would silently train the defaults.
class Grid(Model, extra="forbid"):
    """A grid of problems, protocols, methods and varied settings: an experiment for each point."""

    preset: Literal["paper", "default"] = "paper"
    problems: Names
    protocols: Protocols | None = None
    methods: Names
    seeds: Seeds | None = None
    settings: ByName[Any] = Field(default_factory=dict)
    vary: ByName[NonEmpty[Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_count(self) -> "Grid":
        # counted before anything is built: a few lines can ask for billions
        lists = (self.problems, self.protocols or "-", self.methods, *self.vary.values())
        count = prod(len(entries) for entries in lists)
        if count > SETTINGS:
            raise ValueError(f"at most {SETTINGS} experiments, found {count}")
        return self


class RecipeFile(Model, extra="forbid"):
    """Content of a recipe's file."""

    title: Text
    section: Text
    shows: Shows
    seeds: Seeds
    grid: Annotated[list[Grid], Field(max_length=SETTINGS), BeforeValidator(_check_tables)]


def parse_recipe(file: str, text: str, trust: Collection[str] = ()) -> RecipeFile:
    """Parse and check a recipe; mistakes in its form are reported at once, then those of names.

    Args:
        file: its name in an error.
        text: TOML.
        trust: packages and modules whose code it may name.
    """
    try:
        content = tomllib.loads(text)
        check_depth(content)
        str(content)  # which refuses a number of thousands of digits
    except (RecursionError, ValueError) as error:
        why = one_line(error)
        raise ConfigurationError(
            f"`{file}` is not TOML: {why[:1].lower()}{why[1:]}; strings need quotes, lists need "
            "brackets"
        ) from error
    try:
        recipe = RecipeFile.model_validate(content)
    except ValidationError as error:
        raise _describe_mistakes(
            file, [text for _, text in mistakes_in(error, RecipeFile)]
        ) from error
    third_party = [
        (kind, name)
        for grid in recipe.grid
        for kind, names in (("problems", grid.problems), ("methods", grid.methods))
        for name in names
        if ":" in name
    ]
    # nothing that a file names is imported before it is trusted
    check_names(third_party, file=file, trust=check_trust(trust))
    mistakes = [
        text for index, grid in enumerate(recipe.grid) for text in _find_mistakes(grid, index)
    ]
    if mistakes:
        raise _describe_mistakes(file, list(map(sanitize_line, mistakes)))
    return recipe


def _describe_mistakes(file: str, mistakes: Sequence[str]) -> ConfigurationError:
    count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return ConfigurationError(f"`{file}` has {count}: {'; '.join(mistakes)}")


def _find_mistakes(grid: Grid, index: int) -> Iterator[str]:
    """Yield unknown names, and settings that are given twice.

    Other mistakes in settings are found by the experiment that has them, before it trains.
    """
    for kind, names, more in (
        ("problems", grid.problems, ()),
        ("methods", grid.methods, get_pairs()),
    ):
        for error in _find_unknown(kind, names, more):
            yield f"`grid[{index}].{kind}`: {error}"
    for key in sorted(grid.settings.keys() & grid.vary.keys()):
        yield f"`grid[{index}].vary.{key}`: it is in `settings` too, leave one out"


def _find_unknown(
    kind: str, names: Sequence[str], more: Collection[str]
) -> Iterator[ConfigurationError]:
    """Yield the errors of names that are not registered, or cannot be imported."""
    builtin = [*registry.names(kind), *more]
    for name in names:
        try:
            if ":" in name:
                registry.find(kind, name)
            elif name not in builtin:
                raise unknown(kind.removesuffix("s"), name, builtin)
        except ConfigurationError as error:
            yield error
