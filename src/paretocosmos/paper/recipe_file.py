"""The TOML file of a recipe: its schema, and every mistake in it in one answer."""

import itertools
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from paretocosmos import registry
from paretocosmos.config.presets import NETWORKS
from paretocosmos.config.settings import (
    Training,
    get_pairs,
    get_paper_network,
    get_paper_settings,
    split_settings,
)
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.files import check_depth, one_line
from paretocosmos.io.formatting import sanitize_line
from paretocosmos.io.schema import PRESETS, PROTOCOLS, SETTINGS
from paretocosmos.io.schema.models import (
    Large,
    Model,
    NonEmpty,
    Place,
    Shows,
    limit_entries,
    mistakes_in,
    shorten,
)
from paretocosmos.io.trust import check_names, check_trust


def _check_known(kind: str, accepted: Sequence[str]) -> AfterValidator:
    """Return a validator that refuses values other than the accepted ones."""

    # a closure over `kind`, since pydantic passes a validator nothing but the value
    def check(value: str) -> str:
        if value not in accepted:
            raise unknown(kind, value, accepted)
        return value

    return AfterValidator(check)


def _check_text(value: str) -> str:
    # a title of spaces would leave a heading empty
    if not value.strip():
        raise ValueError(f"a text, found {shorten(value)}")
    return value


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


def _check_integers(value: Any) -> Any:
    """Refuse whole numbers beyond the 64 bits of TOML, some of which Python could not print."""
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("a whole number has at most 64 bits")
    # lists and tables may nest; their depth was checked when the file was parsed
    inner = value.values() if isinstance(value, dict) else value
    for entry in inner if isinstance(value, dict | list) else ():
        _check_integers(entry)
    return value


Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, AfterValidator(_check_text)]
Value = Annotated[Any, AfterValidator(_check_integers)]
# The limit keeps a hostile or mistaken file from asking for millions of checks.
Few = Field(min_length=1, max_length=SETTINGS)
Protocol = Annotated[Name, _check_known("protocol", PROTOCOLS)]
Names = Annotated[list[Name], Few, AfterValidator(_check_distinct)]
Seeds = Annotated[list[Large], Few, AfterValidator(_check_distinct)]


# Unknown keys are mistakes here: a misspelt `setings` would silently train the defaults.
class Grid(Model, extra="forbid"):
    """A grid of problems, protocols, methods and varied settings: an experiment for each point."""

    preset: Annotated[Name, _check_known("preset", PRESETS)] = "paper"
    problems: Names
    protocols: Annotated[list[Protocol], Few, AfterValidator(_check_distinct)] | None = None
    methods: Names
    seeds: Seeds | None = None
    settings: Annotated[dict[Name, Value], BeforeValidator(limit_entries)] = Field(
        default_factory=dict
    )
    vary: Annotated[dict[Name, NonEmpty[Value]], BeforeValidator(limit_entries)] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _check_count(self) -> "Grid":
        # counted before anything is built: a few lines can ask for billions
        lists = (self.problems, self.protocols or [""], self.methods, *self.vary.values())
        count = prod(map(len, lists))
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
    """Parse and check a recipe; every mistake in it is reported at once.

    Args:
        file: its name in an error.
        text: TOML.
        trust: packages and modules whose code it may name.
    """
    try:
        content = tomllib.loads(text)
        check_depth(content)
    except (RecursionError, ValueError) as error:  # ValueError: a number of too many digits, too
        why = one_line(error)
        raise ConfigurationError(
            f"`{file}` is not TOML: {why[:1].lower()}{why[1:]}; strings need quotes, lists need "
            "brackets"
        ) from error
    # a recipe with mistakes in its form is checked as far as it can be read
    recipe, mistakes = _validate_form(content)
    # nothing that a file names is imported before it is trusted
    check_names(_list_third_party(recipe.grid), file=file, trust=check_trust(trust))
    for index, grid in enumerate(recipe.grid):
        mistakes += map(sanitize_line, _find_mistakes(grid, index))
    mistakes += map(sanitize_line, _find_duplicates(recipe.grid))
    if mistakes:
        count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise ConfigurationError(f"`{file}` has {count}: {'; '.join(mistakes)}")
    return recipe


def _validate_form(content: Mapping[str, Any]) -> tuple[RecipeFile, list[str]]:
    """Return a recipe and the mistakes in its form; with some, it has what can be read of it."""
    try:
        return RecipeFile.model_validate(content), []
    except ValidationError as error:
        mistakes = mistakes_in(error, RecipeFile)
    # a place is the path to a value, such as ("grid", 0, "methods")
    places = [path for path, _ in mistakes]
    readable = [] if {(), ("grid",)} & {*places} else content["grid"]
    grids = [_drop_mistakes(grid, ("grid", index), places) for index, grid in enumerate(readable)]
    # `model_construct` does not validate, so that a grid may lack what was wrong
    return RecipeFile.model_construct(grid=grids), [sentence for _, sentence in mistakes]


def _drop_mistakes(grid: Any, path: Place, mistakes: list[Place]) -> Grid:
    """Return a grid without the keys that have mistakes, so that the others can be checked."""
    keys = {mistake[2] for mistake in mistakes if mistake[:2] == path and len(mistake) > 2}
    # a mistake in the grid as a whole, such as too many experiments, leaves nothing to check
    correct = {} if path in mistakes else {key: grid[key] for key in grid if key not in keys}
    return Grid.model_construct(**{"problems": [], "methods": []} | correct)


def _list_third_party(grids: Sequence[Grid]) -> Iterator[tuple[str, str]]:
    """Yield the third-party problems and methods that a recipe names."""
    for grid in grids:
        for kind, names in (("problems", grid.problems), ("methods", grid.methods)):
            yield from ((kind, name) for name in names if ":" in name)


def _find_mistakes(grid: Grid, index: int) -> Iterator[str]:
    """Yield unknown names, settings that are not accepted, and settings that are given twice."""
    usable: dict[str, list[str]] = {"problems": [], "methods": []}
    for key, names, more in (
        ("problems", grid.problems, ()),
        ("methods", grid.methods, get_pairs()),
    ):
        builtin = [*registry.names(key), *more]
        # a name that is wrong is reported once, and left out of the checks of settings below
        for name in names:
            try:
                if ":" in name:
                    registry.find(key, name)
                elif name not in builtin:
                    raise unknown(key.removesuffix("s"), name, builtin)
                usable[key].append(name)
            except ConfigurationError as error:
                yield f"`grid[{index}].{key}`: {error}"
    settings = [(f"settings.{key}", key, value) for key, value in grid.settings.items()]
    settings += [(f"vary.{key}", key, v) for key, values in grid.vary.items() for v in values]
    mistakes: dict[str, str] = {}  # each with the first experiment that has it
    # a setting may fit one method and not another, so every pair is tried
    experiments = itertools.product(usable["problems"], usable["methods"])
    for (problem, method), (path, key, value) in itertools.product(experiments, settings):
        for mistake in _find_setting_mistakes(grid.preset, problem, method, key, value):
            sentence = f"`grid[{index}].{path}` of `{method}` on `{problem}`: {mistake}"
            mistakes.setdefault(f"{path} {mistake}", sentence)
    yield from mistakes.values()
    for key in sorted(grid.settings.keys() & grid.vary.keys()):
        yield f"`grid[{index}].vary.{key}`: it is in `settings` too, leave one out"


def _find_setting_mistakes(
    preset: str, problem: str, method: str, key: str, value: Any
) -> Iterator[str]:
    """Check that a setting is one of the problem, the method, the network or the training."""
    pair = get_pairs().get(method)
    # a pair is a method with a conditioning, under a name of the paper
    method_class = registry.find("methods", method if pair is None else pair[0])
    owners = {
        "training": Training,
        "method": method_class,
        "problem": registry.find("problems", problem),
    }
    network = {
        setting
        for role, kind in (("backbone", "backbones"), ("conditioning", "conditioning"))
        for name in _list_candidates(preset, problem, role, pair)
        for setting in registry.parameters(registry.find(kind, name))
    }
    # a key may name its owner, as in `method.alpha`
    name = key.rpartition(".")[2]
    parameters = {name for owner in owners.values() for name in registry.parameters(owner)}
    if name not in parameters:
        # the values of a network's settings depend on the data, which is not loaded here
        if name not in network:
            yield str(unknown("setting", key, parameters | network))
        return
    try:
        # built only to let the constructors check the value beside the usual settings
        changed = split_settings({key: value}, owners)
        paper = get_paper_settings(problem, method) if preset == "paper" else {}
        # lenient: the paper's settings include some of networks, which have no owner here
        usual = split_settings(paper, owners, lenient=True)
        Training(**(usual["training"] | changed["training"]))
        method_class(**(usual["method"] | changed["method"]))
    except ConfigurationError as error:
        yield str(error)


def _list_candidates(
    preset: str, problem: str, role: str, pair: tuple[str, str] | None
) -> list[str]:
    """Return the backbones or conditionings that a network may have, whatever the data."""
    if pair is not None and role == "conditioning":
        return [pair[1]]
    in_paper = get_paper_network(problem).get(role)
    if in_paper is not None and (preset == "paper" or role == "backbone"):
        return [in_paper]
    # the preset chooses by the data, which is not loaded here, so all of them may be meant
    return [usual[role] for usual in NETWORKS[preset].values()]


def _find_duplicates(grids: Sequence[Grid]) -> Iterator[str]:
    """Yield experiments that are in more than one grid."""
    first_grid: dict[tuple[Any, ...], int] = {}
    for index, grid in enumerate(grids):
        # as text, since the values may be lists, which cannot be part of a key
        settings = str(sorted(grid.settings.items())), str(sorted(grid.vary.items()))
        protocols = grid.protocols or (None,)
        for problem, protocol, method in itertools.product(grid.problems, protocols, grid.methods):
            key = (problem, protocol, method, grid.preset, *settings)
            first = first_grid.setdefault(key, index)
            if first != index:
                yield f"`grid[{index}]`: `{method}` on `{problem}` is in `grid[{first}]` too"
