"""A reproduction: where each cell of a recipe stands, what it took, and one file that says so."""

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from paretocosmos.errors import RunError
from paretocosmos.io.files import sweep, write_json
from paretocosmos.io.schema import CELL
from paretocosmos.paper._cell import Outcome
from paretocosmos.paper._means import volume_in
from paretocosmos.paper.recipe import Cell, Recipe
from paretocosmos.runs.record import record_in
from paretocosmos.training.fit import Progress

__all__ = ["Reproduction", "Standing", "State"]

State = Literal["waiting", "running", "done", "failed"]

# What the time of a run went into, in the words of its record.
PARTS = ("training", "preparing", "evaluating")


@dataclass(frozen=True)
class Standing:
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
    seconds_in: Mapping[str, float] = field(default_factory=dict)
    packages: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What a reproduction's file has of it."""
        cell = self.cell
        return {
            "name": cell.name,
            "problem": cell.problem,
            "protocol": cell.protocol,
            "method": cell.method,
            "settings": dict(cell.settings),
            "state": self.state,
            "error": self.error,
            "seeds": list(cell.seeds),
            "seeds_done": list(self.seeds_done),
            "hypervolume": self.hypervolume,
            "seconds": self.seconds,
            "share": self.share,
            "seconds_in": dict(self.seconds_in),
        }


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
    standings: dict[str, Standing] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def file(self) -> Path:
        """The file that says all this."""
        return self.recipe.root(self.out) / f"{self.recipe.name}.json"

    def having(self, state: State) -> list[Standing]:
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
        self,
        cell: Cell,
        state: State,
        error: str | None = None,
        *,
        asked: bool,
        packages: tuple[str, ...] = (),
    ) -> None:
        """Enter what was found of a cell on the disk."""
        from paretocosmos.io.schema.cell import read_cell

        kept = read_cell(cell.folder(self.out))
        if not asked and state == "waiting" and kept.error:
            state, error = "failed", kept.error
        found = Standing(cell, asked, state, error, kept.seconds, kept.share, packages=packages)
        self.standings[cell.name] = _with_results(found, self.out)

    def note(self, cell: Cell, what: Progress | Outcome | None) -> None:
        """Enter what a cell in training says: that it began, where it stands, how it ended."""
        before = self.standings[cell.name]
        if isinstance(what, Outcome):
            now = dataclasses.replace(
                before,
                state="done" if what.error is None else "failed",
                error=what.error,
                packages=what.packages,
                seconds=before.seconds + what.seconds,
                share=before.share + (what.seconds if what.share is None else what.share),
                here=before.here + what.seconds,
                at=None,
            )
            self.standings[cell.name] = now = _with_results(now, self.out)
            with suppress(OSError):  # where nothing can be written, the cell has failed for it
                _keep(now, self.out)
            self.notes += [one for one in what.notes if one not in self.notes]
            return
        began = time.monotonic() if what is None else before.began
        self.standings[cell.name] = dataclasses.replace(
            before, state="running", at=what, began=began
        )

    def stop(self) -> None:
        """Nothing runs any more: what was not finished waits for the next time."""
        for one in self.having("running"):
            spent = 0.0 if one.began is None else time.monotonic() - one.began
            now = dataclasses.replace(
                one,
                state="waiting",
                at=None,
                began=None,
                seconds=one.seconds + spent,
                share=one.share + spent,  # at most
            )
            self.standings[one.cell.name] = now
            with suppress(OSError):
                _keep(now, self.out)
        self.save()

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
        cells = [one.to_dict() for one in self.standings.values()]
        return {
            "recipe": self.recipe.name,
            "title": self.recipe.title,
            "section": self.recipe.section,
            "shows": self.recipe.shows,
            "rehearsal": self.recipe.epochs,
            "cells": cells,
            "seconds": {
                "all": sum(cell["seconds"] for cell in cells),
                **{
                    part: sum(cell["seconds_in"].get(part, 0.0) for cell in cells) for part in PARTS
                },
                "by_problem": _sums(cells, "problem"),
                "by_method": _sums(cells, "method"),
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


def _with_results(one: Standing, out: Path) -> Standing:
    """With the numbers of the runs that are finished."""
    done = {s: r for s, r in _records(one.cell, out) if r.get("status") == "finished"}
    reached = [record["metrics"]["test"][volume_in(record)] for record in done.values()]
    spent = {
        # seeds that trained together share that time, but each is evaluated by itself
        part: sum(
            record[f"seconds_{part}"] / (1 if part == "evaluating" else record["seeds_together"])
            for record in done.values()
        )
        for part in PARTS
    }
    mean = fmean(reached) if reached else None
    return dataclasses.replace(one, seeds_done=tuple(done), hypervolume=mean, seconds_in=spent)


def _records(cell: Cell, out: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for seed, folder in cell.runs(out).items():
        if (folder / "run.json").exists():
            try:
                yield seed, record_in(folder)
            except RunError:  # for which the cell has failed
                continue


def _keep(one: Standing, out: Path) -> None:
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


def _sums(cells: Sequence[Mapping[str, Any]], key: str) -> dict[str, float]:
    names = dict.fromkeys(cell[key] for cell in cells)
    return {name: sum(c["seconds"] for c in cells if c[key] == name) for name in names}
