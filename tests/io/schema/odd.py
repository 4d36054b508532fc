"""Files with something odd in one place."""

import copy
from collections.abc import Iterator
from typing import Any

__all__ = ["GONE", "ODD", "changed", "kind_of", "places"]

Place = tuple[str | int, ...]

ODD: tuple[Any, ...] = (
    *(None, [], {}, "x", "3", "", "a\0b", -1, 0, 10**30, 1.5, 1e300, True, False),
    *([["x"]], {"a": {"b": 1}}),
)
GONE = "taken away"


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place in a file; of a list, the first entry."""
    if at:
        yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*at, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*at, 0))


def changed(content: dict[str, Any], at: Place, value: object) -> dict[str, Any]:
    """The same with another value in one place, or without it."""
    other = copy.deepcopy(content)
    holder: Any = other
    for key in at[:-1]:
        holder = holder[key]
    if value == GONE:
        del holder[at[-1]]
    else:
        holder[at[-1]] = value
    return other


def kind_of(value: object) -> str:
    """What JSON calls it."""
    kinds = {bool: "truth", int: "number", float: "number", str: "text", list: "list", dict: "map"}
    return kinds.get(type(value), "null")
