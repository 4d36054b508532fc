"""A recipe's file: what may stand in it, and every mistake with its line and the way out."""

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from paretocosmos import find
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.experiments._toml_lines import Lines
from paretocosmos.planning import BY_SHAPE
from paretocosmos.settings import (
    Training,
    distribute,
    pair_of,
    pairs,
    paper_network,
    paper_settings,
)
from paretocosmos.trust import check_names, check_trust

__all__ = ["PROTOCOLS", "SHOWS", "read_recipe"]

SHOWS = ("table", "fronts", "convergence", "ablation", "celeba", "intuition")
PROTOCOLS = ("paper", "clean")
TOP = ("title", "section", "shows", "seeds", "grid")
GRID = ("problems", "protocols", "methods", "seeds", "settings", "vary")

Place = tuple[str | int, ...]
Mistake = tuple[int, str]


def read_recipe(file: str, text: str, trust: Collection[str] = ()) -> dict[str, Any]:
    """What a recipe says, if all of it can be used.

    Args:
        file: what it is called in a refusal.
        text: TOML.
        trust: packages and modules whose code it may name.
    """
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(
            f"`{file}` is no TOML: {str(error)[0].lower()}{str(error)[1:]}; a text stands in "
            "quotes, a list in brackets"
        ) from error
    check_names(_outside_in(content), file=file, trust=check_trust(trust))
    mistakes = sorted(_mistakes(content, Lines(text)))
    if mistakes:
        count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        said = "; ".join(f"line {line}: {what}" for line, what in mistakes)
        raise ConfigurationError(f"`{file}` has {count}: {said}")
    return content


def _outside_in(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The things of others that a recipe names, whatever else is wrong with it."""
    grids = content.get("grid")
    for grid in grids if isinstance(grids, list) else ():
        for room in ("problems", "methods"):
            names = grid.get(room) if isinstance(grid, dict) else None
            for name in names if isinstance(names, list) else ():
                if isinstance(name, str) and ":" in name:
                    yield room, name


def _mistakes(content: Mapping[str, Any], lines: Lines) -> Iterator[Mistake]:
    yield from _keys(content, (), TOP, ("title", "section", "shows", "seeds", "grid"), lines)
    for key in ("title", "section", "shows"):
        if key in content and not (isinstance(content[key], str) and content[key].strip()):
            yield lines.of((key,)), f"`{key}` is a text, found {content[key]!r}"
    shows = content.get("shows")
    if isinstance(shows, str) and shows.strip() and shows not in SHOWS:
        yield lines.of(("shows",)), str(unknown("`shows`", shows, SHOWS))
    yield from _seeds(content, (), lines)
    grids = content.get("grid")
    if grids is None:  # which is missing, and said
        return
    if not (isinstance(grids, list) and grids and all(isinstance(grid, dict) for grid in grids)):
        yield lines.of(("grid",)), "`grid` is a table: begin it with [[grid]]"
        return
    seen: dict[tuple[Any, ...], int] = {}
    for at, grid in enumerate(grids):
        place = ("grid", at)
        wrong = list(_grid(grid, place, lines))
        yield from wrong
        yield from _settings(_known(grid), place, lines)
        if not wrong:
            yield from _twice(grid, place, lines, seen)


def _keys(
    table: Mapping[str, Any],
    place: Place,
    known: Sequence[str],
    needed: Sequence[str],
    lines: Lines,
) -> Iterator[Mistake]:
    for key in table:
        if key not in known:
            yield lines.of((*place, key)), str(unknown("key", key, known))
    for key in needed:
        if key not in table:
            yield lines.of(place), f"`{key}` is missing"


def _grid(grid: Mapping[str, Any], place: Place, lines: Lines) -> Iterator[Mistake]:
    yield from _keys(grid, place, GRID, ("problems", "methods"), lines)
    yield from _seeds(grid, place, lines)
    known = {
        "problems": find.names("problems"),
        "methods": [*find.names("methods"), *pairs()],
        "protocols": list(PROTOCOLS),
    }
    for key, names in known.items():
        found = grid.get(key, names)
        if not (isinstance(found, list) and found and all(isinstance(n, str) for n in found)):
            yield lines.of((*place, key)), f"`{key}` is a list of names, found {found!r}"
            continue
        for name in dict.fromkeys(found):
            line = lines.of((*place, key), name)
            if found.count(name) > 1:
                yield line, f"`{name}` stands twice in `{key}`"
            if name not in names and (":" not in name or key == "protocols"):
                yield line, str(unknown(key.removesuffix("s"), name, names))
            elif ":" in name:
                yield from _outside(line, key, name)
    for key in ("settings", "vary"):
        if not isinstance(grid.get(key, {}), dict):
            yield lines.of((*place, key)), f"`{key}` is a table, found {grid[key]!r}"
    varied = grid.get("vary", {})
    for key, values in varied.items() if isinstance(varied, dict) else ():
        if not (isinstance(values, list) and values):
            line = lines.of((*place, "vary", key))
            yield line, f"`vary` has a list of values for `{key}`, found {values!r}"


def _known(grid: Mapping[str, Any]) -> dict[str, Any]:
    """What can be tried of a grid though something else in it is wrong."""

    def names(key: str, room: Sequence[str]) -> list[str]:
        found = grid.get(key)
        every = found if isinstance(found, list) else []
        return [n for n in every if n in room or (isinstance(n, str) and _is_there(key, n))]

    tables = {k: grid[k] for k in ("settings", "vary") if isinstance(grid.get(k), dict)}
    varied = {k: v for k, v in tables.get("vary", {}).items() if isinstance(v, list)}
    return {
        "problems": names("problems", find.names("problems")),
        "methods": names("methods", [*find.names("methods"), *pairs()]),
        "settings": tables.get("settings", {}),
        "vary": varied,
    }


def _is_there(key: str, name: str) -> bool:
    """Whether a thing of one's own can be found."""
    return ":" in name and not list(_outside(0, key, name))


def _outside(line: int, key: str, name: str) -> Iterator[Mistake]:
    """A thing of one's own must be there."""
    try:
        find.find(key, name)
    except ConfigurationError as error:
        yield line, str(error)


def _seeds(table: Mapping[str, Any], place: Place, lines: Lines) -> Iterator[Mistake]:
    seeds = table.get("seeds", [1])
    whole = isinstance(seeds, list) and seeds and all(type(s) is int and s >= 0 for s in seeds)
    if not whole or len(set(seeds)) < len(seeds):
        line = lines.of((*place, "seeds"))
        yield line, f"`seeds` are different whole numbers, found {seeds!r}"


def _settings(grid: Mapping[str, Any], place: Place, lines: Lines) -> Iterator[Mistake]:
    """Every setting must be one of the problem, the method, the network or the training."""
    tried = [("settings", key, value) for key, value in grid.get("settings", {}).items()]
    varied = grid.get("vary", {})
    tried += [("vary", key, value) for key, values in varied.items() for value in values]
    said: set[Mistake] = set()
    for table, key, value in tried:
        for problem in grid["problems"]:
            for method in grid["methods"]:
                for what in _refused(problem, method, key, value):
                    said.add((lines.of((*place, table, key)), what))
    yield from said
    both = grid.get("settings", {}).keys() & varied.keys()
    for key in sorted(both):
        line = lines.of((*place, "vary", key))
        yield line, f"`{key}` is in `settings` and in `vary`: leave one out"


def _refused(problem: str, method: str, key: str, value: Any) -> Iterator[str]:
    pair = pair_of(method)
    how = find.find("methods", method if pair is None else pair[0])
    owners = {"training": Training, "method": how, "problem": find.find("problems", problem)}
    network = {
        setting
        for role, room in (("backbone", "backbones"), ("conditioning", "conditioning"))
        for part in _parts(problem, role, pair)
        for setting in find.parameters(find.find(room, part))
    }
    name = key.rpartition(".")[2]
    known = {one for owner in owners.values() for one in find.parameters(owner)}
    if name not in known:
        if name not in network:
            yield str(unknown("setting", key, known | network))
        return
    try:
        given = distribute({key: value}, owners)
        usual = distribute(paper_settings(problem, method), owners, lenient=True)
        Training(**(usual["training"] | given["training"]))
        how(**(usual["method"] | given["method"]))
    except ConfigurationError as error:
        yield str(error)


def _parts(problem: str, role: str, pair: tuple[str, str] | None) -> list[str]:
    """The backbones or conditionings a network may have; its shape is known with the data only."""
    if pair is not None and role == "conditioning":
        return [pair[1]]
    named = paper_network(problem).get(role)
    return [named] if named is not None else [usual[role] for usual in BY_SHAPE.values()]


def _twice(
    grid: Mapping[str, Any], place: Place, lines: Lines, seen: dict[tuple[Any, ...], int]
) -> Iterator[Mistake]:
    """A cell belongs to one grid."""
    more = str(sorted(grid.get("settings", {}).items())), str(sorted(grid.get("vary", {}).items()))
    for problem in grid["problems"]:
        for protocol in grid.get("protocols", [None]):
            for method in grid["methods"]:
                line = lines.of((*place, "methods"), method)
                first = seen.setdefault((problem, protocol, method, *more), line)
                if first != line:
                    yield line, f"`{method}` on `{problem}` stands in line {first} already"
