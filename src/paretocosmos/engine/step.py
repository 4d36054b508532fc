"""One training step as a pure function: parameters and a batch in, losses and gradients out."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from paretocosmos.conditioning import Conditioning
from paretocosmos.engine.gradients import EachLoss, apart_of
from paretocosmos.engine.losses import group_losses
from paretocosmos.methods import Method, State
from paretocosmos.objectives import Objective
from paretocosmos.types import Batch, Inputs, Outputs, Targets, each

__all__ = ["Result", "Step", "laid_out", "make_step"]

Parameters = Mapping[str, Tensor]


class Result(NamedTuple):
    """What a step gives: losses ``[G, J]``, a gradient per parameter, and the method's state."""

    losses: Tensor
    gradients: dict[str, Tensor]
    state: State


Step = Callable[[Parameters, Batch, Tensor, State], Result]
"""Parameters by name, a batch, rays ``[G, J]`` and the method's state to a result.

A stacked step does this for S seeds at once: everything in and out has a leading axis S.
"""


def make_step(
    model: nn.Module,
    objectives: Sequence[Objective],
    method: Method,
    *,
    prepare: Callable[[Inputs, torch.dtype], Inputs] | None = None,
    half: bool = False,
    stacked: bool = False,
) -> Step:
    """The step of a model under a method; the optimiser's update is the caller's.

    Args:
        model: ``forward(inputs, ray)``; with several seeds, any one of their networks.
        objectives: what is traded.
        method: how losses become weights.
        prepare: from kept inputs to what the network eats (`Problem.prepare`).
        half: run the network in bfloat16 where torch deems it safe (autocast).
        stacked: make the step for several seeds at once.
    """
    plain = not isinstance(model, Conditioning)
    dtype = next(model.parameters()).dtype

    def losses_of(leaves: Parameters, inputs: Inputs, targets: Targets, rays: Tensor) -> Tensor:
        samples = len(next(iter(targets.values())))
        given = _for_plain(rays, samples) if plain else rays
        ready = inputs if prepare is None else prepare(inputs, dtype)
        # without its cache of cast weights, which would outlive a trace
        with torch.autocast(rays.device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            outputs: Outputs = functional_call(model, dict(leaves), (ready, given))
        if half:
            outputs = each(lambda out: out.to(dtype), outputs)
        return group_losses(objectives, outputs, targets, len(rays))

    every = torch.vmap(losses_of) if stacked else losses_of

    def step(parameters: Parameters, batch: Batch, rays: Tensor, state: State) -> Result:
        leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
        rays = rays.to(dtype)
        with torch.enable_grad():
            losses = every(leaves, batch.inputs, batch.targets, rays)
        each_loss = EachLoss(losses, leaves, apart_of(model, method), stacked=stacked)
        weights, after = method.weights(losses.detach(), rays, each_loss.gram, state)
        weights = weights.to(losses.dtype)
        if rays.shape[-2] > 1:
            # the mean over groups, so that the step's size does not depend on how many there are
            weights = weights / rays.shape[-2]
        gradients = each_loss.weighted(weights)
        placed = {name: laid_out(gradients[name], leaf) for name, leaf in leaves.items()}
        return Result(losses.detach(), placed, after)

    return step


def laid_out(gradient: Tensor, parameter: Tensor) -> Tensor:
    """A gradient with its parameter's strides: fused Adam walks both as they lie in memory."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter, requires_grad=False).copy_(gradient)


def _for_plain(rays: Tensor, samples: int) -> Tensor:
    """A network of one's own sees one ray as ``[J]``, several as one per sample, ``[B, J]``."""
    return rays[0] if len(rays) == 1 else rays.repeat_interleave(samples // len(rays), dim=0)
