"""Diagnose a finished training: whether the ray changes the outputs, and in the right order."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import WHOLE, count_outputs, evaluation_mode, predict_at_rays
from paretocosmos.evaluation.intervals import draw_paired_scores
from paretocosmos.evaluation.samples import Shares, thin_batch
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import BEYOND, monotonicity
from paretocosmos.problems import Problem
from paretocosmos.runtime.device import precise
from paretocosmos.types import Batch, Inputs, Outputs, map_tensors

Kind = Literal["insensitive", "wrong_order", "drowned", "no_conflict", "no_gradient"]

# Below this the ray moves outputs by less than a hundredth of what another input does.
INSENSITIVE = 0.01
# The share of the weighted losses at equal weights from which one drowns the others.
DROWNING = 0.99
# Samples that say enough of sensitivity and gradients, and rays between two objectives that say
# enough of the order: a third of what a validation costs.
SAMPLES, RAYS = 512, 9
# How often their values are drawn again: 97.5 % is all but two of them.
DRAWS = 80
# Standard deviations on either side that hold 95 %.
ERRORS = 1.96


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
    """What `diagnose` found.

    Attributes:
        sensitivity: how much the ray changes outputs; NaN where it cannot be measured.
        findings: what is to be said aloud.
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
) -> Diagnosis:
    """Sensitivity and findings of one network that takes the ray as an input.

    Args:
        model: ``forward(inputs, ray) -> outputs``.
        problem: what it was trained on.
        front_val: its front on the validation split.
        val: that split, on the model's device.
        scaled: whether losses were brought to one scale in training, where none drowns another.
        learned: whether the network learned what a ray means, so that it can fail to; else the
            order of its front is all that is examined.
    """
    count = min(len(front_val), RAYS * (front_val.objectives - 1))
    front = front_val.take(np.linspace(0, len(front_val) - 1, count).round().astype(int))
    rays = torch.from_numpy(front.rays.copy())
    draws: list[Array] = []
    few: list[tuple[Sequence[Objective], Batch]] = []
    for objectives, samples in val:
        one = next(iter(samples))
        with evaluation_mode(model), precise("fp32"):
            # all samples, but for outputs so large that they would not fit into memory
            most = max(2, WHOLE // count_outputs(model, problem, one, rays) // (len(rays) + 1))
        judged = samples.spread(most)
        few.append((objectives, thin_batch(judged, SAMPLES)))
        with evaluation_mode(model), precise("fp32"):
            drawn = draw_paired_scores(
                [objective.score for objective in objectives],
                predict_at_rays(model, judged.inputs, rays, problem.prepare),
                judged.targets,
                score_batch=problem.score_batch,
                draws=DRAWS,
            )
        draws.append(drawn)
    drawn = np.concatenate(draws, axis=-1)
    moved = compute_sensitivity(model, few[0][1].inputs, rays, prepare=problem.prepare)
    if not learned:
        return Diagnosis(moved, tuple(find_problems(front, math.nan, drawn)))
    losses, gradients = dict[str, float](), dict[str, float]()
    for own, some in few:
        own_losses, own_gradients = _at_equal_weights(model, problem, own, some)
        losses |= {} if scaled else own_losses
        gradients |= own_gradients
    return Diagnosis(
        moved, tuple(find_problems(front, moved, drawn, losses=losses, gradients=gradients))
    )


def find_problems(
    front_val: Front,
    sensitivity: float,
    draws: Array,
    *,
    losses: Mapping[str, float] = MappingProxyType({}),
    gradients: Mapping[str, float] = MappingProxyType({}),
) -> list[Finding]:
    """What is to be said of a training, each in a sentence with the way out.

    Args:
        front_val: the front on the validation split.
        sensitivity: of the network; NaN if it cannot be measured.
        draws: the front's values ``[draws, N, J]`` on samples drawn again: its noise.
        losses: of each objective at equal weights.
        gradients: the largest entry of each loss's gradient by the outputs there.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[1, 2], [2, 1]], ("loss", "gap"), (3, 3))
    >>> [found.kind for found in find_problems(front, 0.001, np.stack([front.values] * 40))]
    ['insensitive']
    >>> find_problems(front, 0.5, np.stack([front.values] * 40))
    []
    """
    found = [_no_gradient(name) for name, size in gradients.items() if size == 0]
    order = monotonicity(front_val)
    if len(front_val) == 1:
        return found
    if sensitivity < INSENSITIVE:
        found.append(_insensitive(sensitivity))
    else:
        wrong = _wrong(front_val, order, draws)
        if wrong:
            found.append(_wrong_order({front_val.names[j]: order[j] for j in wrong}))
        else:
            ranges = _measure_ranges(front_val, draws)
            if ranges and sum(one.beyond_noise for one in ranges) < 2:
                found.append(_no_conflict(ranges))
    # a small loss may be one that is solved, so it is drowned only if its weight does not tell
    obeyed = dict(zip(front_val.names, order, strict=True))
    total = math.fsum(losses.values())
    for name, loss in losses.items():
        others = [obeyed[other] for other in losses if other != name]
        if total > 0 and loss / total > DROWNING and min(others, default=1.0) < 0.5:
            found.append(_drowned(name, loss / total))
    return found


def _wrong(front: Front, order: Array, draws: Array) -> list[int]:
    """The objectives that more weight raises, in the draws too."""
    if (order >= 0).all():
        return []
    each = np.stack([monotonicity(dataclasses.replace(front, values=drawn)) for drawn in draws])
    often = (each < 0).mean(axis=0)
    return [j for j in range(front.objectives) if order[j] < 0 and often[j] >= BEYOND]


@dataclass(frozen=True)
class _Range:
    """From the lowest to the highest value of an objective among the non-dominated rays.

    Attributes:
        noise: half the width of the 95 % interval of their difference; of the value itself, where
            there is only one.
        beyond_noise: whether the highest is above the lowest in 97.5 % of the draws.
    """

    name: str
    low: float
    high: float
    noise: float
    beyond_noise: bool

    def __str__(self) -> str:
        ends = f"from {self.low:.3g} to {self.high:.3g}"
        size = f"goes {ends}" if self.low < self.high else f"is {self.low:.3g}"
        return f"`{self.name}` {size} (noise ±{self.noise:.2g})"


def _measure_ranges(front: Front, draws: Array) -> list[_Range]:
    """Return the range of every objective; nothing where no ray has values."""
    best = np.flatnonzero(front.non_dominated)
    if not len(best):
        return []
    ranges = []
    for j, (name, values) in enumerate(zip(front.names, front.values[best].T, strict=True)):
        low, high = draws[:, best[values.argmin()], j], draws[:, best[values.argmax()], j]
        differences = high - low if values.max() > values.min() else low
        ranges.append(
            _Range(
                name,
                float(values.min()),
                float(values.max()),
                ERRORS * float(np.nanstd(differences)),
                bool((high > low).mean() >= BEYOND),
            )
        )
    return ranges


def _insensitive(sensitivity: float) -> Finding:
    return Finding(
        "insensitive",
        f"the ray has no effect (sensitivity {sensitivity:.4f}): try the conditioning `film` "
        "with `rank` 1, as in the default preset, or more `epochs`",
    )


def _wrong_order(order: Mapping[str, float]) -> Finding:
    said = ", ".join(f"`{name}` ({value:.2f})" for name, value in order.items())
    return Finding(
        "wrong_order",
        f"more weight raises the objective on validation rows (rank correlation: {said}); use the "
        "default preset with its method `linear`, more `epochs`, or an objective whose loss is "
        "closer to its score",
    )


def _no_conflict(ranges: Sequence[_Range]) -> Finding:
    return Finding(
        "no_conflict",
        "no trade-off is visible beyond the noise of the validation rows: over the non-dominated "
        f"rays, {' and '.join(map(str, ranges))}; judge whether these values are good enough, and "
        "use more validation rows to see smaller differences",
    )


def _drowned(name: str, share: float) -> Finding:
    return Finding(
        "drowned",
        f"`{name}` is {share:.1%} of the summed losses at equal weights, so the others hardly "
        "count: bring the losses to a common scale, or draw rays with less weight on it (`alpha`, "
        "one per objective)",
    )


def _no_gradient(name: str) -> Finding:
    return Finding(
        "no_gradient",
        f"`{name}` has no gradient on validation rows, so its weight has no effect: make its loss "
        "a differentiable function of the outputs that is not flat there",
    )


def _at_equal_weights(
    model: nn.Module, problem: Problem, objectives: Sequence[Objective], batch: Batch
) -> tuple[dict[str, float], dict[str, float]]:
    """Each objective's loss, and the largest entry of its gradient by the outputs."""
    count = len(problem.objectives)
    with evaluation_mode(model), precise("fp32"):
        swept = predict_at_rays(
            model, batch.inputs, torch.full((1, count), 1 / count), problem.prepare
        )
    leaves: list[Tensor] = []

    def leaf(out: Tensor) -> Tensor:
        leaves.append(out[0].clone().requires_grad_(out.is_floating_point()))
        return leaves[-1]

    losses, gradients = {}, {}
    with torch.enable_grad():
        outputs = map_tensors(leaf, swept)
        known = [one for one in leaves if one.requires_grad]
        for objective in objectives:
            loss = objective.loss(outputs, batch.targets)
            losses[objective.name] = float(loss.detach())
            found = (
                torch.autograd.grad(loss, known, allow_unused=True, retain_graph=True)
                if loss.requires_grad
                else ()
            )
            sizes = [float(one.abs().max()) for one in found if one is not None]
            gradients[objective.name] = max(sizes, default=0.0)
    return losses, gradients


# Outputs of equal samples differ by this share at most, depending on their place in a batch.
ROUNDING = 1e-5


def compute_sensitivity(
    model: nn.Module,
    inputs: Inputs,
    rays: Tensor,
    *,
    prepare: Callable[[Inputs, torch.dtype], Inputs] | None = None,
) -> float:
    r"""How much a network depends on the ray; 0 if not at all.

    .. math:: \frac{E\,|f(x, r) - f(x, \bar r)|}{E\,|f(x, \bar r) - f(x', \bar r)|}

    over the rays r with mean r̄, the samples x, and x' another sample; the mean over heads. At 1
    the ray moves an output as far as another input would.

    Args:
        model: ``forward(inputs, ray) -> outputs``.
        inputs: some hundred samples.
        rays: ``[N, J]``, those of a front.
        prepare: a problem's.

    Returns:
        The ratio; NaN where all samples have the same outputs, so that there is no measure.

    >>> class Shifted(nn.Module):
    ...     def forward(self, x: Tensor, ray: Tensor) -> Tensor:
    ...         return x + 10 * ray[0]
    >>> x = torch.randn(500, 1, generator=torch.Generator().manual_seed(0))
    >>> rays = torch.tensor([[0.4, 0.6], [0.6, 0.4]])
    >>> round(compute_sensitivity(Shifted(), x, rays), 1)
    0.9
    """
    with evaluation_mode(model), precise("fp32"):
        outputs = predict_at_rays(
            model, inputs, torch.cat([rays, rays.mean(dim=0, keepdim=True)]), prepare
        )
        ratios = torch.stack([_ratio(head) for head in _heads(outputs)])
    return float(ratios.mean())


def _ratio(head: Tensor) -> Tensor:
    """Of one head's outputs ``[N + 1, B, ...]``, the last being those at the mean ray."""
    head = head.double()
    order = torch.randperm(head.shape[1], generator=torch.Generator().manual_seed(0))
    centre = head[-1]
    by_ray = (head[:-1] - centre).abs().mean()
    by_input = (centre - centre[order.to(head.device)]).abs().mean()
    apart = by_input > ROUNDING * centre.abs().mean()
    ratio = torch.where(apart, by_ray / by_input, torch.nan)
    return torch.where(by_ray == 0, 0.0, ratio)


def _heads(outputs: Outputs) -> list[Tensor]:
    """The tensors of a network's outputs, however it packs them."""
    found: list[Tensor] = []

    def keep(part: Tensor) -> Tensor:
        found.append(part)
        return part

    map_tensors(keep, outputs)
    return found
