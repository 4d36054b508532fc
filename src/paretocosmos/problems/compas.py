"""COMPAS: is a defendant of Broward County arrested again within two years?"""

import warnings
from dataclasses import replace

from paretocosmos.errors import BenchmarkWarning
from paretocosmos.problems._base import Protocol
from paretocosmos.problems._wording import Wording
from paretocosmos.problems.tables.raw import load
from paretocosmos.problems.tables.tabular import TabularProblem, public_fairness

__all__ = ["compas"]

CAVEATS = (
    "`compas` labels arrests, not offences, so its label carries the bias of policing; and "
    "ProPublica kept re-offenders beyond the two-year cutoff that others are held to, which "
    "overstates re-arrest (Barenboim 2019). Use it to compare methods, not to conclude about "
    "people.",
)
WORDING = Wording(
    title="Who is arrested again within two years?",
    rows="defendants",
    data="Broward County, Florida, 2013 and 2014",
    groups=("men", "women"),
    positive="are arrested again",
    told="predicted to be arrested again",
)
LEAK = (
    "Under the protocol `paper` the feature `is_recid` is nearly the label: the published figures "
    "need that leak.",
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
    frame = load("compas", data)
    paper = protocol == "paper"
    caveats = CAVEATS + LEAK * paper
    warnings.warn(" ".join(caveats), BenchmarkWarning, stacklevel=2)
    problem = TabularProblem.from_frame(
        frame.assign(sex=frame["sex"].astype("category").cat.set_categories(["Male", "Female"])),
        target="two_year_recid",
        positive=1,
        sensitive="sex",
        fairness=public_fairness(fairness, protocol),
        drop=() if paper else ("is_recid",),
        name="compas",
        seed=split_seed,
        protocol=protocol,
    )
    return replace(problem, caveats=caveats, wording=WORDING)
