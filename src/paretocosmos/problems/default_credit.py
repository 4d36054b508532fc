"""Default: does the holder of a Taiwanese credit card fail to pay next month?"""

import warnings
from dataclasses import replace

from paretocosmos.errors import BenchmarkWarning
from paretocosmos.problems._base import Protocol
from paretocosmos.problems._wording import Wording
from paretocosmos.problems.tables.raw import load
from paretocosmos.problems.tables.tabular import TabularProblem, public_fairness

__all__ = ["default_credit"]

CAVEATS = (
    "`default_credit` is Taiwan in 2005, during a card-debt crisis; EDUCATION (0, 5, 6), MARRIAGE "
    "(0) and PAY_* (-2, 0) hold codes its documentation does not explain. Use it to compare "
    "methods, not to conclude about people.",
)
WORDING = Wording(
    title="Who will not pay the credit card bill next month?",
    rows="card holders",
    data="a bank in Taiwan, 2005",
    groups=("men", "women"),
    positive="do not pay",
    told="predicted not to pay",
)
LEAK = ("Under the protocol `paper` the row number `ID` is a feature, as in the published code.",)

# PAY_1 does not exist: the file numbers the months 0, 2, 3, 4, 5, 6.
_CATEGORICAL = ("EDUCATION", "MARRIAGE", "PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")


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
    frame = load("default_credit", data)
    paper = protocol == "paper"
    caveats = CAVEATS + LEAK * paper
    warnings.warn(" ".join(caveats), BenchmarkWarning, stacklevel=2)
    sex = frame["SEX"].map({1: "Male", 2: "Female"}).astype("category")
    with warnings.catch_warnings():
        # one row of 30,000 has PAY_2 = 8 and it is not a train row
        warnings.filterwarnings("ignore", "the column `PAY_2` has values")
        problem = TabularProblem.from_frame(
            frame.assign(SEX=sex.cat.set_categories(["Male", "Female"])),
            target="default.payment.next.month",
            positive=1,
            sensitive="SEX",
            fairness=public_fairness(fairness, protocol),
            categorical=_CATEGORICAL,
            drop=() if paper else ("ID",),
            name="default_credit",
            seed=split_seed,
            protocol=protocol,
        )
    return replace(problem, caveats=caveats, wording=WORDING)
