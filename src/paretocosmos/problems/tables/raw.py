"""The public tables: their raw files, and the compact copies that come with this package."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from paretocosmos.errors import DataError
from paretocosmos.io.files import user_path
from paretocosmos.problems.tables.files import read_csv

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TABLES", "TableName", "load", "read_embedded", "read_raw"]

TableName = Literal["adult", "compas", "default_credit"]

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
_CREDIT = (
    *("ID", "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE"),
    *(f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6)),
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
    "default.payment.next.month",
)


def load(name: TableName, data: str | None) -> "pd.DataFrame":
    """A table in compact form: embedded, or read anew from the raw files in the folder `data`."""
    return read_embedded(name) if data is None else read_raw(name, user_path(data))


def read_embedded(name: TableName) -> "pd.DataFrame":
    """The copy that comes with this package (``data/README.md`` says where it is from)."""
    file = resources.files("paretocosmos.problems") / "data" / f"{name}.csv.xz"
    with resources.as_file(file) as path:
        # "?" is a value here, not a gap
        return read_csv(path, "install the package again", own=True, keep_default_na=False)


def read_raw(name: TableName, folder: Path) -> "pd.DataFrame":
    """The same table from the files its authors published, plain or ``.gz``."""
    try:
        return TABLES[name](folder)
    except DataError:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            f"the raw files of `{name}` in `{folder}` are not as published ({error}); get fresh "
            "copies, or leave `data` out to use the copy in this package"
        ) from error


def _adult(folder: Path) -> "pd.DataFrame":
    """The train file, then the test file; 48,842 rows."""
    import pandas as pd

    options: dict[str, Any] = {
        "header": None,
        "names": _ADULT,
        "skipinitialspace": True,
        "keep_default_na": False,
        "comment": "|",  # the first line of adult.test
        "dtype": dict.fromkeys(_ADULT_NUMBERS, np.int64),
    }
    parts = [_read(folder, "adult", file, **options) for file in ("adult.data", "adult.test")]
    frame = pd.concat(parts, ignore_index=True)
    # the test file ends its labels with a full stop
    return frame.assign(income=frame["income"].str.rstrip("."))


def _compas(folder: Path) -> "pd.DataFrame":
    """ProPublica's own filter of the two-year file; 6,172 of 7,214 rows."""
    import pandas as pd

    frame = _read(
        folder,
        "compas",
        "compas-scores-two-years.csv",
        keep_default_na=False,
        na_values={"days_b_screening_arrest": [""]},
        usecols=[*(set(_COMPAS) - {"length_of_stay"}), "c_jail_in", "c_jail_out"],
    )
    keep = frame["days_b_screening_arrest"].abs() <= 30
    keep &= (frame["is_recid"] != -1) & (frame["c_charge_degree"] != "O")
    keep &= frame["score_text"] != "N/A"
    frame = frame[keep].reset_index(drop=True)
    stay = pd.to_datetime(frame["c_jail_out"]) - pd.to_datetime(frame["c_jail_in"])
    frame["length_of_stay"] = stay // pd.Timedelta(hours=1)
    frame["days_b_screening_arrest"] = frame["days_b_screening_arrest"].astype(np.int64)
    return frame[list(_COMPAS)]


def _default_credit(folder: Path) -> "pd.DataFrame":
    """All 25 columns; 30,000 rows."""
    frame = _read(folder, "credit", "UCI_Credit_Card.csv", usecols=_CREDIT)
    # amounts are whole, but the file writes some of them as 5e+05
    whole = {name: np.int64 for name in frame.select_dtypes("float") if not any(frame[name] % 1)}
    return frame.astype(whole)


TABLES: dict[TableName, Callable[[Path], "pd.DataFrame"]] = {
    "adult": _adult,
    "compas": _compas,
    "default_credit": _default_credit,
}


def _read(folder: Path, below: str, file: str, **options: Any) -> "pd.DataFrame":
    places = [folder / below, folder]
    candidates = [place / f"{file}{end}" for place in places for end in ("", ".gz")]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise DataError(
            f"`{file}` or `{file}.gz` is missing in `{folder / below}` and `{folder}`: give the "
            "folder with the raw files, or leave `data` out to use the "
            "copy in this package"
        )
    return read_csv(path, "take a fresh copy of the file", **options)
