"""Numbers as a table shows them, and what can be said of cells in words."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any

from paretocosmos.paper._names import (
    METHODS,
    device_title,
    method_title,
    settings_text,
    value_text,
)
from paretocosmos.paper._sets import place_of, set_title, variation
from paretocosmos.paper.report._parts import NONE

__all__ = [
    "about",
    "by_method",
    "duration",
    "in_order",
    "printed",
    "signed",
    "spread",
    "thousands",
    "times",
    "together",
    "undone",
    "varied",
]

Cell = Mapping[str, Any]


def spread(found: Mapping[str, Any] | None, digits: int = 3, scale: float = 1.0) -> str:
    """Mean and deviation.

    >>> spread({"mean": 3.3456, "std": 0.0031, "each": [3.3, 3.4]})
    '3.346 ± 0.003'
    """
    if found is None:
        return NONE
    deviation = found["std"]
    tail = "" if deviation is None else f" ± {scale * deviation:.{digits}f}"
    return f"{scale * found['mean']:.{digits}f}{tail}"


def signed(value: float | None, digits: int = 3, scale: float = 1.0) -> str:
    """A difference with its sign.

    >>> signed(-0.0123), signed(0.0001), signed(None)
    ('−0.012', '+0.000', '–')
    """
    return NONE if value is None else f"{scale * value:+.{digits}f}".replace("-", "−")


def printed(found: Mapping[str, Any] | None, *, deviation: bool = False) -> str:
    """A hypervolume of the paper, with as many digits as it has there; faces have no deviation.

    >>> own = {"paper": 3.34, "paper_std": 0.01}
    >>> printed(own), printed(own, deviation=True), printed({"paper": 2.221, "paper_std": None})
    ('3.34', '3.34 ± 0.01', '2.221')
    """
    if not found:
        return NONE
    if found["paper_std"] is None:
        return f"{found['paper']:.3f}"
    return f"{found['paper']:.2f}" + (f" ± {found['paper_std']:.2f}" if deviation else "")


def times(ratio: float | None) -> str:
    """How many times as fast: two digits at least.

    >>> times(0.4429), times(7.0), times(56.6), times(1202.4), times(None)
    ('0.44', '7.0', '57', '1,202', '–')
    """
    if ratio is None:
        return NONE
    digits = 1 - math.floor(math.log10(float(f"{ratio:.1e}"))) if ratio else 0
    return f"{ratio:,.{max(digits, 0)}f}"


def together(cell: Cell) -> str:
    """On what a cell was trained, and how many seeds and cells at once.

    >>> together({"made": {"device": ["cpu"], "seeds_together": [5]}})
    'a CPU, 5 seeds together'
    >>> together({"made": {"device": ["cpu"], "seeds_together": [1, 4]}})
    'a CPU, 4 seeds together and others alone'
    >>> together({"made": {"device": ["cpu"], "seeds_together": [5], "side_by_side": 2}})
    'a CPU, 5 seeds together, several cells side by side, each counted with its share of the time'
    """
    counts = sorted(set(cell["made"]["seeds_together"]), reverse=True)
    device = " and ".join(map(device_title, cell["made"]["device"])) or "an unknown device"
    several = [str(count) for count in counts if count > 1]
    told = f"{' or '.join(several)} seeds together" if several else "one seed at a time"
    told += " and others alone" * (bool(several) and 1 in counts)
    if cell["made"].get("side_by_side", 1) > 1:
        told += ", several cells side by side, each counted with its share of the time"
    return f"{device}, {told}"


def duration(seconds: float | None) -> str:
    """Seconds, or hours where they are many.

    >>> duration(0.123), duration(31), duration(1554), duration(11880)
    ('0.12 s', '31 s', '1,554 s', '3.30 h')
    """
    if seconds is None:
        return NONE
    if seconds >= 7200:
        return f"{seconds / 3600:.2f} h"
    whole = seconds >= 10 or float(seconds).is_integer()
    return f"{seconds:,.0f} s" if whole else f"{seconds:.2f} s"


def thousands(count: float | None) -> str:
    """A number of parameters as the paper prints it.

    >>> thousands(7011), thousands(3_243_410)
    ('7k', '3,243k')
    """
    return NONE if count is None else f"{count / 1000:,.0f}k"


def varied(cell: Cell) -> str:
    """What tells a cell from another with the same method and problem.

    >>> varied({"varied": {"penalty": 0.1, "alpha": 1.2}})
    'λ 0.1, α 1.2'
    """
    signs = {"penalty": "λ", "alpha": "α"}
    known = ((signs[key], value) for key, value in cell["varied"].items() if key in signs)
    return ", ".join(f"{sign} {value_text(value)}" for sign, value in known)


def by_method(cells: Iterable[Cell]) -> list[str]:
    """The methods of cells, in the order of the paper's table, others after them."""
    found = dict.fromkeys(cell["method"] for cell in cells)
    return [*(m for m in METHODS if m in found), *(m for m in found if m not in METHODS)]


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """Cells set by set, as they come, and in each in the order of the paper's table."""
    places = list(dict.fromkeys(map(place_of, cells)))
    methods = by_method(cells)

    def place(cell: Cell) -> tuple[int, int]:
        return places.index(place_of(cell)), methods.index(cell["method"])

    return sorted(cells, key=place)


def undone(cells: Sequence[Cell]) -> Iterator[str]:
    """What failed and why, and which seeds are missing where."""
    missing: dict[tuple[int, ...], dict[str, list[str]]] = {}
    for cell in cells:
        name = f"{method_title(cell['method'])} on {set_title(cell)}"
        more = settings_text(variation(cell))
        if cell["error"] is not None:
            yield f"Failed: {name} (`{cell['name']}`): {cell['error']}"
        if cell["missing"]:
            missing.setdefault(tuple(cell["missing"]), {}).setdefault(name, []).append(more)
    for seeds, names in missing.items():
        every = sum(map(len, names.values())) == len(cells)
        where = "all cells" if every else "; ".join(starmap(_with_settings, names.items()))
        listed = ", ".join(map(str, seeds))
        each = "each of " * (len(names) > 1 and not every)
        yield f"Missing: seed{'s' * (len(seeds) > 1)} {listed} of {each}{where}."


def _with_settings(name: str, settings: Sequence[str]) -> str:
    """A cell, or some that differ in their settings alone; many are counted.

    >>> _with_settings("COSMOS on Adult", ["penalty 1", ""])
    'COSMOS on Adult (penalty 1); COSMOS on Adult'
    >>> _with_settings("COSMOS on Adult", ["penalty 1", "penalty 2", "penalty 3", "penalty 4"])
    'COSMOS on Adult (4 settings)'
    """
    shown = settings if len(settings) < 4 else [f"{len(settings)} settings"]
    return "; ".join(f"{name} ({more})" if more else name for more in shown)


def about(cells: Sequence[Cell]) -> str:
    """Where the numbers were made; every answer once."""
    made = [cell["made"] for cell in cells if cell["seeds"]]

    def every(key: str) -> str:
        found = dict.fromkeys(device_title(str(one)) for part in made for one in part[key])
        return " and ".join(found) or "unknown"

    return (
        f"Made by paretocosmos {every('version')} (hash of its source: {every('source')}) on "
        f"{every('device')}, threads {every('threads')}, torch {every('torch')}, precision "
        f"{every('precision')}, engine {every('engine')}, seeds trained together: "
        f"{every('seeds_together')}."
    )
