"""Adult: does a person of the 1994 census earn more than 50,000 dollars?"""

import warnings
from dataclasses import replace

import numpy as np

from paretocosmos.errors import BenchmarkWarning
from paretocosmos.problems._base import Protocol
from paretocosmos.problems._wording import Wording
from paretocosmos.problems.tables.raw import load
from paretocosmos.problems.tables.tabular import TabularProblem, public_fairness

__all__ = ["adult"]

CAVEATS = (
    "`adult` is the US census of 1994 and its threshold of 50,000 dollars is arbitrary: how unfair "
    "a model looks depends on where it is put (Ding et al. 2021, Retiring Adult). Use it to "
    "compare methods, not to conclude about people.",
)
WORDING = Wording(
    title="Who earns more than 50,000 dollars a year?",
    rows="people",
    data="the US census of 1994",
    groups=("men", "women"),
    positive="earn more than 50,000",
    told="predicted to earn over 50,000",
)

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
    frame = load("adult", data)
    warnings.warn(" ".join(CAVEATS), BenchmarkWarning, stacklevel=2)
    for column, value in _FILL.items():
        frame[column] = frame[column].replace("?", value)
    married = frame["marital-status"].isin(_MARRIED)
    frame = frame.assign(
        education=frame["education"].map(_EDUCATION),
        sex=frame["sex"].astype("category").cat.set_categories(["Male", "Female"]),
    )
    frame["marital-status"] = np.where(married, "Married", "Single")
    problem = TabularProblem.from_frame(
        frame,
        target="income",
        positive=">50K",
        sensitive="sex",
        fairness=public_fairness(fairness, protocol),
        name="adult",
        seed=split_seed,
        protocol=protocol,
    )
    return replace(problem, caveats=CAVEATS, wording=WORDING)
