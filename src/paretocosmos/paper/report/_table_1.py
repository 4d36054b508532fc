"""The paper's Table 1 and its detailed table: hypervolume, time and parameters of every method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from paretocosmos.io.schema.collected import Against, CellResult
from paretocosmos.paper._against import DEVIATIONS, deviation_of_difference
from paretocosmos.paper.names import SetKey, device_title, method_title, set_key, set_title
from paretocosmos.paper.published import published
from paretocosmos.paper.report import _texts as texts
from paretocosmos.paper.report._labels import labels
from paretocosmos.paper.report._parts import NONE, Columns, Footnotes, Table, table_of

__all__ = ["against_of", "table_1", "why"]

Cells = Mapping[tuple[SetKey, str], CellResult]  # by the set and what a cell is called there

BOLD = "The largest mean of a front, and those that are not lower by more than the noise."
UNEXPLAINED = "This differs from the paper for no known reason."


def table_1(cells: Sequence[CellResult]) -> list[Table]:
    """As the paper prints it, both protocols side by side, times, details, and where time goes."""
    done = [cell for cell in cells if cell.seeds]
    called = labels(cells)
    of = {(set_key(cell), called[cell.name]): cell for cell in done}
    sets = list(dict.fromkeys(map(set_key, done)))
    both = {(*s,) for *s, _ in sets if {(*s, "paper"), (*s, "clean")} <= set(sets)}
    beside = [key for key in sets if not (key[:2] in both and key[2] == "clean")]
    usual = max(len(cell.seeds) for cell in done)
    seeds = f"mean of {usual} seeds" if usual > 1 else "one seed"
    found = [_matrix(f"Test hypervolume, {seeds}", of, beside, _volume, best=True)]
    found.append(_times(of, beside))
    compared = any(cell.against for cell in done)
    if compared:
        found = [replace(table, title=f"{table.title}: ours (the paper's)") for table in found]
    if both:
        side = [key for key in sets if key[:2] in both]
        side.sort(key=lambda key: (sets.index((*key[:2], "paper")), key[2] != "paper"))
        title = f"Test hypervolume, {seeds}, under both protocols: as published, and clean"
        own = _matrix(title, of, side, lambda cell: texts.mean(cell.volume), best=True)
        found.append(_told_clean(own, side, done))
    more = [_detailed(cells, called), _time_went(done)]
    return [*found, *(more if compared else map(_ours_alone, more))]


def _matrix(
    title: str,
    of: Cells,
    sets: Sequence[SetKey],
    text: Callable[[CellResult], str],
    *,
    best: bool = False,
) -> Table:
    """A row per method, a column per set; the best of a column are strong, ideal points aside."""
    shown = {name: cell.method for (key, name), cell in of.items() if key in sets}
    some = {key: cell for (key, _), cell in of.items()}
    order = texts.by_method(of.values())
    methods = sorted(shown, key=lambda name: order.index(shown[name]))
    several = len({protocol for *_, protocol in sets}) > 1
    usual = max(len(cell.seeds) for cell in of.values())
    rows, strong = [], set()
    for at, method in enumerate(methods):
        own = [of.get((key, method)) for key in sets]
        ideal = best and any(cell and cell.volume_of == "ideal point" for cell in own)
        shown_as = [NONE if cell is None else text(cell) + _few(cell, usual) for cell in own]
        rows.append((f"{method}{', ideal point' * ideal}", *shown_as))
        for column, cell in enumerate(own, start=1):
            if best and cell is not None and _is_best(cell, of):
                strong.add((at, column))
    head = [set_title(some[key], protocol=several) for key in sets]
    notes = {"bold": BOLD} if strong else {}
    return Table(title, ("", *head), tuple(rows), frozenset(strong), notes)


def _is_best(cell: CellResult, of: Cells) -> bool:
    """Whether a front is the best of its set, or no worse than it beyond the noise."""
    beside = (c for (key, _), c in of.items() if key == set_key(cell) and c.volume_of == "front")
    leader = max(beside, key=lambda one: one.volume.mean, default=cell)
    noise = deviation_of_difference(cell.volume, leader.volume) or 0.0
    gap = leader.volume.mean - cell.volume.mean
    return cell.volume_of == "front" and gap <= DEVIATIONS * noise


def _few(cell: CellResult, usual: int) -> str:
    """That a number has fewer seeds than others."""
    count = len(cell.seeds)
    return "" if count == usual else f" [{count} seed{'s' * (count > 1)}]"


def against_of(cell: CellResult) -> Against:
    """A cell beside the paper; nothing is known where the paper prints nothing of it."""
    return cell.against or Against()


def _volume(cell: CellResult) -> str:
    theirs = against_of(cell).hypervolume
    return texts.mean(cell.volume) + ("" if theirs.paper is None else f" ({texts.printed(theirs)})")


def _times(of: Cells, sets: Sequence[SetKey]) -> Table:
    """The times, marked by what they were measured on where that is not the same everywhere."""
    shown = [cell for (key, _), cell in of.items() if key in sets]
    where = list(dict.fromkeys(map(together, shown)))
    marks = {one: chr(ord("a") + number) for number, one in enumerate(where)}

    def text(cell: CellResult) -> str:
        theirs = against_of(cell).seconds.paper
        ours = texts.duration(cell.seconds.to_selected.mean)
        mark = f" ({marks[together(cell)]})" if len(where) > 1 else ""
        return ours + ("" if theirs is None else f" ({texts.duration(theirs)})") + mark

    told = [f"({marks[one]}) {one}" if len(where) > 1 else one for one in where]
    paper = f"The paper: {published()['table_1']['hardware']}, one seed after another. "
    timed = any(against_of(cell).seconds.paper for cell in shown)
    note = (paper if timed else "") + f"Ours: {'; '.join(told)}."
    table = _matrix("Training time of a seed to its selected epoch", of, sets, text)
    return replace(table, notes={"*": note})


def together(cell: CellResult) -> str:
    """On what a cell was trained, and how many seeds and cells at once."""
    counts = sorted(set(cell.made.seeds_together), reverse=True)
    device = " and ".join(map(device_title, cell.made.device)) or "an unknown device"
    several = [str(count) for count in counts if count > 1]
    told = f"{' or '.join(several)} seeds together" if several else "one seed at a time"
    told += " and others alone" * (bool(several) and 1 in counts)
    if cell.made.side_by_side > 1:
        told += ", several cells at the same time, each counted with its share"
    return f"{device}, {told}"


def _ours_alone(table: Table) -> Table:
    """Without the columns that stay empty where the paper prints nothing."""
    full = [n for n, column in enumerate(zip(*table.rows, strict=True)) if {*column} - {NONE, ""}]
    rows = tuple(tuple(row[n] for n in full) for row in table.rows)
    return replace(table, head=tuple(table.head[n] for n in full), rows=rows)


def _told_clean(table: Table, sets: Sequence[SetKey], done: Sequence[CellResult]) -> Table:
    """The same with what the protocols are, and, marked, what is known to change under `clean`."""
    notes = Footnotes()
    head = list(table.head)
    for column, key in enumerate(sets, start=1):
        every = [why(cell) for cell in done if set_key(cell) == key]
        known = dict.fromkeys(one for own in every for one in own if "`clean`" in one)
        head[column] += "".join(f" ({notes.mark(one)})" for one in known)
    about = "`paper` follows the published code, flaws included; `clean` is without the flaws."
    return replace(table, head=tuple(head), notes={**table.notes, **notes.by_mark(), "*": about})


def _detailed(cells: Sequence[CellResult], called: Mapping[str, str]) -> Table:
    """A row per cell, what failed among them, with the reasons for differences below."""
    notes = Footnotes()

    def volume(cell: CellResult) -> str:
        state = "not run" if cell.error is None else "failed"
        return texts.mean(cell.volume) if cell.seeds else state

    def seconds(cell: CellResult) -> str:
        ours = against_of(cell).seconds.ours  # is not beside the paper's in a rehearsal
        return texts.duration(ours or cell.seconds.to_selected.mean)

    def faster(cell: CellResult) -> str:
        own = against_of(cell).seconds
        return texts.times(own.paper / own.ours if own.paper and own.ours else None)

    def done(text: Callable[[CellResult], str]) -> Callable[[CellResult], str]:
        return lambda cell: text(cell) if cell.seeds else NONE

    columns: Columns = [
        ("set", set_title),
        ("method", lambda c: called[c.name]),
        ("HV, ours", volume),
        ("paper", done(lambda c: texts.printed(against_of(c).hypervolume, deviation=True))),
        ("difference", done(lambda c: texts.signed(against_of(c).hypervolume.difference))),
        ("time, ours", done(seconds)),
        ("paper", done(lambda c: texts.duration(against_of(c).seconds.paper))),
        ("times faster", done(faster)),
        ("parameters, ours", done(lambda c: f"{c.networks} x {c.parameters:,}")),
        ("paper", done(lambda c: texts.thousands(against_of(c).parameters.paper))),
        ("seeds", done(lambda c: f"{len(c.seeds)} of {len(c.seeds) + len(c.missing)}")),
        ("why", done(lambda c: " ".join(map(notes.mark, why(c))))),
    ]
    table = table_of("In detail", texts.in_order(cells), columns)
    told = notes.by_mark()
    if len({together(cell) for cell in cells if cell.seeds}) > 1:
        told["*"] = "The table of training times says which device each was measured on."
    return replace(table, notes=told)


def why(cell: CellResult) -> list[str]:
    """The reasons for a difference, or that there is none."""
    if cell.against is None or cell.rehearsal is not None:
        return []
    reasons = [reason.sentence for reason in cell.against.reasons]
    return reasons or [UNEXPLAINED] * bool(cell.against.hypervolume.differs)


def _time_went(done: Sequence[CellResult]) -> Table:
    """All seconds, method by method, and the paper's for the same cells."""
    rows = []
    for method in [*texts.by_method(done), None]:
        own = [cell for cell in done if method in (None, cell.method)]
        spent = [cell.seconds for cell in own]
        parts = [
            sum(one.all_training for one in spent),
            sum(one.all_preparing for one in spent),
            sum(one.all_evaluating for one in spent),
        ]
        printed = [c for c in own if c.protocol != "clean"]
        theirs = sum(len(c.seeds) * (against_of(c).seconds.paper or 0) for c in printed)
        name = "all" if method is None else method_title(method)
        rows.append(
            (name, str(len(own)), *map(texts.duration, [*parts, sum(parts), theirs or None]))
        )
    head = ("", "cells", "training", "preparing", "evaluating", "all", "the paper's, without clean")
    return Table("Where the time went, all seeds", head, tuple(rows))
