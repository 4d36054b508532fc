"""What `reproduce` shows: cells as they are trained, and what became of them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from paretocosmos.cli.console import err, escape, get_stdout, print_markup, print_table
from paretocosmos.io.formatting import format_duration, format_number
from paretocosmos.io.progress import show_live
from paretocosmos.paper.published import is_face
from paretocosmos.training.progress import LOG_INTERVAL

if TYPE_CHECKING:
    from paretocosmos.paper.reproduce import CellStatus, Reproduction

# Columns of a bar, and the longest name of a cell beside it.
BAR, NAME = 24, 48
# Cells that are named at the beginning, and while others run.
LISTED, SOON = 24, 3


class _View:
    """The cells that run, live in a terminal; a line for each that ends, and now and then more."""

    def __init__(self) -> None:
        self._at: Reproduction | None = None
        self._states: dict[str, str] = {}
        self._last = time.monotonic()

    def show(self, at: "Reproduction") -> None:
        """Show how far it is."""
        first = self._at is None
        self._at = at
        if first:
            self._begin(at)
        for name, one in at.standings.items():
            before, self._states[name] = self._states.get(name), one.state
            if not first and one.state != before and one.state in ("done", "failed"):
                print_markup(err, escape(_ended(one)))
                self._last = 0.0  # how it goes on is worth a line
        now = time.monotonic()
        if not err.is_terminal and not first and now - self._last >= LOG_INTERVAL:
            self._last = now
            for text in _lines(at):
                print_markup(err, escape(text))

    def _begin(self, at: "Reproduction") -> None:
        print_markup(err, escape(_title(at)))
        done, waiting = at.having("done"), at.having("waiting")
        if waiting:
            if done:
                err.print(f"{len(done)} already done: they are kept")
            print_markup(err, escape(f"to come: {_named(waiting, LISTED)}"))

    def picture(self) -> RenderableType | None:
        """The cells that run, and those that are next."""
        if self._at is None or not (self._at.having("running") or self._at.having("waiting")):
            return None
        table = Table.grid(padding=(0, 1))
        for one in self._at.having("running"):
            at = one.at
            table.add_row(
                escape(_short(one.cell.name)),
                "begins" if at is None else f"{at.epoch}/{at.epochs}",
                ProgressBar(at.epochs, at.epoch, width=BAR) if at is not None else "",
                "" if at is None else f"HV val {format_number(at.hypervolume_val)}",
                "" if at is None else format_duration(at.seconds_left),
            )
        waiting = self._at.having("waiting")
        then = [Text(f"then {_named(waiting, SOON)}", style="dim")] if waiting else []
        return Group(Text(_standing(self._at), style="bold"), table, *then)


@contextmanager
def cells(*, quiet: bool) -> Iterator["Callable[[Reproduction], None]"]:
    """A live view of all cells on stderr."""
    if quiet:
        yield lambda _: None
        return
    view = _View()
    with show_live(view.picture, keep=False, need_stdout=False):
        yield view.show


def print_reproduction(done: "Reproduction") -> None:
    """What `reproduce` ends with: a row per cell, and where the time went."""
    console = get_stdout()
    print_markup(console, f"[bold]{escape(_title(done))}[/]")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    every = done.standings.values()
    shown = [one for one in every if one.asked or one.seeds_done or one.state == "failed"]
    compared = any(one.hypervolume_paper is not None for one in shown)
    table.add_column("cell")
    for name in ("hypervolume", *(["the paper's"] if compared else []), "seeds", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state")
    for one in shown:
        table.add_row(
            escape(one.cell.name),
            format_number(one.hypervolume),
            *([printed_volume(one)] if compared else []),
            f"{len(one.seeds_done)}/{len(one.cell.seeds)}",
            format_duration(one.seconds) if one.seconds else "-",
            one.state if one.asked or one.state != "waiting" else "begun",
        )
    print_table(console, table)
    if any(one.cell.method == "single_task" for one in shown):
        console.print("for single_task it is the hypervolume of the ideal point of its networks")
    if len(shown) < len(every):
        console.print(f"and {len(every) - len(shown)} cells that you did not ask for")
    spent = done.to_dict()["seconds"]
    by_method = ", ".join(
        f"{name} {format_duration(s)}" for name, s in spent["by_method"].items() if s
    )
    parts = ", ".join(
        f"{format_duration(spent[part])} {part}" for part in ("training", "preparing", "evaluating")
    )
    print_markup(console, f"time: {format_duration(spent['all'])}, of which {parts}")
    if by_method:
        print_markup(console, f"by method: {escape(by_method)}")
    console.print(f"[bold]all of it[/]  {escape(done.file)}", soft_wrap=True)


def _title(at: "Reproduction") -> str:
    epochs = at.recipe.epochs
    said = f"{at.recipe.name}: {at.recipe.title}"
    if epochs is None:
        return said
    return f"REHEARSAL, {epochs} epoch{'s' if epochs > 1 else ''}, no results: {said}"


def _standing(at: "Reproduction") -> str:
    counts = {state: len(at.having(state)) for state in ("done", "running", "waiting", "failed")}
    every = sum(counts.values())
    parts = [f"{counts['done']} of {every} cells done", f"{counts['running']} running"]
    if counts["failed"]:
        parts.append(f"{counts['failed']} failed")
    left = at.seconds_left
    parts.append("time left unknown" if left is None else f"about {format_duration(left)} left")
    mark = "REHEARSAL  " if at.recipe.epochs is not None else ""
    return mark + ", ".join(parts)


def _lines(at: "Reproduction") -> Iterator[str]:
    yield _standing(at)
    for one in at.having("running"):
        if one.at is not None:
            reached = format_number(one.at.hypervolume_val)
            yield f"  {one.cell.name}  epoch {one.at.epoch}/{one.at.epochs}  HV val {reached}"


def _named(some: "list[CellStatus]", most: int) -> str:
    more = f" and {len(some) - most} more" if len(some) > most else ""
    return ", ".join(one.cell.name for one in some[:most]) + more


def _ended(one: "CellStatus") -> str:
    if one.state == "failed":
        return f"failed  {one.cell.name}: {one.error}"
    seeds = len(one.cell.seeds)
    paper = "" if one.hypervolume_paper is None else f" (the paper's {printed_volume(one)})"
    return (
        f"done    {one.cell.name}  HV {format_number(one.hypervolume)}{paper}  "
        f"{seeds} seed{'s' if seeds > 1 else ''}  {format_duration(one.here)}"
    )


def printed_volume(one: "CellStatus") -> str:
    """Return the paper's hypervolume with as many digits as it has in print."""
    if one.hypervolume_paper is None:
        return "-"
    return f"{one.hypervolume_paper:.{3 if is_face(one.cell.problem) else 2}f}"


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"
