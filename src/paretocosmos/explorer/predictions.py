"""Read classes out of a network's outputs, and count what a choice does to whom."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.evaluation.intervals import get_moments
from paretocosmos.evaluation.rates import compute_gap_interval, compute_share_interval
from paretocosmos.evaluation.threshold import MIDDLE, compute_logit
from paretocosmos.explorer.page_model import Cell, Head, Outcome, group_titles
from paretocosmos.objectives import logits_of, pick, sentence
from paretocosmos.pareto.front import Array
from paretocosmos.problems import Problem, Wording
from paretocosmos.problems.tables import TableProblem, TabularProblem
from paretocosmos.types import Batch, Outputs, Targets, first, map_tensors


@dataclass(frozen=True)
class Reader:
    """Reader of one head of a network.

    Attributes:
        head: what a page calls it.
        output: which output, where a network has several.
        target: what it is compared with.
        groups: how many sensitive groups there are.
        threshold: the probability above which one logit is a positive answer.
    """

    head: Head
    output: str | None
    target: str
    groups: int = 0
    threshold: float = MIDDLE

    def chances(self, outputs: Outputs) -> tuple[Tensor, Tensor]:
        """Probabilities and answers ``[N, B]``: of the positive class, or of the answer itself."""
        if self.head.binary:
            logits = logits_of(outputs, self.output)
            return torch.sigmoid(logits), (logits > compute_logit(self.threshold)).long()
        chance, answer = pick(outputs, self.output).softmax(dim=-1).max(dim=-1)
        return chance, answer

    def truth(self, targets: Targets) -> Tensor:
        """The place of the true class ``[B]``."""
        found = targets[self.target].flatten().cpu()
        return (found > 0.5).long() if self.head.binary else found.long()


def find_readers(
    problem: Problem, outputs: Outputs, batch: Batch, threshold: float = MIDDLE
) -> list[Reader]:
    """The heads whose answers are classes, of outputs ``[N, B, ...]``."""
    asked = {(one.output, one.target): None for one in problem.objectives}
    tabular = problem if isinstance(problem, TabularProblem) else None
    found = []
    for output, target in asked:
        if target not in batch.targets:
            continue
        truth, scores = batch.targets[target], pick(outputs, output)
        logits = logits_of(outputs, output)
        name = target if tabular is None else tabular.target
        if logits.ndim == 2 and truth.numel() == len(batch) and _is_binary(truth):
            classes = _class_names(problem, 2) or ("no", "yes")
            classes = classes if tabular is None else _binary_classes(tabular)
            head = Head(name, classes, binary=True)
        elif scores.ndim == 3 and truth.ndim == 1 and _has_all_labels(truth, scores.shape[-1]):
            classes = _class_names(problem, scores.shape[-1]) or tuple(
                map(str, range(scores.shape[-1]))
            )
            head = Head(name, classes, binary=False)
        else:
            continue
        found.append(Reader(head, output, target, len(group_titles(problem)), threshold))
    return found


def count_answers(
    readers: Sequence[Reader], outputs: Outputs, targets: Targets
) -> tuple[npt.NDArray[np.int64], ...]:
    """``[N, 1 + sensitive groups, C, C]`` per head: how often a true class was given an answer."""
    counted = []
    for reader in readers:
        truth, size = reader.truth(targets), len(reader.head.classes)
        _, answers = reader.chances(outputs)
        pairs = truth * size + answers
        masks = [torch.ones_like(truth, dtype=torch.bool)]
        if reader.groups:
            masks += [targets["sensitive"].cpu() == group for group in range(reader.groups)]
        table = torch.stack(
            [
                torch.stack([torch.bincount(row[mask], minlength=size * size) for mask in masks])
                for row in pairs
            ]
        )
        counted.append(table.unflatten(-1, (size, size)).numpy())
    return tuple(counted)


def _has_all_labels(truth: Tensor, classes: int) -> bool:
    """Return True if every sample has one of the classes."""
    return not truth.is_floating_point() and bool(((truth >= 0) & (truth < classes)).all())


def _is_binary(truth: Tensor) -> bool:
    return bool(((truth == 0) | (truth == 1)).all())


def _class_names(problem: Problem, count: int) -> tuple[str, ...]:
    """The names of the classes of a table, if it is one and has as many."""
    found = problem.answer.classes if isinstance(problem, TableProblem) else ()
    return found if len(found) == count else ()


def _binary_classes(problem: TabularProblem) -> tuple[str, str]:
    return f"not {problem.positive}", problem.positive


# Rates of as many groups as a page can show side by side.
MOST = 6

Counts = npt.NDArray[np.int64]


def build_outcomes(
    problem: Problem, readers: Sequence[Reader], groups: Sequence[str]
) -> tuple[Outcome, ...]:
    """Build the outcomes that are counted at every ray, the most telling first."""
    if isinstance(problem, TabularProblem):
        found = list(_people_outcomes(problem, groups[:MOST]))
    elif len(readers) > 1:
        found = [_task_outcome(problem.wording, readers)]
    else:
        found = list(_class_outcomes(problem.wording, readers[0], groups[:MOST]))
    traded = {*problem.names, *(problem.wording.instead.get(name) for name in problem.names)}
    alike = {"deo": "tpr_gap", "equalized_odds": "tpr_gap"}
    traded |= {alike[name] for name in problem.names if name in alike}
    return tuple(sorted(found, key=lambda one: one.gap not in traded))


def _people_outcomes(problem: TabularProblem, groups: Sequence[str]) -> Iterator[Outcome]:
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


def _task_outcome(words: Wording, readers: Sequence[Reader]) -> Outcome:
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


def _class_outcomes(words: Wording, reader: Reader, groups: Sequence[str]) -> Iterator[Outcome]:
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


def compute_shares(outcomes: Sequence[Outcome], confusion: Sequence[Counts]) -> Array:
    """The share of every cell with its interval, ``[cells, rays, 3]``: value, low, high.

    Args:
        outcomes: what is counted.
        confusion: per head ``[rays, 1 + groups, C, C]``, as `count_answers` gives it.
    """
    cells = [cell for outcome in outcomes for cell in outcome.cells]
    found = np.full((len(cells), len(confusion[0]), 3), np.nan)
    for place, cell in enumerate(cells):
        hits, size = _count_cell(cell, confusion)
        known = size > 0
        share = hits[known] / size[known]
        low, high = compute_share_interval(share, size[known])
        found[place, known] = np.stack([share, low, high], axis=-1)
    return found


def compute_outcome_gaps(
    outcomes: Sequence[Outcome], confusion: Sequence[Counts], *, chosen: bool
) -> dict[str, Array]:
    """The ends of the intervals of the gaps between groups, as counted, by name, ``[rays, 2]``."""
    found = {}
    for outcome in outcomes:
        groups = [cell for cell in outcome.cells if cell.group]
        counted = [_count_cell(cell, confusion) for cell in groups]
        if not outcome.gap or len(groups) < 2 or any((size == 0).any() for _, size in counted):
            continue
        moments = np.stack([np.stack([hits, hits, size], axis=-1) for hits, size in counted], 1)
        ends = compute_gap_interval(moments[:, None], chosen=chosen)
        found[outcome.gap] = np.stack(ends, axis=-1)
    return found


def _count_cell(cell: Cell, confusion: Sequence[Counts]) -> tuple[Array, Array]:
    """Count the hits, and the samples they are counted among, at every ray."""
    counts = confusion[cell.head][:, cell.group].astype(np.float64)
    rows = list(cell.of) or list(range(counts.shape[-1]))
    size = counts[:, rows].sum(axis=(1, 2))
    if cell.hit == "positive":
        return counts[:, rows, 1].sum(axis=1), size
    right = counts[:, rows, rows].sum(axis=1)
    return (right if cell.hit == "right" else size - right), size


def compute_gap_intervals(
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
            get_moments(metric, map_tensors(partial(_select_ray, place=place), outputs), targets)
            for place in range(len(first(outputs)))
        ]
        known = [one for one in moments if one is not None]
        if len(known) == len(moments) and len({one.shape for one in known}) == 1:
            found[name] = np.stack(compute_gap_interval(np.stack(known), chosen=chosen), axis=-1)
    return found


def _select_ray(out: Tensor, *, place: int) -> Tensor:
    return out[place]


def get_sizes(confusion: Mapping[str, Sequence[Counts]]) -> dict[str, int]:
    """Return the number of rows of each split."""
    return {split: int(of_heads[0][0, 0].sum()) for split, of_heads in confusion.items()}
