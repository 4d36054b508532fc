"""The paper's tables of CelebA: two tasks with their time, and misclassification task by task."""

from collections.abc import Mapping, Sequence
from typing import Any

from paretocosmos.experiments._names import method_title, problem_title
from paretocosmos.experiments.published import paper_tasks, published
from paretocosmos.experiments.report._parts import NONE, Table
from paretocosmos.experiments.report._texts import duration, signed, spread

__all__ = ["tables_of_faces"]

Cell = Mapping[str, Any]


def tables_of_faces(cells: Sequence[Cell]) -> list[Table]:
    """Hypervolume, misclassification and time where the paper has them; else task by task."""
    done = [cell for cell in cells if cell["seeds"]]
    sets = [cell["problem"] for cell in done if _in_pairs(cell)]
    compared = [cell for cell in done if sets.count(cell["problem"]) > 1]
    first = [_pairs(compared)] if compared else []
    return [*first, *_task_by_task(done, told={n for table in first for n in table.notes.values()})]


def _in_pairs(cell: Cell) -> bool:
    return cell["against"] is not None and "hypervolume" in cell["against"]


def _pairs(done: Sequence[Cell]) -> Table:
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
                problem_title(cell["problem"]),
                method_title(cell["method"]),
                spread(cell["volume"]),
                f"{volume['paper']:.3f}",
                signed(volume.get("difference")),
                spread(cell["tasks"] and cell["tasks"]["mean"], 2, 100),
                f"{100 * rate['paper']:.2f}",
                signed(rate.get("difference"), 2, 100),
                duration(seconds.get("ours")),
                duration(seconds["paper"]),
                _overhead(cell, done),
                " ".join(marks.setdefault(r, str(len(marks) + 1)) for r in reasons),
            )
        )
    head = ("set", "method", "HV, ours", "paper", "difference", "error, %", "paper", "difference")
    more = ("time, ours", "paper", "overhead", "why")
    notes = {mark: sentence for sentence, mark in marks.items()}
    notes["*"] = (
        "Time is of all epochs, of Single Task that of one network. The paper's overhead is "
        f"{published()['table_celeba']['overhead']:.0%}."
    )
    title = "Hypervolume, mean misclassification and time"
    return Table(title, (*head, *more), tuple(rows), notes=notes, named=2)


def _why(cell: Cell) -> list[str]:
    """What is known of a difference to the paper, time aside."""
    reasons = (cell["against"] or {}).get("reasons", [])
    return [one["sentence"] for one in reasons if "seconds" not in one["quantities"]]


def _numbered(notes: Sequence[str]) -> dict[str, str]:
    return {str(n): note for n, note in enumerate(notes, start=1)}


def _overhead(cell: Cell, done: Sequence[Cell]) -> str:
    """How much longer than one network for one task it takes."""
    alone = [c for c in done if c["problem"] == cell["problem"] and c["method"] == "single_task"]
    if cell["method"] == "single_task" or not alone or not _in_pairs(alone[0]):
        return NONE
    one = alone[0]["seconds"]["training"]["mean"] / alone[0]["networks"]
    return f"{cell['seconds']['training']['mean'] / one - 1:+.1%}".replace("-", "−")


def _task_by_task(done: Sequence[Cell], *, told: set[str]) -> list[Table]:
    """A table for each problem: every task of ours beside the paper's, for both methods.

    What the tables before it have told as a reason is not told again.
    """
    found = []
    for problem in dict.fromkeys(cell["problem"] for cell in done):
        if paper_tasks(problem, "cosmos") is None and not _of(done, problem, "cosmos"):
            continue
        tasks = next(c["objectives"] for c in done if c["problem"] == problem)
        columns = {
            method: _rates(done, problem, method, tasks) for method in ("cosmos", "single_task")
        }
        rows = []
        for at, task in enumerate(tasks):
            texts = [task.replace("_", " ")]
            for method, (ours, _) in columns.items():
                theirs = paper_tasks(problem, method)
                texts += [spread(ours[at], 2, 100)]
                texts += [NONE if theirs is None else f"{100 * theirs[at]:.2f}"]
            rows.append(tuple(texts))
        methods = (text for method in columns for text in (method_title(method), "paper"))
        head = ("misclassification, %", *methods)
        notes = [note for _, note in columns.values() if note]
        reasons = [w for method in columns for c in _of(done, problem, method) for w in _why(c)]
        new = [why for why in dict.fromkeys(reasons) if why not in told]
        told = told | set(new)
        title = f"{problem_title(problem)}: task by task, COSMOS with equal weights"
        found.append(Table(title, head, tuple(rows), notes=_numbered([*notes, *new])))
    return found


def _rates(
    done: Sequence[Cell], problem: str, method: str, tasks: Sequence[str]
) -> tuple[list[Any], str]:
    """Each task's rate; a network for one task is as good in a problem with more of them."""
    for cell in _of(done, problem, method):
        return [cell["tasks"]["misclassification"].get(task) for task in tasks], ""
    others = _of(done, None, method) if method == "single_task" else []
    for cell in others:
        found = [cell["tasks"]["misclassification"].get(task) for task in tasks]
        if all(one is not None for one in found):
            where = problem_title(cell["problem"])
            return found, f"The networks of Single Task are those of {where}."
    return [None] * len(tasks), ""


def _of(done: Sequence[Cell], problem: str | None, method: str) -> list[Cell]:
    return [
        cell
        for cell in done
        if cell["method"] == method and cell["tasks"] and problem in (None, cell["problem"])
    ]
