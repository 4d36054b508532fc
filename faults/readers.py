"""Readers of every kind of file, which also use what they read."""

import contextlib
import io
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from paretocosmos.cli.choose import print_choice
from paretocosmos.cli.train import print_run, summarize_run
from paretocosmos.evaluation.evaluate import evaluate
from paretocosmos.explorer import build_page_model
from paretocosmos.explorer import write_report as write_page
from paretocosmos.pareto.front import Front
from paretocosmos.plotting import save_front
from paretocosmos.problems.tables import table as load_table
from paretocosmos.runs.load import load_run

__all__ = ["import_plotting", "open_run", "read_front", "read_table", "use_run"]


def import_plotting(folder: Path) -> None:
    """Draw a figure, which imports what is imported only then."""
    rays, values = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.3, 0.2], [0.5, 0.1]])
    save_front(folder / "warm.png", [Front(rays, values, ("loss", "gap"), np.array([2.0, 2.0]))])


def open_run(folder: Path) -> Any:
    """Return everything that a run contains, to compare it with the undamaged one."""
    run = load_run(folder)
    weights = {name: value.numpy().tobytes() for name, value in run.model.state_dict().items()}
    table = None if run.table is None else run.table.to_dict()
    return run.front.to_json(), run.front_val.to_json(), weights, run.record, table


def use_run(folder: Path) -> Any:
    """Do all that can be done with a run: print, choose, evaluate, draw, explore."""
    run = load_run(folder)
    with _silent():
        summarize_run(run)
        print_run(run)
        problem = run.problem()
        evaluate(run.model, problem, rays=2)
        print_choice(run, run.choose(knee=True, problem=problem, evaluations=2))
        write_page(folder / "page.html", build_page_model([run]))
        if zlib.crc32(folder.name.encode()) % 8 == 0:  # which takes most of the time
            save_front(folder / "page.png", [run.front])
    return None


def read_front(folder: Path) -> Any:
    """Read a front from its file, and choose its knee."""
    path = folder / "front.json"
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    Front.from_json(text).choose(knee=True)


def read_table(folder: Path) -> Any:
    """Return the number of rows of each split of a table."""
    problem = load_table(data=str(folder / "people.csv"), target="paid", sensitive="sex")
    return [len(problem.split(part)) for part in ("train", "val", "test")]


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    nowhere = io.StringIO()
    with (
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
