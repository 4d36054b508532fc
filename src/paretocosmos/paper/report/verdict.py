"""The verdict on all recipes: how many of the paper's numbers and claims were reproduced."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from paretocosmos.paper.published import method_title, problem_title
from paretocosmos.paper.report.tables import (
    NONE,
    Footnotes,
    explain_difference,
    format_difference,
    format_printed,
    format_spread,
    list_benchmarks,
    sort_methods,
)
from paretocosmos.paper.results import (
    ClaimResult,
    ClaimRow,
    ExperimentResult,
    RecipeResult,
    combine_verdicts,
    title_benchmark,
)

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
    for experiment in (e for result in finished for e in result.experiments):
        # a variation or another protocol has no number in print
        is_in_paper = not experiment.settings and experiment.protocol != "clean"
        if is_in_paper and experiment.comparison.differs is not None:
            by_name.setdefault(experiment.name, experiment)  # recipes share experiments
    experiments = list(by_name.values())
    claims = [(claim, result.recipe) for result in finished for claim in result.claims]
    if not experiments and not claims:
        return None
    # the paper's own draw first: `sort` is stable, so recipes keep their order otherwise
    claims.sort(key=lambda pair: pair[0].harder)
    notes = Footnotes()
    # the paper makes its claims about its own draw, so the others do not count
    lead = _describe_reproduced(experiments, [claim for claim, _ in claims if not claim.harder])
    return {
        "lead": " ".join(lead),
        "numbers": [
            _compare_benchmark([e for e in experiments if e.benchmark == key], notes)
            for key in list_benchmarks(experiments)
        ],
        "notes": notes,
        "claims": [
            (
                claim.claim + (DRAW if claim.harder else ""),
                _answer_claim(claim),
                summarize_claim(claim),
                f"`{recipe}`",
            )
            for claim, recipe in claims
        ],
    }


def _count_same(experiments: Sequence[ExperimentResult]) -> str:
    """Count the hypervolumes that are the paper's within the noise."""
    same = sum(not experiment.comparison.differs for experiment in experiments)
    return f"{same} of {len(experiments)}"


def _describe_reproduced(
    experiments: Sequence[ExperimentResult], claims: Sequence[ClaimResult]
) -> Iterator[str]:
    """Yield a sentence on the main claim, one on all numbers, and one on all claims."""
    answers = [_answer_claim(claim) for claim in claims]
    if claims:
        # the first recipe is Table 1, whose first claim is the paper's main one
        verbs = {"yes": "holds", "no": "does not hold", "open": "is open"}
        verb = verbs.get(answers[0], f"holds {answers[0]}")
        yield f"The paper's main claim {verb}: {claims[0].claim}"
    if experiments:
        cosmos = [experiment for experiment in experiments if experiment.method == "cosmos"]
        tail = f", {_count_same(cosmos)} for COSMOS" if cosmos else ""
        same = _count_same(experiments)
        yield f"{same} published hypervolumes are the same within the noise{tail}."
    if len(claims) > 1:
        # "on 3 of 5 sets" counts as "on"
        count = Counter(answer.partition(" ")[0] for answer in answers)
        counts = [f"{count[kind]} {words}" for kind, words in KINDS.items() if count[kind]]
        yield f"Where its {len(claims)} claims hold: {', '.join(counts)}."


def _answer_claim(claim: ClaimResult) -> str:
    """Answer whether a claim holds, or on how many benchmarks."""
    if claim.holds is not False:
        return "yes" if claim.holds else "open"
    states = [combine_verdicts(rows) for rows in _group_rows(claim).values()]
    return f"on {states.count(True)} of {len(states)} sets" if True in states else "no"


def _compare_benchmark(
    experiments: Sequence[ExperimentResult], notes: Footnotes
) -> tuple[str, ...]:
    """Return a row: the set, COSMOS beside the paper, and how many methods are the same.

    Args:
        experiments: those of one benchmark.
        notes: what the marks of reasons refer to.
    """
    order = sort_methods(experiments)
    different = [e.method for e in experiments if e.comparison.differs]
    counts = _count_same(experiments)
    # names help only if some are the same: "0 of 5" says it all
    if 0 < len(different) < len(experiments):
        counts += f", not {', '.join(method_title(m) for m in order if m in different)}"
    title = problem_title(experiments[0].problem)
    cosmos = next((e for e in experiments if e.method == "cosmos"), None)
    if cosmos is None:
        return title, NONE, NONE, NONE, counts
    comparison, answer = cosmos.comparison, "yes"
    if comparison.differs:
        marks = "".join(f" ({notes.mark(reason)})" for reason in explain_difference(cosmos))
        answer = f"no, {format_difference(comparison.difference('hypervolume'))}{marks}"
    paper = format_printed(comparison.paper, deviation=True)
    return title, format_spread(cosmos.volume), paper, answer, counts


def summarize_claim(claim: ClaimResult) -> str:
    """Return a sentence: on which benchmarks a claim holds, on which it does not, and why."""
    by_title = _group_rows(claim)
    # in the order of the sentence: where it holds, where not, where it is open
    starts = {True: "holds on", False: "does not hold on", None: "open on"}
    titles: dict[bool | None, list[str]] = {state: [] for state in starts}
    for title, rows in by_title.items():
        state = combine_verdicts(rows)
        protocols = {row.benchmark[2] for row in rows}
        # who is ahead by how much, or the numbers of the benchmark in short
        reasons = [
            row.short + (f", {row.benchmark[2]}" if len(protocols) > 1 else "")
            for row in rows
            if row.holds is state and not state
        ]
        titles[state].append(f"{title} ({'; '.join(reasons)})" if reasons else title)
    if len(titles[True]) == len(by_title) > 1:
        return f"Holds on all {len(by_title)} sets."
    parts = [f"{starts[state]} {', '.join(names)}" for state, names in titles.items() if names]
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _group_rows(claim: ClaimResult) -> dict[str, list[ClaimRow]]:
    """Group rows by benchmark, whatever the protocol."""
    by_title: dict[str, list[ClaimRow]] = {}
    for row in claim.rows:
        # that a claim is about the harder draw is said once
        problem, settings, _ = row.benchmark
        title = title_benchmark((problem, "" if claim.harder else settings, None))
        by_title.setdefault(title, []).append(row)
    return by_title
