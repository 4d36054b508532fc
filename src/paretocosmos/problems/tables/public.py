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


def load_frame(name: TableName, data: str | None) -> "pd.DataFrame":
    """Return a table as embedded in this package, or from the raw files in the folder `data`."""
    return read_embedded(name) if data is None else read_raw(name, user_path(data))


def read_embedded(name: TableName) -> "pd.DataFrame":
    """Return the copy that comes with this package (``data/README.md`` names its source)."""
    file = resources.files("paretocosmos.problems") / "data" / f"{name}.csv.xz"
    with resources.as_file(file) as path:
        # "?" is a value here, not a gap
        return read_csv(path, "install the package again", keep_default_na=False)


def read_raw(name: TableName, folder: Path) -> "pd.DataFrame":
    """Return the same table from the files its authors published, plain or ``.gz``."""
    try:
        return TABLES[name](folder)
    # it names the file and the way out already
    except DataError:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            f"the raw files of `{name}` in `{folder}` are not as published ({error}); get fresh "
            "copies, or leave `data` out to use the copy in this package"
        ) from error


def _read_adult(folder: Path) -> "pd.DataFrame":
    """Return the train file, then the test file; 48,842 rows."""
    import pandas as pd

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


def _read_compas(folder: Path) -> "pd.DataFrame":
    """Return the rows that ProPublica's own filter keeps: 6,172 of 7,214."""
    import pandas as pd

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


def _read_default_credit(folder: Path) -> "pd.DataFrame":
    """Return all 25 columns of all 30,000 rows."""
    frame = _read_raw_file(folder, "credit", "UCI_Credit_Card.csv", usecols=_CREDIT)
    # amounts are whole, but the file writes some of them as 5e+05
    integers = {name: np.int64 for name in frame.select_dtypes("float") if not any(frame[name] % 1)}
    return frame.astype(integers)


TABLES: dict[TableName, Callable[[Path], "pd.DataFrame"]] = {
    "adult": _read_adult,
    "compas": _read_compas,
    "default_credit": _read_default_credit,
}


def _read_raw_file(folder: Path, subfolder: str, file: str, **options: Any) -> "pd.DataFrame":
    parents = [folder / subfolder, folder]
    candidates = [parent / f"{file}{end}" for parent in parents for end in ("", ".gz")]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise DataError(
            f"`{file}` or `{file}.gz` is missing in `{folder / subfolder}` and `{folder}`: give "
            "the folder with the raw files, or leave `data` out to use the copy in this package"
        )
    return read_csv(path, "take a fresh copy of the file", **options)


class PublicTable(NamedTuple):
    """A public table as a problem.

    Attributes:
        title: the first line of its docstring.
        files: the raw files, for its docstring.
        protocols: the difference between the protocols, for its docstring.
        features: the number of features under the protocol `paper`.
        prepare: from the rows as read to those of the published preprocessing.
        target: the column to predict.
        positive: its positive class.
        sensitive: the column of men and women.
        categorical: columns of numbers that are codes.
        leaks: columns that only the protocol `paper` learns from.
        caveat: a limitation its users should know.
        leak_caveat: a further one under the protocol `paper`.
        wording: its description for those who decide.
    """

    title: str
    files: str
    protocols: str
    features: int
    prepare: "Callable[[pd.DataFrame], pd.DataFrame]"
    target: str
    positive: object
    sensitive: str
    categorical: tuple[str, ...]
    leaks: tuple[str, ...]
    caveat: str
    leak_caveat: str
    wording: Wording


# The published preprocessing fills `?` and merges levels of education and of marital status.
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


def _prepare_adult(frame: "pd.DataFrame") -> "pd.DataFrame":
    for column, value in _FILL.items():
        frame[column] = frame[column].replace("?", value)
    frame["education"] = frame["education"].map(_EDUCATION)
    frame["marital-status"] = np.where(frame["marital-status"].isin(_MARRIED), "Married", "Single")
    return frame


def _prepare_credit(frame: "pd.DataFrame") -> "pd.DataFrame":
    return frame.assign(SEX=frame["SEX"].map({1: "Male", 2: "Female"}))


PUBLIC_TABLES: dict[TableName, PublicTable] = {
    "adult": PublicTable(
        title="Adult: income above 50,000 dollars against the gap between men and women "
        "(48,842 rows).",
        files="files ``adult.data`` and ``adult.test``",
        protocols='``"clean"`` fits the preprocessing on the train rows, ``"paper"`` on all.',
        features=88,
        prepare=_prepare_adult,
        target="income",
        positive=">50K",
        sensitive="sex",
        categorical=(),
        leaks=(),
        caveat=(
            "`adult` is the US census of 1994 and its threshold of 50,000 dollars is arbitrary: "
            "how unfair a model looks depends on where it is put (Ding et al. 2021, Retiring "
            "Adult). Use it to compare methods, not to conclude about people."
        ),
        leak_caveat="",
        wording=Wording(
            title="Who earns more than 50,000 dollars a year?",
            rows="people",
            data="the US census of 1994",
            groups=("men", "women"),
            positive="earn more than 50,000",
            told="predicted to earn over 50,000",
        ),
    ),
    "compas": PublicTable(
        title="COMPAS: arrest within two years against the gap between men and women (6,172 rows).",
        files="file ``compas-scores-two-years.csv``",
        protocols='``"clean"`` leaves `is_recid` out and fits the preprocessing on the train rows; '
        '``"paper"`` keeps `is_recid`, which leaks the label, and fits on all rows.',
        features=20,
        prepare=lambda frame: frame,
        target="two_year_recid",
        positive=1,
        sensitive="sex",
        categorical=(),
        leaks=("is_recid",),
        caveat=(
            "`compas` labels arrests, not offences, so its label carries the bias of policing; "
            "and ProPublica kept re-offenders beyond the two-year cutoff that others are held to, "
            "which overstates re-arrest (Barenboim 2019). Use it to compare methods, not to "
            "conclude about people."
        ),
        leak_caveat=(
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
    "default_credit": PublicTable(
        title="Default: unpaid credit card bills against the gap between men and women "
        "(30,000 rows).",
        files="file ``UCI_Credit_Card.csv``",
        protocols='``"clean"`` leaves the row number `ID` out and fits the preprocessing on the '
        'train rows; ``"paper"`` keeps `ID` and fits on all rows.',
        features=90,
        prepare=_prepare_credit,
        target="default.payment.next.month",
        positive=1,
        sensitive="SEX",
        # the file numbers the months 0, 2, 3, 4, 5, 6
        categorical=("EDUCATION", "MARRIAGE", *(f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6))),
        leaks=("ID",),
        caveat=(
            "`default_credit` is Taiwan in 2005, during a card-debt crisis; EDUCATION (0, 5, 6), "
            "MARRIAGE (0) and PAY_* (-2, 0) hold codes its documentation does not explain. Use it "
            "to compare methods, not to conclude about people."
        ),
        leak_caveat=(
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

# One text for all three, so that the same arguments are described alike.
DOCSTRING = """\
{title}

Args:
    protocol: {protocols}
    data: a folder with the raw {files}, plain or ``.gz``; `None` takes the copy in this package.
    fairness: the gap between men and women; `None` is ``"demographic_parity"``, and the paper's
        ``"deo"`` under its protocol. `TabularProblem.from_frame` lists the others.
    split_seed: decides which rows are train, val and test; the paper has 1.

>>> with warnings.catch_warnings(action="ignore"):
...     {name}(protocol="paper").input_shape
({features},)
"""


def make_loader(name: TableName) -> Callable[..., TabularProblem]:
    """Return the function that loads a public table as a problem."""
    table = PUBLIC_TABLES[name]

    def load(
        *,
        protocol: Protocol = "clean",
        data: str | None = None,
        fairness: str | None = None,
        split_seed: int = 1,
    ) -> TabularProblem:
        paper = protocol == "paper"
        caveats = (table.caveat, *([table.leak_caveat] if paper and table.leak_caveat else []))
        frame = table.prepare(load_frame(name, data))
        warnings.warn(" ".join(caveats), BenchmarkWarning, stacklevel=2)
        # women are group 1, as in the published code, though "Female" sorts before "Male"
        sex = frame[table.sensitive].astype("category").cat.set_categories(["Male", "Female"])
        with warnings.catch_warnings():
            # one row of 30,000 has PAY_2 = 8 and it is not a train row
            warnings.filterwarnings("ignore", "the column `PAY_2` has values")
            problem = TabularProblem.from_frame(
                frame.assign(**{table.sensitive: sex}),
                target=table.target,
                positive=table.positive,
                sensitive=table.sensitive,
                # the paper compares counts; `Deo` says why rates are the better default
                fairness=fairness or ("deo" if paper else "demographic_parity"),
                categorical=table.categorical,
                # the published figures depend on the leaks
                drop=() if paper else table.leaks,
                name=name,
                seed=split_seed,
                protocol=protocol,
            )
        # the problem carries its caveats, so that pages and cards show them too
        return replace(problem, caveats=caveats, wording=table.wording)

    # as if defined by hand: help texts and error messages show the name and the docstring
    load.__name__ = load.__qualname__ = name
    load.__doc__ = DOCSTRING.format(name=name, **table._asdict())
    return load


adult = make_loader("adult")
compas = make_loader("compas")
default_credit = make_loader("default_credit")
