"""The verdict: which of the paper's numbers and claims hold, told before anything else."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paretocosmos.paper._names import method_title, problem_title
from paretocosmos.paper._sets import harder, place_of, set_title
from paretocosmos.paper.report._parts import NONE, Section, Table
from paretocosmos.paper.report._table_1 import why
from paretocosmos.paper.report._texts import by_method, printed, signed, spread

__all__ = ["verdict"]

Cell = Mapping[str, Any]
Row = Mapping[str, Any]

DRAW = " Here: on a harder draw than the paper's."


def verdict(contents: Sequence[Mapping[str, Any]]) -> list[Section]:
    """A section on all recipes; none where no number and no claim of the paper was judged.

    Args:
        contents: what `collect` gave for each recipe; rehearsals are left aside.
    """
    real = [content for content in contents if content["rehearsal"] is None]
    cells: dict[str, Cell] = {}  # recipes share them
    for cell in (cell for one in real for cell in one["cells"] if _judged(cell)):
        cells.setdefault(cell["name"], cell)
    claims = [(claim, one["recipe"]) for one in real for claim in one["claims"] if claim["rows"]]
    claims.sort(key=lambda one: _other_draw(one[0]))
    own = [claim for claim, _ in claims if not _other_draw(claim)]
    lead, tables = list(_main(own)), []
    if cells:
        lead.append(_count_numbers(list(cells.values())))
        tables.append(_numbers(list(cells.values())))
    if claims:
        lead += _count_claims(own)
        untrained = {one["recipe"]: _untrained(one["cells"]) for one in real}
        rows = tuple(_claim(claim, name, untrained[name]) for claim, name in claims)
        head = ("the paper says", "holds", "where and why", "more in")
        tables.append(Table("The paper's claims", head, rows, named=4))
    if not tables:
        return []
    title = "The verdict"
    return [Section("verdict", title, "", "", (), tuple(tables), (), (), (" ".join(lead),))]


def _judged(cell: Cell) -> bool:
    """Whether it is a cell of the paper, beside its number."""
    found = (cell["against"] or {}).get("hypervolume", {})
    return not cell["settings"] and cell["protocol"] != "clean" and "differs" in found


def _same(cell: Cell) -> bool:
    return not cell["against"]["hypervolume"]["differs"]


def _count_numbers(cells: Sequence[Cell]) -> str:
    own = [cell for cell in cells if cell["method"] == "cosmos"]
    more = f", {sum(map(_same, own))} of {len(own)} for COSMOS" if own else ""
    many = f"{sum(map(_same, cells))} of {len(cells)}"
    return f"{many} published hypervolumes come out the same within the noise{more}."


def _main(claims: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The first claim, which is the paper's main one, and whether it holds."""
    if claims:
        answer = _answer(claims[0])
        told = {"yes": "holds", "no": "does not hold", "open": "is open"}
        yield f"The paper's main claim {told.get(answer, f'holds {answer}')}: {claims[0]['claim']}"


def _count_claims(claims: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(claims) > 1:
        count = Counter(_answer(claim).partition(" ")[0] for claim in claims)
        kinds = {
            "yes": "on every set",
            "on": "on some sets only",
            "no": "on none",
            "open": "still open",
        }
        told = [f"{count[kind]} {words}" for kind, words in kinds.items() if count[kind]]
        yield f"Of its {len(claims)} claims, this many hold: {', '.join(told)}."


def _answer(claim: Mapping[str, Any]) -> str:
    """Whether a claim holds, or on how many sets."""
    if claim["holds"] is not False:
        return "yes" if claim["holds"] else "open"
    states = [_worst(rows) for rows in _by_set(claim).values()]
    return f"on {states.count(True)} of {len(states)} sets" if True in states else "no"


def _numbers(cells: Sequence[Cell]) -> Table:
    """A row per set: COSMOS beside the paper, and how many of all methods come out the same."""
    marks: dict[str, str] = {}
    rows = []
    for place in dict.fromkeys(map(place_of, cells)):
        every = [cell for cell in cells if place_of(cell) == place]
        methods = by_method(every)
        every.sort(key=lambda cell: methods.index(cell["method"]))
        own = next((cell for cell in every if cell["method"] == "cosmos"), None)
        others = ", ".join(method_title(cell["method"]) for cell in every if not _same(cell))
        many = f"{sum(map(_same, every))} of {len(every)}"
        many += f", not {others}" if others and any(map(_same, every)) else ""
        rows.append((problem_title(place[0]), *_beside(own, marks), many))
    head = ("set", "COSMOS, ours", "paper", "the same", "all methods")
    notes = {mark: sentence for sentence, mark in marks.items()}
    return Table("The paper's hypervolumes", head, tuple(rows), notes=notes)


def _beside(cell: Cell | None, marks: dict[str, str]) -> tuple[str, str, str]:
    """Ours, the paper's, and yes, or no and by how much, with marks of the reasons."""
    if cell is None:
        return NONE, NONE, NONE
    found = cell["against"]["hypervolume"]
    answer = "yes"
    if found["differs"]:
        reasons = [marks.setdefault(one, str(len(marks) + 1)) for one in why(cell)]
        answer = f"no, {signed(found['difference'])}{''.join(f' ({mark})' for mark in reasons)}"
    return spread(cell["volume"]), printed(found, deviation=True), answer


def _other_draw(claim: Mapping[str, Any]) -> bool:
    return all(map(harder, claim["rows"]))


def _untrained(cells: Sequence[Cell]) -> list[str]:
    """The sets of a recipe of which nothing is trained, so that a claim says nothing of them."""
    trained = {place_of(cell) for cell in cells if cell["seeds"]}
    left = [cell for cell in cells if place_of(cell) not in trained]
    return list(dict.fromkeys(set_title(cell, protocol=False) for cell in left))


def _claim(
    claim: Mapping[str, Any], recipe: str, untrained: Sequence[str]
) -> tuple[str, str, str, str]:
    """One line: what the paper says, whether it holds, and on which sets."""
    sets = _by_set(claim)
    told: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for title, rows in sets.items():
        worst = _worst(rows)
        told[worst].append(title if worst else title + _because(rows, worst))
    starts = {True: "so on", False: "not so on", None: "open on"}
    parts = [f"{starts[state]} {', '.join(names)}" for state, names in told.items() if names]
    if len(told[True]) == len(sets) > 1:
        parts = [f"so on all {len(sets)} sets"]
    where = "; ".join(parts)
    text = claim["claim"] + (DRAW if _other_draw(claim) else "")
    told_not = f" Not trained yet: {', '.join(untrained)}." if untrained else ""
    return text, _answer(claim), f"{where[0].upper()}{where[1:]}.{told_not}", f"`{recipe}`"


def _by_set(claim: Mapping[str, Any]) -> dict[str, list[Row]]:
    """The rows of each set, whatever the protocol."""
    found: dict[str, list[Row]] = {}
    for row in claim["rows"]:
        same = _other_draw(claim)  # which is said before
        title = problem_title(row["problem"]) if same else set_title(row, protocol=False)
        found.setdefault(title, []).append(row)
    return found


def _worst(rows: Sequence[Row]) -> bool | None:
    states = [_holds(row) for row in rows]
    return False if False in states else None if None in states else True


def _holds(row: Row) -> bool | None:
    """Of one comparison; to outperform Single Task takes more than not to be behind it."""
    if "holds" in row:
        return None if row["holds"] is None else bool(row["holds"])
    if row["verdict"] == "one seed":
        return None
    alone = row["method"] == "single_task"
    return bool(row["verdict"] == "behind" if alone else row["verdict"] != "ahead")


def _because(rows: Sequence[Row], state: bool | None) -> str:
    """What speaks against it: who is ahead by how much, or the numbers of the set in short."""
    several = len({row["protocol"] for row in rows}) > 1
    found = []
    for row in (row for row in rows if _holds(row) is state):
        if "difference" in row:
            near = ", within the noise" if "within the noise" in row["verdict"] else ""
            where = f", {row['protocol']}" if several else ""
            gap = signed(row["difference"])
            found.append(f"{method_title(row['method'])} {gap}{near}{where}")
        elif "short" in row:
            found.append(row["short"])
    return f" ({'; '.join(found)})" if found else ""
