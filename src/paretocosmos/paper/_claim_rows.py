"""A claim that is judged set by set, and how that is told."""

from collections.abc import Mapping, Sequence
from typing import Any

from paretocosmos.paper._against import DEVIATIONS
from paretocosmos.paper._sets import set_title

__all__ = ["beyond", "claimed", "sets"]

Row = Mapping[str, Any]


def claimed(claim: str, rows: Sequence[Row], rule: str = "") -> dict[str, Any]:
    """Where a claim holds, where it does not, and where the noise leaves it open.

    Args:
        claim: what the paper says.
        rows: a set each, with `problem`, what is set of it under `settings`, `protocol`, `holds`
            and a `sentence` of its numbers.
        rule: how it is judged, where the claim does not say.
    """
    so, not_so, open_ = (
        [row for row in rows if row["holds"] is wanted] for wanted in (True, False, None)
    )
    said = [rule] if rule else []
    said += [f"So on {sets(so)}."] if so else []
    said += [f"Not so on {sets(not_so)}."] if not_so else []
    said += [f"Within the noise, and so open, on {sets(open_)}."] if open_ else []
    return {
        "claim": claim,
        "holds": False if not_so else None if open_ or not rows else True,
        "sentence": " ".join(said) or "Too little is trained for it to be said.",
        "rows": list(rows),
    }


def sets(rows: Sequence[Row]) -> str:
    """The sets of rows.

    >>> sets([{"problem": "adult", "protocol": "paper"}, {"problem": "compas", "protocol": None}])
    'Adult, paper; COMPAS'
    """
    return "; ".join(map(set_title, rows))


def beyond(difference: float, deviation: float | None) -> bool:
    """Whether means differ; one seed does not tell.

    >>> beyond(-0.3, 0.1), beyond(0.1, 0.1), beyond(1.0, None)
    (True, False, False)
    """
    return deviation is not None and abs(difference) > DEVIATIONS * deviation
