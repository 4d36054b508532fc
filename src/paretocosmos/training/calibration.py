"""Calibration: new ends of the simplex, found on validation after a training.

A weight on a gap can be so large that more of it no longer closes the gap and only costs accuracy:
all rays beyond are dominated. The ends of the simplex are moved to where a weight stops paying off,
so that every preference a user can ask for is a choice worth having.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import evaluate_parts
from paretocosmos.evaluation.samples import Shares
from paretocosmos.problems import Problem

# Weights of an objective that are evaluated, from 0 to 1: an end is found to 0.04.
STEPS = 25
# Parts of the validation rows: the differences between them give the standard errors.
PARTS = 10
# The fewest validation rows on which what pays is not left to chance.
LEAST_ROWS = 1000
# Standard errors by which one ray must be ahead to be better than another.
BETTER = 2.0
# Standard errors within which two rays are the same.
SAME = 0.5
# Rounding errors of float32 scores are no difference.
ROUNDING = 1e-12

Values = npt.NDArray[np.float64]


def find_useful_ends(model: nn.Module, problem: Problem, val: Shares) -> Tensor:
    """Find, for each objective, the ray ``[J, J]`` with the largest weight on it that pays.

    A weight pays unless another ray is better in something, beyond the noise of the validation
    rows, and worse in nothing. After weights that do not pay, a larger one must also lower its own
    objective, beyond noise, below its value before them. If these ends do not differ beyond noise,
    or there are too few rows, the corners of the simplex stay the ends.

    Args:
        model: the trained network.
        problem: the problem it was trained on.
        val: the validation split, on the network's device.
    """
    count = len(problem.objectives)
    corners = torch.eye(count)
    # the split with the fewest rows: objectives may be scored on different ones
    if min(len(samples) for _, samples in val) < LEAST_ROWS:
        return corners
    # from no weight on objective j, the others being equal, to all of it
    opposite = (1 - corners) / (count - 1)
    weights = torch.linspace(0, 1, STEPS)[:, None, None]
    rays = (opposite + weights * (corners - opposite)).reshape(-1, count)  # row: STEPS x J
    scores, part_scores = evaluate_parts(model, problem, val, rays, PARTS)
    errors = _compute_standard_errors(part_scores)
    pays = ~_find_dominated(scores, errors).reshape(STEPS, count)
    ends = []
    for j in range(count):
        rows = np.arange(STEPS) * count + j  # the rays of objective j, by its weight
        objective_errors = errors[np.ix_(rows, rows)][..., j]
        ends.append(rows[_find_largest_weight(pays[:, j], scores[rows, j], objective_errors)])
    # each objective must be smaller at its own end than at another one: [end, other, objective]
    noise = BETTER * errors[np.ix_(ends, ends)] + ROUNDING
    gain = scores[ends][None] - scores[ends][:, None] > noise
    has_conflict = all(bool(gain[j, :, j].any()) for j in range(count))
    return rays[ends] if has_conflict else corners


def _compute_standard_errors(parts: Values) -> Values:
    """Compute standard errors of differences of N points ``[N, N, J]`` from P parts ``[P, N, J]``.

    The differences are paired, part by part, so that noise that all rays share cancels. A part
    without some group of people has no scores: then no difference exceeds the noise.
    """
    # one objective at a time: all at once would take gigabytes for 40 objectives
    deviations = [
        (scores[:, :, None] - scores[:, None]).std(axis=0, ddof=1)
        for scores in np.moveaxis(parts, -1, 0)
    ]
    # of the mean over P parts: its variance is a P-th of that of one part
    errors: Values = np.stack(deviations, axis=-1) / np.sqrt(len(parts))
    return np.nan_to_num(errors, nan=np.inf)


def _find_dominated(scores: Values, errors: Values) -> npt.NDArray[np.bool_]:
    """Return which of N points ``[N, J]`` are dominated by another one beyond noise."""
    loss = scores[:, None] - scores[None]  # [i, k]: how much worse i is than k
    worse = np.any(loss > BETTER * errors + ROUNDING, axis=-1)
    no_better = np.all(loss >= -SAME * errors, axis=-1)
    return np.asarray(np.any(no_better & worse, axis=1))


def _find_largest_weight(pays: npt.NDArray[np.bool_], scores: Values, errors: Values) -> int:
    """Find the index of the largest of S weights of one objective that pays.

    A gap is never below 0 and its noise is one-sided: with constant predictions it is 0, which no
    ray can beat, whatever it costs. Weights just before that do not pay, so that a weight after
    such a hole counts only if it gains more than noise on the last weight before it.

    Args:
        pays: ``[S]``, true if no other ray dominates it.
        scores: ``[S]``, of that objective.
        errors: ``[S, S]``, standard errors of their differences.
    """
    paying = np.flatnonzero(pays)[::-1]  # the largest weight first
    for far, near in pairwise(paying):
        if far - near == 1 or scores[near] - scores[far] > BETTER * errors[near, far] + ROUNDING:
            return int(far)
    return int(paying[-1]) if len(paying) else 0
