"""The files this package reads, in good order, and who reads them."""

import contextlib
import dataclasses
import gzip
import shutil
import struct
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from faults.mutations import BYTES, JSON, SAFETENSORS, TEXT, Mutate
from faults.readers import open_run, read_front, read_table, use_run
from faults.trainings import RECIPE, SETTINGS, write_table
from paretocosmos.paper.collect import collect_results
from paretocosmos.paper.recipe import load_recipe
from paretocosmos.paper.reproduction import reproduce
from paretocosmos.problems import Problem, load_problem
from paretocosmos.problems.images.pairs import read_pair
from paretocosmos.runs.checkpoint import find_flaw
from paretocosmos.training.fit import fit

__all__ = ["Artefact", "artefacts"]

Read = Callable[[Path], Any]
ANEW = {**SETTINGS, "hidden": (8,), "reference": (9.0, 9.0)}
RESULTS = ("front.json", "model.safetensors")
FOREIGN: dict[str, dict[str, Any]] = {
    "of another seed": {"seed": 2},
    "of another learning rate": {"settings": ANEW | {"learning_rate": 0.5}},
    "of another batch size": {"settings": ANEW | {"batch_size": 16}},
    "of another method": {"method": "linear"},
}
"""Checkpoints that are intact, of the right epoch and of the right shapes."""


@dataclass(frozen=True)
class Artefact:
    """A kind of file, where a good one is, and what is read of it.

    Attributes:
        name: what it is called in the counts.
        folder: a folder in good order; read only.
        file: the one that is damaged, in it.
        read: reads a folder like that, and gives what it found.
        share: how many of all damages are its own, relative to others.
        ways: how it is damaged.
        exact: whether whatever is read must be what was written; else another answer is allowed,
            as from a file without a hash, or from a stranger's.
        sealed: whether hashes are made right again after the damage, as a stranger can.
        always: whether it has to be read, and not refused, whatever the damage.
        fresh: whether reading changes the folder.
    """

    name: str
    folder: Path
    file: str
    read: Read
    share: float
    ways: Mapping[str, Mutate] = field(default_factory=lambda: BYTES)
    exact: bool = False
    sealed: bool = False
    always: bool = False
    fresh: bool = False


GROUPS = {
    "runs": ("run.json", "front", "table.json", "model"),
    "checkpoints": ("the last", "the checkpoint", "the only", "a checkpoint", "run.json of a run"),
    "data": ("data of",),
    "cells": ("cell.json",),
    "texts": ("a recipe", "a table of"),
    "images": ("idx", "gzipped", "images"),
}
"""What kinds of files are made together, by the beginnings of their names."""


def artefacts(folder: Path, *, only: str | None) -> list[Artefact]:
    """Make one good file of every kind.

    Args:
        folder: where they go.
        only: kinds whose names begin so; else all.
    """
    folder.mkdir()
    write_table(folder / "people.csv")
    (folder / "mine.toml").write_text(RECIPE)
    makers = {
        "runs": _of_runs,
        "checkpoints": _of_checkpoints,
        "data": _of_data,
        "cells": _of_cells,
        "texts": _of_texts,
        "images": _of_images,
    }
    made: list[Artefact] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for group, make in makers.items():
            if only is None or any(only.startswith(one) for one in GROUPS[group]):
                made += make(folder)
    return [one for one in made if only is None or one.name.startswith(only)]


def _of_cells(folder: Path) -> list[Artefact]:
    cells = folder / "cells"
    small = load_recipe(folder / "mine.toml").with_seeds([1])
    reproduce(small, out=cells, device="cpu")
    cell = next(cells.rglob("cell.json")).relative_to(cells).as_posix()
    both = {**BYTES, **JSON}

    def tables(place: Path) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = reproduce(small, out=place, device="cpu")
        return [done.to_dict(), collect_results(small, place).to_dict()]

    return [Artefact("cell.json", cells, cell, tables, 1, both, fresh=True)]


def _of_texts(folder: Path) -> list[Artefact]:
    ways = {**BYTES, **TEXT}
    return [
        Artefact("a recipe", folder, "mine.toml", lambda f: load_recipe(f / "mine.toml"), 8, ways),
        Artefact("a table of one's own", folder, "people.csv", read_table, 3, ways),
    ]


def _begin(out: Path, **more: Any) -> None:
    """A run that was stopped after its second epoch of three."""
    with contextlib.suppress(InterruptedError):
        _train(out, progress=_stop, **more)


def _stop(at: Any) -> None:
    if at.epoch == 2:
        raise InterruptedError


def _train(out: Path, problem: str | Problem = "toy_convex", **more: Any) -> None:
    given: dict[str, Any] = {"epochs": 3, "settings": ANEW, "device": "cpu", "engine": "eager"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(problem, preset="paper", out=out, **given | more)


def _train_on_table(folder: Path, **more: Any) -> None:
    """Train on the table in a folder, whose path is no setting: the folder is copied."""
    data = {"data": str(folder / "people.csv"), "target": "paid", "sensitive": "sex"}
    problem = dataclasses.replace(load_problem("table", settings=data), spec=None)
    _train(folder / "run", problem, **more)


def _of_data(folder: Path) -> list[Artefact]:
    """A table that is changed between a kill and the resume."""
    place = folder / "data"
    place.mkdir()
    write_table(place / "people.csv")
    with contextlib.suppress(InterruptedError):
        _train_on_table(place, progress=_stop)

    def resumed(place: Path) -> Any:
        _train_on_table(place, resume=True)
        return [(place / "run" / name).read_bytes() for name in RESULTS]

    ways = {**BYTES, **TEXT}
    return [
        Artefact("data of a run", place, "people.csv", resumed, 2, ways, exact=True, fresh=True)
    ]


def _of_runs(folder: Path) -> list[Artefact]:
    toy, people = folder / "toy", _of_people(folder)
    fit(
        "toy_convex", preset="paper", epochs=2, settings=ANEW, out=toy, device="cpu", engine="eager"
    )
    both, tensors = {**BYTES, **JSON}, {**BYTES, **SAFETENSORS}
    names = ("front.json", "front_val.json")
    return [
        Artefact("run.json", toy, "run.json", open_run, 14, both, exact=True),
        Artefact("run.json of a stranger", toy, "run.json", use_run, 6, JSON, sealed=True),
        Artefact(
            "run.json of a stranger's table", people, "run.json", use_run, 4, JSON, sealed=True
        ),
        *(Artefact(name, toy, name, open_run, 5, both, exact=True) for name in names),
        *(Artefact(f"{n} of a stranger", toy, n, use_run, 3, JSON, sealed=True) for n in names),
        Artefact("front.json alone", toy, "front.json", read_front, 8, both),
        Artefact("table.json", people, "table.json", open_run, 5, both, exact=True),
        Artefact("table.json of a stranger", people, "table.json", use_run, 3, JSON, sealed=True),
        Artefact("model.safetensors", toy, "model.safetensors", open_run, 9, tensors, exact=True),
        Artefact(
            "model.safetensors of a stranger",
            toy,
            "model.safetensors",
            use_run,
            4,
            tensors,
            sealed=True,
        ),
    ]


def _of_people(folder: Path) -> Path:
    """A run on a table, made once."""
    given = {"data": str(folder / "people.csv"), "target": "paid", "sensitive": "sex"}
    settings = {**given, "hidden": (8,), "rays": 3}
    if not (folder / "people").exists():
        fit(
            "table",
            preset="paper",
            epochs=2,
            settings=settings,
            out=folder / "people",
            device="cpu",
        )
    return folder / "people"


def _replace_by(other: bytes) -> Mutate:
    return lambda _, __: other


def _of_checkpoints(folder: Path) -> list[Artefact]:
    begun = folder / "begun"
    _begin(begun)
    last, before = (f"checkpoint/epoch-{epoch}.safetensors" for epoch in (2, 1))
    tensors = {**BYTES, **SAFETENSORS}

    def resumed(place: Path) -> Any:
        _train(place, resume=True)
        return [(place / name).read_bytes() for name in RESULTS]

    def looked(place: Path) -> Any:
        flaw = find_flaw(place / last, 2)
        return "intact" if flaw is None else "damaged"

    def alone(place: Path) -> Any:
        shutil.rmtree(place / before, ignore_errors=True)
        (place / before).unlink(missing_ok=True)
        return resumed(place)

    def both(name: str, file: str, read: Read, share: float, **more: bool) -> Artefact:
        return Artefact(name, begun, file, read, share, tensors, exact=True, fresh=True, **more)

    foreign: dict[str, Mutate] = {}
    for how, change in FOREIGN.items():
        _begin(folder / how, **change)
        foreign[how] = _replace_by((folder / how / last).read_bytes())
    return [
        Artefact(
            "a checkpoint of another run",
            begun,
            last,
            resumed,
            1,
            foreign,
            exact=True,
            fresh=True,
        ),
        both("the last checkpoint", last, resumed, 2, always=True),
        both("the checkpoint before", before, resumed, 1, always=True),
        both("the only checkpoint", last, alone, 0.5),
        Artefact("a checkpoint, looked at", begun, last, looked, 8, tensors, fresh=True),
        Artefact(
            "run.json of a run that was begun",
            begun,
            "run.json",
            resumed,
            1,
            {**BYTES, **JSON},
            exact=True,
            fresh=True,
        ),
    ]


def _of_images(good: Path) -> list[Artefact]:
    folder = good / "images"
    folder.mkdir()
    draw = np.random.default_rng(0)
    images, labels = draw.integers(0, 256, (9, 28, 28), np.uint8), np.arange(9, dtype=np.uint8)
    for name, array in (("images", images), ("labels", labels)):
        head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        (folder / name).write_bytes(head + array.tobytes())
        (folder / f"{name}.gz").write_bytes(gzip.compress(head + array.tobytes(), mtime=0))

    def pair(ending: str) -> Read:
        def read(place: Path) -> Any:
            found = read_pair(place / f"images{ending}", place / f"labels{ending}")
            return [part.tobytes() for part in found]

        return read

    return [
        Artefact("idx images", folder, "images", pair(""), 3),
        Artefact("idx labels", folder, "labels", pair(""), 2),
        Artefact("gzipped idx images", folder, "images.gz", pair(".gz"), 3, exact=True),
    ]
