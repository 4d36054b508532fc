"""`Method`: the contract of all methods, and two base classes that draw rays."""

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
"""A method's state between steps: named tensors, saved with the checkpoint."""

Gram = Callable[[], Tensor]
"""A function that computes the Gram matrix ``[..., J, J]`` of the losses' gradients when called."""


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
    """The parameters whose gradients make up the Gram matrix: all, or those outside the heads."""

    traceable: ClassVar[bool] = False
    """`True` promises that `weights` decides nothing in Python from values of tensors and keeps no
    Python state between steps, so that fast engines and stacks of seeds may run it; a subclass
    has to declare it again."""

    def fixed_rays(self, objectives: int) -> Tensor | None:
        """Return the rays ``[K, J]`` of separate networks; `None` if one network serves all.

        Separate networks do not get their ray as an input.
        """
        return None

    @abstractmethod
    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        """Draw the rays of one step, ``[count, J]``."""

    def sample_steps(
        self, objectives: int, steps: int, rays_per_batch: int, generator: torch.Generator
    ) -> Tensor:
        """Draw the rays of several steps, ``[steps * G, J]``, G for each.

        Override it if the rays of one step depend on each other: by default all are drawn at once.
        """
        return self.sample(objectives, steps * rays_per_batch, generator)

    def init(self, objectives: int) -> State:
        """Return the state before the first step."""
        return {}

    def at_epoch(self, epoch: int, state: State) -> State:
        """Return the state at the beginning of an epoch, counted from 0."""
        return state

    @abstractmethod
    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        """Compute weights ``[..., J]`` and the next state from losses and rays ``[..., J]``.

        The weights have no gradient, are float32 or better, and have the same leading axes. In a
        stack of networks the first axis counts these, and the state has it too.
        """

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        """Raise if the method cannot weight the losses ``[J]`` of a fresh network."""
        return

    def quality(self, front: Front) -> float:
        """Return the quality of a validation front, by which the best epoch is selected.

        It is the hypervolume; while that is 0, minus the distance to the reference point; with too
        many objectives for a hypervolume, minus the mean of the weighted losses.
        """
        # NaN: too many objectives for an exact hypervolume
        volume = hypervolume(front)
        if np.isnan(volume):
            return -float((front.rays * front.values).sum(axis=1).mean())
        beyond = np.nan_to_num(front.values - front.reference, nan=np.inf, posinf=np.inf)
        # without the distance, epochs before the first point inside the reference would all be 0
        return volume if volume > 0 else -float(beyond.clip(min=0).sum(axis=1).min())

    def report(self, state: State) -> dict[str, float]:
        """Return numbers about a finished training, by name; `run.json` records them."""
        return {}


def expand_weights(weights: Tensor, losses: Tensor) -> Tensor:
    """Return weights with the shape and type of the losses, float32 at least."""
    return weights.to(torch.promote_types(losses.dtype, torch.float32)).expand_as(losses)


def update_largest_gap(gaps: Tensor, before: Tensor) -> Tensor:
    """Return the largest gap of a solver so far, one for each network of a stack."""
    # `before` has the axes of the stack alone; those of groups and rays are reduced
    return torch.maximum(before, gaps.reshape(*before.shape, -1).amax(dim=-1).to(before))


def require_positive_losses(
    losses: Tensor,
    names: Sequence[str],
    why: str,
    way_out: str = "add a constant to it, or use another method, such as `linear`",
    *,
    zero: bool = True,
) -> None:
    """Raise for a loss below 0, or for one of 0 unless `zero` allows it."""
    for name, loss in zip(names, losses.tolist(), strict=True):
        if not (loss >= 0 if zero else loss > 0):  # "not", so that NaN raises too
            raise ConfigurationError(
                f"{why}, found {loss:g} for `{name}` on the first batch: {way_out}"
            )


@dataclass(frozen=True, kw_only=True)
class DirichletRays(Method):
    """A method that draws its rays from a Dirichlet distribution, for one network.

    Args:
        alpha: the Dirichlet parameter, one number or one per objective.
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
        check_alpha(self.alpha)  # now, not when the first ray is drawn, after data are loaded

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        if self.stratified:
            return self.sample_steps(objectives, 1, count, generator)
        return sample_rays(count, objectives, alpha=self.alpha, generator=generator)

    def sample_steps(
        self, objectives: int, steps: int, rays_per_batch: int, generator: torch.Generator
    ) -> Tensor:
        if not self.stratified:
            return super().sample_steps(objectives, steps, rays_per_batch, generator)
        return stratified_rays(
            steps, rays_per_batch, objectives, alpha=self.alpha, generator=generator
        )


@dataclass(frozen=True, kw_only=True)
class FixedRays(Method):
    """A method that trains a separate network for each of a few rays.

    A subclass returns the rays in `fixed_rays` and weights the losses in `weights`. The front has
    one point per network.

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
        """Return the rays ``[K, J]``, one per network."""

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        raise ConfigurationError(
            f"`{type(self).__name__}` does not draw rays: it trains one network for each of its "
            "`fixed_rays`"
        )
