"""What is killed: small trainings of every kind, and what of their results has to be the same."""

import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretocosmos.errors import ParetoCosmosError
from paretocosmos.paper.collect import collect_results
from paretocosmos.paper.recipe import load_recipe
from paretocosmos.paper.reproduction import reproduce
from paretocosmos.runs.checkpoint import list_checkpoints
from paretocosmos.training.compare import compare
from paretocosmos.training.fit import fit

__all__ = ["KINDS", "Training", "count_checkpoints", "prepare", "write_table"]

# in these every seed alone, even for one epoch, rounds otherwise than in a stack
SETTINGS: dict[str, Any] = {"hidden": (60, 25), "batch_size": 32, "evaluate_every": 2, "rays": 3}
EPOCHS = 3
SEEDS = (1, 2, 3)
RECIPE = """
title = "Two cells"
section = "none"
shows = "fronts"
seeds = [1, 2, 3]
[[grid]]
problems = ["toy_convex"]
methods = ["cosmos", "linear"]
settings = {epochs = 3, hidden = [60, 25], batch_size = 32, evaluate_every = 2, rays = 3}
"""
TABLE, TWO_CELLS = "people.csv", "two_cells.toml"
FILES = ("front.json", "front_val.json", "table.json", "model.safetensors")
# what may differ from run to run: when, how long, from which state of the repository
PASSING = ("written", "command", "git", "samples_per_second", "share_waiting", "peak_memory")
PASSING_IN_TABLES = (*PASSING, "share", "run_in_parallel", "sha256", "folder")


@dataclass(frozen=True)
class Training:
    """A kind of training: begun, and gone on with, by the same call."""

    name: str

    def go(self, out: Path) -> None:
        """Begin, or go on; what is refused ends the process with 2 and a sentence."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self._go(out)
            except ParetoCosmosError as error:
                if "\n" in str(error):
                    raise
                sys.stderr.write(f"refused: {error}\n")
                sys.exit(2)

    def _go(self, out: Path) -> None:
        common: dict[str, Any] = {"device": "cpu", "engine": "eager", "resume": True}
        settings = SETTINGS | {"reference": (9.0, 9.0)}
        if self.name in ("one seed", "a stack of seeds"):
            own = {"seed": 1} if self.name == "one seed" else {"seeds": SEEDS}
            fit(
                "toy_convex",
                preset="paper",
                out=out,
                epochs=EPOCHS,
                settings=settings,
                **own,
                **common,
            )
        elif self.name == "a table":
            data = {"data": str(_beside(out) / TABLE), "target": "paid", "sensitive": "sex"}
            small = SETTINGS | {"hidden": (6,)} | data
            # by the default preset, whose averaged weights and calibrated ends are kept too
            fit("table", out=out, epochs=EPOCHS, settings=small, **common)
        elif self.name == "compare":
            methods = ["cosmos", "uniform"]
            compare(
                "toy_convex",
                methods,
                preset="paper",
                seeds=(1, 2),
                epochs=2,
                settings=settings,
                out=out,
                **common,
            )
        else:
            workers = 2 if self.name == "reproduce on workers" else 0
            done = reproduce(_beside(out) / TWO_CELLS, out=out, device="cpu", workers=workers)
            if done.failures:
                raise ParetoCosmosError("; ".join(done.failures.values()))

    def arguments(self, out: Path) -> list[str]:
        """The same on the command line."""
        several = ["--seeds", "1,2,3"] if self.name == "a stack of seeds" else []
        given = {**SETTINGS, "hidden": "60,25", "reference": "9,9"}
        every = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
        start = ["train", "toy_convex", "--out", str(out), "--epochs", str(EPOCHS), "--json"]
        how = ["--preset", "paper", "--resume", "--device", "cpu", "--engine", "eager"]
        return [*start, *how, *several, *every]

    def results(self, out: Path) -> dict[str, Any]:
        """What has to be the same, bit for bit."""
        found: dict[str, Any] = {}
        for run in _runs(out):
            where = run.relative_to(out).as_posix()
            there = [name for name in FILES if (run / name).exists()]
            found |= {f"{where}/{name}": (run / name).read_bytes() for name in there}
            record = json.loads((run / "run.json").read_text())
            del record["sha256"]
            found[f"{where}/run.json"] = _lasting(record, PASSING)
        for name in ("compare.json", "two_cells.json"):
            if (out / name).exists():
                found[name] = _lasting(json.loads((out / name).read_text()), PASSING_IN_TABLES)
        if self.name.startswith("reproduce"):
            made = collect_results(load_recipe(_beside(out) / TWO_CELLS), out)
            found["tables"] = _lasting(made.to_dict(), PASSING_IN_TABLES)
        return found

    def left(self, out: Path) -> list[str]:
        """What nobody needs any more and is still there."""
        hidden = [path for path in out.rglob("*") if path.name.startswith(".")]
        if self.name.startswith("reproduce"):
            hidden += out.rglob("checkpoint")
        return [path.relative_to(out).as_posix() for path in hidden]


KINDS = {
    name: Training(name)
    for name in (
        "one seed",
        "a table",
        "a stack of seeds",
        "compare",
        "reproduce",
        "reproduce on workers",
    )
}


def prepare(folder: Path) -> None:
    """Put what trainings read beside the folders of the trainings."""
    (folder / TWO_CELLS).write_text(RECIPE)
    write_table(folder / TABLE)


def _beside(out: Path) -> Path:
    return out.parent.parent


def write_table(path: Path, rows: int = 240) -> None:
    """A small table of people."""
    lines = ["age,job,sex,paid"]
    for row in range(rows):
        job, sex = ("cook", "smith", "clerk")[row % 3], ("f", "m")[row // 2 % 2]
        lines.append(f"{20 + row * 7 % 45},{job},{sex},{int((row * 13 + row // 5) % 7 > 3)}")
    path.write_text("\n".join(lines) + "\n")


def _runs(out: Path) -> Iterator[Path]:
    return (path.parent for path in sorted(out.rglob("run.json")))


def count_checkpoints(out: Path) -> list[tuple[Path, int]]:
    """Every checkpoint of runs that are not finished, newest first, and how many its run has."""
    found = []
    for run in _runs(out):
        begun = json.loads((run / "run.json").read_text())["status"] != "finished"
        saved = list_checkpoints(run) if begun else {}
        found += [(path, len(saved)) for path in saved.values()]
    return found


def _lasting(value: Any, passing: tuple[str, ...]) -> Any:
    """A JSON value without what may differ from time to time."""
    if isinstance(value, list):
        return [_lasting(one, passing) for one in value]
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if "seconds" not in k and k not in passing}
        return {key: _lasting(one, passing) for key, one in kept.items()}
    return value
