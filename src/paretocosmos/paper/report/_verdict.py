"""The verdict: which of the paper's numbers and claims hold, told before anything else."""

from collections import Counter
from collections.abc import Iterator, Sequence

from paretocosmos.io.schema.collected import (
    AblationRow,
    CellResult,
    ClaimResult,
    Comparison,
    ConvergenceRow,
    RecipeResult,
)
from paretocosmos.paper.names import harder, method_title, problem_title, set_key, set_title
from paretocosmos.paper.report._parts import NONE, Footnotes, Section, Table
from paretocosmos.paper.report._table_1 import against_of, why
from paretocosmos.paper.report._texts import by_method, mean, printed, signed

__all__ = ["verdict"]

Row = Comparison | AblationRow | ConvergenceRow

DRAW = " Here on a harder draw than the paper's."
KINDS = {"yes": "on every set", "on": "on some sets only", "no": "on none", "open": "still open"}


def verdict(results: Sequence[RecipeResult]) -> list[Section]:
    """A section on all recipes; none where no number and no claim of the paper was judged.

    Args:
        results: what `collect` gave for each recipe; rehearsals are left aside.
    """
    real = [result for result in results if result.rehearsal is None]
    shared: dict[str, CellResult] = {}
    for cell in (cell for result in real for cell in result.cells if _is_judged(cell)):
        shared.setdefault(cell.name, cell)
    cells = list(shared.values())
    claims = [(claim, result) for result in real for claim in result.claims if claim.rows]
    claims.sort(key=lambda one: _other_draw(one[0]))
    own = [claim for claim, _ in claims if not _other_draw(claim)]
    lead, tables = list(_main(own)), []
    if cells:
        lead.append(_count_numbers(cells))
        tables.append(_numbers(cells))
    if claims:
        lead += _count_claims(own)
        head = ("the paper says", "holds", "where and why", "more in")
        rows = tuple(_claim(claim, result) for claim, result in claims)
        tables.append(Table("The paper's claims", head, rows))
    if not tables:
        return []
    return [Section("verdict", "The verdict", tables=tuple(tables), lead=" ".join(lead))]


def _is_judged(cell: CellResult) -> bool:
    """Whether it is a cell of the paper, beside its number."""
    own = not cell.settings and cell.protocol != "clean"
    return own and against_of(cell).hypervolume.differs is not None


def _is_same(cell: CellResult) -> bool:
    return not against_of(cell).hypervolume.differs


def _count_numbers(cells: Sequence[CellResult]) -> str:
    own = [cell for cell in cells if cell.method == "cosmos"]
    more = f", {sum(map(_is_same, own))} of {len(own)} for COSMOS" if own else ""
    many = f"{sum(map(_is_same, cells))} of {len(cells)}"
    return f"{many} published hypervolumes are the same within the noise{more}."


def _main(claims: Sequence[ClaimResult]) -> Iterator[str]:
    """The first claim, which is the paper's main one, and whether it holds."""
    if claims:
        answer = _answer(claims[0])
        told = {"yes": "holds", "no": "does not hold", "open": "is open"}
        yield f"The paper's main claim {told.get(answer, f'holds {answer}')}: {claims[0].claim}"


def _count_claims(claims: Sequence[ClaimResult]) -> Iterator[str]:
    if len(claims) > 1:
        count = Counter(_answer(claim).partition(" ")[0] for claim in claims)
        told = [f"{count[kind]} {words}" for kind, words in KINDS.items() if count[kind]]
        yield f"Where its {len(claims)} claims hold: {', '.join(told)}."


def _answer(claim: ClaimResult) -> str:
    """Whether a claim holds, or on how many sets."""
    if claim.holds is not False:
        return "yes" if claim.holds else "open"
    states = [_worst(rows) for rows in _by_set(claim).values()]
    return f"on {states.count(True)} of {len(states)} sets" if True in states else "no"


def _numbers(cells: Sequence[CellResult]) -> Table:
    """A row per set: COSMOS beside the paper, and how many of all methods come out the same."""
    notes = Footnotes()
    rows = []
    for key in dict.fromkeys(map(set_key, cells)):
        every = [cell for cell in cells if set_key(cell) == key]
        methods = by_method(every)
        every.sort(key=lambda cell: methods.index(cell.method))
        own = next((cell for cell in every if cell.method == "cosmos"), None)
        others = ", ".join(method_title(cell.method) for cell in every if not _is_same(cell))
        many = f"{sum(map(_is_same, every))} of {len(every)}"
        many += f", not {others}" if others and any(map(_is_same, every)) else ""
        rows.append((problem_title(key[0]), *_beside(own, notes), many))
    head = ("set", "COSMOS, ours", "paper", "the same", "all methods")
    return Table("The paper's hypervolumes", head, tuple(rows), notes=notes.by_mark())


def _beside(cell: CellResult | None, notes: Footnotes) -> tuple[str, str, str]:
    """Ours, the paper's, and yes, or no and by how much, with marks of the reasons."""
    if cell is None:
        return NONE, NONE, NONE
    found, answer = against_of(cell).hypervolume, "yes"
    if found.differs:
        reasons = "".join(f" ({notes.mark(reason)})" for reason in why(cell))
        answer = f"no, {signed(found.difference)}{reasons}"
    return mean(cell.volume), printed(found, deviation=True), answer


def _other_draw(claim: ClaimResult) -> bool:
    return all(map(harder, claim.rows))


def _untrained(result: RecipeResult) -> list[str]:
    """The sets of a recipe of which nothing is trained, so that a claim says nothing of them."""
    trained = set(map(set_key, result.done))
    left = [cell for cell in result.cells if set_key(cell) not in trained]
    return list(dict.fromkeys(set_title(cell, protocol=False) for cell in left))


def _claim(claim: ClaimResult, result: RecipeResult) -> tuple[str, str, str, str]:
    """One line: what the paper says, whether it holds, and on which sets."""
    sets = _by_set(claim)
    told: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for title, rows in sets.items():
        worst = _worst(rows)
        told[worst].append(title if worst else title + _because(rows, worst))
    starts = {True: "holds on", False: "does not hold on", None: "open on"}
    parts = [f"{starts[state]} {', '.join(names)}" for state, names in told.items() if names]
    if len(told[True]) == len(sets) > 1:
        parts = [f"holds on all {len(sets)} sets"]
    where, untrained = "; ".join(parts), ", ".join(_untrained(result))
    text = claim.claim + (DRAW if _other_draw(claim) else "")
    told_not = f" Not trained yet: {untrained}." if untrained else ""
    where = f"{where[0].upper()}{where[1:]}.{told_not}"
    return text, _answer(claim), where, f"`{result.recipe}`"


def _by_set(claim: ClaimResult) -> dict[str, list[Row]]:
    """The rows of each set, whatever the protocol."""
    same = _other_draw(claim)  # which is said before
    found: dict[str, list[Row]] = {}
    for row in claim.rows:
        title = problem_title(row.problem) if same else set_title(row, protocol=False)
        found.setdefault(title, []).append(row)
    return found


def _worst(rows: Sequence[Row]) -> bool | None:
    states = [_holds(row) for row in rows]
    return False if False in states else None if None in states else True


def _holds(row: Row) -> bool | None:
    """Of one comparison; to outperform Single Task takes more than not to be behind it."""
    if not isinstance(row, Comparison):
        return row.holds
    if row.verdict == "one seed":
        return None
    return row.verdict == "behind" if row.method == "single_task" else row.verdict != "ahead"


def _because(rows: Sequence[Row], state: bool | None) -> str:
    """What speaks against it: who is ahead by how much, or the numbers of the set in short."""
    several = len({row.protocol for row in rows}) > 1
    found = []
    for row in (row for row in rows if _holds(row) is state):
        if isinstance(row, Comparison):
            near = ", within the noise" if "within the noise" in row.verdict else ""
            where = f", {row.protocol}" if several else ""
            found.append(f"{method_title(row.method)} {signed(row.difference)}{near}{where}")
        elif row.short:
            found.append(row.short)
    return f" ({'; '.join(found)})" if found else ""
