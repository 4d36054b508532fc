"""A recipe as a section of a report, and the verdict on all recipes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap

from paretocosmos.paper.published import device_title, format_settings, method_title, problem_title
from paretocosmos.paper.report.paper_tables import (
    build_face_tables,
    build_table_1,
    explain_difference,
)
from paretocosmos.paper.report.tables import (
    NONE,
    Claim,
    Footnotes,
    Picture,
    Section,
    Table,
    build_ablation_table,
    build_convergence_tables,
    build_fronts_table,
    build_intuition_table,
    build_study_table,
    format_difference,
    format_duration,
    format_printed,
    format_spread,
    sort_methods,
)
from paretocosmos.paper.results import (
    AblationRow,
    ClaimResult,
    ConvergenceRow,
    ExperimentResult,
    JudgedRow,
    RecipeResult,
    RivalComparison,
)

TABLES: dict[str, Callable[[Sequence[ExperimentResult]], list[Table]]] = {
    "table": build_table_1,
    "fronts": build_fronts_table,
    "convergence": build_convergence_tables,
    "ablation": build_ablation_table,
    "celeba": build_face_tables,
    "intuition": build_intuition_table,
    "study": build_study_table,
}


def build_section(
    result: RecipeResult, pictures: Sequence[Picture], timed: Mapping[str, str]
) -> Section:
    """Build the section of a recipe: words, tables and pictures.

    Args:
        result: what `collect` gave.
        pictures: its figures.
        timed: experiments whose time another recipe reports, and the name of that recipe.
    """
    epochs = result.rehearsal
    mark, warning = "", ""
    if epochs is not None:
        length = f"{epochs} epoch{'s' * (epochs > 1)}"
        mark = f" (rehearsal, {length})"
        warning = (
            f"Rehearsal: {length} instead of the paper's. The numbers say nothing about a method."
        )
    tables = TABLES[result.shows](result.experiments)
    notes = (
        *_list_missing(result.experiments),
        _format_time(result, timed),
        _describe_origin(result.done),
    )
    return Section(
        name=result.recipe,
        title=result.title,
        source=result.section,
        warning=warning,
        claims=tuple(_list_claims(result)) if epochs is None else (),
        tables=tuple(replace(table, title=table.title + mark) for table in tables),
        pictures=tuple(pictures),
        notes=(*notes, *_list_caveats(result.done)),
    )


def _list_claims(result: RecipeResult) -> Iterator[Claim]:
    """Yield the paper's claims with their verdicts."""
    for claim in result.claims:
        judged = [row for row in claim.rows if isinstance(row, JudgedRow)]
        details = tuple(f"{row.benchmark_title()}: {row.sentence}." for row in judged)
        yield Claim(claim.claim, claim.sentence, details)


def _list_missing(experiments: Sequence[ExperimentResult]) -> Iterator[str]:
    """Yield what failed and why, and which seeds are missing."""
    missing: dict[tuple[int, ...], dict[str, list[str]]] = {}
    for experiment in experiments:
        name = f"{method_title(experiment.method)} on {experiment.benchmark_title()}"
        if experiment.error is not None:
            yield f"Failed: {name} (`{experiment.name}`): {experiment.error}"
        if experiment.missing:
            settings = format_settings(experiment.variation)
            missing.setdefault(tuple(experiment.missing), {}).setdefault(name, []).append(settings)
    for seeds, names in missing.items():
        everywhere = sum(map(len, names.values())) == len(experiments)
        names_text = (
            "all experiments" if everywhere else "; ".join(starmap(_list_settings, names.items()))
        )
        listed = ", ".join(map(str, seeds))
        prefix = "each of " * (len(names) > 1 and not everywhere)
        yield f"Missing: seed{'s' * (len(seeds) > 1)} {listed} of {prefix}{names_text}."


def _list_settings(name: str, settings: Sequence[str]) -> str:
    """List experiments that differ in their settings alone; many are counted.

    >>> _list_settings("COSMOS on Adult", ["penalty 1", ""])
    'COSMOS on Adult (penalty 1); COSMOS on Adult'
    >>> _list_settings("COSMOS on Adult", ["penalty 1", "penalty 2", "penalty 3", "penalty 4"])
    'COSMOS on Adult (4 settings)'
    """
    shown = settings if len(settings) < 4 else [f"{len(settings)} settings"]
    return "; ".join(f"{name} ({more})" if more else name for more in shown)


def _format_time(result: RecipeResult, timed: Mapping[str, str]) -> str:
    """Format what the runs took, unless they are all those of other recipes."""
    if all(experiment.name in timed for experiment in result.done):
        recipes = dict.fromkeys(timed[experiment.name] for experiment in result.done)
        recipe_names = " and ".join(f"`{name}`" for name in recipes)
        return f"Time: included in {recipe_names}, which has the same runs."
    times = ", ".join(f"{format_duration(seconds)} {part}" for part, seconds in result.seconds)
    return f"Time: {times}."


def _describe_origin(done: Sequence[ExperimentResult]) -> str:
    """Describe how the numbers were produced; each distinct answer once."""

    def distinct(key: str) -> str:
        answers = (str(answer) for experiment in done for answer in getattr(experiment.made, key))
        return " and ".join(dict.fromkeys(map(device_title, answers))) or "unknown"

    return (
        f"Produced by paretocosmos {distinct('version')} (source hash {distinct('source')}) on "
        f"{distinct('device')}, threads {distinct('threads')}, torch {distinct('torch')}, "
        f"precision {distinct('precision')}, engine {distinct('engine')}, seeds trained together: "
        f"{distinct('seeds_together')}."
    )


def _list_caveats(done: Sequence[ExperimentResult]) -> list[str]:
    """List what images are, and the caveats of benchmarks, each once."""
    images = [
        f"{c.benchmark_title(protocol=False)}: {text}." for c in done for text in c.made.images
    ]
    return list(
        dict.fromkeys([*images, *(text for experiment in done for text in experiment.made.caveats)])
    )


Row = RivalComparison | AblationRow | ConvergenceRow

DRAW = " Here on a harder draw than the paper's."
KINDS = {"yes": "on every set", "on": "on some sets only", "no": "on none", "open": "still open"}


def build_verdict(results: Sequence[RecipeResult]) -> list[Section]:
    """Build a section on all recipes; none where no number and no claim of the paper was judged.

    Args:
        results: what `collect` gave for each recipe; rehearsals are left aside.
    """
    real = [result for result in results if result.rehearsal is None]
    shared: dict[str, ExperimentResult] = {}
    for experiment in (
        experiment for result in real for experiment in result.experiments if _is_judged(experiment)
    ):
        shared.setdefault(experiment.name, experiment)
    experiments = list(shared.values())
    claims = [(claim, result) for result in real for claim in result.claims if claim.rows]
    claims.sort(key=lambda pair: _is_other_draw(pair[0]))
    main_claims = [claim for claim, _ in claims if not _is_other_draw(claim)]
    lead, tables = list(_main_claim(main_claims)), []
    if experiments:
        lead.append(_count_equal(experiments))
        tables.append(_build_numbers_table(experiments))
    if claims:
        lead += _count_claims(main_claims)
        head = ("the paper says", "holds", "where and why", "more in")
        rows = tuple(_claim_row(claim, result) for claim, result in claims)
        tables.append(Table("The paper's claims", head, rows))
    if not tables:
        return []
    return [Section("verdict", "The verdict", tables=tuple(tables), lead=" ".join(lead))]


def _is_judged(experiment: ExperimentResult) -> bool:
    """Return True if an experiment is the paper's, beside its number."""
    is_in_paper = not experiment.settings and experiment.protocol != "clean"
    return is_in_paper and experiment.paper.hypervolume.differs is not None


def _is_same(experiment: ExperimentResult) -> bool:
    return not experiment.paper.hypervolume.differs


def _count_equal(experiments: Sequence[ExperimentResult]) -> str:
    cosmos = [experiment for experiment in experiments if experiment.method == "cosmos"]
    of_cosmos = f", {sum(map(_is_same, cosmos))} of {len(cosmos)} for COSMOS" if cosmos else ""
    total = f"{sum(map(_is_same, experiments))} of {len(experiments)}"
    return f"{total} published hypervolumes are the same within the noise{of_cosmos}."


def _main_claim(claims: Sequence[ClaimResult]) -> Iterator[str]:
    """Yield a sentence on the first claim, which is the paper's main one."""
    if claims:
        answer = _answer(claims[0])
        verbs = {"yes": "holds", "no": "does not hold", "open": "is open"}
        yield f"The paper's main claim {verbs.get(answer, f'holds {answer}')}: {claims[0].claim}"


def _count_claims(claims: Sequence[ClaimResult]) -> Iterator[str]:
    if len(claims) > 1:
        count = Counter(_answer(claim).partition(" ")[0] for claim in claims)
        counts = [f"{count[kind]} {words}" for kind, words in KINDS.items() if count[kind]]
        yield f"Where its {len(claims)} claims hold: {', '.join(counts)}."


def _answer(claim: ClaimResult) -> str:
    """Answer whether a claim holds, or on how many benchmarks."""
    if claim.holds is not False:
        return "yes" if claim.holds else "open"
    states = [_combine(rows) for rows in _group_rows(claim).values()]
    return f"on {states.count(True)} of {len(states)} sets" if True in states else "no"


def _build_numbers_table(experiments: Sequence[ExperimentResult]) -> Table:
    """Build a row per benchmark: COSMOS beside the paper, and how many methods are the same."""
    notes = Footnotes()
    rows = []
    for key in dict.fromkeys(e.benchmark for e in experiments):
        on_benchmark = [experiment for experiment in experiments if experiment.benchmark == key]
        methods = sort_methods(on_benchmark)
        on_benchmark.sort(key=lambda experiment: methods.index(experiment.method))
        cosmos = next(
            (experiment for experiment in on_benchmark if experiment.method == "cosmos"), None
        )
        different = ", ".join(
            method_title(experiment.method)
            for experiment in on_benchmark
            if not _is_same(experiment)
        )
        counts = f"{sum(map(_is_same, on_benchmark))} of {len(on_benchmark)}"
        counts += f", not {different}" if different and any(map(_is_same, on_benchmark)) else ""
        rows.append((problem_title(key[0]), *_compare_with(cosmos, notes), counts))
    head = ("set", "COSMOS, ours", "paper", "the same", "all methods")
    return Table("The paper's hypervolumes", head, tuple(rows), notes=notes.by_mark())


def _compare_with(experiment: ExperimentResult | None, notes: Footnotes) -> tuple[str, str, str]:
    """Return ours, the paper's, and yes, or no and by how much, with marks of the reasons."""
    if experiment is None:
        return NONE, NONE, NONE
    figure, answer = experiment.paper.hypervolume, "yes"
    if figure.differs:
        reasons = "".join(f" ({notes.mark(reason)})" for reason in explain_difference(experiment))
        answer = f"no, {format_difference(figure.difference)}{reasons}"
    return format_spread(experiment.volume), format_printed(figure, deviation=True), answer


def _is_other_draw(claim: ClaimResult) -> bool:
    return all(row.is_harder for row in claim.rows)


def _list_untrained(result: RecipeResult) -> list[str]:
    """List the benchmarks of which nothing is trained, which a claim does not cover."""
    trained = {e.benchmark for e in result.done}
    untrained = [
        experiment for experiment in result.experiments if experiment.benchmark not in trained
    ]
    return list(
        dict.fromkeys(experiment.benchmark_title(protocol=False) for experiment in untrained)
    )


def _claim_row(claim: ClaimResult, result: RecipeResult) -> tuple[str, str, str, str]:
    """Build one row: a claim, whether it holds, and on which benchmarks."""
    by_title = _group_rows(claim)
    titles: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for title, rows in by_title.items():
        state = _combine(rows)
        titles[state].append(title if state else title + _explain_state(rows, state))
    starts = {True: "holds on", False: "does not hold on", None: "open on"}
    parts = [f"{starts[state]} {', '.join(names)}" for state, names in titles.items() if names]
    if len(titles[True]) == len(by_title) > 1:
        parts = [f"holds on all {len(by_title)} sets"]
    sentence, untrained = "; ".join(parts), ", ".join(_list_untrained(result))
    text = claim.claim + (DRAW if _is_other_draw(claim) else "")
    remark = f" Not trained yet: {untrained}." if untrained else ""
    sentence = f"{sentence[0].upper()}{sentence[1:]}.{remark}"
    return text, _answer(claim), sentence, f"`{result.recipe}`"


def _group_rows(claim: ClaimResult) -> dict[str, list[Row]]:
    """Group rows by benchmark, whatever the protocol."""
    harder_draw = _is_other_draw(claim)  # which is said before
    by_title: dict[str, list[Row]] = {}
    for row in claim.rows:
        title = problem_title(row.problem) if harder_draw else row.benchmark_title(protocol=False)
        by_title.setdefault(title, []).append(row)
    return by_title


def _combine(rows: Sequence[Row]) -> bool | None:
    states = [_row_holds(row) for row in rows]
    return False if False in states else None if None in states else True


def _row_holds(row: Row) -> bool | None:
    """Judge one row; to outperform Single Task takes more than not to be behind it."""
    if not isinstance(row, RivalComparison):
        return row.holds
    if row.verdict == "one seed":
        return None
    return row.verdict == "behind" if row.method == "single_task" else row.verdict != "ahead"


def _explain_state(rows: Sequence[Row], state: bool | None) -> str:
    """Explain a state: who is ahead by how much, or the numbers of the benchmark in short."""
    several = len({row.protocol for row in rows}) > 1
    reasons = []
    for row in (row for row in rows if _row_holds(row) is state):
        if isinstance(row, RivalComparison):
            noise = ", within the noise" if "within the noise" in row.verdict else ""
            protocol = f", {row.protocol}" if several else ""
            reasons.append(
                f"{method_title(row.method)} {format_difference(row.difference)}{noise}{protocol}"
            )
        elif row.short:
            reasons.append(row.short)
    return f" ({'; '.join(reasons)})" if reasons else ""
