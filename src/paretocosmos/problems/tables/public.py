"""The public tables Adult, COMPAS and Default: raw files, the copies in this package, problems."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from paretocosmos.errors import BenchmarkWarning, DataError
from paretocosmos.io.files import user_path
from paretocosmos.problems.base import Protocol, Wording
from paretocosmos.problems.tables.files import read_csv
from paretocosmos.problems.tables.problem import TabularProblem

if TYPE_CHECKING:
    import pandas as pd

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


def load_frame(name: TableName, data: str | None) -> "pd.DataFrame":
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


class Description(NamedTuple):
    """What people are told of a public table.

    Attributes:
        caveat: what its users should know of it.
        leak: what they should also know under the protocol `paper`.
        wording: how it is described to those who decide.
    """

    caveat: str
    leak: str
    wording: Wording


DESCRIPTIONS: dict[TableName, Description] = {
    "adult": Description(
        caveat=(
            "`adult` is the US census of 1994 and its threshold of 50,000 dollars is arbitrary: "
            "how unfair a model looks depends on where it is put (Ding et al. 2021, Retiring "
            "Adult). Use it to compare methods, not to conclude about people."
        ),
        leak="",
        wording=Wording(
            title="Who earns more than 50,000 dollars a year?",
            rows="people",
            data="the US census of 1994",
            groups=("men", "women"),
            positive="earn more than 50,000",
            told="predicted to earn over 50,000",
        ),
    ),
    "compas": Description(
        caveat=(
            "`compas` labels arrests, not offences, so its label carries the bias of policing; "
            "and ProPublica kept re-offenders beyond the two-year cutoff that others are held to, "
            "which overstates re-arrest (Barenboim 2019). Use it to compare methods, not to "
            "conclude about people."
        ),
        leak=(
            "Under the protocol `paper` the feature `is_recid` is nearly the label: the published "
            "figures need that leak."
        ),
        wording=Wording(
            title="Who is arrested again within two years?",
            rows="defendants",
            data="Broward County, Florida, 2013 and 2014",
            groups=("men", "women"),
            positive="are arrested again",
            told="predicted to be arrested again",
        ),
    ),
    "default_credit": Description(
        caveat=(
            "`default_credit` is Taiwan in 2005, during a card-debt crisis; EDUCATION (0, 5, 6), "
            "MARRIAGE (0) and PAY_* (-2, 0) hold codes its documentation does not explain. Use it "
            "to compare methods, not to conclude about people."
        ),
        leak=(
            "Under the protocol `paper` the row number `ID` is a feature, as in the published code."
        ),
        wording=Wording(
            title="Who will not pay the credit card bill next month?",
            rows="card holders",
            data="a bank in Taiwan, 2005",
            groups=("men", "women"),
            positive="do not pay",
            told="predicted not to pay",
        ),
    ),
}

# What `?` becomes, and how education and marital status are merged: the published preprocessing.
_FILL = {
    "workclass": "Private",
    "occupation": "Prof-specialty",
    "native-country": "United-States",
}
_EDUCATION = {
    **dict.fromkeys(
        ("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"), "school"
    ),
    "HS-grad": "HS-grad",
    **dict.fromkeys(("Assoc-voc", "Assoc-acdm", "Prof-school", "Some-college"), "higher"),
    "Bachelors": "Bachelors",
    "Masters": "Masters",
    "Doctorate": "Doctorate",
}
_MARRIED = ("Married-civ-spouse", "Married-AF-spouse")

# PAY_1 does not exist: the file numbers the months 0, 2, 3, 4, 5, 6.
_CATEGORICAL = ("EDUCATION", "MARRIAGE", "PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")


def adult(
    *,
    protocol: Protocol = "clean",
    data: str | None = None,
    fairness: str | None = None,
    split_seed: int = 1,
) -> TabularProblem:
    """Adult: income above 50,000 dollars against the gap between men and women (48,842 rows).

    Args:
        protocol: ``"clean"`` fits the preprocessing on the train rows, ``"paper"`` on all.
        data: a folder with the raw files ``adult.data`` and ``adult.test``, plain or ``.gz``;
            `None` takes the copy in this package.
        fairness: what is compared between men and women; `None` is ``"demographic_parity"``, and
            the paper's ``"deo"`` under its protocol. See `TabularProblem.from_frame`.
        split_seed: decides which rows are train, val and test; the paper has 1.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     adult(protocol="paper").input_shape
    (88,)
    """
    frame = _load_and_warn("adult", data, protocol)
    for column, value in _FILL.items():
        frame[column] = frame[column].replace("?", value)
    married = frame["marital-status"].isin(_MARRIED)
    frame = frame.assign(
        education=frame["education"].map(_EDUCATION),
        sex=frame["sex"].astype("category").cat.set_categories(["Male", "Female"]),
    )
    frame["marital-status"] = np.where(married, "Married", "Single")
    return _build(
        frame,
        target="income",
        positive=">50K",
        sensitive="sex",
        fairness=fairness,
        name="adult",
        seed=split_seed,
        protocol=protocol,
    )


def compas(
    *,
    protocol: Protocol = "clean",
    data: str | None = None,
    fairness: str | None = None,
    split_seed: int = 1,
) -> TabularProblem:
    """COMPAS: arrest within two years against the gap between men and women (6,172 rows).

    Args:
        protocol: ``"clean"`` leaves `is_recid` out and fits the preprocessing on the train rows;
            ``"paper"`` keeps `is_recid`, which leaks the label, and fits on all rows.
        data: a folder with the raw file ``compas-scores-two-years.csv``, plain or ``.gz``; `None`
            takes the copy in this package.
        fairness: what is compared between men and women; `None` is ``"demographic_parity"``, and
            the paper's ``"deo"`` under its protocol. See `TabularProblem.from_frame`.
        split_seed: decides which rows are train, val and test; the paper has 1.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     compas(protocol="paper").input_shape, compas().input_shape
    ((20,), (19,))
    """
    frame = _load_and_warn("compas", data, protocol)
    return _build(
        frame.assign(sex=frame["sex"].astype("category").cat.set_categories(["Male", "Female"])),
        target="two_year_recid",
        positive=1,
        sensitive="sex",
        fairness=fairness,
        drop=() if protocol == "paper" else ("is_recid",),
        name="compas",
        seed=split_seed,
        protocol=protocol,
    )


def default_credit(
    *,
    protocol: Protocol = "clean",
    data: str | None = None,
    fairness: str | None = None,
    split_seed: int = 1,
) -> TabularProblem:
    """Default: unpaid credit card bills against the gap between men and women (30,000 rows).

    Args:
        protocol: ``"clean"`` leaves the row number `ID` out and fits the preprocessing on the
            train rows; ``"paper"`` keeps `ID` and fits on all rows.
        data: a folder with the raw file ``UCI_Credit_Card.csv``, plain or ``.gz``; `None` takes
            the copy in this package.
        fairness: what is compared between men and women; `None` is ``"demographic_parity"``, and
            the paper's ``"deo"`` under its protocol. See `TabularProblem.from_frame`.
        split_seed: decides which rows are train, val and test; the paper has 1.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     default_credit(protocol="paper").input_shape
    (90,)
    """
    frame = _load_and_warn("default_credit", data, protocol)
    sex = frame["SEX"].map({1: "Male", 2: "Female"}).astype("category")
    with warnings.catch_warnings():
        # one row of 30,000 has PAY_2 = 8 and it is not a train row
        warnings.filterwarnings("ignore", "the column `PAY_2` has values")
        return _build(
            frame.assign(SEX=sex.cat.set_categories(["Male", "Female"])),
            target="default.payment.next.month",
            positive=1,
            sensitive="SEX",
            fairness=fairness,
            categorical=_CATEGORICAL,
            drop=() if protocol == "paper" else ("ID",),
            name="default_credit",
            seed=split_seed,
            protocol=protocol,
        )


def _load_and_warn(name: TableName, data: str | None, protocol: Protocol) -> "pd.DataFrame":
    """Return the rows of a public table; warn of what is wrong with it as a benchmark."""
    frame = load_frame(name, data)
    warnings.warn(" ".join(_get_caveats(name, protocol)), BenchmarkWarning, stacklevel=3)
    return frame


def _get_caveats(name: TableName, protocol: Protocol) -> tuple[str, ...]:
    described = DESCRIPTIONS[name]
    leak = described.leak if protocol == "paper" else ""
    return (described.caveat, leak) if leak else (described.caveat,)


def _build(
    frame: "pd.DataFrame",
    *,
    name: TableName,
    fairness: str | None,
    protocol: Protocol,
    **settings: Any,
) -> TabularProblem:
    """Build a public table's problem, with the paper's gap under its protocol."""
    problem = TabularProblem.from_frame(
        frame,
        fairness=fairness or ("deo" if protocol == "paper" else "demographic_parity"),
        name=name,
        protocol=protocol,
        **settings,
    )
    caveats = _get_caveats(name, protocol)
    return replace(problem, caveats=caveats, wording=DESCRIPTIONS[name].wording)
