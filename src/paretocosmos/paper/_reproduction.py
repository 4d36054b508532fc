"""A reproduction: where each cell of a recipe stands, what it took, and one file that says so."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from paretocosmos.errors import ParetoCosmosError, RunError
from paretocosmos.io.files import sweep, write_json
from paretocosmos.io.schema import CELL
from paretocosmos.paper._cell import Outcome, packages_of
from paretocosmos.paper._done import Record, seconds_in, volume_in
from paretocosmos.paper.recipe import Cell, Recipe
from paretocosmos.runs.record import load_record
from paretocosmos.training.fit import Progress

__all__ = ["CellStatus", "Reproduction", "State"]

State = Literal["waiting", "running", "done", "failed"]

# What the time of a run went into, in the words of its record.
PARTS = ("training", "preparing", "evaluating")


@dataclass(frozen=True)
class CellStatus:
    """Where one cell stands.

    Attributes:
        cell: the cell.
        asked: whether it is to be trained this time.
        state: ``"waiting"``, ``"running"``, ``"done"`` or ``"failed"``.
        error: why it failed.
        packages: what would have to be trusted, where that is why.
        seconds: all its sittings took.
        share: what of that is its own, where cells ran side by side.
        here: what its sitting now took.
        at: where its training stands, if it runs.
        began: when that began, by `time.monotonic`.
        seeds_done: the seeds whose runs are finished.
        hypervolume: their mean, on test; of one network per objective that of their ideal point.
        hypervolume_paper: what the paper prints for it; `None` if it prints nothing.
        seconds_in: what the time of those runs went into.
    """

    cell: Cell
    asked: bool
    state: State = "waiting"
    error: str | None = None
    seconds: float = 0.0
    share: float = 0.0
    here: float = 0.0
    at: Progress | None = None
    began: float | None = None
    seeds_done: tuple[int, ...] = ()
    hypervolume: float | None = None
    hypervolume_paper: float | None = None
    seconds_in: Mapping[str, float] = field(default_factory=dict)
    packages: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What a reproduction's file has of it."""
        own = ("name", "problem", "protocol", "method", "settings", "seeds")
        more = (
            *("state", "error", "seeds_done", "hypervolume", "hypervolume_paper"),
            *("seconds", "share", "seconds_in"),
        )
        told = {key: getattr(self.cell, key) for key in own}
        told |= {key: getattr(self, key) for key in more}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in told.items()}


@dataclass
class Reproduction:
    """What became of a recipe.

    Attributes:
        recipe: with the seeds and epochs that were asked for.
        out: the folder of all recipes.
        standings: a cell's, by its name, in the recipe's order.
        notes: warnings, each once.
    """

    recipe: Recipe
    out: Path
    standings: dict[str, CellStatus] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def file(self) -> Path:
        """The file that says all this."""
        return self.recipe.root(self.out) / f"{self.recipe.name}.json"

    def having(self, state: State) -> list[CellStatus]:
        """The cells in a certain state, of those that are to be trained this time."""
        return [one for one in self.standings.values() if one.asked and one.state == state]

    @property
    def failures(self) -> dict[str, str]:
        """Why cells failed, by their names."""
        return {one.cell.name: str(one.error) for one in self.having("failed")}

    @property
    def untrusted(self) -> dict[str, tuple[str, ...]]:
        """The packages that cells failed for since nobody trusts them, by the cells' names."""
        return {one.cell.name: one.packages for one in self.having("failed") if one.packages}

    def know(
        self, cell: Cell, state: State, error: ParetoCosmosError | None = None, *, asked: bool
    ) -> None:
        """Enter what was found of a cell on the disk."""
        from paretocosmos.io.schema.cell import read_cell

        kept = read_cell(cell.folder(self.out))
        why = None if error is None else str(error)
        if not asked and state == "waiting" and kept.error:
            state, why = "failed", kept.error
        packages = packages_of(error)
        paper = self.recipe.paper_volume(cell)
        found = CellStatus(
            cell,
            asked,
            state,
            why,
            kept.seconds,
            kept.share,
            hypervolume_paper=paper,
            packages=packages,
        )
        self.standings[cell.name] = _with_results(found, self.out)

    def note(self, cell: Cell, what: Progress | Outcome | None) -> None:
        """Enter what a cell in training says: that it began, where it stands, how it ended."""
        one = self.standings[cell.name]
        if not isinstance(what, Outcome):
            began = time.monotonic() if what is None else one.began
            self.standings[cell.name] = replace(one, state="running", at=what, began=began)
            return
        state: State = "done" if what.error is None else "failed"
        now = replace(one, state=state, error=what.error, packages=what.packages)
        now = replace(_with_results(now, self.out), here=one.here + what.seconds)
        self._ended(now, what.seconds, what.seconds if what.share is None else what.share)
        self.notes += [said for said in what.notes if said not in self.notes]

    def stop(self) -> None:
        """Nothing runs any more: what was not finished waits for the next time."""
        for one in self.having("running"):
            spent = 0.0 if one.began is None else time.monotonic() - one.began
            self._ended(replace(one, state="waiting", began=None), spent, spent)  # at most
        self.save()

    def _ended(self, one: CellStatus, seconds: float, share: float) -> None:
        """Enter what a sitting took, here and in the cell's folder."""
        now = replace(one, at=None, seconds=one.seconds + seconds, share=one.share + share)
        self.standings[one.cell.name] = now
        with suppress(OSError):  # where nothing can be written, the cell has failed for it
            _keep(now, self.out)

    @property
    def seconds_left(self) -> float | None:
        """An estimate, from what like cells took; `None` while nothing is known.

        Like is the same method on the same problem, else the same method, the same problem, any.
        """
        running, waiting = self.having("running"), self.having("waiting")
        took = [(one.cell, one.here) for one in self.standings.values() if one.here > 0]
        known = []
        for one in running:
            if one.at is not None and one.began is not None:
                known.append(one.at.seconds_left)
                took.append((one.cell, time.monotonic() - one.began + one.at.seconds_left))
        if not took:
            return None if waiting or running else 0.0
        begun = [one for one in running if one.at is None]
        guessed = [_like(one.cell, took) for one in (*begun, *waiting)]
        # cells run side by side, and the longest of them is not shortened by that
        return max([(sum(known) + sum(guessed)) / max(1, len(running)), *known])

    def to_dict(self) -> dict[str, Any]:
        """Every cell and where the time went: what `reproduce --json` prints."""
        every = list(self.standings.values())
        parts = {part: sum(one.seconds_in.get(part, 0.0) for one in every) for part in PARTS}
        return {
            "recipe": self.recipe.name,
            "title": self.recipe.title,
            "section": self.recipe.section,
            "shows": self.recipe.shows,
            "rehearsal": self.recipe.epochs,
            "cells": [one.to_dict() for one in every],
            "seconds": {
                "all": sum(one.seconds for one in every),
                **parts,
                "by_problem": _sums(every, lambda cell: cell.problem),
                "by_method": _sums(every, lambda cell: cell.method),
            },
        }

    def save(self) -> None:
        """Write the file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_json(self.file, self.to_dict())
        except RunError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            # another process that begins has swept it away as it was written
            write_json(self.file, self.to_dict())

    def sweep(self) -> None:
        """Remove what a killed process left beside the file."""
        sweep(self.file.parent, of=self.file.name)


def _with_results(one: CellStatus, out: Path) -> CellStatus:
    """With the numbers of the runs that are finished."""
    done: dict[int, Record] = {}
    for seed, folder in one.cell.runs(out).items():
        with suppress(RunError):  # of a record that is damaged, for which the cell has failed
            record = load_record(folder) if (folder / "run.json").exists() else {}
            if record.get("status") == "finished":
                done[seed] = record
    reached = [record["metrics"]["test"][volume_in(record)] for record in done.values()]
    spent = {part: sum(seconds_in(record, part) for record in done.values()) for part in PARTS}
    mean = fmean(reached) if reached else None
    return replace(one, seeds_done=tuple(done), hypervolume=mean, seconds_in=spent)


def _keep(one: CellStatus, out: Path) -> None:
    """Leave in the cell's folder what it is, what it took and why it failed."""
    folder = one.cell.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    kept = ("problem", "protocol", "method", "settings", "error", "seconds", "share")
    said = {key: value for key, value in one.to_dict().items() if key in kept}
    write_json(folder / CELL, said | {"rehearsal": one.cell.epochs})


def _like(cell: Cell, took: Sequence[tuple[Cell, float]]) -> float:
    both = [s for c, s in took if (c.problem, c.method) == (cell.problem, cell.method)]
    method = [s for c, s in took if c.method == cell.method]
    problem = [s for c, s in took if c.problem == cell.problem]
    return fmean(both or method or problem or [s for _, s in took])


def _sums(every: Sequence[CellStatus], key: Callable[[Cell], str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in every:
        found[key(one.cell)] = found.get(key(one.cell), 0) + one.seconds
    return found
