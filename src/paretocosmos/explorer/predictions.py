"""Read predicted classes from a network's outputs, and count how often each group gets which."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.evaluation.intervals import get_moments
from paretocosmos.evaluation.rates import compute_gap_interval, compute_share_interval
from paretocosmos.evaluation.threshold import MIDDLE, compute_logit
from paretocosmos.explorer.page_model import Cell, Head, Outcome, get_group_titles
from paretocosmos.objectives import logits_of, pick, sentence
from paretocosmos.pareto.front import Array
from paretocosmos.problems import Problem, Wording
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.types import Batch, Outputs, Targets, first, map_tensors

Counts = npt.NDArray[np.int64]
# A page has room for the rates of this many groups, and of this many classes.
MAX_GROUPS, MAX_CLASSES = 24, 6
# Names of columns that are longer are left out of sentences.
LONGEST_NAME = 24


@dataclass(frozen=True)
class HeadReader:
    """Reader of the classes that one head of a network predicts.

    Attributes:
        head: its name and classes on the page.
        output: the output's name, if a network has several.
        target: the name of the true classes.
        groups: the number of sensitive groups.
        threshold: the probability above which a single logit is a positive prediction.
    """

    head: Head
    output: str | None
    target: str
    groups: int = 0
    threshold: float = MIDDLE

    def predict(self, outputs: Outputs) -> tuple[Tensor, Tensor]:
        """Return probabilities and predicted classes ``[N, B]``.

        The probability is that of the positive class, or of the predicted one of several.
        """
        if self.head.binary:
            logits = logits_of(outputs, self.output)
            # Comparing logits, as the metrics do: a sigmoid could round to the threshold.
            return torch.sigmoid(logits), (logits > compute_logit(self.threshold)).long()
        # softmax keeps the order, so the largest probability is the predicted class
        probabilities, classes = pick(outputs, self.output).softmax(dim=-1).max(dim=-1)
        return probabilities, classes

    def get_true_classes(self, targets: Targets) -> Tensor:
        """Return the indices of the true classes ``[B]``."""
        labels = targets[self.target].flatten().cpu()
        # binary labels are floats, for the loss; multiclass labels are indices
        return (labels > 0.5).long() if self.head.binary else labels.long()


def find_readers(
    problem: Problem, outputs: Outputs, batch: Batch, threshold: float = MIDDLE
) -> list[HeadReader]:
    """Return a reader for every head that predicts classes, given outputs ``[N, B, ...]``."""
    tabular = problem if isinstance(problem, TabularProblem) and problem.compares_rates else None
    readers = []
    # a loss and a gap often share a head, which is read once
    for output, target in dict.fromkeys((o.output, o.target) for o in problem.objectives):
        # regression and third-party objectives may have no labels at all
        if target not in batch.targets:
            continue
        labels, scores = batch.targets[target], pick(outputs, output)
        name = target if tabular is None else tabular.target
        # by the labels, since the objectives do not say what their targets mean
        is_binary = bool(((labels == 0) | (labels == 1)).all()) and labels.numel() == len(batch)
        # [rays, B]: one logit for each row
        if is_binary and logits_of(outputs, output).ndim == 2:
            classes = _get_class_names(problem, 2) or ("no", "yes")
            if tabular is not None:
                classes = (f"not {tabular.positive}", tabular.positive)
            head = Head(name, classes, binary=True)
        # indices of so many classes, without gaps such as -1
        elif (
            scores.ndim == 3
            and labels.ndim == 1
            and not labels.is_floating_point()
            and bool(((labels >= 0) & (labels < (count := scores.shape[-1]))).all())
        ):
            classes = _get_class_names(problem, count) or tuple(map(str, range(count)))
            head = Head(name, classes, binary=False)
        else:
            continue
        # Groups of people are counted apart, whatever the head predicts.
        groups = len(get_group_titles(problem))
        readers.append(HeadReader(head, output, target, groups, threshold))
    return readers


def _get_class_names(problem: Problem, count: int) -> tuple[str, ...]:
    names = problem.answer.classes if isinstance(problem, TabularProblem) else ()
    return names if len(names) == count else ()


def count_answers(
    readers: Sequence[HeadReader], outputs: Outputs, targets: Targets
) -> tuple[Counts, ...]:
    """Compute confusion matrices ``[N, 1 + groups, C, C]`` per head, first that of all rows."""
    matrices = []
    for reader in readers:
        labels, count = reader.get_true_classes(targets), len(reader.head.classes)
        _, classes = reader.predict(outputs)
        pairs = labels * count + classes  # one bincount then counts both at once
        masks = [torch.ones_like(labels, dtype=torch.bool)]
        if reader.groups:
            # index 0 is everybody, so that group n has index n
            masks += [targets["sensitive"].cpu() == group for group in range(reader.groups)]
        counts = torch.stack(
            [
                torch.stack([torch.bincount(row[mask], minlength=count**2) for mask in masks])
                for row in pairs
            ]
        )
        matrices.append(counts.unflatten(-1, (count, count)).numpy())
    return tuple(matrices)


def build_outcomes(
    problem: Problem, readers: Sequence[HeadReader], groups: Sequence[str]
) -> tuple[Outcome, ...]:
    """Build the outcomes that a page counts, those that are traded first."""
    if isinstance(problem, TabularProblem) and problem.compares_rates:
        outcomes = list(_build_group_outcomes(problem, groups[:MAX_GROUPS]))
    elif len(readers) > 1:
        words, cells = problem.wording, []
        for index, reader in enumerate(readers):
            name = reader.head.name.replace("_", " ")
            task = words.tasks.get(reader.target, f"answers on {name}")
            cells.append(Cell(task, f"# of 100 {task} {words.wrong}", index, 0, (), "wrong"))
        title = sentence(words.wrong.removeprefix("are ")).rstrip(".")
        title = "Wrong answers" if title == "Wrong" else title
        meaning = "Of 100 answers to each question, how many are wrong."
        outcomes = [Outcome(title, meaning, "", tuple(cells), larger=False, lead=True)]
    else:
        outcomes = list(_build_class_outcomes(problem.wording, readers[0], groups[:MAX_GROUPS]))
    # the objectives by their own names and by the plainer ones the page uses
    traded = {*problem.names, *(problem.wording.instead.get(name) for name in problem.names)}
    if traded & {"deo", "equalized_odds"}:  # both contain the gap between true positive rates
        traded.add("tpr_gap")
    # False sorts before True: outcomes whose gap is traded lead
    return tuple(sorted(outcomes, key=lambda outcome: outcome.gap not in traded))


def _build_group_outcomes(problem: TabularProblem, groups: Sequence[str]) -> Iterator[Outcome]:
    """Build the outcomes of a binary prediction about groups: the four rates people ask for."""
    # a problem of this package has its own phrases; others are described by their columns
    words = problem.wording
    predicted = words.told or f"predicted “{problem.positive}”"
    truth = f"who {words.positive}"
    if not words.positive:
        target = problem.target.replace("_", " ")
        # a long name would make every sentence long, and the title of the page has it
        named = f"{target} " if len(target) <= LONGEST_NAME else ""
        truth = f"with {named}“{problem.positive}”"

    def make_cells(text: str, true_classes: tuple[int, ...], counted: str) -> tuple[Cell, ...]:
        return tuple(
            Cell(
                group,
                text.replace("WHO", group if words.groups else f"in “{group}”"),
                0,
                index,
                true_classes,
                counted,
            )
            for index, group in enumerate(groups, start=1)
        )

    yield Outcome(
        predicted[:1].upper() + predicted[1:],
        f"Of 100 in a group, how many are {predicted}, rightly or wrongly.",
        "demographic_parity",
        make_cells(f"of 100 WHO, # are {predicted}", (0, 1), "positive"),
    )
    yield Outcome(
        f"Found, of those {truth}",
        f"Of 100 in a group {truth}, how many are {predicted}. The others are missed.",
        "tpr_gap",
        make_cells(f"of 100 WHO {truth}, # are found", (1,), "positive"),
        larger=True,
    )
    yield Outcome(
        f"Wrongly {predicted}",
        f"Of 100 in a group for whom it is not true, how many are {predicted}.",
        "fpr_gap",
        make_cells(
            f"of 100 WHO for whom it is not true, # are wrongly {predicted}", (0,), "positive"
        ),
        larger=False,
    )
    about = "about " if words.groups else ""
    # group 0: not a part of the gap between groups
    everybody = Cell("all", "# of 100 answers are wrong", 0, 0, (0, 1), "wrong")
    yield Outcome(
        "Wrong answers",
        "Of 100 answers, how many are wrong: those missed and those wrongly predicted.",
        "accuracy_gap",
        (everybody, *make_cells(f"of 100 answers {about}WHO, # are wrong", (0, 1), "wrong")),
        larger=False,
        lead=True,
    )


def _build_class_outcomes(
    words: Wording, reader: HeadReader, groups: Sequence[str]
) -> Iterator[Outcome]:
    classes = reader.head.classes
    # rates of a hundred classes would say less than the one share of wrong answers
    if len(classes) <= MAX_CLASSES:
        yield Outcome(
            "Found",
            "Of 100 rows of each class, how many are predicted as such.",
            "",
            tuple(
                Cell(f"“{name}”", f"of 100 “{name}”, # are found", 0, 0, (index,), "right")
                for index, name in enumerate(classes)
            ),
            larger=True,
        )
    group_cells = tuple(
        Cell(group, f"of 100 answers about {group}, # are wrong", 0, index, (), "wrong")
        for index, group in enumerate(groups, start=1)
    )
    yield Outcome(
        "Wrong answers",
        "Of 100 answers, how many are wrong.",
        "accuracy_gap" if group_cells else "",
        (Cell("all", f"# of 100 answers {words.wrong}", 0, 0, (), "wrong"), *group_cells),
        larger=False,
        lead=True,
    )


def compute_shares(outcomes: Sequence[Outcome], confusion: Sequence[Counts]) -> Array:
    """Compute the share of every cell with its interval, ``[cells, rays, 3]``: value, low, high.

    Args:
        outcomes: the outcomes with the cells.
        confusion: the matrices that `count_answers` returns.
    """
    cells = [cell for outcome in outcomes for cell in outcome.cells]
    # NaN stays where a group has no rows of a class
    shares = np.full((len(cells), len(confusion[0]), 3), np.nan)
    for row, cell in zip(shares, cells, strict=True):
        hits, size = _count_cell(cell, confusion)
        has_rows = size > 0
        share = hits[has_rows] / size[has_rows]
        # an interval of a share with no rows does not exist, hence the mask
        low, high = compute_share_interval(share, size[has_rows])
        row[has_rows] = np.stack([share, low, high], axis=-1)
    return shares


def compute_outcome_gaps(
    outcomes: Sequence[Outcome], confusion: Sequence[Counts], *, chosen: bool
) -> dict[str, Array]:
    """Compute the intervals of gaps between the counted groups, ``[rays, 2]`` by name."""
    intervals = {}
    for outcome in outcomes:
        counts = [_count_cell(cell, confusion) for cell in outcome.cells if cell.group]
        # a gap needs two groups, each with at least one row
        if not outcome.gap or len(counts) < 2 or any((size == 0).any() for _, size in counts):
            continue
        # Sum and sum of squares are equal: each row counts as 0 or 1.
        moments = np.stack([np.stack([hits, hits, size], axis=-1) for hits, size in counts], 1)
        ends = compute_gap_interval(moments[:, None], chosen=chosen)
        intervals[outcome.gap] = np.stack(ends, axis=-1)
    return intervals


def _count_cell(cell: Cell, confusion: Sequence[Counts]) -> tuple[Array, Array]:
    """Count the hits at every ray, and the samples among which they are counted."""
    counts = confusion[cell.head][:, cell.group].astype(np.float64)
    # empty means all classes
    rows = list(cell.true_classes) or list(range(counts.shape[-1]))
    size = counts[:, rows].sum(axis=(1, 2))
    if cell.counted == "positive":
        return counts[:, rows, 1].sum(axis=1), size
    # paired indices take the diagonal: true and predicted class are equal
    right = counts[:, rows, rows].sum(axis=1)
    return (right if cell.counted == "right" else size - right), size


def compute_gap_intervals(
    problem: Problem, outputs: Outputs, targets: Targets, *, chosen: bool
) -> dict[str, Array]:
    """Compute the intervals of the problem's gaps between groups, ``[rays, 2]`` by name.

    Args:
        problem: the problem, whose objectives and metrics may be gaps.
        outputs: the network's outputs ``[rays, B, ...]``.
        targets: the true values.
        chosen: whether a ray will be chosen by these rows, which widens the intervals.
    """
    if problem.score_batch is not None:  # a mean over batches is no rate
        return {}
    intervals = {}
    metrics = {goal.name: goal.score for goal in problem.objectives} | dict(problem.metrics)
    for name, metric in metrics.items():
        moments = [
            get_moments(metric, map_tensors(itemgetter(index), outputs), targets)
            for index in range(len(first(outputs)))
        ]
        arrays = [array for array in moments if array is not None]
        # Rates without rows are left out, so their number may differ from ray to ray.
        if len(arrays) == len(moments) and len({array.shape for array in arrays}) == 1:
            ends = compute_gap_interval(np.stack(arrays), chosen=chosen)
            intervals[name] = np.stack(ends, axis=-1)
    return intervals
