"""Loss scales: how strongly each loss pulls on the outputs of a fresh network."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import evaluation_mode
from paretocosmos.evaluation.samples import move_batch
from paretocosmos.objectives import Objective
from paretocosmos.problems import Problem, shares_of
from paretocosmos.problems.streams import check_labels, get_label_range
from paretocosmos.types import Outputs, Targets, first, map_tensors

# Enough for a gap between groups to have a direction, few enough to cost nothing.
SAMPLES = 2048
# The deviation of the noise on a fresh network's outputs, where some losses are flat: a gap where
# all outputs are equal, a square near its minimum.
NOISE = 1.0
# Draws of the noise that are averaged: in a single one a gap may happen to be nearly closed.
DRAWS = 8


def compute_loss_scales(model: nn.Module, problem: Problem, *, seed: int) -> Tensor:
    r"""Compute the scale of each loss ``[J]``, by which it is divided while training.

    .. math:: s_j = \sqrt{\frac1B \sum_i \Big\| B \frac{\partial L_j}{\partial f_i} \Big\|^2}

    over B training samples and the network's outputs f_i for a ray of equal weights. Normal noise
    is added to them, because a fresh network may happen to lie where a loss is flat; not for a loss
    that is undefined there, as `binary_cross_entropy` is outside [0, 1]. A loss times 1,000 has
    1,000 times the scale, and so the same weight. A loss's value is no substitute: the gap between
    groups of a fresh network is nearly 0, and its weight would be nearly infinite.

    Args:
        model: the fresh network.
        problem: the problem it will be trained on.
        seed: the seed of the samples and of the noise.
    """
    parameter = next(model.parameters())
    ray = torch.full((len(problem.objectives),), 1 / len(problem.objectives)).to(parameter)
    generator, pulls = torch.Generator().manual_seed(seed), []
    for objectives, batch in shares_of(problem, SAMPLES, generator):
        moved = move_batch(batch, parameter.device, parameter.dtype)
        with evaluation_mode(model):
            outputs = model(problem.prepare(moved.inputs, parameter.dtype), ray)
        # a split in memory was validated as a whole; a stream shows its first labels here
        for objective in objectives if problem.source("train") is not None else ():
            allowed = get_label_range(objective, outputs, moved.targets)
            if allowed is not None:
                target = objective.target
                check_labels(moved.targets[target], allowed, f"`{target}`", "`train`")
        pulls.append(compute_pulls(objectives, outputs, moved.targets, generator))
    scales = torch.cat(pulls)
    # a loss without a gradient is reported when the training ends, see `evaluation.diagnostics`
    return torch.where(scales > 0, scales, 1.0)


def compute_pulls(
    objectives: Sequence[Objective], outputs: Outputs, targets: Targets, generator: torch.Generator
) -> Tensor:
    """Compute the root mean square pull ``[J]`` of each loss on outputs; 0 without a gradient.

    Args:
        objectives: the objectives.
        outputs: outputs of a fresh network.
        targets: targets of the same samples.
        generator: the generator of the noise, on the CPU so that all devices draw the same.
    """
    squared = [
        _compute_squared_pulls(objectives, outputs, targets, generator) for _ in range(DRAWS)
    ]
    return torch.stack(squared).mean(dim=0).sqrt().float().nan_to_num(0.0, 0.0, 0.0)


def _compute_squared_pulls(
    objectives: Sequence[Objective], outputs: Outputs, targets: Targets, generator: torch.Generator
) -> Tensor:
    """Compute the squared pulls ``[J]`` for one draw of the noise."""
    positive: list[bool] = []

    def add_noise(out: Tensor) -> Tensor:
        positive.append(bool((out >= 0).all()))
        noise = torch.randn(out.shape, generator=generator).to(out)
        return out.detach() + NOISE * noise

    noisy = _map_floats(add_noise, outputs)
    squared = []
    for objective in objectives:
        # only outputs that may be probabilities: their losses need not be defined anywhere else
        without_noise = all(positive) and _rejects_noise(objective, outputs, noisy, targets)
        squared.append(
            _compute_squared_pull(objective, outputs if without_noise else noisy, targets)
        )
    return torch.stack(squared)


def _compute_squared_pull(objective: Objective, outputs: Outputs, targets: Targets) -> Tensor:
    """Compute the squared pull of one loss on outputs; 0 where it has no gradient."""
    leaves: list[Tensor] = []

    def make_leaf(out: Tensor) -> Tensor:
        leaves.append(out.detach().clone().requires_grad_())
        return leaves[-1]

    leaf_outputs = _map_floats(make_leaf, outputs)
    with torch.enable_grad():
        loss = objective.loss(leaf_outputs, targets)
    total = torch.zeros((), device=loss.device, dtype=torch.float64)
    if loss.requires_grad:
        gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
        squares = [
            gradient.double().square().sum() for gradient in gradients if gradient is not None
        ]
        total = torch.stack([total, *squares]).sum()
    # losses are means over B samples: B² from the gradients, 1/B from the mean of the squares
    return len(first(targets)) * total


def _rejects_noise(
    objective: Objective, outputs: Outputs, noisy: Outputs, targets: Targets
) -> bool:
    """Return True if a loss is defined for a network's outputs, but not with noise on them.

    It is evaluated on the CPU: a failed device-side assertion makes a GPU unusable for the process.
    """
    cpu_targets = map_tensors(Tensor.cpu, targets)

    def is_defined(values: Outputs) -> bool:
        try:
            with torch.no_grad():
                loss = objective.loss(map_tensors(Tensor.cpu, values), cpu_targets)
        except (RuntimeError, ValueError):
            return False
        return bool(loss.isfinite().all())

    return not is_defined(noisy) and is_defined(outputs)


def _map_floats(function: Callable[[Tensor], Tensor], outputs: Outputs) -> Outputs:
    mapped: Outputs = map_tensors(
        lambda out: function(out) if out.is_floating_point() else out, outputs
    )
    return mapped
