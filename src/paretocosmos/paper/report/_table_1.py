"""The paper's Table 1 and its detailed table: hypervolume, time and parameters of every method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paretocosmos.paper._against import DEVIATIONS, deviation_of_difference
from paretocosmos.paper._names import method_title
from paretocosmos.paper._sets import Place, place_of, set_title
from paretocosmos.paper.published import published
from paretocosmos.paper.report._labels import labels
from paretocosmos.paper.report._parts import NONE, Table
from paretocosmos.paper.report._texts import (
    by_method,
    duration,
    in_order,
    printed,
    signed,
    spread,
    thousands,
    times,
    together,
)

__all__ = ["table_1", "why"]

Cell = Mapping[str, Any]
Cells = Mapping[tuple[Place, str], Cell]  # by the set and what a cell is called there

BOLD = "The largest mean of a front, and those that are not below it beyond the noise."
UNEXPLAINED = "This differs from the paper, and we know of no reason."


def table_1(cells: Sequence[Cell]) -> list[Table]:
    """As the paper prints it, both protocols side by side, times, details, and where time goes."""
    done = [cell for cell in cells if cell["seeds"]]
    called = labels(cells)
    places = list(dict.fromkeys(map(place_of, done)))
    both = {(*p,) for *p, _ in places if {(*p, "paper"), (*p, "clean")} <= set(places)}
    beside = [place for place in places if not (place[:2] in both and place[2] == "clean")]
    of = {(place_of(cell), called[cell["name"]]): cell for cell in done}
    usual = max(len(cell["seeds"]) for cell in done)
    seeds = f"mean of {usual} seeds" if usual > 1 else "one seed"
    volumes = f"Test hypervolume, {seeds}"
    found = [_matrix(volumes, of, beside, _volume, best=_mean_volume), _times(of, beside)]
    compared = any(cell["against"] for cell in done)
    if compared:
        found = [replace(table, title=f"{table.title}: ours (the paper's)") for table in found]
    if both:
        side = [place for place in places if place[:2] in both]
        side.sort(key=lambda place: (places.index((*place[:2], "paper")), place[2] != "paper"))
        title = f"Test hypervolume, {seeds}, under both protocols: as published, and clean"
        own = _matrix(title, of, side, _volume_alone, best=_mean_volume)
        found.append(_told_clean(own, side, done))
    more = [_detailed(cells, called), _time_went(done)]
    return [*found, *(more if compared else map(_ours_alone, more))]


def _matrix(
    title: str,
    of: Cells,
    places: Sequence[Place],
    text: Callable[[Cell], str],
    *,
    best: Callable[[Cell], float] | None = None,
) -> Table:
    """A row per method, a column per set; the best of a column are strong, ideal points aside."""
    shown = {name: cell["method"] for (place, name), cell in of.items() if place in places}
    some = {place: cell for (place, _), cell in of.items()}
    order = by_method(of.values())
    methods = sorted(shown, key=lambda name: order.index(shown[name]))
    several = len({protocol for *_, protocol in places}) > 1
    usual = max(len(cell["seeds"]) for cell in of.values())
    rows, strong = [], set()
    for method in methods:
        own = [of.get((place, method)) for place in places]
        texts = (NONE if cell is None else text(cell) + _few(cell, usual) for cell in own)
        rows.append((_titled(own, method, ideal=best is not None), *texts))
    for column, place in enumerate(places, start=1):
        fronts = [(m, of[place, m]) for m in methods if (place, m) in of]
        fronts = [(m, c) for m, c in fronts if c["volume_of"] == "front" and c["volume"]]
        if best is not None and fronts:
            leader = max((cell for _, cell in fronts), key=best)
            strong |= {(methods.index(m), column) for m, c in fronts if _level(c, leader)}
    head = [set_title(some[place], protocol=several) for place in places]
    notes = {"bold": BOLD} if strong else {}
    return Table(title, ("", *head), tuple(rows), frozenset(strong), notes)


def _level(cell: Cell, leader: Cell) -> bool:
    """Whether a front is the best, or no worse than it beyond the noise."""
    noise = deviation_of_difference(cell["volume"], leader["volume"]) or 0.0
    gap = leader["volume"]["mean"] - cell["volume"]["mean"]
    return bool(gap <= DEVIATIONS * noise)


def _few(cell: Cell, usual: int) -> str:
    """That a number has fewer seeds than others."""
    count = len(cell["seeds"])
    return "" if count == usual else f" [{count} seed{'s' * (count > 1)}]"


def _titled(cells: Sequence[Cell | None], method: str, *, ideal: bool) -> str:
    ideal &= any(cell is not None and cell["volume_of"] == "ideal point" for cell in cells)
    return f"{method}{', ideal point' if ideal else ''}"


def _mean_volume(cell: Cell) -> float:
    return float(cell["volume"]["mean"])


def _paper(cell: Cell, quantity: str, key: str = "paper") -> Any:
    return ((cell["against"] or {}).get(quantity) or {}).get(key)


def _volume(cell: Cell) -> str:
    theirs = (cell["against"] or {}).get("hypervolume")
    return _volume_alone(cell) + (f" ({printed(theirs)})" if theirs else "")


def _volume_alone(cell: Cell) -> str:
    return spread(cell["volume"])


def _times(of: Cells, places: Sequence[Place]) -> Table:
    """The times, marked by what they were measured on where that is not the same everywhere."""
    shown = [cell for (place, _), cell in of.items() if place in places]
    where = list(dict.fromkeys(map(together, shown)))
    marks = {one: chr(ord("a") + number) for number, one in enumerate(where)}

    def text(cell: Cell) -> str:
        theirs = _paper(cell, "seconds")
        ours = duration(cell["seconds"]["to_selected"]["mean"])
        mark = f" ({marks[together(cell)]})" if len(where) > 1 else ""
        return ours + ("" if theirs is None else f" ({duration(theirs)})") + mark

    title = "Training time of a seed to its selected epoch"
    told = [f"({marks[one]}) {one}" if len(where) > 1 else one for one in where]
    paper = f"The paper: {published()['table_1']['hardware']}, one seed after the other. "
    note = (paper if any(_paper(c, "seconds") for c in shown) else "") + f"Ours: {'; '.join(told)}."
    return replace(_matrix(title, of, places, text), notes={"*": note})


def _ours_alone(table: Table) -> Table:
    """Without the columns that stay empty where the paper prints nothing."""
    full = [n for n, texts in enumerate(zip(*table.rows, strict=True)) if {*texts} - {NONE, ""}]
    rows = tuple(tuple(row[n] for n in full) for row in table.rows)
    return replace(table, head=tuple(table.head[n] for n in full), rows=rows)


def _told_clean(table: Table, places: Sequence[Place], done: Sequence[Cell]) -> Table:
    """The same with what the protocols are, and, marked, what is known to change under `clean`."""
    marks: dict[str, str] = {}
    head = list(table.head)
    for column, place in enumerate(places, start=1):
        every = [why(c) for c in done if place_of(c) == place]
        known = dict.fromkeys(why for own in every for why in own if "`clean`" in why)
        head[column] += "".join(f" ({marks.setdefault(w, str(len(marks) + 1))})" for w in known)
    notes = {mark: sentence for sentence, mark in marks.items()}
    notes["*"] = "`paper` repeats the published code, flaws included; `clean` is without them."
    return replace(table, head=tuple(head), notes={**table.notes, **notes})


def _seeds(cell: Cell) -> int:
    return len(cell["seeds"]) + len(cell["missing"])


def _detailed(cells: Sequence[Cell], called: Mapping[str, str]) -> Table:
    """A row per cell, what failed among them, with the reasons for differences below."""
    marks: dict[str, str] = {}

    def marked(sentence: str) -> str:
        return marks.setdefault(sentence, str(len(marks) + 1))

    rows = []
    for cell in in_order(cells):
        start = (set_title(cell), called[cell["name"]])
        if not cell["seeds"]:
            state = "not run" if cell["error"] is None else "failed"
            rows.append((*start, state, *(NONE,) * 9))
            continue
        theirs = _paper(cell, "seconds")
        ours = _paper(cell, "seconds", "ours")  # none in a rehearsal
        rows.append(
            (
                *start,
                spread(cell["volume"]),
                printed((cell["against"] or {}).get("hypervolume"), deviation=True),
                signed(_paper(cell, "hypervolume", "difference")),
                duration(ours or cell["seconds"]["to_selected"]["mean"]),
                duration(theirs),
                times(theirs / ours if ours else None),
                f"{cell['networks']} x {cell['parameters']:,}",
                thousands(_paper(cell, "parameters")),
                f"{len(cell['seeds'])} of {_seeds(cell)}",
                " ".join(marked(sentence) for sentence in why(cell)),
            )
        )
    head = (
        "set",
        "method",
        "HV, ours",
        "paper",
        "difference",
        "time, ours",
        "paper",
        "times faster",
    )
    more = ("parameters, ours", "paper", "seeds", "why")
    notes = {mark: sentence for sentence, mark in marks.items()}
    if len({together(cell) for cell in cells if cell["seeds"]}) > 1:
        notes["*"] = "The table of times says which of them were measured on what."
    return Table("In detail", (*head, *more), tuple(rows), notes=notes, named=2)


def why(cell: Cell) -> list[str]:
    """The reasons for a difference, or that there is none."""
    against = cell["against"]
    if against is None or cell["rehearsal"] is not None:
        return []
    differs = against.get("hypervolume", {}).get("differs", False)
    reasons = against["reasons"]
    found = [one["sentence"] for one in reasons]
    return found or ([UNEXPLAINED] if differs else [])


def _time_went(done: Sequence[Cell]) -> Table:
    """All seconds, method by method, and the paper's for the same cells."""
    rows = []
    for method in [*by_method(done), None]:
        own = [cell for cell in done if method in (None, cell["method"])]
        parts = [sum(cell["seconds"][f"all_{p}"] for cell in own) for p in PARTS]
        theirs = [
            len(c["seeds"]) * (_paper(c, "seconds") or 0) for c in own if c["protocol"] != "clean"
        ]
        name = "all" if method is None else method_title(method)
        seconds = [*parts, sum(parts), sum(theirs) or None]
        rows.append((name, str(len(own)), *map(duration, seconds)))
    head = ("", "cells", "training", "preparing", "evaluating", "all", "the paper's, clean aside")
    return Table("Where the time went, all seeds", head, tuple(rows))


PARTS = ("training", "preparing", "evaluating")
