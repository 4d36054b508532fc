"""What the paper says of COSMOS, and whether our numbers say so too: against others, and how fast.

The claims of the ablation have a file of their own.
"""

from collections import Counter
from collections.abc import Sequence

from paretocosmos.io.schema.collected import (
    AblationRow,
    CellResult,
    ClaimResult,
    Comparison,
    ConvergenceRow,
    SetResult,
    Spread,
    Stage,
)
from paretocosmos.paper._against import DEVIATIONS, beyond, deviation_of_difference
from paretocosmos.paper.names import (
    harder,
    method_title,
    set_key,
    set_title,
    settings_of_problem,
    variation,
)
from paretocosmos.paper.published import claim

__all__ = ["claimed", "convergence_claim", "paper_claim", "titles"]

RIVALS = ("phn_epo", "phn_ls", "pareto_mtl")
ONE = "one seed"  # of both, so that nothing is known of the noise
FAIR = ("adult", "compas", "default_credit")  # where the optima of Single Task exclude each other

EPOCH, WIDE = 10, 0.5
RULE = f"Well spread means at least {WIDE:.0%} of the last front's width."


def paper_claim(cells: Sequence[CellResult]) -> list[ClaimResult]:
    """COSMOS against its rivals on every problem, in standard deviations of the difference.

    Args:
        cells: all of them; those without a finished run are counted.
    """
    found = []
    alone = [cell for cell in cells if cell.problem not in FAIR]
    for name, pairs, judge in (
        ("fronts", _pairs(cells, RIVALS), _fronts),
        ("alone", _pairs(alone, ("single_task",)), _alone),
    ):
        rows = [_compared(*pair) for pair in pairs if all(one.seeds for one in pair)]
        if rows:
            holds, said = judge(rows)
            absent = len(pairs) - len(rows)
            tail = f", {absent} more missing" if absent else ""
            many = f"{_many(len(rows), 'comparison')} on {_where(rows)}{tail}."
            found.append(
                ClaimResult(
                    claim=claim(name),
                    holds=holds,
                    deviations=DEVIATIONS,
                    sentence=f"{many} {said}",
                    rows=[*rows],
                )
            )
    return found


def convergence_claim(cells: Sequence[CellResult]) -> list[ClaimResult]:
    """Set by set, how wide the validation front is after ten epochs, beside the last one."""
    rows = []
    for cell in cells:
        course = {stage.epoch: stage for stage in cell.course}
        if cell.method == "cosmos" and not variation(cell) and EPOCH in course:
            rows.append(_converged(cell, course[EPOCH], course[max(course)]))
    return [claimed("fast", rows, RULE)] if rows else []


def claimed(name: str, rows: Sequence[AblationRow | ConvergenceRow], rule: str = "") -> ClaimResult:
    """A claim judged set by set: where it holds, where it does not, and where the noise rules.

    Args:
        name: of the claim.
        rows: a set each.
        rule: how it is judged, where the claim does not say.
    """
    so, not_so, open_ = ([r for r in rows if r.holds is wanted] for wanted in (True, False, None))
    said = [rule] if rule else []
    said += [f"Holds on {titles(so)}."] if so else []
    said += [f"Does not hold on {titles(not_so)}."] if not_so else []
    said += [f"Open, within the noise, on {titles(open_)}."] if open_ else []
    return ClaimResult(
        claim=claim(name),
        holds=False if not_so else None if open_ or not rows else True,
        sentence=" ".join(said) or "Too few cells are trained to decide.",
        rows=[*rows],
    )


def titles(rows: Sequence[SetResult]) -> str:
    """The sets of rows.

    >>> titles([SetResult(problem=p, protocol=None) for p in ("adult", "compas")])
    'Adult; COMPAS'
    """
    return "; ".join(map(set_title, rows))


def _pairs(
    cells: Sequence[CellResult], rivals: Sequence[str]
) -> list[tuple[CellResult, CellResult]]:
    """COSMOS and a rival on the same data, both as the paper sets them."""
    usual = [cell for cell in cells if not variation(cell)]
    return [
        (own, cell)
        for own in usual
        for cell in usual
        if own.method == "cosmos" and cell.method in rivals and set_key(cell) == set_key(own)
    ]


def _fronts(rows: Sequence[Comparison]) -> tuple[bool | None, str]:
    """Whether nobody is ahead."""
    ahead, near = (_told(rows, verdict) for verdict in ("ahead", "ahead within the noise"))
    single = [row for row in rows if row.verdict == ONE]
    said = []
    if ahead:
        count = sum(row.verdict == "ahead" for row in rows)
        said.append(f"It does not hold in {count}; ahead of COSMOS: {ahead}.")
    elif not single:
        said.append("It holds: no baseline is ahead by more than the noise.")
    if near:
        said.append(f"Ahead within the noise: {near}.")
    if single:
        leading = _told([row for row in single if row.difference > 0], ONE)
        said.append(f"One seed of each decides nothing: ahead are {leading or 'none'}.")
    return (False if ahead else None if single else True), " ".join(said)


def _alone(rows: Sequence[Comparison]) -> tuple[bool | None, str]:
    """Whether COSMOS is ahead everywhere, beyond the noise."""
    near = (_told(rows, f"{way} within the noise") for way in ("ahead", "behind"))
    parts = {
        "It holds": _told(rows, "behind"),
        "It does not hold": _told(rows, "ahead"),
        "Within the noise": "; ".join(filter(None, near)),
        "One seed of each decides nothing": _told(rows, ONE),
    }
    said = " ".join(f"{start}: {told}." for start, told in parts.items() if told)
    if parts["It does not hold"] or parts["Within the noise"]:
        return False, said
    return (None if parts["One seed of each decides nothing"] else True), said


def _compared(own: CellResult, cell: CellResult) -> Comparison:
    gap = cell.volume.mean - own.volume.mean
    noise = deviation_of_difference(own.volume, cell.volume)
    way = "ahead" if gap > 0 else "behind"
    known = way if beyond(gap, noise) else f"{way} within the noise"
    return Comparison(
        problem=own.problem,
        settings=settings_of_problem(own),
        protocol=own.protocol,
        method=cell.method,
        difference=gap,
        in_deviations=gap / noise if noise else None,
        verdict=ONE if noise is None else known,
    )


def _told(rows: Sequence[Comparison], verdict: str) -> str:
    """The comparisons that ended so."""
    found = []
    for row in (row for row in rows if row.verdict == verdict):
        how = "" if row.in_deviations is None else f", {abs(row.in_deviations):.1f} deviations"
        gap = f"{row.difference:+.3f}".replace("-", "−")
        found.append(f"{method_title(row.method)} on {set_title(row)} ({gap}{how})")
    return "; ".join(found)


def _where(rows: Sequence[SetResult]) -> str:
    """How many sets, how many of them under more than one protocol, and which draw it is.

    >>> rows = [SetResult(problem="adult", protocol=one) for one in ("paper", "clean")]
    >>> _where([*rows, SetResult(problem="multi_mnist", protocol="paper")])
    '2 sets, 1 of them under both protocols'
    >>> _where([SetResult(problem="multi_mnist", settings={"rule": "text"}, protocol="paper")])
    "1 set, on this harder draw, not the paper's"
    """
    often = Counter(key[:2] for key in set(map(set_key, rows)))
    twice = sum(count > 1 for count in often.values())
    more = f", {twice} of them under both protocols" if twice else ""
    draw = ", on this harder draw, not the paper's" if all(map(harder, rows)) else ""
    return f"{_many(len(often), 'set')}{more}{draw}"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"


def _converged(cell: CellResult, early: Stage, last: Stage) -> ConvergenceRow:
    first, final = early.span, last.span
    std = None if final.std is None else WIDE * final.std
    noise = deviation_of_difference(first, final.model_copy(update={"std": std}))
    more = first.mean - WIDE * final.mean
    volumes = [stage.hypervolume.mean for stage in (early, last)]
    return ConvergenceRow(
        problem=cell.problem,
        settings=settings_of_problem(cell),
        protocol=cell.protocol,
        widths=[first.mean, final.mean],
        volumes=volumes,
        deviation=noise,
        holds=more > 0 if beyond(more, noise) else None,
        short=f"width {first.mean:.3f}, at the end {final.mean:.3f}",
        sentence=f"width {_shown(first)} after {EPOCH} epochs, {_shown(final)} after {last.epoch}; "
        f"hypervolume {volumes[0]:.3f} and {volumes[1]:.3f}",
    )


def _shown(number: Spread) -> str:
    return f"{number.mean:.3f}" + ("" if number.std is None else f" ± {number.std:.3f}")
