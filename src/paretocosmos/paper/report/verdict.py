"""The verdict on all recipes: how many of the paper's numbers and claims were reproduced."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from paretocosmos.paper.claims import ONE_SEED
from paretocosmos.paper.published import method_title, problem_title
from paretocosmos.paper.report.formatting import (
    NONE,
    format_difference,
    format_printed,
    format_spread,
)
from paretocosmos.paper.report.tables import (
    Footnotes,
    explain_difference,
    list_benchmarks,
    sort_methods,
)
from paretocosmos.paper.results import (
    AblationRow,
    ClaimResult,
    ConvergenceRow,
    ExperimentResult,
    RecipeResult,
    RivalComparison,
)

Row = RivalComparison | AblationRow | ConvergenceRow

# Lin et al. describe a draw of the images that is harder than the published files.
DRAW = " Here on a harder draw than the paper's."
KINDS = {"yes": "on every set", "on": "on some sets only", "no": "on none", "open": "still open"}


def arrange_verdict(results: Sequence[RecipeResult]) -> dict[str, Any] | None:
    """Arrange the verdict; `None` where no number and no claim of the paper was judged.

    Args:
        results: what `collect_results` returned for each recipe; rehearsals are left aside.
    """
    # a rehearsal of a few epochs reproduces nothing
    finished = [result for result in results if result.rehearsal is None]
    by_name: dict[str, ExperimentResult] = {}
    for experiment in (e for result in finished for e in result.experiments if _is_compared(e)):
        by_name.setdefault(experiment.name, experiment)  # recipes share experiments
    experiments = list(by_name.values())
    claims = [(claim, result) for result in finished for claim in result.claims if claim.rows]
    # the paper's own draw first: `sort` is stable, so recipes keep their order otherwise
    claims.sort(key=lambda pair: _is_harder_draw(pair[0]))
    if not experiments and not claims:
        return None
    # the paper makes its claims about its own draw, so the others do not count
    main_claims = [claim for claim, _ in claims if not _is_harder_draw(claim)]
    notes = Footnotes()
    lead = [
        # the first recipe is Table 1, whose first claim is the paper's main one
        *_describe_main_claim(main_claims[:1]),
        *_count_reproduced(experiments),
        *_count_claims(main_claims),
    ]
    return {
        "lead": " ".join(lead),
        "numbers": [
            _compare_benchmark([e for e in experiments if e.benchmark == key], notes)
            for key in list_benchmarks(experiments)
        ],
        "notes": notes,
        "claims": [_summarize_claim(claim, result) for claim, result in claims],
    }


def _is_compared(experiment: ExperimentResult) -> bool:
    """Return True if an experiment is the paper's, and its hypervolume compared."""
    # a variation or another protocol has no number in print
    is_in_paper = not experiment.settings and experiment.protocol != "clean"
    return is_in_paper and experiment.paper.hypervolume.differs is not None


def _count_same(experiments: Sequence[ExperimentResult]) -> str:
    """Count the hypervolumes that are the paper's within the noise."""
    same = sum(not experiment.paper.hypervolume.differs for experiment in experiments)
    return f"{same} of {len(experiments)}"


def _count_reproduced(experiments: Sequence[ExperimentResult]) -> Iterator[str]:
    if experiments:
        cosmos = [experiment for experiment in experiments if experiment.method == "cosmos"]
        tail = f", {_count_same(cosmos)} for COSMOS" if cosmos else ""
        same = _count_same(experiments)
        yield f"{same} published hypervolumes are the same within the noise{tail}."


def _describe_main_claim(claims: Sequence[ClaimResult]) -> Iterator[str]:
    verbs = {"yes": "holds", "no": "does not hold", "open": "is open"}
    for claim in claims:
        answer = _answer_claim(claim)
        yield f"The paper's main claim {verbs.get(answer, f'holds {answer}')}: {claim.claim}"


def _count_claims(claims: Sequence[ClaimResult]) -> Iterator[str]:
    if len(claims) > 1:
        # "on 3 of 5 sets" counts as "on"
        count = Counter(_answer_claim(claim).partition(" ")[0] for claim in claims)
        counts = [f"{count[kind]} {words}" for kind, words in KINDS.items() if count[kind]]
        yield f"Where its {len(claims)} claims hold: {', '.join(counts)}."


def _answer_claim(claim: ClaimResult) -> str:
    """Answer whether a claim holds, or on how many benchmarks."""
    if claim.holds is not False:
        return "yes" if claim.holds else "open"
    states = [_combine_rows(rows) for rows in _group_rows(claim).values()]
    return f"on {states.count(True)} of {len(states)} sets" if True in states else "no"


def _compare_benchmark(
    experiments: Sequence[ExperimentResult], notes: Footnotes
) -> tuple[str, str, str, str, str]:
    """Return a row: the set, COSMOS beside the paper, and how many methods are the same.

    Args:
        experiments: those of one benchmark.
        notes: what the marks of reasons refer to.
    """
    order = sort_methods(experiments)
    experiments = sorted(experiments, key=lambda e: order.index(e.method))
    different = [e for e in experiments if e.paper.hypervolume.differs]
    counts = _count_same(experiments)
    # names help only if some are the same: "0 of 5" says it all
    if 0 < len(different) < len(experiments):
        counts += f", not {', '.join(method_title(e.method) for e in different)}"
    title = problem_title(experiments[0].problem)
    cosmos = next((e for e in experiments if e.method == "cosmos"), None)
    if cosmos is None:
        return title, NONE, NONE, NONE, counts
    figure, answer = cosmos.paper.hypervolume, "yes"
    if figure.differs:
        marks = "".join(f" ({notes.mark(reason)})" for reason in explain_difference(cosmos))
        answer = f"no, {format_difference(figure.difference)}{marks}"
    paper = format_printed(figure, deviation=True)
    return title, format_spread(cosmos.volume), paper, answer, counts


def _is_harder_draw(claim: ClaimResult) -> bool:
    return all(row.is_harder for row in claim.rows)


def _summarize_claim(claim: ClaimResult, result: RecipeResult) -> tuple[str, str, str, str]:
    """Return a row: a claim, whether it holds, on which benchmarks, and the recipe."""
    by_title = _group_rows(claim)
    # in the order of the sentence: where it holds, where not, where it is open
    titles: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for title, rows in by_title.items():
        state = _combine_rows(rows)
        titles[state].append(title if state else title + _explain_state(rows, state))
    starts = {True: "holds on", False: "does not hold on", None: "open on"}
    parts = [f"{starts[state]} {', '.join(names)}" for state, names in titles.items() if names]
    if len(titles[True]) == len(by_title) > 1:
        parts = [f"holds on all {len(by_title)} sets"]
    sentence = "; ".join(parts)
    # a claim does not cover benchmarks of which nothing is trained
    trained = list_benchmarks(result.done)
    untrained = dict.fromkeys(
        e.benchmark_title(protocol=False) for e in result.experiments if e.benchmark not in trained
    )
    remark = f" Not trained yet: {', '.join(untrained)}." if untrained else ""
    text = claim.claim + (DRAW if _is_harder_draw(claim) else "")
    sentence = f"{sentence[0].upper()}{sentence[1:]}.{remark}"
    return text, _answer_claim(claim), sentence, f"`{result.recipe}`"


def _group_rows(claim: ClaimResult) -> dict[str, list[Row]]:
    """Group rows by benchmark, whatever the protocol."""
    by_title: dict[str, list[Row]] = {}
    for row in claim.rows:
        # that a claim is about the harder draw is said once, in its first column
        harder = _is_harder_draw(claim)
        title = problem_title(row.problem) if harder else row.benchmark_title(protocol=False)
        by_title.setdefault(title, []).append(row)
    return by_title


def _combine_rows(rows: Sequence[Row]) -> bool | None:
    """Return False if one row does not hold, else None if one is open, else True."""
    states = [_judge_row(row) for row in rows]
    return False if False in states else None if None in states else True


def _judge_row(row: Row) -> bool | None:
    """Judge one row; to outperform Single Task takes more than not to be behind it."""
    if not isinstance(row, RivalComparison):
        return row.holds
    # nothing is known of the noise, so a difference decides nothing
    if row.verdict == ONE_SEED:
        return None
    # rivals must not outperform COSMOS, but COSMOS must outperform Single Task
    return row.verdict == "behind" if row.method == "single_task" else row.verdict != "ahead"


def _explain_state(rows: Sequence[Row], state: bool | None) -> str:
    """Explain a state: who is ahead by how much, or the numbers of the benchmark in short."""
    several = len({row.protocol for row in rows}) > 1
    reasons = []
    for row in (row for row in rows if _judge_row(row) is state):
        if isinstance(row, RivalComparison):
            noise = ", within the noise" if "within the noise" in row.verdict else ""
            protocol = f", {row.protocol}" if several else ""
            difference = format_difference(row.difference)
            reasons.append(f"{method_title(row.method)} {difference}{noise}{protocol}")
        elif row.short:
            reasons.append(row.short)
    return f" ({'; '.join(reasons)})" if reasons else ""
