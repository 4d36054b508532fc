"""The files this package reads, in good order, and who reads them."""

import contextlib
import gzip
import io
import json
import os
import pickle
import random
import shutil
import struct
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.strangers import seal

from faults._mutations import BYTES, JSON, SAFETENSORS, TEXT, Mutate
from faults._trainings import RECIPE, SETTINGS, write_table
from paretocosmos.checkpoint import flaw_of
from paretocosmos.evaluation import evaluate
from paretocosmos.experiments.collected import collect, read_collected
from paretocosmos.experiments.recipe import load_recipe
from paretocosmos.experiments.report import write_report
from paretocosmos.experiments.reproduce import reproduce
from paretocosmos.explorer import look_at
from paretocosmos.explorer import write_report as write_page
from paretocosmos.front import Front
from paretocosmos.loading import load_run
from paretocosmos.plotting import save_front
from paretocosmos.printing import numbers_of_run, print_choice, print_report, print_run
from paretocosmos.problems._composites import Composites
from paretocosmos.problems._idx import read_pair
from paretocosmos.problems._kept import kept
from paretocosmos.problems._pickles import SIDE, read_pickle
from paretocosmos.problems.table import table
from paretocosmos.training import fit

__all__ = ["Artefact", "artefacts"]

Read = Callable[[Path], Any]
Anew = {**SETTINGS, "hidden": (8,), "reference": (9.0, 9.0)}


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


def artefacts(folder: Path, *, exported: bool) -> list[Artefact]:
    """Make one good file of every kind.

    Args:
        folder: where they go.
        exported: whether an ONNX file is among them, which takes some seconds to make.
    """
    random.seed(0)
    folder.mkdir()
    write_table(folder / "people.csv")
    (folder / "mine.toml").write_text(RECIPE)
    toy, people, begun, cells = (folder / name for name in ("toy", "table", "begun", "cells"))
    common: dict[str, Any] = {"device": "cpu", "engine": "eager"}
    given = {"data": str(folder / "people.csv"), "target": "paid", "sensitive": "sex"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit("toy_convex", epochs=2, settings=Anew, out=toy, **common)
        fit("table", epochs=2, settings={**given, "hidden": (8,), "rays": 3}, out=people, **common)
        _begin(begun)
        small = load_recipe(folder / "mine.toml").with_seeds([1])
        reproduce(small, out=cells, device="cpu")
    made = [*_of_runs(toy, people), *_of_checkpoints(begun)]
    cell = next(cells.rglob("cell.json")).relative_to(cells).as_posix()
    collected = folder / "collected"
    collected.mkdir()
    (collected / "mine.json").write_text(json.dumps(collect(small, cells)))
    both = {**BYTES, **JSON}

    def tables(place: Path) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = reproduce(small, out=place, device="cpu")
        return [done.to_dict(), collect(small, place)]

    made += [
        Artefact("cell.json", cells, cell, tables, 1, both, fresh=True),
        Artefact("a collected result", collected, "mine.json", _reported, 3, both),
        Artefact("a recipe", folder, "mine.toml", lambda f: load_recipe(f / "mine.toml"), 8,
                 {**BYTES, **TEXT}),
        Artefact("a table of one's own", folder, "people.csv", _table, 3, {**BYTES, **TEXT}),
    ]
    made += _of_images(folder / "images")
    return [*made, *(_of_exports(people) if exported else [])]


def _begin(out: Path) -> None:
    """A run that was stopped after its second epoch of three."""

    def stop(at: Any) -> None:
        if at.epoch == 2:
            raise InterruptedError

    with contextlib.suppress(InterruptedError):
        _train(out, progress=stop)


def _train(out: Path, **more: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit("toy_convex", epochs=3, settings=Anew, out=out, device="cpu", engine="eager", **more)


def _of_runs(toy: Path, people: Path) -> list[Artefact]:
    both, tensors = {**BYTES, **JSON}, {**BYTES, **SAFETENSORS}
    names = ("front.json", "front_val.json")
    return [
        Artefact("run.json", toy, "run.json", _opened, 14, both, exact=True),
        Artefact("run.json of a stranger", toy, "run.json", _used, 6, JSON, sealed=True),
        Artefact("run.json of a stranger's table", people, "run.json", _used, 4, JSON, sealed=True),
        *(Artefact(name, toy, name, _opened, 5, both, exact=True) for name in names),
        *(Artefact(f"{n} of a stranger", toy, n, _used, 3, JSON, sealed=True) for n in names),
        Artefact("front.json alone", toy, "front.json", _front, 8, both),
        Artefact("table.json", people, "table.json", _opened, 5, both, exact=True),
        Artefact("table.json of a stranger", people, "table.json", _used, 3, JSON, sealed=True),
        Artefact("model.safetensors", toy, "model.safetensors", _opened, 9, tensors, exact=True),
        Artefact(
            "model.safetensors of a stranger", toy, "model.safetensors", _used, 4, tensors,
            sealed=True,
        ),
    ]


def _of_checkpoints(begun: Path) -> list[Artefact]:
    last, before = (f"checkpoint/epoch-{epoch}.safetensors" for epoch in (2, 1))
    tensors = {**BYTES, **SAFETENSORS}

    def resumed(place: Path) -> Any:
        _train(place, resume=True)
        return [(place / name).read_bytes() for name in ("front.json", "model.safetensors")]

    def looked(place: Path) -> Any:
        flaw = flaw_of(place / last, 2)
        return "intact" if flaw is None else "damaged"

    def alone(place: Path) -> Any:
        shutil.rmtree(place / before, ignore_errors=True)
        (place / before).unlink(missing_ok=True)
        return resumed(place)

    def both(name: str, file: str, read: Read, share: float, **more: bool) -> Artefact:
        return Artefact(name, begun, file, read, share, tensors, exact=True, fresh=True, **more)

    return [
        both("the last checkpoint", last, resumed, 2, always=True),
        both("the checkpoint before", before, resumed, 1, always=True),
        both("the only checkpoint", last, alone, 0.5),
        Artefact("a checkpoint, looked at", begun, last, looked, 8, tensors, fresh=True),
        Artefact("run.json of a run that was begun", begun, "run.json", resumed, 1,
                 {**BYTES, **JSON}, exact=True, fresh=True),
    ]


def _of_images(folder: Path) -> list[Artefact]:
    folder.mkdir()
    draw = np.random.default_rng(0)
    images, labels = draw.integers(0, 256, (9, 28, 28), np.uint8), np.arange(9, dtype=np.uint8)
    for name, array in (("images", images), ("labels", labels)):
        head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        (folder / name).write_bytes(head + array.tobytes())
        (folder / f"{name}.gz").write_bytes(gzip.compress(head + array.tobytes(), mtime=0))
    parts = (draw.random((7, SIDE, SIDE), np.float32), draw.integers(0, 10, (7, 2)))
    (folder / "pairs.pickle").write_bytes(pickle.dumps((*parts, *parts), protocol=2))
    composites = Composites(images, np.stack([labels, labels], 1), (5, 2, 2))

    def remembered(place: Path) -> Any:
        os.environ["XDG_CACHE_HOME"] = os.environ["PARETOCOSMOS_CACHE"] = str(place)
        made, sha256 = kept("pairs", lambda: composites)
        return made.images.tobytes(), made.labels.tobytes(), made.counts, sha256

    remembered(folder)
    (cache,) = folder.rglob("pairs.npz")

    def pair(ending: str) -> Read:
        def read(place: Path) -> Any:
            found = read_pair(place / f"images{ending}", place / f"labels{ending}")
            return [part.tobytes() for part in found]

        return read

    def pairs(place: Path) -> Any:
        return read_pickle(place / "pairs.pickle").sha256

    return [
        Artefact("idx images", folder, "images", pair(""), 3),
        Artefact("idx labels", folder, "labels", pair(""), 2),
        Artefact("gzipped idx images", folder, "images.gz", pair(".gz"), 3, exact=True),
        Artefact("a pickle of images", folder, "pairs.pickle", pairs, 3),
        Artefact(
            "images kept in the cache", folder, cache.relative_to(folder).as_posix(), remembered, 2,
            exact=True, always=True, fresh=True,
        ),
    ]


def _of_exports(people: Path) -> list[Artefact]:
    from paretocosmos.export import export
    from paretocosmos.serving import Settings
    from paretocosmos.serving._service import Service

    export(load_run(people), out=people.parent / "net.onnx")

    def served(place: Path) -> Any:
        Service(Settings(folder=people, onnx=place / "net.onnx")).close()
        return "like the run's own network"

    return [Artefact("an exported network", people.parent, "net.onnx", served, 1.5)]


def _opened(folder: Path) -> Any:
    run = load_run(folder)
    weights = {name: value.numpy().tobytes() for name, value in run.model.state_dict().items()}
    table = None if run.table is None else run.table.to_dict()
    return run.front.to_json(), run.front_val.to_json(), weights, run.record, table


def _used(folder: Path) -> Any:
    """All that can be done with a run: told, chosen from, evaluated, drawn, explored."""
    run = load_run(folder)
    with _silent():
        numbers_of_run(run)
        print_run(run)
        problem = run.problem()
        evaluate(run.model, problem, rays=2)
        print_choice(run, run.choose(knee=True, problem=problem, evaluations=2))
        write_page(folder / "page.html", look_at([run]))
        if hash(str(folder)) % 8 == 0:  # which takes most of the time
            save_front(folder / "page.png", [run.front])
    return None


def _front(folder: Path) -> Any:
    path = folder / "front.json"
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    Front.from_json(text).choose(knee=True)


def _table(folder: Path) -> Any:
    given = {"data": str(folder / "people.csv"), "target": "paid", "sensitive": "sex"}
    problem = table(**given)
    return [len(problem.split(part)) for part in ("train", "val", "test")]


def _reported(folder: Path) -> Any:
    content = read_collected(folder / "mine.json")
    with _silent():
        write_report([content], folder / "report")
        print_report([content], folder / "report")
    return None


@contextlib.contextmanager
def _silent() -> Any:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    sys.stdout.flush()
