"""Reading classes out of what a network gives, and counting them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.evaluation.threshold import MIDDLE, compute_logit
from paretocosmos.explorer._view import Head
from paretocosmos.explorer._words import groups_of
from paretocosmos.objectives import logits_of, pick
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import TableProblem, TabularProblem
from paretocosmos.types import Batch, Outputs, Targets


@dataclass(frozen=True)
class Reader:
    """How one head is read.

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


def readers_of(
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
        if logits.ndim == 2 and truth.numel() == len(batch) and _yes_or_no(truth):
            classes = _named(problem, 2) or ("no", "yes")
            classes = classes if tabular is None else _classes(tabular)
            head = Head(name, classes, binary=True)
        elif scores.ndim == 3 and truth.ndim == 1 and _all_of(truth, scores.shape[-1]):
            classes = _named(problem, scores.shape[-1]) or tuple(map(str, range(scores.shape[-1])))
            head = Head(name, classes, binary=False)
        else:
            continue
        found.append(Reader(head, output, target, len(groups_of(problem)), threshold))
    return found


def count(
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


def _all_of(truth: Tensor, classes: int) -> bool:
    """Whether every sample has one of the classes, and none is without a label."""
    return not truth.is_floating_point() and bool(((truth >= 0) & (truth < classes)).all())


def _yes_or_no(truth: Tensor) -> bool:
    return bool(((truth == 0) | (truth == 1)).all())


def _named(problem: Problem, count: int) -> tuple[str, ...]:
    """The names of the classes of a table, if it is one and has as many."""
    found = problem.answer.classes if isinstance(problem, TableProblem) else ()
    return found if len(found) == count else ()


def _classes(problem: TabularProblem) -> tuple[str, str]:
    return f"not {problem.positive}", problem.positive
