"""What cells are called beside each other: by as much as tells them apart, and no more."""

from collections.abc import Mapping, Sequence
from typing import Any

from paretocosmos.paper._names import method_title, settings_text
from paretocosmos.paper._sets import place_of, set_title, variation

__all__ = ["by_kind", "groups", "labels", "panel_titles"]

Cell = Mapping[str, Any]


def labels(cells: Sequence[Cell], *, aside: Sequence[str] = ()) -> dict[str, str]:
    """By a cell's name, what it is called on its set: its method, with settings if they differ.

    A method that a set has more than once shows which settings differ there, on all sets; what is
    as in the paper goes without saying.

    Args:
        cells: of one recipe.
        aside: settings that are shown elsewhere; cells that differ in them are no clash.

    >>> cell = {"problem": "adult", "protocol": None, "method": "cosmos", "settings": {}}
    >>> other = cell | {"settings": {"penalty": 0.1}}
    >>> labels([cell | {"name": "a"}, other | {"name": "b"}])
    {'a': 'COSMOS', 'b': 'COSMOS, penalty 0.1'}
    """
    alike: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for cell in cells:
        shown = (str(cell["varied"].get(key)) for key in aside)
        place = (cell["method"], str(place_of(cell)), *shown)
        alike.setdefault(place, []).append(variation(cell))
    differing: dict[str, set[str]] = {}
    for (method, *_), every in alike.items():
        keys = {key for own in every for key in own if key not in aside}
        apart = {key for key in keys if any(own.get(key) != every[0].get(key) for own in every)}
        differing.setdefault(method, set()).update(apart)
    found = {}
    for cell in cells:
        own = differing[cell["method"]]
        text = settings_text({k: v for k, v in variation(cell).items() if k in own})
        found[cell["name"]] = ", ".join(filter(None, [method_title(cell["method"]), text]))
    return found


def panel_titles(cells: Sequence[Cell], called: Mapping[str, str]) -> dict[str, str]:
    """By a cell's name, the title of its panel: its set, with what else tells panels apart.

    Args:
        cells: those that are drawn.
        called: their labels.

    >>> cell = {"name": "a", "problem": "adult", "protocol": "paper"}
    >>> panel_titles([cell], {"a": "COSMOS"})
    {'a': 'Adult'}
    >>> panel_titles([cell, cell | {"name": "b"}], {"a": "COSMOS", "b": "PHN-LS"})
    {'a': 'Adult, COSMOS', 'b': 'Adult, PHN-LS'}
    """
    places = {place_of(c) for c in cells}
    methods = {(place_of(c), called[c["name"]]) for c in cells}
    several = len(places) > len({place[:2] for place in places})
    found = {}
    for cell in cells:
        title = set_title(cell, protocol=several)
        more = f", {called[cell['name']]}" if len(methods) > len(places) else ""
        found[cell["name"]] = title + more
    return found


def by_kind(cells: Sequence[Cell]) -> list[Cell]:
    """Cells with the same objectives beside each other, and among them those of a protocol."""
    kinds = list(dict.fromkeys(tuple(cell["objectives"]) for cell in cells))
    protocols = list(dict.fromkeys(cell["protocol"] for cell in cells))

    def place(cell: Cell) -> tuple[int, int]:
        return kinds.index(tuple(cell["objectives"])), protocols.index(cell["protocol"])

    return sorted(cells, key=place)


def groups(cells: Sequence[Cell], titles: Mapping[str, str]) -> dict[str, str]:
    """By a panel's title, what it shares a row with: its objectives, and maybe its protocol.

    A protocol has a row if some set shares it. Panels all of other objectives are one group.

    Args:
        cells: those that are drawn.
        titles: of their panels, by their names.
    """
    panels = {titles[cell["name"]]: cell for cell in cells}
    kinds = {title: ", ".join(cell["objectives"]) for title, cell in panels.items()}
    if len(set(kinds.values())) == len(panels):
        return dict.fromkeys(panels, "")
    found = {}
    for title, kind in kinds.items():
        own = [str(cell["protocol"]) for other, cell in panels.items() if kinds[other] == kind]
        apart = len(set(own)) < len(own)
        found[title] = f"{kind}, {panels[title]['protocol']}" if apart else kind
    return found
