"""What the paper says of COSMOS against others, and whether our numbers say so too."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from paretocosmos.paper._against import DEVIATIONS, deviation_of_difference
from paretocosmos.paper._claim_rows import beyond
from paretocosmos.paper._names import method_title
from paretocosmos.paper._sets import harder, of_problem, place_of, set_title, variation

__all__ = ["paper_claim"]

# Section 6: "COSMOS is not outperformed by the Pareto front baselines (PHN-EPO, PHN-LS and
# ParetoMTL) on any of the 6 datasets in terms of hyper-volume"; "we indeed outperform the single
# task baseline in all three datasets" of images.
FRONTS = "COSMOS is not outperformed in hypervolume by PHN-EPO, PHN-LS or ParetoMTL on any set."
ALONE = "On pairs of images COSMOS outperforms Single Task, of which the ideal point counts."
RIVALS = ("phn_epo", "phn_ls", "pareto_mtl")
ONE = "one seed"  # of both, so that nothing is known of the noise
FAIR = ("adult", "compas", "default_credit")  # where the optima of Single Task exclude each other

Cell = Mapping[str, Any]


def paper_claim(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """COSMOS against its rivals on every problem, in standard deviations of the difference.

    Args:
        cells: all of them, see `cell_numbers`; those without a finished run are counted.
    """
    found = []
    alone = [cell for cell in cells if cell["problem"] not in FAIR]
    for claim, pairs, judge in (
        (FRONTS, _pairs(cells, RIVALS), _fronts),
        (ALONE, _pairs(alone, ("single_task",)), _alone),
    ):
        rows = [_compared(*pair) for pair in pairs if all(one.get("volume") for one in pair)]
        if rows:
            holds, said = judge(rows)
            where = _where(rows)
            absent = len(pairs) - len(rows)
            tail = f", {absent} more missing" if absent else ""
            many = f"{_many(len(rows), 'comparison')} on {where}{tail}."
            told = {"claim": claim, "holds": holds, "deviations": DEVIATIONS}
            found.append(told | {"sentence": f"{many} {said}", "rows": rows})
    return found


def _pairs(cells: Sequence[Cell], rivals: Sequence[str]) -> list[tuple[Cell, Cell]]:
    """COSMOS and a rival on the same data, both as the paper sets them."""
    return [
        (own, cell)
        for own in cells
        for cell in cells
        if own["method"] == "cosmos"
        and cell["method"] in rivals
        and not (variation(own) or variation(cell))
        and place_of(cell) == place_of(own)
    ]


def _fronts(rows: Sequence[Cell]) -> tuple[bool | None, str]:
    """Whether nobody is ahead."""
    ahead, near = (_told(rows, verdict) for verdict in ("ahead", "ahead within the noise"))
    single = [row for row in rows if row["verdict"] == ONE]
    said = []
    if ahead:
        count = sum(row["verdict"] == "ahead" for row in rows)
        said.append(f"It is not so in {count}; ahead of COSMOS: {ahead}.")
    elif not single:
        said.append("It is so: no baseline is ahead beyond the noise.")
    if near:
        said.append(f"Ahead within the noise: {near}.")
    if single:
        leading = _told([row for row in single if row["difference"] > 0], ONE)
        said.append(f"One seed of each does not tell: ahead are {leading or 'none'}.")
    return (False if ahead else None if single else True), " ".join(said)


def _alone(rows: Sequence[Cell]) -> tuple[bool | None, str]:
    """Whether COSMOS is ahead everywhere, beyond the noise."""
    parts = {
        "It is so": _told(rows, "behind"),
        "It is not so": _told(rows, "ahead"),
        "Within the noise": "; ".join(
            filter(None, (_told(rows, f"{way} within the noise") for way in ("ahead", "behind")))
        ),
        "One seed of each does not tell": _told(rows, ONE),
    }
    said = " ".join(f"{start}: {told}." for start, told in parts.items() if told)
    if parts["It is not so"] or parts["Within the noise"]:
        return False, said
    return (None if parts["One seed of each does not tell"] else True), said


def _compared(own: Cell, cell: Cell) -> dict[str, Any]:
    gap = cell["volume"]["mean"] - own["volume"]["mean"]
    noise = deviation_of_difference(own["volume"], cell["volume"])
    way = "ahead" if gap > 0 else "behind"
    known = way if beyond(gap, noise) else f"{way} within the noise"
    return {
        "problem": own["problem"],
        "settings": of_problem(own),
        "protocol": own["protocol"],
        "method": cell["method"],
        "difference": gap,
        "in_deviations": gap / noise if noise else None,
        "verdict": ONE if noise is None else known,
    }


def _told(rows: Sequence[Cell], verdict: str) -> str:
    """The comparisons that ended so."""
    found = []
    for row in rows:
        if row["verdict"] == verdict:
            beyond = row["in_deviations"]
            how = "" if beyond is None else f", {abs(beyond):.1f} deviations"
            where = set_title(row)
            gap = f"{row['difference']:+.3f}".replace("-", "−")
            found.append(f"{method_title(row['method'])} on {where} ({gap}{how})")
    return "; ".join(found)


def _where(rows: Sequence[Cell]) -> str:
    """How many sets, how many of them under more than one protocol, and which draw it is.

    >>> rows = [{"problem": "adult", "protocol": one} for one in ("paper", "clean")]
    >>> _where([*rows, {"problem": "multi_mnist", "protocol": "paper"}])
    '2 sets, 1 of them under both protocols'
    >>> _where([{"problem": "multi_mnist", "settings": {"rule": "text"}, "protocol": "paper"}])
    "1 set, on this harder draw, which is not the paper's"
    """
    often = Counter(place[:2] for place in {place_of(row) for row in rows})
    twice = sum(count > 1 for count in often.values())
    more = f", {twice} of them under both protocols" if twice else ""
    draw = ", on this harder draw, which is not the paper's" if all(map(harder, rows)) else ""
    return f"{_many(len(often), 'set')}{more}{draw}"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"
