"""How much a network's outputs depend on the ray, and losses on the outputs."""

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import evaluation_mode, predict_at_rays
from paretocosmos.evaluation.scoring import compute_score
from paretocosmos.objectives import GroupObjective, Objective
from paretocosmos.pareto import Array
from paretocosmos.problems import Problem
from paretocosmos.runtime.device import set_precision
from paretocosmos.types import Batch, Inputs, list_tensors, map_tensors

# Outputs of equal samples differ by this share at most, depending on their place in a batch.
ROUNDING = 1e-5


def compute_sensitivity(
    model: nn.Module,
    inputs: Inputs,
    rays: Tensor,
    *,
    prepare: Callable[[Inputs, torch.dtype], Inputs] | None = None,
) -> float:
    r"""Measure how much a network depends on the ray; 0 if not at all.

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
    with evaluation_mode(model), set_precision("fp32"):
        outputs = predict_at_rays(
            model, inputs, torch.cat([rays, rays.mean(dim=0, keepdim=True)]), prepare
        )
        ratios = [_compute_ratio(head) for head in list_tensors(outputs)]
    return float(torch.stack(ratios).mean())


def _compute_ratio(head: Tensor) -> Tensor:
    """Compute the ratio for a head's outputs ``[N + 1, B, ...]``, the last at the mean ray."""
    head = head.double()
    # x' is another sample: the same pairs every time, so that the number can be reproduced
    order = torch.randperm(head.shape[1], generator=torch.Generator().manual_seed(0))
    centre = head[-1]
    by_ray = (head[:-1] - centre).abs().mean()
    by_input = (centre - centre[order.to(head.device)]).abs().mean()
    differs = by_input > ROUNDING * centre.abs().mean()
    ratio = torch.where(differs, by_ray / by_input, torch.nan)
    return torch.where(by_ray == 0, 0.0, ratio)


def compute_at_equal_weights(
    model: nn.Module, problem: Problem, objectives: Sequence[Objective], batch: Batch
) -> tuple[dict[str, float], dict[str, float]]:
    """Compute each objective's loss, and the largest entry of its gradient by the outputs."""
    count = len(problem.objectives)
    ray = torch.full((1, count), 1 / count)
    with evaluation_mode(model), set_precision("fp32"):
        at_ray = predict_at_rays(model, batch.inputs, ray, problem.prepare)
    leaves: list[Tensor] = []

    # gradients by the outputs, not by the parameters: one pass, whatever the network is
    def make_leaf(out: Tensor) -> Tensor:
        leaves.append(out[0].clone().requires_grad_(out.is_floating_point()))
        return leaves[-1]

    losses, gradients = {}, {}
    with torch.enable_grad():
        outputs = map_tensors(make_leaf, at_ray)
        inputs = [leaf for leaf in leaves if leaf.requires_grad]
        for objective in objectives:
            loss = objective.loss(outputs, batch.targets)
            losses[objective.name] = float(loss.detach())
            by_input: Sequence[Tensor | None] = ()
            if loss.requires_grad:
                by_input = torch.autograd.grad(loss, inputs, allow_unused=True, retain_graph=True)
            # `None` for a head that another objective reads
            sizes = [float(grad.abs().max()) for grad in by_input if grad is not None]
            gradients[objective.name] = max(sizes, default=0.0)
    return losses, gradients


def compares_groups(objective: Objective) -> bool:
    """Return True for a gap between groups, also one in another's unit."""
    return isinstance(getattr(objective, "wrapped", objective), GroupObjective)


def score_untrained(
    untrained: nn.Module,
    model: nn.Module,
    problem: Problem,
    objectives: Sequence[Objective],
    batch: Batch,
) -> Array:
    """Compute the values of the network before the training at equal weights."""
    like = next(model.parameters())
    first_parameter = next(untrained.parameters())
    if (first_parameter.device, first_parameter.dtype) != (like.device, like.dtype):
        untrained = copy.deepcopy(untrained).to(like.device, like.dtype)
    count = len(problem.objectives)
    with evaluation_mode(untrained), set_precision("fp32"):
        ray = torch.full((1, count), 1 / count)
        outputs = predict_at_rays(untrained, batch.inputs, ray, problem.prepare)
        scores = [
            compute_score(objective.score, outputs, batch.targets, problem.score_batch)
            for objective in objectives
        ]
    start: Array = torch.cat(scores).double().cpu().numpy()
    # a network that has learned nothing answers the same to everybody: its gaps say nothing
    return np.where([compares_groups(objective) for objective in objectives], np.nan, start)
