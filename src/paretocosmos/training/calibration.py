"""Calibration: which rays are worth asking for, found on validation once a network is trained.

A weight on a gap can be so large that more of it no longer closes the gap and only costs accuracy:
all rays beyond are dominated. The ends of the simplex are moved to where a weight stops paying off,
so that every preference somebody can ask for is a choice worth having.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import evaluate_parts
from paretocosmos.evaluation.samples import Shares
from paretocosmos.problems import Problem

__all__ = ["useful_ends"]

# Weights of an objective that are tried, from 0 to 1.
STEPS = 25
# Parts of the validation rows, by whose disagreement the noise of a difference is known.
PARTS = 10
# Validation rows below which chance decides what pays.
ENOUGH = 1000
# How many standard errors make one ray better than another.
BETTER = 2.0
# How many make it the same.
SAME = 0.5

Values = npt.NDArray[np.float64]


def useful_ends(model: nn.Module, problem: Problem, val: Shares) -> Tensor:
    """For each objective the ray ``[J, J]`` with the largest weight on it that still pays.

    A weight pays as long as no other ray is better in something, beyond the noise of the validation
    rows, and worse in nothing. Beyond weights that do not pay it must also lower its own objective,
    beyond noise, from where it was before them. Where the ends found so do not differ beyond noise,
    or on few rows, all of the simplex stays.

    Args:
        model: the trained network.
        problem: what it was trained on.
        val: the validation split, on the network's device.
    """
    count = len(problem.objectives)
    corners = torch.eye(count)
    if min(len(samples) for _, samples in val) < ENOUGH:
        return corners
    others = (1 - corners) / (count - 1)
    weights = torch.linspace(0, 1, STEPS)[:, None, None]
    rays = (others + weights * (corners - others)).reshape(-1, count)  # weight by objective
    whole, parts = evaluate_parts(model, problem, val, rays, PARTS)
    noise = _noise(parts)
    pays = ~_dominated(whole, noise).reshape(STEPS, count)
    own = [np.arange(STEPS) * count + j for j in range(count)]  # by the weight of each
    largest = [
        _largest(pays[:, j], whole[at, j], noise[np.ix_(at, at)][..., j])
        for j, at in enumerate(own)
    ]
    places = [step * count + j for j, step in enumerate(largest)]
    if not _conflict(whole[places], noise[np.ix_(places, places)]):
        return corners
    return rays[places]


def _noise(parts: Values) -> Values:
    """Standard errors of differences between N points ``[N, N, J]``, from P parts ``[P, N, J]``.

    Differences are taken part by part: what all rays share is no noise between them. A part without
    some group of people says nothing: then nothing is beyond noise.
    """
    apart = parts[:, :, None] - parts[:, None]
    noise: Values = apart.std(axis=0, ddof=1) / np.sqrt(len(parts))
    return np.nan_to_num(noise, nan=np.inf)


def _dominated(values: Values, noise: Values) -> npt.NDArray[np.bool_]:
    """Which of N points ``[N, J]`` another beats beyond noise."""
    worse = values[:, None] - values[None]  # [i, k]: how much worse i is than k
    better = np.any(worse > BETTER * noise + 1e-12, axis=-1)
    no_better = np.all(worse >= -SAME * noise, axis=-1)
    return np.asarray(np.any(no_better & better, axis=1))


def _largest(pays: npt.NDArray[np.bool_], values: Values, noise: Values) -> int:
    """The largest of S weights of one objective that pays.

    A gap is never below 0 and its noise has one side: where predictions are constant it is 0, which
    no ray can beat, however dearly it is bought. Between there and the weights that pay nothing
    does, and what it gains on the last of them is chance.

    Args:
        pays: ``[S]``, whether no other ray beats it.
        values: ``[S]``, of that objective.
        noise: ``[S, S]``, standard errors of their differences.
    """
    useful = np.flatnonzero(pays)[::-1]
    for far, near in pairwise(useful):
        if far - near == 1 or values[near] - values[far] > BETTER * noise[near, far] + 1e-12:
            return int(far)
    return int(useful[-1]) if len(useful) else 0


def _conflict(ends: Values, noise: Values) -> bool:
    """Whether each objective is smaller at its own end ``[J, J]`` than at another, beyond noise."""
    gained = ends[None] - ends[:, None] > BETTER * noise + 1e-12  # [own, other, objective]
    return all(bool(gained[own, :, own].any()) for own in range(len(ends)))
