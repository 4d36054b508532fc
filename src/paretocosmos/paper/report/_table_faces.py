"""The paper's tables of CelebA: two tasks with their time, and misclassification task by task."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from paretocosmos.io.schema.collected import CellResult
from paretocosmos.paper.names import method_title, problem_title, set_key, set_title
from paretocosmos.paper.published import paper_tasks, published
from paretocosmos.paper.report._labels import labels
from paretocosmos.paper.report._parts import NONE, Columns, Footnotes, Table, table_of
from paretocosmos.paper.report._table_1 import against_of
from paretocosmos.paper.report._texts import duration, mean, printed, signed

__all__ = ["tables_of_faces"]

NARROW = 0.01  # a width below which a front is next to a point


def tables_of_faces(cells: Sequence[CellResult]) -> list[Table]:
    """Hypervolume, misclassification and time where the paper has them; else task by task."""
    done, called = [cell for cell in cells if cell.seeds], labels(cells)
    compared = [cell for cell in done if against_of(cell).hypervolume.paper]
    first = [_pairs(compared, called)] if compared else []
    told = {note for table in first for note in table.notes.values()}
    return [*first, *_task_by_task(done, called, told=told)]


def _pairs(done: Sequence[CellResult], called: Mapping[str, str]) -> Table:
    """Table 2, with the time COSMOS takes more than one network for one task."""
    notes = Footnotes()

    def rate(cell: CellResult) -> str:
        theirs = against_of(cell).misclassification.paper
        return NONE if theirs is None else f"{100 * theirs:.2f}"

    columns: Columns = [
        ("set", lambda c: set_title(c, protocol=False)),
        ("method", lambda c: called[c.name]),
        ("HV, ours", lambda c: mean(c.volume)),
        ("paper", lambda c: printed(against_of(c).hypervolume)),
        ("difference", lambda c: signed(against_of(c).hypervolume.difference)),
        ("width", lambda c: mean(c.metrics["span"]) if c.volume_of == "front" else NONE),
        ("error, %", lambda c: mean(c.tasks.mean if c.tasks else None, 2, 100)),
        ("paper", rate),
        ("difference", lambda c: signed(against_of(c).misclassification.difference, 2, 100)),
        ("time, ours", lambda c: duration(against_of(c).seconds.ours)),
        ("paper", lambda c: duration(against_of(c).seconds.paper)),
        ("overhead", lambda c: _overhead(c, done)),
        ("why", lambda c: " ".join(map(notes.mark, _why(c)))),
    ]
    table = table_of("Hypervolume, mean misclassification and time", done, columns)
    about = (
        "Times are for all epochs, for Single Task of one network. An overhead compares two single "
        f"runs, so it is noisy. The paper's is {published()['table_celeba']['overhead']:.0%}."
    )
    for cell in done:
        width = cell.metrics["span"]
        if cell.volume_of == "front" and width is not None and width.mean < NARROW:
            where = f"{called[cell.name]} on {set_title(cell, protocol=False)}"
            about += f" The front of {where} is nearly a point: its rays hardly differ."
    return replace(table, notes={**notes.by_mark(), "*": about})


def _why(cell: CellResult) -> list[str]:
    """What is known of a difference to the paper, time aside."""
    return [reason.sentence for reason in against_of(cell).reasons]


def _overhead(cell: CellResult, done: Sequence[CellResult]) -> str:
    """How much longer than one network for one task it takes."""
    alone = [c for c in done if set_key(c) == set_key(cell) and c.method == "single_task"]
    if cell.method == "single_task" or not alone:
        return NONE
    one = alone[0].seconds.training.mean / alone[0].networks
    return f"{cell.seconds.training.mean / one - 1:+.1%}".replace("-", "−")


@dataclass(frozen=True)
class Column:
    """The tasks of one method: what it is called, its cell if there is one, the paper's rates."""

    title: str
    cell: CellResult | None
    paper: Sequence[float] | None

    def texts(self, at: int, task: str) -> list[str]:
        """Ours, the paper's and the difference, for one task; a rehearsal has no difference."""
        tasks = self.cell.tasks if self.cell else None
        ours = tasks.misclassification[task] if tasks else None
        theirs = None if self.paper is None else self.paper[at]
        gap = None
        if self.cell and ours and theirs is not None and self.cell.rehearsal is None:
            gap = ours.mean - theirs
        rate = NONE if theirs is None else f"{100 * theirs:.2f}"
        return [mean(ours, 2, 100), rate, signed(gap, 2, 100)]


def _task_by_task(
    done: Sequence[CellResult], called: Mapping[str, str], *, told: Collection[str]
) -> Iterator[Table]:
    """A table for each problem: every task of ours beside the paper's, for both methods.

    What the tables before it have told as a reason is not told again.
    """
    before = set(told)
    for problem in dict.fromkeys(cell.problem for cell in done):
        if paper_tasks(problem, "cosmos") is None and not _of(done, problem, "cosmos"):
            continue
        tasks = next(cell.objectives for cell in done if cell.problem == problem)
        columns = list(_columns(done, called, problem, tasks))
        rows = [
            (task.replace("_", " "), *(text for one in columns for text in one.texts(at, task)))
            for at, task in enumerate(tasks)
        ]
        head = [text for one in columns for text in (one.title, "paper", "difference")]
        notes = [
            f"The networks of Single Task are those of {problem_title(one.cell.problem)}."
            for one in columns
            if one.cell and one.cell.problem != problem
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
        yield Table(title, ("misclassification, %", *head), tuple(rows), notes=marks)


def _columns(
    done: Sequence[CellResult], called: Mapping[str, str], problem: str, tasks: Sequence[str]
) -> Iterator[Column]:
    """COSMOS and Single Task; a network for one task is as good in a problem with more of them."""
    for method in ("cosmos", "single_task"):
        own = _of(done, problem, method)
        if not own and method == "single_task":
            every = _of(done, None, method)
            own = [c for c in every if c.tasks and set(tasks) <= {*c.tasks.misclassification}][:1]
        paper = paper_tasks(problem, method)
        yield from (Column(called[cell.name], cell, paper) for cell in own)
        if not own:
            yield Column(method_title(method), None, paper)


def _of(done: Sequence[CellResult], problem: str | None, method: str) -> list[CellResult]:
    own = [cell for cell in done if cell.method == method and cell.tasks]
    return [cell for cell in own if problem in (None, cell.problem)]
