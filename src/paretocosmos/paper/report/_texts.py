"""Numbers as a table shows them, and the order in which cells are told."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from paretocosmos.io.schema.collected import CellResult, Figure, Spread
from paretocosmos.paper.names import set_key
from paretocosmos.paper.published import titles
from paretocosmos.paper.report._parts import NONE

__all__ = [
    "by_method",
    "describe_progress",
    "duration",
    "in_order",
    "mean",
    "printed",
    "signed",
    "thousands",
    "times",
]


def mean(number: Spread | None, digits: int = 3, scale: float = 1.0) -> str:
    """A mean over seeds and its deviation.

    >>> mean(Spread(mean=3.3456, std=0.0031, each=[3.3, 3.4]))
    '3.346 ± 0.003'
    """
    if number is None:
        return NONE
    tail = "" if number.std is None else f" ± {scale * number.std:.{digits}f}"
    return f"{scale * number.mean:.{digits}f}{tail}"


def signed(value: float | None, digits: int = 3, scale: float = 1.0) -> str:
    """A difference with its sign.

    >>> signed(-0.0123), signed(0.0001), signed(None)
    ('−0.012', '+0.000', '–')
    """
    return NONE if value is None else f"{scale * value:+.{digits}f}".replace("-", "−")


def printed(figure: Figure, *, deviation: bool = False) -> str:
    """A hypervolume of the paper, with as many digits as it has there; faces have no deviation.

    >>> own = Figure(paper=3.34, paper_std=0.01)
    >>> printed(own), printed(own, deviation=True), printed(Figure(paper=2.221))
    ('3.34', '3.34 ± 0.01', '2.221')
    """
    if figure.paper is None:
        return NONE
    if figure.paper_std is None:
        return f"{figure.paper:.3f}"
    return f"{figure.paper:.2f}" + (f" ± {figure.paper_std:.2f}" if deviation else "")


def times(ratio: float | None) -> str:
    """How many times as fast: two digits at least.

    >>> times(0.4429), times(7.0), times(56.6), times(1202.4), times(None)
    ('0.44', '7.0', '57', '1,202', '–')
    """
    if ratio is None:
        return NONE
    digits = 1 - math.floor(math.log10(float(f"{ratio:.1e}"))) if ratio else 0
    return f"{ratio:,.{max(digits, 0)}f}"


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


def describe_progress(cells: Sequence[CellResult]) -> str:
    """Return how many cells have all their seeds, some of them or none, and how many failed."""
    parts = [f"{sum(not cell.missing for cell in cells)} of {len(cells)} cells complete"]
    begun = Counter(
        (len(cell.seeds), len(cell.seeds) + len(cell.missing))
        for cell in cells
        if cell.seeds and cell.missing
    )
    parts += [f"{count} with {done} of {every} seeds" for (done, every), count in begun.items()]
    failed = sum(cell.error is not None for cell in cells)
    untouched = sum(not cell.seeds and cell.error is None for cell in cells)
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{untouched} not begun"] if untouched else []
    return ", ".join(parts)


def by_method(cells: Iterable[CellResult]) -> list[str]:
    """The methods of cells, in the order of the paper's table, others after them."""
    found = dict.fromkeys(cell.method for cell in cells)
    return list(dict.fromkeys([*(m for m in titles("methods") if m in found), *found]))


def in_order(cells: Sequence[CellResult]) -> list[CellResult]:
    """Cells set by set, as they come, and in each in the order of the paper's table."""
    sets, methods = list(dict.fromkeys(map(set_key, cells))), by_method(cells)
    return sorted(cells, key=lambda c: (sets.index(set_key(c)), methods.index(c.method)))
