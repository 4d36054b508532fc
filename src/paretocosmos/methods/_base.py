"""The contract of a method."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

__all__ = ["Gram", "Method", "State"]

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
