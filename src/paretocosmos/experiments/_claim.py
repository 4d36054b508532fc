"""What the paper says of COSMOS against others, and whether our numbers say so too."""

from collections.abc import Mapping, Sequence
from typing import Any

from paretocosmos.experiments._against import DEVIATIONS, deviation_of_difference
from paretocosmos.experiments._names import method_title, problem_title

__all__ = ["paper_claim"]

# "COSMOS is not outperformed by the Pareto front baselines (PHN-EPO, PHN-LS and ParetoMTL) on any
# of the 6 datasets in terms of hyper-volume", and on images not by Single Task (section 6).
RIVALS = ("phn_epo", "phn_ls", "pareto_mtl", "single_task")
CLAIM = "COSMOS is not outperformed in hypervolume by any baseline on any set."


def paper_claim(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """COSMOS against every rival on every problem, in standard deviations of the difference.

    Single Task counts where its objectives do not exclude each other: not with a fairness gap.

    Args:
        cells: those that have finished runs, see `cell_numbers`.
    """
    rows = [
        _compared(own, cell)
        for own in cells
        for cell in cells
        if own["method"] == "cosmos"
        and cell["method"] in RIVALS
        and not (own["settings"] or cell["settings"])
        and (cell["problem"], cell["protocol"]) == (own["problem"], own["protocol"])
        and not (cell["method"] == "single_task" and "deo" in cell["objectives"])
        and own["volume"] is not None
        and cell["volume"] is not None
    ]
    if not rows:
        return []
    by = {
        verdict: [_told(row) for row in rows if row["verdict"] == verdict]
        for verdict in ("ahead", "within the noise", "one seed")
    }
    where = len({(row["problem"], row["protocol"]) for row in rows})
    said = f"{len(rows)} comparisons on {where} sets. "
    if by["ahead"]:
        said += f"It is not so: ahead of COSMOS are {'; '.join(by['ahead'])}."
    elif by["one seed"]:
        said += f"One seed does not tell: its mean is below those of {'; '.join(by['one seed'])}."
    else:
        said += "It is so: no baseline is ahead beyond the noise."
    if by["within the noise"]:
        said += f" Ahead within the noise: {'; '.join(by['within the noise'])}."
    holds = False if by["ahead"] else None if by["one seed"] else True
    found = {"claim": CLAIM, "holds": holds, "deviations": DEVIATIONS, "sentence": said}
    return [found | {"rows": rows}]


def _compared(own: Mapping[str, Any], cell: Mapping[str, Any]) -> dict[str, Any]:
    gap = cell["volume"]["mean"] - own["volume"]["mean"]
    noise = deviation_of_difference(own["volume"], cell["volume"])
    if gap <= 0:
        verdict = "not ahead"
    elif noise is None:
        verdict = "one seed"
    else:
        verdict = "ahead" if gap > DEVIATIONS * noise else "within the noise"
    return {
        "problem": own["problem"],
        "protocol": own["protocol"],
        "method": cell["method"],
        "difference": gap,
        "in_deviations": gap / noise if noise else None,
        "verdict": verdict,
    }


def _told(row: Mapping[str, Any]) -> str:
    beyond = row["in_deviations"]
    how = "" if beyond is None else f", {beyond:.1f} deviations"
    where = problem_title(row["problem"], row["protocol"])
    return f"{method_title(row['method'])} on {where} (by {row['difference']:.3f}{how})"
