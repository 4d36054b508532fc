"""The paper's tables of CelebA: two tasks with their time, and misclassification task by task."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paretocosmos.paper._names import method_title, problem_title
from paretocosmos.paper._sets import place_of, set_title
from paretocosmos.paper.published import paper_tasks, published
from paretocosmos.paper.report._labels import labels
from paretocosmos.paper.report._parts import NONE, Table
from paretocosmos.paper.report._texts import duration, printed, signed, spread

__all__ = ["tables_of_faces"]

Cell = Mapping[str, Any]


def tables_of_faces(cells: Sequence[Cell]) -> list[Table]:
    """Hypervolume, misclassification and time where the paper has them; else task by task."""
    done, called = [cell for cell in cells if cell["seeds"]], labels(cells)
    compared = [cell for cell in done if _in_pairs(cell)]
    first = [_pairs(compared, called)] if compared else []
    told = {note for table in first for note in table.notes.values()}
    return [*first, *_task_by_task(done, called, told=told)]


def _in_pairs(cell: Cell) -> bool:
    return cell["against"] is not None and "hypervolume" in cell["against"]


def _pairs(done: Sequence[Cell], called: Mapping[str, str]) -> Table:
    """Table 2, with the time COSMOS takes more than one network for one task."""
    rows, marks = [], dict[str, str]()
    for cell in done:
        against = cell["against"]
        volume, rate, seconds = (
            against.get(k, {}) for k in ("hypervolume", "misclassification", "seconds")
        )
        reasons = _why(cell)
        rows.append(
            (
                set_title(cell, protocol=False),
                called[cell["name"]],
                spread(cell["volume"]),
                printed(volume),
                signed(volume.get("difference")),
                spread(cell["metrics"]["span"]) if cell["volume_of"] == "front" else NONE,
                spread(cell["tasks"] and cell["tasks"]["mean"], 2, 100),
                f"{100 * rate['paper']:.2f}" if rate else NONE,
                signed(rate.get("difference"), 2, 100),
                duration(seconds.get("ours")),
                duration(seconds.get("paper")),
                _overhead(cell, done),
                " ".join(marks.setdefault(r, str(len(marks) + 1)) for r in reasons),
            )
        )
    head = ("set", "method", "HV, ours", "paper", "difference", "width")
    more = ("error, %", "paper", "difference", "time, ours", "paper", "overhead", "why")
    notes = {mark: sentence for sentence, mark in marks.items()}
    notes["*"] = (
        "Time is of all epochs, of Single Task that of one network; an overhead from one run each "
        f"has their noise. The paper's is {published()['table_celeba']['overhead']:.0%}."
    )
    points = [c for c in done if c["volume_of"] == "front" and c["metrics"]["span"]["mean"] < 0.01]
    for cell in points:
        where = f"{called[cell['name']]} on {set_title(cell, protocol=False)}"
        notes["*"] += f" The front of {where} is next to a point: its rays hardly differ."
    title = "Hypervolume, mean misclassification and time"
    return Table(title, (*head, *more), tuple(rows), notes=notes, named=2)


def _why(cell: Cell) -> list[str]:
    """What is known of a difference to the paper, time aside."""
    reasons = (cell["against"] or {}).get("reasons", [])
    return [one["sentence"] for one in reasons]


def _overhead(cell: Cell, done: Sequence[Cell]) -> str:
    """How much longer than one network for one task it takes."""
    alone = [c for c in done if place_of(c) == place_of(cell) and c["method"] == "single_task"]
    if cell["method"] == "single_task" or not alone:
        return NONE
    one = alone[0]["seconds"]["training"]["mean"] / alone[0]["networks"]
    return f"{cell['seconds']['training']['mean'] / one - 1:+.1%}".replace("-", "−")


class Column(NamedTuple):
    """The tasks of one method: what it is called, its cell if there is one, the paper's rates."""

    title: str
    cell: Cell | None
    paper: Sequence[float] | None

    def texts(self, at: int, task: str) -> list[str]:
        """Ours, the paper's and the difference, for one task; a rehearsal has no difference."""
        ours = self.cell and self.cell["tasks"]["misclassification"][task]
        theirs = None if self.paper is None else self.paper[at]
        gap = None
        if self.cell and ours and theirs is not None and self.cell["rehearsal"] is None:
            gap = ours["mean"] - theirs
        rate = NONE if theirs is None else f"{100 * theirs:.2f}"
        return [spread(ours, 2, 100), rate, signed(gap, 2, 100)]


def _task_by_task(
    done: Sequence[Cell], called: Mapping[str, str], *, told: Collection[str]
) -> list[Table]:
    """A table for each problem: every task of ours beside the paper's, for both methods.

    What the tables before it have told as a reason is not told again.
    """
    found, before = [], set(told)
    for problem in dict.fromkeys(cell["problem"] for cell in done):
        if paper_tasks(problem, "cosmos") is None and not _of(done, problem, "cosmos"):
            continue
        tasks = next(c["objectives"] for c in done if c["problem"] == problem)
        columns = list(_columns(done, called, problem, tasks))
        rows = [
            (task.replace("_", " "), *(text for one in columns for text in one.texts(at, task)))
            for at, task in enumerate(tasks)
        ]
        head = [text for one in columns for text in (one.title, "paper", "difference")]
        notes = [
            f"The networks of Single Task are those of {problem_title(one.cell['problem'])}."
            for one in columns
            if one.cell and one.cell["problem"] != problem
        ]
        compared = [one.cell for one in columns if one.cell and one.paper]
        reasons = list(dict.fromkeys(why for cell in compared for why in _why(cell)))
        notes += [why for why in reasons if why not in before]
        if before.intersection(reasons):
            more = "Further reasons" if set(reasons) - before else "Reasons for the differences"
            notes.append(f"{more}: as above.")
        before |= set(reasons)
        title = f"{problem_title(problem)}: task by task, COSMOS with equal weights"
        marks = {str(number): note for number, note in enumerate(notes, start=1)}
        found.append(Table(title, ("misclassification, %", *head), tuple(rows), notes=marks))
    return found


def _columns(
    done: Sequence[Cell], called: Mapping[str, str], problem: str, tasks: Sequence[str]
) -> Iterator[Column]:
    """COSMOS and Single Task; a network for one task is as good in a problem with more of them."""
    for method in ("cosmos", "single_task"):
        own = _of(done, problem, method)
        if not own and method == "single_task":
            every = _of(done, None, method)
            own = [c for c in every if set(tasks) <= set(c["tasks"]["misclassification"])][:1]
        paper = paper_tasks(problem, method)
        yield from (Column(called[cell["name"]], cell, paper) for cell in own)
        if not own:
            yield Column(method_title(method), None, paper)


def _of(done: Sequence[Cell], problem: str | None, method: str) -> list[Cell]:
    return [
        cell
        for cell in done
        if cell["method"] == method and cell["tasks"] and problem in (None, cell["problem"])
    ]
