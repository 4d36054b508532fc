"""A recipe's file: whether all that it names and sets can be used, every mistake at once."""

import itertools
import tomllib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from paretocosmos import registry
from paretocosmos.config.presets import NETWORKS
from paretocosmos.config.settings import (
    distribute,
    pair_of,
    pairs,
    paper_network,
    paper_settings,
)
from paretocosmos.config.training import Training
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.files import check_depth, one_line
from paretocosmos.io.trust import check_names, check_trust

if TYPE_CHECKING:
    from paretocosmos.io.schema.recipe import Grid, RecipeFile

__all__ = ["read_recipe"]


def read_recipe(file: str, text: str, trust: Collection[str] = ()) -> "RecipeFile":
    """What a recipe says, if all of it can be used.

    Args:
        file: what it is called in a refusal.
        text: TOML.
        trust: packages and modules whose code it may name.
    """
    from paretocosmos.io.formatting import sanitize_line
    from paretocosmos.io.schema.recipe import check_recipe

    try:
        content = tomllib.loads(text)
        check_depth(content)
    except (RecursionError, ValueError) as error:  # ValueError: a number of too many digits, too
        why = one_line(error)
        raise ConfigurationError(
            f"`{file}` is not TOML: {why[:1].lower()}{why[1:]}; strings need quotes, lists need "
            "brackets"
        ) from error
    recipe, mistakes = check_recipe(content)
    check_names(_outside_in(recipe.grid), file=file, trust=check_trust(trust))
    for at, grid in enumerate(recipe.grid):
        mistakes += map(sanitize_line, _mistakes(grid, at))
    mistakes += map(sanitize_line, _twice(recipe.grid))
    if mistakes:
        count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise ConfigurationError(f"`{file}` has {count}: {'; '.join(mistakes)}")
    return recipe


def _outside_in(grids: Sequence["Grid"]) -> Iterator[tuple[str, str]]:
    """The things of others that a recipe names."""
    for grid in grids:
        for room, names in (("problems", grid.problems), ("methods", grid.methods)):
            yield from ((room, name) for name in names if ":" in name)


def _mistakes(grid: "Grid", at: int) -> Iterator[str]:
    """What cannot be found, what those that can do not take, and what is set twice."""
    found: dict[str, list[str]] = {"problems": [], "methods": []}
    for key, names, more in (("problems", grid.problems, ()), ("methods", grid.methods, pairs())):
        ours = [*registry.names(key), *more]
        for name in names:
            try:
                if ":" in name:
                    registry.find(key, name)
                elif name not in ours:
                    raise unknown(key.removesuffix("s"), name, ours)
                found[key].append(name)
            except ConfigurationError as error:
                yield f"`grid[{at}].{key}`: {error}"
    said: dict[str, str] = {}  # and the first cell of which it is so
    for problem in found["problems"]:
        for method in found["methods"]:
            for path, key, value in _set_in(grid):
                for what in _refused(grid.preset, problem, method, key, value):
                    cell = f"`{method}` on `{problem}`"
                    said.setdefault(f"{path} {what}", f"`grid[{at}].{path}` of {cell}: {what}")
    yield from said.values()
    for key in sorted(grid.settings.keys() & grid.vary.keys()):
        yield f"`grid[{at}].vary.{key}`: it is in `settings` too, leave one out"


def _set_in(grid: "Grid") -> Iterator[tuple[str, str, Any]]:
    """Everything a grid sets, once per value."""
    yield from ((f"settings.{key}", key, value) for key, value in grid.settings.items())
    for key, values in grid.vary.items():
        yield from ((f"vary.{key}", key, value) for value in values)


def _refused(preset: str, problem: str, method: str, key: str, value: Any) -> Iterator[str]:
    """A setting must be one of the problem, the method, the network or the training."""
    pair = pair_of(method)
    how = registry.find("methods", method if pair is None else pair[0])
    owners = {"training": Training, "method": how, "problem": registry.find("problems", problem)}
    network = {
        setting
        for role, room in (("backbone", "backbones"), ("conditioning", "conditioning"))
        for part in _parts(preset, problem, role, pair)
        for setting in registry.parameters(registry.find(room, part))
    }
    name = key.rpartition(".")[2]
    known = {one for owner in owners.values() for one in registry.parameters(owner)}
    if name not in known:
        if name not in network:
            yield str(unknown("setting", key, known | network))
        return
    try:
        given = distribute({key: value}, owners)
        paper = paper_settings(problem, method) if preset == "paper" else {}
        usual = distribute(paper, owners, lenient=True)
        Training(**(usual["training"] | given["training"]))
        how(**(usual["method"] | given["method"]))
    except ConfigurationError as error:
        yield str(error)


def _parts(preset: str, problem: str, role: str, pair: tuple[str, str] | None) -> list[str]:
    """The backbones or conditionings a network may have; its shape is known with the data only."""
    if pair is not None and role == "conditioning":
        return [pair[1]]
    named = paper_network(problem).get(role)
    if named is not None and (preset == "paper" or role == "backbone"):
        return [named]
    return [usual[role] for usual in NETWORKS[preset].values()]


def _twice(grids: Sequence["Grid"]) -> Iterator[str]:
    """A cell belongs to one grid."""
    seen: dict[tuple[Any, ...], int] = {}
    for at, grid in enumerate(grids):
        more = str(sorted(grid.settings.items())), str(sorted(grid.vary.items()))
        for place in itertools.product(grid.problems, grid.protocols or (None,), grid.methods):
            first = seen.setdefault((*place, grid.preset, *more), at)
            if first != at:
                yield f"`grid[{at}]`: `{place[2]}` on `{place[0]}` is in `grid[{first}]` too"
