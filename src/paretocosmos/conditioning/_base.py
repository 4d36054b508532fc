"""The contract of a conditioning."""

import copy
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs

__all__ = ["Conditioning", "heads_of", "inside"]


def heads_of(network: nn.Module) -> tuple[str, ...]:
    """The modules that serve single objectives, by dotted name, where a network says so.

    It says so in its attribute `heads`: names, or the module itself. Another thing of that name,
    such as a number of attention heads, says nothing.
    """
    heads = getattr(network, "heads", ())
    if isinstance(heads, nn.Module):
        return ("heads",)
    names = (heads,) if isinstance(heads, str) else heads
    known = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
    return tuple(names) if known else ()


def inside(name: str, modules: tuple[str, ...]) -> bool:
    """Whether a module or parameter is one of these modules, or belongs to one, by dotted names."""
    return any(f"{name}.".startswith(f"{module}.") for module in modules)


class Conditioning(nn.Module, ABC):
    """A network that takes a ray beside its inputs: ``forward(inputs, ray) -> outputs``.

    Args:
        backbone: the network; a copy is conditioned, the one handed over is left alone.
        objectives: entries in a ray, J.

    >>> from paretocosmos import condition
    >>> model = condition(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), objectives=2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.3, 0.7])).shape
    torch.Size([4, 1])
    """

    traceable: ClassVar[bool] = False
    """`True` promises that its code, and that of all modules inside, decides nothing in Python from
    values of tensors and keeps no Python state between steps, so that fast engines and stacks of
    seeds may run it; a subclass declares it anew."""

    closed_form: ClassVar[bool] = False
    """`True` says that training hears nothing of a ray: what it means is found afterwards, by a
    formula."""

    def __init__(self, backbone: nn.Module, objectives: int) -> None:
        super().__init__()
        self.ends: Tensor | None
        self.register_buffer("ends", None)
        self.objectives = _whole(objectives)
        if self.objectives < 1:
            raise ConfigurationError(f"`objectives` must be at least 1, found {objectives}")
        try:
            self.backbone = copy.deepcopy(backbone)
        except (RuntimeError, TypeError) as error:
            raise ConfigurationError(
                f"a network is copied before it is conditioned, which {type(backbone).__name__} "
                f"does not allow ({error}): take off it what earlier calls left there"
            ) from error

    @classmethod
    def outputs_for(
        cls, outputs: int | Mapping[str, int], settings: Mapping[str, Any]
    ) -> int | Mapping[str, int]:
        """What its backbone gives per sample, where a problem asks for these outputs: the same."""
        del settings
        return outputs

    @property
    def heads(self) -> tuple[str, ...]:
        """The modules that serve single objectives, by dotted name, where the backbone says so."""
        return tuple(f"backbone.{name}" for name in heads_of(self.backbone))

    @property
    def ray_parameters(self) -> frozenset[str]:
        """The parameters that read the ray, by dotted name: with all of them 0 it changes nothing.

        The others are the backbone's own. By default, all that the conditioning has beside it; one
        that puts parameters into the backbone names those too.
        """
        every = (name for name, _ in self.named_parameters())
        return frozenset(name for name in every if not inside(name, ("backbone",)))

    @abstractmethod
    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        """Inputs ``[B, ...]`` and rays ``[J]``, ``[G, J]`` or ``[B, J]`` to outputs ``[B, ...]``.

        With G rays the batch is G groups of B/G neighbouring samples, one ray each.
        """

    @abstractmethod
    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        """Inputs ``[B, ...]`` under every one of N rays ``[N, J]``: outputs ``[N, B, ...]``.

        What does not depend on the ray is computed once.
        """

    def call(self, inputs: Inputs) -> Outputs:
        """The backbone on its inputs; a mapping is passed on as keywords."""
        given = inputs if isinstance(inputs, Mapping) else None
        outputs: Outputs = self.backbone(inputs) if given is None else self.backbone(**given)
        return outputs

    def rays_for(self, ray: Tensor) -> Tensor:
        """Check a ray's last axis and bring it to ``[G, J]``, between the useful ends."""
        shape = _shape(ray)
        if len(shape) not in (1, 2) or shape[-1] != self.objectives:
            raise ConfigurationError(
                f"a ray here has shape [{self.objectives}], or [G, {self.objectives}] with one ray "
                f"per group of samples; found {tuple(shape)}"
            )
        rays = ray.unsqueeze(0) if ray.ndim == 1 else ray
        return rays if self.ends is None else rays @ self.ends.to(rays)

    def calibrate(self, ends: Tensor) -> None:
        """From now on the rays asked for lie between these, ``[J, J]``, one for each objective."""
        self.ends = ends.to(next(self.parameters()).device)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Tensor], prefix: str, *args: Any
    ) -> None:
        if f"{prefix}ends" in state_dict and self.ends is None:  # trained, and calibrated since
            self.calibrate(torch.empty(self.objectives, self.objectives))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _whole(objectives: object) -> int:
    try:
        return operator.index(objectives)  # type: ignore[arg-type]
    except TypeError as error:
        raise ConfigurationError(
            f"`objectives` must be a whole number, found {objectives!r}"
        ) from error


def _shape(ray: object) -> torch.Size:
    if not isinstance(ray, Tensor):
        raise ConfigurationError(
            f"a ray is a tensor, found {type(ray).__name__}: write torch.tensor(...) around it"
        )
    return ray.shape
