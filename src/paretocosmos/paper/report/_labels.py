"""What cells are called beside each other: by as much as tells them apart, and no more."""

from collections.abc import Mapping, Sequence
from typing import Any

from paretocosmos.io.schema.collected import CellResult
from paretocosmos.paper.names import (
    SetKey,
    method_title,
    set_key,
    set_title,
    settings_text,
    variation,
)

__all__ = ["by_kind", "labels", "panel_rows", "panel_titles"]


def labels(cells: Sequence[CellResult], *, aside: Sequence[str] = ()) -> dict[str, str]:
    """By a cell's name, what it is called on its set: its method, with settings if they differ.

    A method that a set has more than once shows which settings differ there, on all sets; what is
    as in the paper goes without saying.

    Args:
        cells: of one recipe.
        aside: settings that are shown elsewhere; cells that differ in them are no clash.

    >>> own = {"problem": "adult", "protocol": None, "method": "cosmos", "rehearsal": None}
    >>> own |= {"seeds": [], "missing": [1], "error": None}
    >>> labels([CellResult(name="a", **own), CellResult(name="b", settings={"penalty": 1}, **own)])
    {'a': 'COSMOS', 'b': 'COSMOS, penalty 1'}
    """
    alike: dict[tuple[str, SetKey, tuple[str, ...]], list[dict[str, Any]]] = {}
    for cell in cells:
        shown = tuple(str(cell.varied.get(key)) for key in aside)
        alike.setdefault((cell.method, set_key(cell), shown), []).append(_own(cell))
    differing: dict[str, set[str]] = {}
    for (method, *_), every in alike.items():
        keys = {key for own in every for key in own if key not in aside}
        apart = {key for key in keys if any(own.get(key) != every[0].get(key) for own in every)}
        differing.setdefault(method, set()).update(apart)
    found = {}
    for cell in cells:
        own = {k: v for k, v in _own(cell).items() if k in differing[cell.method]}
        found[cell.name] = ", ".join(filter(None, [method_title(cell.method), settings_text(own)]))
    return found


def _own(cell: CellResult) -> dict[str, Any]:
    """What is set of a cell's training, by what is not the paper's preset."""
    return ({} if cell.preset == "paper" else {"preset": cell.preset}) | variation(cell)


def panel_titles(cells: Sequence[CellResult], called: Mapping[str, str]) -> dict[str, str]:
    """By a cell's name, the title of its panel: its set, with what else tells panels apart.

    Args:
        cells: those that are drawn.
        called: their labels.
    """
    sets = set(map(set_key, cells))
    methods = {(set_key(cell), called[cell.name]) for cell in cells}
    several = len(sets) > len({key[:2] for key in sets})
    return {
        cell.name: set_title(cell, protocol=several)
        + (f", {called[cell.name]}" if len(methods) > len(sets) else "")
        for cell in cells
    }


def by_kind(cells: Sequence[CellResult]) -> list[CellResult]:
    """Cells with the same objectives beside each other, and among them those of a protocol."""
    kinds = list(dict.fromkeys(tuple(cell.objectives) for cell in cells))
    protocols = list(dict.fromkeys(cell.protocol for cell in cells))
    return sorted(
        cells, key=lambda c: (kinds.index(tuple(c.objectives)), protocols.index(c.protocol))
    )


def panel_rows(cells: Sequence[CellResult], titles: Mapping[str, str]) -> dict[str, str]:
    """By a panel's title, what it shares a row with: its objectives, and maybe its protocol.

    A protocol has a row if some set shares it. Panels all of other objectives are in one row.

    Args:
        cells: those that are drawn.
        titles: of their panels, by their names.
    """
    panels = {titles[cell.name]: cell for cell in cells}
    kinds = {title: ", ".join(cell.objectives) for title, cell in panels.items()}
    if len(set(kinds.values())) == len(panels):
        return dict.fromkeys(panels, "")
    found = {}
    for title, kind in kinds.items():
        own = [cell.protocol for other, cell in panels.items() if kinds[other] == kind]
        apart = len(set(own)) < len(own)
        found[title] = f"{kind}, {panels[title].protocol}" if apart else kind
    return found
