"""What a choice does to whom: shares of people or images, counted and with intervals."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from torch import Tensor

from paretocosmos.evaluation.intervals import get_moments
from paretocosmos.evaluation.rates import compute_gap_interval, compute_share_interval
from paretocosmos.explorer._heads import Reader
from paretocosmos.explorer._view import Cell, Outcome
from paretocosmos.objectives import sentence
from paretocosmos.pareto.front import Array
from paretocosmos.problems import Problem, Wording
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.types import Outputs, Targets, first, map_tensors

# Rates of as many groups as a page can show side by side.
MOST = 6

Counts = npt.NDArray[np.int64]


def outcomes_of(
    problem: Problem, readers: Sequence[Reader], groups: Sequence[str]
) -> tuple[Outcome, ...]:
    """What is counted at every choice, the most telling first."""
    if isinstance(problem, TabularProblem):
        found = list(_of_people(problem, groups[:MOST]))
    elif len(readers) > 1:
        found = [_of_tasks(problem.wording, readers)]
    else:
        found = list(_of_classes(problem.wording, readers[0], groups[:MOST]))
    traded = {*problem.names, *(problem.wording.instead.get(name) for name in problem.names)}
    alike = {"deo": "tpr_gap", "equalized_odds": "tpr_gap"}
    traded |= {alike[name] for name in problem.names if name in alike}
    return tuple(sorted(found, key=lambda one: one.gap not in traded))


def _of_people(problem: TabularProblem, groups: Sequence[str]) -> Iterator[Outcome]:
    words = problem.wording
    told = words.told or f"predicted “{problem.positive}”"
    true = f"who {words.positive}"
    if not words.positive:
        true = f"whose {problem.target.replace('_', ' ')} is “{problem.positive}”"

    other = "other" if words.groups else "others"

    def cells(text: str, of: tuple[int, ...], hit: str) -> tuple[Cell, ...]:
        return tuple(
            Cell(
                who, text.replace("WHO", who if words.groups else f"in “{who}”"), 0, place, of, hit
            )
            for place, who in enumerate(groups, start=1)
        )

    yield Outcome(
        told[:1].upper() + told[1:],
        f"Of 100 in a group, how many are {told}, rightly or wrongly.",
        "demographic_parity",
        cells(f"of 100 WHO, # are {told}", (0, 1), "positive"),
    )
    yield Outcome(
        f"Found, of those {true}",
        f"Of 100 in a group {true}, how many are {told}. The others are missed.",
        "tpr_gap",
        cells(f"of 100 WHO {true}, # are found", (1,), "positive"),
        larger=True,
    )
    yield Outcome(
        f"Wrongly {told}",
        f"Of 100 in a group for whom it is not true, how many are {told}.",
        "fpr_gap",
        cells(f"of 100 {other} WHO, # are wrongly {told}", (0,), "positive"),
        larger=False,
    )
    everybody = Cell("all", "# of 100 answers are wrong", 0, 0, (0, 1), "wrong")
    wrong = cells("of 100 answers about WHO, # are wrong", (0, 1), "wrong")
    yield Outcome(
        "Wrong answers",
        "Of 100 answers, how many are wrong: those missed and those wrongly predicted.",
        "accuracy_gap",
        (everybody, *wrong),
        larger=False,
        lead=True,
    )


def _of_tasks(words: Wording, readers: Sequence[Reader]) -> Outcome:
    def task(reader: Reader) -> str:
        return words.tasks.get(reader.target, f"answers on {reader.head.name.replace('_', ' ')}")

    cells = tuple(
        Cell(task(one), f"# of 100 {task(one)} {words.wrong}", place, 0, (), "wrong")
        for place, one in enumerate(readers)
    )
    title = sentence(words.wrong.removeprefix("are ")).rstrip(".")
    title = "Wrong answers" if title == "Wrong" else title
    said = "Of 100 answers to each question, how many are wrong."
    return Outcome(title, said, "", cells, larger=False, lead=True)


def _of_classes(words: Wording, reader: Reader, groups: Sequence[str]) -> Iterator[Outcome]:
    classes = reader.head.classes
    if len(classes) <= MOST:
        yield Outcome(
            "Found",
            "Of 100 rows of each class, how many are predicted as such.",
            "",
            tuple(
                Cell(f"“{name}”", f"of 100 “{name}”, # are found", 0, 0, (place,), "right")
                for place, name in enumerate(classes)
            ),
            larger=True,
        )
    people = tuple(
        Cell(who, f"of 100 answers about {who}, # are wrong", 0, place, (), "wrong")
        for place, who in enumerate(groups, start=1)
    )
    yield Outcome(
        "Wrong answers",
        "Of 100 answers, how many are wrong.",
        "accuracy_gap" if people else "",
        (Cell("all", f"# of 100 answers {words.wrong}", 0, 0, (), "wrong"), *people),
        larger=False,
        lead=True,
    )


def shares_of(outcomes: Sequence[Outcome], confusion: Sequence[Counts]) -> Array:
    """The share of every cell with its interval, ``[cells, rays, 3]``: value, low, high.

    Args:
        outcomes: what is counted.
        confusion: per head ``[rays, 1 + groups, C, C]``, as `count` gives it.
    """
    cells = [cell for outcome in outcomes for cell in outcome.cells]
    found = np.full((len(cells), len(confusion[0]), 3), np.nan)
    for place, cell in enumerate(cells):
        hits, size = _counted(cell, confusion)
        known = size > 0
        share = hits[known] / size[known]
        low, high = compute_share_interval(share, size[known])
        found[place, known] = np.stack([share, low, high], axis=-1)
    return found


def outcome_gaps(
    outcomes: Sequence[Outcome], confusion: Sequence[Counts], *, chosen: bool
) -> dict[str, Array]:
    """The ends of the intervals of the gaps between groups, as counted, by name, ``[rays, 2]``."""
    found = {}
    for outcome in outcomes:
        groups = [cell for cell in outcome.cells if cell.group]
        counted = [_counted(cell, confusion) for cell in groups]
        if not outcome.gap or len(groups) < 2 or any((size == 0).any() for _, size in counted):
            continue
        moments = np.stack([np.stack([hits, hits, size], axis=-1) for hits, size in counted], 1)
        ends = compute_gap_interval(moments[:, None], chosen=chosen)
        found[outcome.gap] = np.stack(ends, axis=-1)
    return found


def _counted(cell: Cell, confusion: Sequence[Counts]) -> tuple[Array, Array]:
    """How many there are, and of how many, at every ray."""
    counts = confusion[cell.head][:, cell.group].astype(np.float64)
    rows = list(cell.of) or list(range(counts.shape[-1]))
    size = counts[:, rows].sum(axis=(1, 2))
    if cell.hit == "positive":
        return counts[:, rows, 1].sum(axis=1), size
    right = counts[:, rows, rows].sum(axis=1)
    return (right if cell.hit == "right" else size - right), size


def gap_ends(
    problem: Problem, outputs: Outputs, targets: Targets, *, chosen: bool
) -> dict[str, Array]:
    """The ends of the intervals of gaps between groups, by name, ``[rays, 2]``.

    Args:
        problem: whose objectives and metrics are looked at.
        outputs: ``[rays, B, ...]``.
        targets: what they are compared with.
        chosen: whether a ray is chosen by these very rows.
    """
    if problem.score_batch is not None:  # a mean over batches is no rate
        return {}
    found = {}
    every = {one.name: one.score for one in problem.objectives} | dict(problem.metrics)
    for name, metric in every.items():
        moments = [
            get_moments(metric, map_tensors(partial(_at, place=place), outputs), targets)
            for place in range(len(first(outputs)))
        ]
        known = [one for one in moments if one is not None]
        if len(known) == len(moments) and len({one.shape for one in known}) == 1:
            found[name] = np.stack(compute_gap_interval(np.stack(known), chosen=chosen), axis=-1)
    return found


def _at(out: Tensor, *, place: int) -> Tensor:
    return out[place]


def sizes_of(confusion: Mapping[str, Sequence[Counts]]) -> dict[str, int]:
    """How many rows each split has."""
    return {split: int(of_heads[0][0, 0].sum()) for split, of_heads in confusion.items()}
