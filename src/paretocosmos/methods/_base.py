"""The contract of a method."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.rays import check_alpha, sample_rays

__all__ = ["DirichletRays", "Gram", "Method", "State"]

State = Mapping[str, Tensor]
"""What a method remembers between steps: named tensors, saved with the checkpoint."""

Gram = Callable[[], Tensor]
"""A thunk for the Gram matrix ``[..., J, J]`` of the losses' gradients, paid only if called."""


class Method(ABC):
    """A weighting of losses. The loop back-propagates ``(weights * losses).sum()``.

    A method that minimises a scalar function f of the losses gives f's gradient by them: by the
    chain rule ∇f(L(θ)) is Σ (∂f/∂L_j) ∇L_j, one ordinary backward pass.
    """

    @abstractmethod
    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        """Draw `count` rays, ``[count, J]``: those of one step, or of many."""

    def init(self, objectives: int) -> State:
        """What the method remembers before the first step."""
        return {}

    @abstractmethod
    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        """Losses ``[..., J]`` and rays ``[..., J]`` to weights ``[..., J]`` and the next state.

        Without gradient, in float32 or better, for any leading axes.
        """


@dataclass(frozen=True, kw_only=True)
class DirichletRays(Method):
    """A method that draws its rays from a Dirichlet distribution.

    Args:
        alpha: its parameter, one number or one per objective.
    """

    alpha: float | tuple[float, ...] = 0.5

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        return sample_rays(count, objectives, alpha=self.alpha, generator=generator)
