"""The scale of a loss: how strongly it pulls on the outputs of a fresh network."""

import warnings

import torch
from torch import Tensor, nn

from paretocosmos.errors import FrontWarning
from paretocosmos.evaluation.evaluate import evaluating, move
from paretocosmos.problems import Problem, split_of
from paretocosmos.types import Batch, Outputs, map_tensors

__all__ = ["loss_scales"]

# Enough for a gap between groups to have a direction, few enough to cost nothing.
SAMPLES = 2048
# Noise on the outputs of a fresh network, of which some losses are flat: a gap where all outputs
# are equal, a square near its minimum.
NOISE = 1.0
# How often it is drawn: a gap that happens to be nearly closed pulls less.
DRAWS = 8


def loss_scales(model: nn.Module, problem: Problem, *, seed: int) -> Tensor:
    r"""The scale of each loss ``[J]``, by which it is divided while training.

    .. math:: s_j = \sqrt{\frac1B \sum_i \Big\| B \frac{\partial L_j}{\partial f_i} \Big\|^2}

    over B training samples and the network's outputs f_i with equal weights, normal noise added: a
    fresh network may happen to lie where a loss is flat. Times 1,000 a loss has
    1,000 times the scale, and so the same weight. A loss's value would not do as its scale: the gap
    between groups of a fresh network is nearly 0, and its weight would be nearly infinite.

    Args:
        model: the fresh network.
        problem: what it is to be trained on.
        seed: of the samples.
    """
    train = split_of(problem, "train")
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(train), generator=generator)[:SAMPLES].sort().values
    parameter = next(model.parameters())

    def picked(tensor: Tensor) -> Tensor:
        return tensor[chosen.to(tensor.device)]

    few = Batch(map_tensors(picked, train.inputs), map_tensors(picked, train.targets))
    few = move(few, parameter.device, parameter.dtype)
    ray = torch.full((len(problem.objectives),), 1 / len(problem.objectives)).to(parameter)
    with evaluating(model):
        outputs = model(problem.prepare(few.inputs, parameter.dtype), ray)

    def shaken(out: Tensor) -> Tensor:
        if not out.is_floating_point():
            return out
        return out + NOISE * torch.randn(out.shape, generator=generator).to(out)

    pulls = [_pulls(problem, map_tensors(shaken, outputs), few) for _ in range(DRAWS)]
    scales = torch.stack(pulls).square().mean(dim=0).sqrt()
    for name, scale in zip(problem.names, scales.tolist(), strict=True):
        if not scale > 0:
            warnings.warn(
                f"the loss of `{name}` has no gradient at the network's outputs, so that no weight "
                "on it changes anything: compute it from the outputs, without `detach`, `argmax` "
                "or another network",
                FrontWarning,
                stacklevel=2,
            )
    return torch.where(scales > 0, scales, 1.0)


def _pulls(problem: Problem, outputs: Outputs, batch: Batch) -> Tensor:
    """The root mean square of a sample's pull on the outputs, for each loss ``[J]``."""
    wanted: list[Tensor] = []

    def leaf(out: Tensor) -> Tensor:
        if not out.is_floating_point():
            return out
        wanted.append(out.detach().clone().requires_grad_())
        return wanted[-1]

    leaves, found = map_tensors(leaf, outputs), []
    with torch.enable_grad():
        losses = [objective.loss(leaves, batch.targets) for objective in problem.objectives]
    for loss in losses:
        total = torch.zeros((), device=loss.device, dtype=torch.float64)
        if loss.requires_grad:
            pulls = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
            squares = [pull.double().square().sum() for pull in pulls if pull is not None]
            total = torch.stack([total, *squares]).sum()
        found.append((len(batch) * total).sqrt().float())
    return torch.stack(found).nan_to_num(0.0, 0.0, 0.0)
