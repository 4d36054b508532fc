"""One training step as a pure function: parameters and a batch in, losses and gradients out."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from paretocosmos.conditioning import Conditioning
from paretocosmos.methods import Method, State
from paretocosmos.objectives import Objective
from paretocosmos.types import Batch, Outputs, Targets, each

__all__ = ["Result", "Step", "group_losses", "make_step"]


class Result(NamedTuple):
    """What a step gives: losses ``[G, J]``, a gradient per parameter, and the method's state."""

    losses: Tensor
    gradients: dict[str, Tensor]
    state: State


Step = Callable[[Mapping[str, Tensor], Batch, Tensor, State], Result]
"""Parameters by name, a batch, rays ``[G, J]`` and the method's state to a result."""


def make_step(model: nn.Module, objectives: Sequence[Objective], method: Method) -> Step:
    """The step of a model under a method; the optimiser's update is the caller's."""
    plain = not isinstance(model, Conditioning)

    def step(parameters: Mapping[str, Tensor], batch: Batch, rays: Tensor, state: State) -> Result:
        leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
        given = _for_plain(rays, len(batch)) if plain else rays
        with torch.enable_grad():
            outputs = functional_call(model, leaves, (batch.inputs, given))
            losses = group_losses(objectives, outputs, batch.targets, len(rays))

        def gram() -> Tensor:
            return _gram(losses, list(leaves.values()))

        weights, after = method.weights(losses.detach(), rays, gram, state)
        # the mean over groups, so that the step's size does not depend on how many there are
        gradients = torch.autograd.grad(
            losses,
            list(leaves.values()),
            weights.to(losses.dtype) / len(rays),
            materialize_grads=True,
        )
        return Result(losses.detach(), dict(zip(leaves, gradients, strict=True)), after)

    return step


def group_losses(
    objectives: Sequence[Objective], outputs: Outputs, targets: Targets, groups: int
) -> Tensor:
    """Losses ``[G, J]``: every objective on every group of neighbouring samples."""

    def losses(outputs: Outputs, targets: Targets) -> Tensor:
        return torch.stack([objective.loss(outputs, targets) for objective in objectives])

    if groups == 1:
        return losses(outputs, targets).unsqueeze(0)

    def split(part: Tensor) -> Tensor:
        return torch.unflatten(part, 0, (groups, len(part) // groups))

    return torch.vmap(losses)(each(split, outputs), each(split, targets))


def _for_plain(rays: Tensor, samples: int) -> Tensor:
    """A network of one's own sees one ray as ``[J]``, several as one per sample, ``[B, J]``."""
    return rays[0] if len(rays) == 1 else rays.repeat_interleave(samples // len(rays), dim=0)


def _gram(losses: Tensor, leaves: list[Tensor]) -> Tensor:
    """Inner products ``[G, J, J]`` of the objectives' gradients, one backward pass for each."""
    rows = [
        torch.cat(
            [
                part.flatten()
                for part in torch.autograd.grad(
                    loss, leaves, retain_graph=True, materialize_grads=True
                )
            ]
        )
        for loss in losses.flatten()
    ]
    gradients = torch.unflatten(torch.stack(rows), 0, losses.shape)
    return gradients @ gradients.mT
