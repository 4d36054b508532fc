"""Diagnose a finished training: whether the ray changes the outputs, and in the right order."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import torch
from torch import nn

from paretocosmos.evaluation.evaluate import WHOLE, count_outputs, evaluation_mode, predict_at_rays
from paretocosmos.evaluation.intervals import draw_paired_scores
from paretocosmos.evaluation.samples import Shares, thin_batch
from paretocosmos.evaluation.sensitivity import (
    compares_groups,
    compute_at_equal_weights,
    compute_sensitivity,
    score_untrained,
)
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import BEYOND, dominated_share, monotonicity
from paretocosmos.problems import Problem
from paretocosmos.problems.functions import FunctionValue
from paretocosmos.runtime.device import set_precision
from paretocosmos.types import Batch

Kind = Literal[
    "insensitive",
    "wrong_order",
    "weak_order",
    "worse_corner",
    "dominated",
    "drowned",
    "no_conflict",
    "no_gradient",
    "missing_middle",
    "missing_end",
    "one_end",
]

# Standard errors beyond which a difference is no noise, at the two-sided 5 %.
ERRORS = 1.96
# The ray moves outputs by less than this share of what another input does, or, where inputs do not
# matter, values by less than this share of their distance from the reference point.
INSENSITIVE = 0.01
# The share of the weighted losses at equal weights from which one dominates the others.
DOMINANT = 0.99
# Samples that say enough of sensitivity and gradients, and rays between two objectives that say
# enough of the order: a third of what a validation costs.
SAMPLES, RAYS = 512, 9
# How often their values are drawn again: 97.5 % is all but two of them.
DRAWS = 80
# A step between neighbouring rays over more than this share of the front is a gap; one that skips
# less may be a steep place. Fewer rays are too far apart to tell.
GAP, NEIGHBOURS = 0.5, 15
# The share of a function's range by which it stays above its smallest value.
SHORT = 0.1
# The share of an objective's range by which a corner is worse than equal weights, and the share of
# dominated rays, from which something went wrong; a little of both is usual near flat ends.
WORSE, MANY = 0.05, 0.5
# The rank correlation below which weights of several gaps do not order them.
ORDERED = 0.9


@dataclass(frozen=True)
class Finding:
    """Something about a training that its owner should know.

    Attributes:
        kind: one word for programs.
        text: one sentence with the way out.
    """

    kind: Kind
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`.

    Attributes:
        sensitivity: how much the ray changes outputs; NaN where it cannot be measured.
        findings: problems to warn of.
    """

    sensitivity: float
    findings: tuple[Finding, ...]


def diagnose(
    model: nn.Module,
    problem: Problem,
    front_val: Front,
    val: Shares,
    *,
    scaled: bool = False,
    learned: bool = True,
    untrained: nn.Module | None = None,
) -> Diagnosis:
    """Measure the sensitivity of a network that takes the ray as an input, and find its problems.

    Args:
        model: ``forward(inputs, ray) -> outputs``.
        problem: what it was trained on.
        front_val: its front on the validation split.
        val: that split, on the model's device.
        scaled: whether losses were brought to one scale in training, so that none dominates.
        learned: whether the network learned what a ray means, so that it can fail to; else the
            order of its front is all that is examined.
        untrained: the network before the training, to see whether an objective was given up.
    """
    # with J objectives the simplex has J - 1 directions
    count = min(len(front_val), RAYS * (front_val.objectives - 1))
    front = front_val.take(np.linspace(0, len(front_val) - 1, count).round().astype(int))
    rays = torch.from_numpy(front.rays.copy())
    draws: list[Array] = []
    starts: list[Array] = []
    few: list[tuple[Sequence[Objective], Batch]] = []
    for objectives, samples in val:
        with evaluation_mode(model), set_precision("fp32"):
            # all samples, but for outputs so large that they would not fit into memory
            numbers = count_outputs(model, problem, next(iter(samples)), rays)
        # read outside `evaluation_mode`: its tensors cannot be differentiated later
        batch = samples.spread(max(2, WHOLE // numbers // (len(rays) + 1)))
        with evaluation_mode(model), set_precision("fp32"):
            outputs = predict_at_rays(model, batch.inputs, rays, problem.prepare)
            scores = [objective.score for objective in objectives]
            draws.append(
                draw_paired_scores(
                    scores, outputs, batch.targets, score_batch=problem.score_batch, draws=DRAWS
                )
            )
        if untrained is not None and learned:
            starts.append(score_untrained(untrained, model, problem, objectives, batch))
        few.append((objectives, thin_batch(batch, SAMPLES)))
    drawn = np.concatenate(draws, axis=-1)
    sensitivity = compute_sensitivity(model, few[0][1].inputs, rays, prepare=problem.prepare)
    if not learned:
        return Diagnosis(sensitivity, tuple(find_problems(front, math.inf, drawn)))
    losses, gradients = dict[str, float](), dict[str, float]()
    for scored, batch in few:
        more_losses, more_gradients = compute_at_equal_weights(model, problem, scored, batch)
        # on one scale none can dominate, whatever the plain losses are
        losses |= {} if scaled else more_losses
        gradients |= more_gradients
    problems = find_problems(front, sensitivity, drawn, losses=losses, gradients=gradients)
    if not problems and starts:
        problems = find_one_end(front, np.concatenate(starts), drawn)
    if not any(problem.kind == "wrong_order" for problem in problems):
        problems = find_weak_order(front_val, problem.objectives) + problems
    if not problems:
        problems = find_missing_middle(front_val) + find_missing_ends(front_val, problem.objectives)
    return Diagnosis(sensitivity, tuple(problems))


def find_problems(
    front_val: Front,
    sensitivity: float,
    draws: Array,
    *,
    losses: Mapping[str, float] = MappingProxyType({}),
    gradients: Mapping[str, float] = MappingProxyType({}),
) -> list[Finding]:
    """Find the problems of a training, each in a sentence with the way out.

    Args:
        front_val: the front on the validation split.
        sensitivity: of the network; NaN if it cannot be measured, so that the values tell.
        draws: the front's values ``[draws, N, J]`` on samples drawn again: its noise.
        losses: of each objective at equal weights.
        gradients: the largest entry of each loss's gradient by the outputs there.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[1, 2], [2, 1]], ("loss", "gap"), (3, 3))
    >>> [problem.kind for problem in find_problems(front, 0.001, np.stack([front.values] * 40))]
    ['insensitive']
    >>> find_problems(front, 0.5, np.stack([front.values] * 40))
    []
    """
    problems = [
        Finding(
            "no_gradient",
            f"`{name}` has no gradient on validation rows, so its weight has no effect: make its "
            "loss a differentiable function of the outputs that is not flat there",
        )
        for name, size in gradients.items()
        if size == 0
    ]
    if len(front_val) == 1:
        return problems
    order = monotonicity(front_val)
    problems += _find_no_effect(front_val, sensitivity) or _check_order(front_val, order, draws)
    return problems + _find_drowned(front_val, order, losses)


def _find_no_effect(front: Front, sensitivity: float) -> list[Finding]:
    """Find a ray without effect: it leaves outputs, or else all values, nearly as they are."""
    same = f"outputs (sensitivity {sensitivity:.4f})"
    no_effect = sensitivity < INSENSITIVE
    if math.isnan(sensitivity):
        best = front.values.min(axis=0)
        distances = np.abs(front.reference - best)
        no_effect = bool((np.ptp(front.values, axis=0) < INSENSITIVE * distances).all())
        values = zip(front.names, best, strict=True)
        same = f"values ({', '.join(f'`{name}` {value:.3g}' for name, value in values)})"
    if not no_effect:
        return []
    text = (
        f"every ray gives nearly the same {same}, so the network ignores the preference, or "
        "one answer is best for every objective: use the method and the conditioning of the "
        "default preset and more `epochs`; `separate`, a network for each ray, shows which"
    )
    return [Finding("insensitive", text)]


def _check_order(front: Front, order: Array, draws: Array) -> list[Finding]:
    """Find objectives that more weight raises, in the draws too; else judge the values."""
    wrong = order < 0
    if wrong.any():  # by more than the noise of the rows
        each = [monotonicity(dataclasses.replace(front, values=drawn)) for drawn in draws]
        wrong &= (np.stack(each) < 0).mean(axis=0) >= BEYOND
    if wrong.any():
        correlations = ", ".join(
            f"`{name}` ({order[j]:.2f})" for j, name in enumerate(front.names) if wrong[j]
        )
        text = (
            "more weight raises the objective on validation rows (rank correlation: "
            f"{correlations}); use the default preset with its own method, more `epochs`, "
            "or an objective whose loss is closer to its score"
        )
        return [Finding("wrong_order", text)]
    worse, dominated = _find_worse_corners(front, draws), _find_dominated_rays(front, draws)
    return worse + dominated if worse else _find_no_conflict(front, draws) or dominated


def find_weak_order(front: Front, objectives: Sequence[Objective]) -> list[Finding]:
    """Find weights of several gaps that hardly order them: closing one moves the other."""
    gaps = [compares_groups(objective) for objective in objectives]
    order = monotonicity(front)
    if sum(gaps) < 2 or not (order < ORDERED).any():
        return []
    named = zip(front.names, order, strict=True)
    correlations = ", ".join(f"`{name}` {value:.2f}" for name, value in named)
    text = (
        "more weight hardly makes an objective smaller on validation rows (rank correlation: "
        f"{correlations}; 1 is best): trade one gap and bound the others in `choose`, or close "
        "both by one measure, such as `selection_and_tpr_gap` or `equalized_odds`"
    )
    return [Finding("weak_order", text)]


def _find_worse_corners(front: Front, draws: Array) -> list[Finding]:
    """Find objectives that most weight on them leaves larger than equal weights do."""
    corners, objectives = front.rays.argmax(axis=0), np.arange(front.objectives)
    centre = front.rays.max(axis=1).argmin()
    excess = front.values[corners, objectives] - front.values[centre]
    drawn = draws[:, corners, objectives] > draws[:, centre]
    is_worse = (excess > WORSE * np.ptp(front.values, axis=0)) & (drawn.mean(axis=0) >= BEYOND)
    if not is_worse.any():
        return []
    values = [
        f"`{front.names[j]}` ({front.values[corners[j], j]:.3g} against "
        f"{front.values[centre, j]:.3g})"
        for j in np.flatnonzero(is_worse)
    ]
    text = (
        f"the ray with most weight on an objective is worse for it than equal weights: "
        f"{', '.join(values)}; use more `epochs`, or a smaller `alpha`, so that more rays of "
        "the training lie near the corners"
    )
    return [Finding("worse_corner", text)]


def _find_dominated_rays(front: Front, draws: Array) -> list[Finding]:
    """Find a front of which most rays are beaten in every objective by another one."""
    # the draws, which take longer, can only lower the share; it is 1 where no point is a number
    share = dominated_share(front)
    if MANY < share < 1:
        share = dominated_share(front, draws)
    if not MANY < share < 1:
        return []
    text = (
        f"{share:.0%} of the rays are dominated by another ray, beyond the noise of the "
        "validation rows: use the method `cosmos` of the default preset, where you use "
        "another, more `epochs` or a smaller `penalty`, and choose among the others, "
        "`front.non_dominated`"
    )
    return [Finding("dominated", text)]


def _find_no_conflict(front: Front, draws: Array) -> list[Finding]:
    """Find a front without a trade-off: fewer than two objectives move beyond their noise."""
    best = np.flatnonzero(front.non_dominated)
    if not len(best):
        return []
    still = []
    for j, (name, values) in enumerate(zip(front.names, front.values[best].T, strict=True)):
        low, high = draws[:, best[values.argmin()], j], draws[:, best[values.argmax()], j]
        if (high > low).mean() >= BEYOND:
            continue
        # where all values are one, the noise is that of the value itself
        differs = values.max() > values.min()
        noise = ERRORS * float(np.nanstd(high - low if differs else low))
        ends = f"{values.min():.3g} to {values.max():.3g}" if differs else f"{values.min():.3g}"
        still.append(f"`{name}` ({ends}, noise ±{noise:.2g})")
    if front.objectives - len(still) >= 2:
        return []
    vary = "vary" if len(still) > 1 else "varies"
    text = (
        f"{' and '.join(still)} {vary} by no more than the noise of the validation rows, so no "
        "trade-off is visible, whether a gap is small or large: use more rows to see smaller "
        "differences, or train `separate` to see whether the objectives conflict"
    )
    return [Finding("no_conflict", text)]


def find_missing_middle(front: Front) -> list[Finding]:
    """Find a front of two objectives whose rays jump from one end to the other.

    So a weighted sum does where the front is concave: none of its minima is in the middle. A front
    of which only one end was found cannot be told from objectives that do not conflict.

    >>> rays = np.linspace([1, 0], [0, 1], 20)
    >>> ends = np.where(rays[:, :1] > 0.5, [[0.0, 1.0]], [[1.0, 0.0]])
    >>> front = Front(rays, ends, ("loss", "gap"), (3, 3))
    >>> [problem.kind for problem in find_missing_middle(front)]
    ['missing_middle']
    """
    extent = np.ptp(front.values, axis=0)
    if front.objectives != 2 or len(front) < NEIGHBOURS or not (extent > 0).all():
        return []
    steps = (np.abs(np.diff(front.values, axis=0)) / extent).min(axis=1)
    widest = int(steps.argmax())
    if not steps[widest] > GAP:
        return []
    before, after = front.rays[widest, 0], front.rays[widest + 1, 0]
    text = (
        f"the middle of the front is missing: between weights of {before:.2f} and {after:.2f} "
        f"on `{front.names[0]}` it jumps over {steps[widest]:.0%} of its range; use the method "
        "`cosmos` of the default preset, where you use another, a larger `penalty`, or more "
        "`epochs`"
    )
    return [Finding("missing_middle", text)]


def find_missing_ends(front: Front, objectives: Sequence[Objective]) -> list[Finding]:
    """Find functions of decision variables that were once smaller than on the whole front.

    Descent from many starts has found those values; a network that starts in another valley stays.

    Args:
        front: on the validation split.
        objectives: of the problem; only functions have a known smallest value.
    """
    short = [
        f"`{objective.name}` ({value:.3g} at best, {objective.best:.3g} possible)"
        for objective, value in zip(objectives, front.values.min(axis=0), strict=True)
        if isinstance(objective, FunctionValue)
        and value - objective.best > SHORT * (objective.worst - objective.best)
    ]
    if not short:
        return []
    text = (
        f"the front does not reach the smallest values of {', '.join(short)}, so at least a "
        "piece of it is missing: try other `seeds`, a larger `penalty`, the method "
        "`smooth_tchebycheff`, or bounds around the missing piece"
    )
    return [Finding("missing_end", text)]


def find_one_end(front: Front, start: Array, draws: Array) -> list[Finding]:
    """Find objectives that were given up: every ray is worse than the untrained network.

    So much worse that it is more than what the rays move, and more than the noise: then the front
    lies at another objective's end.

    Args:
        front: on the validation split.
        start: values of the untrained network on the same samples, ``[J]``.
        draws: the front's values ``[draws, N, J]`` on samples drawn again: its noise.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.01, 0.98], [0.02, 0.96]], ("a", "b"), (2, 2))
    >>> draws = np.stack([front.values] * 40)
    >>> [problem.kind for problem in find_one_end(front, np.array([0.2, 0.3]), draws)]
    ['one_end']
    """
    best = front.values.argmin(axis=0)
    objectives = np.arange(front.objectives)
    excess = front.values[best, objectives] - start
    noise = ERRORS * draws[:, best, objectives].std(axis=0)
    given_up = excess > np.maximum(noise, np.ptp(front.values, axis=0))
    if not given_up.any():
        return []
    values = ", ".join(
        f"`{front.names[j]}` ({front.values[best[j], j]:.3g} at best, {start[j]:.3g} before)"
        for j in np.flatnonzero(given_up)
    )
    text = (
        f"every ray is worse than the untrained network for {values}, so the whole front lies "
        "at the end of another objective: use the method `cosmos` of the default preset, where "
        "you use another, a smaller `learning_rate`, more `epochs`, or losses of one scale"
    )
    return [Finding("one_end", text)]


def _find_drowned(front: Front, order: Array, losses: Mapping[str, float]) -> list[Finding]:
    """Find a loss next to which the others hardly count.

    The others may be small because they are solved, so their weights must have no effect, too.
    """
    # a loss that is large is no fault as long as the weights of the others have an effect
    by_name = dict(zip(front.names, order, strict=True))
    total = math.fsum(losses.values())
    problems = []
    for name, loss in losses.items():
        orders = [by_name[rival] for rival in losses if rival != name]
        if total > 0 and loss / total > DOMINANT and min(orders, default=1.0) < 0.5:
            problems.append(
                Finding(
                    "drowned",  # the name in `run.json`
                    f"`{name}` is {loss / total:.1%} of the summed losses at equal weights, so the "
                    "others hardly count: bring the losses to a common scale, or draw rays with "
                    "less weight on it (`alpha`, one per objective)",
                )
            )
    return problems
