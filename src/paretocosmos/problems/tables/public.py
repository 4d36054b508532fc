"""Tables by name: Adult, COMPAS and Default, whose copies come with this package, and files."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from paretocosmos.errors import BenchmarkWarning, DataError
from paretocosmos.problems.base import Protocol, Wording
from paretocosmos.problems.tables.files import read_csv, read_table
from paretocosmos.problems.tables.groups import GroupUse, SmallGroups
from paretocosmos.problems.tables.problem import TabularProblem
from paretocosmos.problems.tables.targets import Task

if TYPE_CHECKING:
    import pandas as pd

TableName = Literal["adult", "compas", "default_credit"]


def read_embedded(name: TableName) -> "pd.DataFrame":
    """Return the copy that comes with this package (``data/README.md`` names its source)."""
    file = resources.files("paretocosmos.problems") / "data" / f"{name}.csv.xz"
    with resources.as_file(file) as path:
        # "?" is a value here, not a gap
        return read_csv(path, "install the package again", keep_default_na=False)


class PublicTable(NamedTuple):
    """A public table as a problem.

    Attributes:
        title: the first line of its docstring.
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


PUBLIC_TABLES: dict[TableName, PublicTable] = {
    "adult": PublicTable(
        title="Adult: income above 50,000 dollars against the gap between men and women "
        "(48,842 rows).",
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
        protocols='``"clean"`` leaves the row number `ID` out and fits the preprocessing on the '
        'train rows; ``"paper"`` keeps `ID` and fits on all rows.',
        features=90,
        prepare=lambda frame: frame.assign(SEX=frame["SEX"].map({1: "Male", 2: "Female"})),
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
        fairness: str | None = None,
        split_seed: int = 1,
    ) -> TabularProblem:
        paper = protocol == "paper"
        caveats = (table.caveat, *([table.leak_caveat] if paper and table.leak_caveat else []))
        frame = table.prepare(read_embedded(name))
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


def table(
    *,
    data: str,
    target: str,
    task: Task = "binary",
    sensitive: tuple[str, ...] | str = (),
    small_groups: SmallGroups = "keep",
    group: GroupUse = "estimate",
    positive: str | bool | int | float | None = None,
    fairness: str | None = None,
    categorical: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    class_weight: Literal["balanced"] | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    val: str | None = None,
    test: str | None = None,
    split_seed: int = 1,
    protocol: Protocol = "clean",
) -> TabularProblem:
    r"""A table in a file: predict one column, and treat the groups of others alike.

    Args:
        data: the file, with a header: ``.csv`` or ``.tsv``, also packed as ``.gz`` or ``.xz``, or
            ``.parquet``.
        target: the column to predict.
        task: what the target holds: ``"binary"``, two classes or one against the rest;
            ``"classes"``, several; or a ``"number"``.
        sensitive: the columns whose groups are compared; they are not features. With several
            columns the groups are their combinations, and each column alone is reported too.
            ``age:5`` cuts a number into five groups of about equal size, ``age:30/60`` at these
            values. Without any, the losses of the classes are traded, or predictions that are too
            high against those that are too low.
        small_groups: groups with fewer than 30 rows to train on, or without positive rows where
            some are needed: ``"keep"`` them and warn, ``"pool"`` them into one, or ``"refuse"``.
        group: how answers may depend on a person's group: ``"estimate"`` it from the other columns,
            take it as an ``"input"``, or ``"none"`` of both, so that only the training is told.
        positive: the class that counts as positive; needed unless the classes are such as no and
            yes.
        fairness: what is compared between groups: by default ``"tpr_gap"`` for classes and
            ``"error_gap"`` for numbers; `TabularProblem.from_frame` lists the others.
        categorical: columns to read as categories although they hold numbers.
        drop: columns to leave out.
        keep: columns to learn from although they seem to be identifiers.
        class_weight: ``"balanced"`` gives all classes the same weight in training, however rare;
            reported numbers count every row once.
        separator: between two columns, ``"tab"`` for a tab; by the header if left out.
        decimal: the decimal mark, ``"."`` or ``","``; a comma between semicolons if left out.
        encoding: of the text, such as ``"cp1252"``; UTF-8 if left out.
        val: a file with the rows to validate on; a share of those in `data` if left out.
        test: a file with the rows to test on, likewise.
        split_seed: decides which rows are train, val and test.
        protocol: ``"clean"`` fits the preprocessing on the train rows, ``"paper"`` on all.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "loans.csv"
    >>> rows = ["34,no,f", "51,yes,f", "29,yes,m", "46,no,m"] * 100
    >>> _ = file.write_text("\n".join(["age,loan,sex", *rows]))
    >>> problem = table(data=str(file), target="loan", sensitive="sex")
    >>> problem.names, problem.groups, problem.positive
    (('binary_cross_entropy', 'tpr_gap'), ('f', 'm'), 'yes')
    """
    path = Path(data)
    # files for val and test have the format of the first one
    read = partial(read_table, separator=separator, decimal=decimal, encoding=encoding)
    frame = read(path)
    # a wrong separator leaves one wide column
    if frame.shape[1] < 2:
        raise DataError(
            "a table must have several columns, found only "
            f"`{str(frame.columns[0])[:60]}` in `{data}`: name their separator with `separator`"
        )
    return TabularProblem.from_frame(
        frame,
        target=target,
        task=task,
        sensitive=sensitive,
        small_groups=small_groups,
        group=group,
        positive=positive,
        fairness=fairness,
        categorical=categorical,
        drop=drop,
        keep=keep,
        class_weight=class_weight,
        # without all of its endings: `loans.csv.gz` is `loans`
        name=path.name.partition(".")[0],
        seed=split_seed,
        protocol=protocol,
        val=None if val is None else read(Path(val)),
        test=None if test is None else read(Path(test)),
    )
