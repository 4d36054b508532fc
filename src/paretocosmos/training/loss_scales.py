"""The scale of a loss: how strongly it pulls on the outputs of a fresh network."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import evaluation_mode
from paretocosmos.evaluation.samples import move_batch
from paretocosmos.objectives import Objective
from paretocosmos.problems import Problem, shares_of
from paretocosmos.problems.streams import check_labels, get_label_range
from paretocosmos.types import Outputs, Targets, first, map_tensors

SCALES = "loss_scales"
"""The name of the losses' scales in a checkpoint, beside the method's state."""

# Enough for a gap between groups to have a direction, few enough to cost nothing.
SAMPLES = 2048
# Noise on the outputs of a fresh network, of which some losses are flat: a gap where all outputs
# are equal, a square near its minimum.
NOISE = 1.0
# How often it is drawn: a gap that happens to be nearly closed pulls less.
DRAWS = 8


def compute_loss_scales(model: nn.Module, problem: Problem, *, seed: int) -> Tensor:
    r"""Compute the scale of each loss ``[J]``, by which it is divided while training.

    .. math:: s_j = \sqrt{\frac1B \sum_i \Big\| B \frac{\partial L_j}{\partial f_i} \Big\|^2}

    over B training samples and the network's outputs f_i with equal weights, normal noise added: a
    fresh network may happen to lie where a loss is flat. A loss that is not defined beyond the
    outputs, as `binary_cross_entropy` beyond the probabilities of a sigmoid, has no noise. Times
    1,000 a loss has 1,000 times the scale, and so the same weight. A loss's value would not do as
    its scale: the gap between groups of a fresh network is nearly 0, and its weight would be nearly
    infinite.

    Args:
        model: the fresh network.
        problem: what it is to be trained on.
        seed: of the samples.
    """
    parameter = next(model.parameters())
    ray = torch.full((len(problem.objectives),), 1 / len(problem.objectives)).to(parameter)
    generator, scales_of_parts = torch.Generator().manual_seed(seed), []
    for own, few in shares_of(problem, SAMPLES, generator):
        here = move_batch(few, parameter.device, parameter.dtype)
        with evaluation_mode(model):
            outputs = model(problem.prepare(here.inputs, parameter.dtype), ray)
        for objective in own if problem.source("train") is not None else ():
            allowed = get_label_range(objective, outputs, here.targets)
            if allowed is not None:  # a split in memory was looked at as a whole
                target = objective.target
                check_labels(here.targets[target], allowed, f"`{target}`", "`train`")
        scales_of_parts.append(compute_pulls(own, outputs, here.targets, generator))
    scales = torch.cat(scales_of_parts)
    # a loss without a gradient is said aloud when the training ends, see `findings`
    return torch.where(scales > 0, scales, 1.0)


def compute_pulls(
    objectives: Sequence[Objective], outputs: Outputs, targets: Targets, generator: torch.Generator
) -> Tensor:
    """Compute how strongly each loss ``[J]`` pulls on outputs, as above; 0 without a gradient.

    Args:
        objectives: what is traded.
        outputs: of a fresh network.
        targets: of the same samples.
        generator: of the noise, on the CPU.
    """
    squared = [_squared_pulls(objectives, outputs, targets, generator) for _ in range(DRAWS)]
    return torch.stack(squared).mean(dim=0).sqrt().float().nan_to_num(0.0, 0.0, 0.0)


def _squared_pulls(
    objectives: Sequence[Objective], outputs: Outputs, targets: Targets, generator: torch.Generator
) -> Tensor:
    """The same for one draw of the noise, squared."""
    positive: list[bool] = []

    def noised(out: Tensor) -> Tensor:
        positive.append(bool((out >= 0).all()))
        noise = torch.randn(out.shape, generator=generator).to(out)
        return out.detach() + NOISE * noise

    shaken = _map_floats(noised, outputs)
    squared = []
    for objective in objectives:
        # only of what may be probabilities: a loss of these need not be defined anywhere else
        calm = all(positive) and _refuses_noise(objective, outputs, shaken, targets)
        squared.append(_squared_pull(objective, outputs if calm else shaken, targets))
    return torch.stack(squared)


def _squared_pull(objective: Objective, outputs: Outputs, targets: Targets) -> Tensor:
    """Return the squared pull of one loss on outputs; 0 where it has no gradient there."""
    leaves: list[Tensor] = []

    def leaf(out: Tensor) -> Tensor:
        leaves.append(out.detach().clone().requires_grad_())
        return leaves[-1]

    at = _map_floats(leaf, outputs)
    with torch.enable_grad():
        loss = objective.loss(at, targets)
    total = torch.zeros((), device=loss.device, dtype=torch.float64)
    if loss.requires_grad:
        each = torch.autograd.grad(loss, leaves, allow_unused=True)
        squares = [one.double().square().sum() for one in each if one is not None]
        total = torch.stack([total, *squares]).sum()
    return len(first(targets)) * total


def _refuses_noise(
    objective: Objective, outputs: Outputs, shaken: Outputs, targets: Targets
) -> bool:
    """Return whether a loss is defined for the network's outputs, but not with noise on them.

    It is tried out on the CPU: on a GPU, a loss that refuses its input makes the GPU unusable.
    """

    def is_defined(given: Outputs) -> bool:
        try:
            with torch.no_grad():
                loss = objective.loss(*(map_tensors(Tensor.cpu, part) for part in (given, targets)))
        except (RuntimeError, ValueError):
            return False
        return bool(loss.isfinite().all())

    return not is_defined(shaken) and is_defined(outputs)


def _map_floats(function: Callable[[Tensor], Tensor], outputs: Outputs) -> Outputs:
    mapped: Outputs = map_tensors(
        lambda out: function(out) if out.is_floating_point() else out, outputs
    )
    return mapped
