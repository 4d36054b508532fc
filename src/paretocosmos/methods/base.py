"""The contract of a method."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics.indicators import hypervolume
from paretocosmos.pareto.rays import check_alpha, sample_rays, stratified_rays

State = Mapping[str, Tensor]
"""What a method remembers between steps: named tensors, saved with the checkpoint."""

Gram = Callable[[], Tensor]
"""A thunk for the Gram matrix ``[..., J, J]`` of the losses' gradients, paid only if called."""


class Method(ABC):
    """A weighting of losses. The loop back-propagates ``(weights * losses).sum()``.

    A method that minimises a scalar function f of the losses gives f's gradient by them: by the
    chain rule ∇f(L(θ)) is Σ (∂f/∂L_j) ∇L_j, one ordinary backward pass. One that asks for the
    gradients' Gram matrix costs a backward pass per objective instead.

    Derive from `DirichletRays` for one network that is given every ray, from `FixedRays` for one
    network per ray.

    >>> from paretocosmos.methods.linear import Linear
    >>> Linear(alpha=0.5).sample(2, 4, torch.Generator().manual_seed(1)).shape
    torch.Size([4, 2])
    """

    over: ClassVar[Literal["all", "shared"]] = "all"
    """Whose gradients the Gram matrix is made of: all parameters', or those outside the heads."""

    traceable: ClassVar[bool] = False
    """`True` promises that `weights` decides nothing in Python from values of tensors and keeps no
    Python state between steps, so that fast engines and stacks of seeds may run it; a subclass
    declares it anew."""

    def fixed_rays(self, objectives: int) -> Tensor | None:
        """The rays ``[K, J]`` it trains a network for, one each; `None` if one network serves all.

        Each of those networks is told nothing of its ray.
        """
        return None

    @abstractmethod
    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        """Draw `count` rays, ``[count, J]``, for the one network: those of one step."""

    def sample_steps(
        self, objectives: int, steps: int, groups: int, generator: torch.Generator
    ) -> Tensor:
        """Draw the rays of several steps, ``[steps * G, J]``, G of them for each.

        All at once, by default; a method whose rays of a step depend on each other says how.
        """
        return self.sample(objectives, steps * groups, generator)

    def init(self, objectives: int) -> State:
        """What the method remembers before the first step."""
        return {}

    def at_epoch(self, epoch: int, state: State) -> State:
        """What it remembers as an epoch begins, the first being 0."""
        return state

    @abstractmethod
    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        """Losses ``[..., J]`` and rays ``[..., J]`` to weights ``[..., J]`` and the next state.

        Without gradient, in float32 or better, for any leading axes; the state may have the first
        of them too, one for each of several networks.
        """

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        """Refuse losses ``[J]`` of a fresh network that the method cannot weigh."""
        return

    def quality(self, front: Front) -> float:
        """Return how good a network is by its validation front; that of the best epoch is kept.

        Its hypervolume; while that is 0, minus how far the front is from the reference point; of
        more objectives than a hypervolume is known for, minus the mean of the weighted losses.
        """
        reached = hypervolume(front)
        if np.isnan(reached):
            return -float((front.rays * front.values).sum(axis=1).mean())
        beyond = np.nan_to_num(front.values - front.reference, nan=np.inf, posinf=np.inf)
        return reached if reached > 0 else -float(beyond.clip(min=0).sum(axis=1).min())

    def report(self, state: State) -> dict[str, float]:
        """What there is to say of a training when it ends, by name."""
        return {}


def like_losses(weights: Tensor, losses: Tensor) -> Tensor:
    """Weights in the losses' shape and type, float32 at least."""
    return weights.to(torch.promote_types(losses.dtype, torch.float32)).expand_as(losses)


def largest_of(gaps: Tensor, before: Tensor) -> Tensor:
    """The largest certificate so far, one for each network."""
    return torch.maximum(before, gaps.reshape(*before.shape, -1).amax(dim=-1).to(before))


def refuse_losses(
    losses: Tensor, names: Sequence[str], why: str, way_out: str, *, zero: bool
) -> None:
    """Refuse a loss below 0, or not above it, before training."""
    for name, loss in zip(names, losses.tolist(), strict=True):
        if not (loss >= 0 if zero else loss > 0):
            raise ConfigurationError(
                f"{why}, found {loss:g} for `{name}` on the first batch: {way_out}"
            )


@dataclass(frozen=True, kw_only=True)
class DirichletRays(Method):
    """A method that draws its rays from a Dirichlet distribution, for one network.

    Args:
        alpha: its parameter, one number or one per objective.
        stratified: spread the rays of a step over the distribution, see `stratified_rays`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Squared(DirichletRays):
    ...     def weights(self, losses, rays, gram, state):
    ...         return 2 * rays * losses, state
    >>> Squared(alpha=1.0).sample(3, 5, torch.Generator().manual_seed(1)).shape
    torch.Size([5, 3])
    """

    alpha: float | tuple[float, ...] = 0.5
    stratified: bool = False

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        if self.stratified:
            return self.sample_steps(objectives, 1, count, generator)
        return sample_rays(count, objectives, alpha=self.alpha, generator=generator)

    def sample_steps(
        self, objectives: int, steps: int, groups: int, generator: torch.Generator
    ) -> Tensor:
        if not self.stratified:
            return super().sample_steps(objectives, steps, groups, generator)
        return stratified_rays(steps, groups, objectives, alpha=self.alpha, generator=generator)


@dataclass(frozen=True, kw_only=True)
class FixedRays(Method):
    """A method that trains a separate network for each of a few rays.

    A subclass says which rays in `fixed_rays`, and how the losses are weighed in `weights`. The
    front has one point per network.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class ThreeSums(FixedRays):
    ...     def fixed_rays(self, objectives):
    ...         return torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    ...
    ...     def weights(self, losses, rays, gram, state):
    ...         return rays, state
    >>> import tempfile
    >>> from paretocosmos import fit
    >>> run = fit("toy_convex", method=ThreeSums(), epochs=1, out=tempfile.mkdtemp() + "/run")
    >>> run.front.rays.round(2).tolist()
    [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    """

    @abstractmethod
    def fixed_rays(self, objectives: int) -> Tensor:
        """The rays ``[K, J]``, one network each."""

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        raise ConfigurationError(
            f"`{type(self).__name__}` does not draw rays: it trains one network for each of its "
            "`fixed_rays`"
        )
