"""Build the compact tables that come with the package: `python scripts/build_data.py RAW_DIR`.

RAW_DIR holds the raw files as their authors published them (plain or .gz), each set in its own
folder (`adult/`, `compas/`, `credit/`) or all in one. The same files give the same bytes.
"""

import argparse
import hashlib
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paretocosmos.errors import DataError
from paretocosmos.problems.tables import TableName, read_csv

TARGET = Path(__file__).parents[1] / "src" / "paretocosmos" / "problems" / "data"

# lc and pb suit text: a byte depends on the one before it, not on its position.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]

README = """# The tables in this folder

Written by `python scripts/build_data.py RAW_DIR`; do not edit. CSV packed with xz; `RAW_DIR` holds
the raw files in `adult/`, `compas/` and `credit/`, plain or `.gz`. Rows are in the original order.

| file | source | licence |
| --- | --- | --- |
| `adult.csv.xz` | Adult / Census Income (Kohavi and Becker), UCI Machine Learning Repository, \
`adult.data` then `adult.test` | CC BY 4.0 |
| `compas.csv.xz` | ProPublica, `compas-scores-two-years.csv` of propublica/compas-analysis, from \
public court records | none stated |
| `default_credit.csv.xz` | Default of Credit Card Clients (I-Cheng Yeh), UCI Machine Learning \
Repository, `UCI_Credit_Card.csv` | CC BY 4.0 |

Changes made:

* `adult`: both files in one, with a header; the comment line, the blanks after the commas and the
  full stop after the test file's labels are gone. `?` is a missing value.
* `compas`: without id, names, birth dates and every column not listed below. Only the rows with
  |days_b_screening_arrest| <= 30, is_recid other than -1, c_charge_degree other than O and
  score_text other than N/A, as ProPublica filtered them. `length_of_stay` is c_jail_out -
  c_jail_in in whole hours, rounded down.
* `default_credit`: all rows and columns; whole numbers are written out (the raw file has 5e+05).

What is known to be wrong with each as a benchmark is said when it is loaded.
"""


# The raw files have no header; these are the names in the data set's description.
_ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "income"),
)
_ADULT_NUMBERS = "age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"
# No id, no name, no birth date; the two jail dates only as the hours between them.
_COMPAS = (
    *("sex", "age", "age_cat", "race", "c_charge_degree", "priors_count"),
    *("days_b_screening_arrest", "decile_score", "score_text", "is_recid"),
    *("length_of_stay", "two_year_recid"),
)
# All columns of the file, in which there is no PAY_1.
_CREDIT = (
    *("ID", "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE"),
    *(f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6)),
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
    "default.payment.next.month",
)


def read_raw(name: TableName, folder: Path) -> pd.DataFrame:
    """Return a table from the files its authors published, plain or ``.gz``."""
    try:
        return TABLES[name](folder)
    # it names the file and the way out already
    except DataError:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            f"the raw files of `{name}` in `{folder}` are not as published ({error}): get fresh "
            "copies"
        ) from error


def _read_adult(folder: Path) -> pd.DataFrame:
    """Return the train file, then the test file; 48,842 rows."""
    options: dict[str, Any] = {
        "header": None,
        "names": _ADULT,
        # a space follows every comma
        "skipinitialspace": True,
        "keep_default_na": False,
        "comment": "|",  # the first line of adult.test
        "dtype": dict.fromkeys(_ADULT_NUMBERS, np.int64),
    }
    parts = [
        _read_raw_file(folder, "adult", file, **options) for file in ("adult.data", "adult.test")
    ]
    frame = pd.concat(parts, ignore_index=True)
    # the test file ends its labels with a full stop
    return frame.assign(income=frame["income"].str.rstrip("."))


def _read_compas(folder: Path) -> pd.DataFrame:
    """Return the rows that ProPublica's own filter keeps: 6,172 of 7,214."""
    frame = _read_raw_file(
        folder,
        "compas",
        "compas-scores-two-years.csv",
        # "N/A" is a value of `score_text`, by which rows are left out
        keep_default_na=False,
        na_values={"days_b_screening_arrest": [""]},
        usecols=[*(set(_COMPAS) - {"length_of_stay"}), "c_jail_in", "c_jail_out"],
    )
    # an arrest more than 30 days away may belong to another charge
    keep = frame["days_b_screening_arrest"].abs() <= 30
    # -1 means that no case was found, `O` an ordinary traffic offence
    keep &= (frame["is_recid"] != -1) & (frame["c_charge_degree"] != "O")
    keep &= frame["score_text"] != "N/A"
    frame = frame[keep].reset_index(drop=True)
    stay = pd.to_datetime(frame["c_jail_out"]) - pd.to_datetime(frame["c_jail_in"])
    frame["length_of_stay"] = stay // pd.Timedelta(hours=1)
    # floats until now, because of gaps that the filter has removed
    frame["days_b_screening_arrest"] = frame["days_b_screening_arrest"].astype(np.int64)
    return frame[list(_COMPAS)]


def _read_default_credit(folder: Path) -> pd.DataFrame:
    """Return all 25 columns of all 30,000 rows."""
    frame = _read_raw_file(folder, "credit", "UCI_Credit_Card.csv", usecols=_CREDIT)
    # amounts are whole, but the file writes some of them as 5e+05
    integers = {name: np.int64 for name in frame.select_dtypes("float") if not any(frame[name] % 1)}
    return frame.astype(integers)


TABLES: dict[TableName, Callable[[Path], pd.DataFrame]] = {
    "adult": _read_adult,
    "compas": _read_compas,
    "default_credit": _read_default_credit,
}


def _read_raw_file(folder: Path, subfolder: str, file: str, **options: Any) -> pd.DataFrame:
    parents = [folder / subfolder, folder]
    candidates = [parent / f"{file}{end}" for parent in parents for end in ("", ".gz")]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise DataError(
            f"`{file}` or `{file}.gz` is missing in `{folder / subfolder}` and `{folder}`: give "
            "the folder with the raw files"
        )
    return read_csv(path, "take a fresh copy of the file", **options)


def main() -> None:
    """Read the raw files, write the tables and their README."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("raw", type=Path, metavar="RAW_DIR")
    raw = parser.parse_args().raw
    TARGET.mkdir(exist_ok=True)
    columns, packed_sums, plain_sums, total = [], [], [], 0
    for name in TABLES:
        frame = read_raw(name, raw)
        plain = frame.to_csv(index=False, lineterminator="\n").encode()
        packed = lzma.compress(plain, format=lzma.FORMAT_XZ, filters=FILTERS)
        (TARGET / f"{name}.csv.xz").write_bytes(packed)
        total += len(packed)
        columns.append(f"* `{name}`, {len(frame):,} rows: {', '.join(frame.columns)}")
        packed_sums.append(f"{hashlib.sha256(packed).hexdigest()}  {name}.csv.xz")
        plain_sums.append(f"{hashlib.sha256(plain).hexdigest()}  {name}.csv")
        print(f"{name}: {len(frame):,} rows, {len(packed):,} bytes")
    sums = "\n".join([*packed_sums, *plain_sums])
    text = README + "\n## Columns\n" + "\n".join(columns) + f"\n\n## sha256\n```\n{sums}\n```\n"
    (TARGET / "README.md").write_text(text, encoding="utf-8")
    print(f"in all {total:,} bytes in {TARGET}")


if __name__ == "__main__":
    main()
