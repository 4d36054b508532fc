"""A conditioned network at one preference, as an ordinary module."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.conditioning._merge import merged
from paretocosmos.conditioning._per_ray import PerRayEnsemble
from paretocosmos.conditioning.token import Token
from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.rays import as_rays

__all__ = ["AtRay", "at_ray"]

# Methods that write the network down, which only an ordinary one of its class can do.
WRITING = ("save_pretrained", "push_to_hub")


class AtRay(nn.Module):
    """A conditioned network with its ray fixed: called as the network was before.

    What else the network has is there too: attributes as they are, methods such as `generate` with
    the ray set while they run. `save_pretrained` writes the merged network, which is an ordinary
    one of its class; it is refused where merging is not exact.

    Args:
        model: the conditioned network; its weights are shared, not copied.
        ray: ``[J]``.
    """

    ray: Tensor

    def __init__(self, model: Conditioning, ray: Tensor) -> None:
        super().__init__()
        self.conditioned = model
        self.register_buffer("ray", ray)
        self._names = _argument_names(model.backbone)
        self.train(model.training)

    def forward(self, *args: Any, **named: Any) -> Any:
        """What the network gives at the ray, for the arguments that the network takes."""
        inputs: Any = args[0] if len(args) == 1 and not named else None
        if inputs is None:
            if len(args) > len(self._names):
                raise ConfigurationError(
                    "a network at a ray takes one positional argument, or as many as its `forward` "
                    f"has, here {len(self._names)}; found {len(args)}: pass them by name"
                )
            inputs = dict(zip(self._names, args, strict=False)) | named
        if self.conditioned.has_cache and (self._names or isinstance(inputs, Mapping)):
            given = inputs if isinstance(inputs, Mapping) else {self._names[0]: inputs}
            inputs = {"use_cache": None, **given}  # as the network's own configuration has it
        return self.conditioned(inputs, self.ray)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__"):
                raise
        model: Any = super().__getattr__("conditioned")
        found = getattr(model.backbone, name)
        if not inspect.ismethod(found):
            return found
        if name in WRITING:
            return getattr(merged(model, self.ray), name)

        def at_the_ray(*args: Any, **named: Any) -> Any:
            return _asked(model, name, self.ray, args, named)

        return at_the_ray

    def extra_repr(self) -> str:
        return f"ray={[round(weight, 4) for weight in self.ray.tolist()]}"


def at_ray(model: Conditioning, ray: Tensor | Sequence[float], *, merge: bool) -> nn.Module:
    """The network at one ray; with `merge` a network of its own class."""
    (one, *more) = as_rays(ray, model.objectives)
    if more:
        raise ConfigurationError(
            f"`at` takes one ray, found {1 + len(more)}: call the model with all of them, "
            "`model(inputs, rays)`"
        )
    if isinstance(ray, Tensor):  # in the precision it has
        one = ray.detach().reshape(-1)
    if isinstance(model, PerRayEnsemble):
        network, its_ray = model.nearest(one)
        if isinstance(network, Conditioning):
            return at_ray(network, its_ray, merge=merge)
    like = next((p for p in model.parameters() if p.is_floating_point()), one)
    placed = one.to(like.device, like.dtype)
    return merged(model, placed) if merge else AtRay(model, placed)


def _asked(
    model: Conditioning, name: str, ray: Tensor, args: Sequence[Any], named: Mapping[str, Any]
) -> Any:
    """What a method of the network gives at a ray."""
    if isinstance(model, Token):
        return model.asked(name, ray, args, named)
    return model.hearing(ray, lambda network: getattr(network, name)(*args, **named))


def _argument_names(network: nn.Module) -> tuple[str, ...]:
    """What the network's `forward` calls the arguments that may be given by position."""
    try:
        every = inspect.signature(network.forward).parameters.values()
    except (TypeError, ValueError):  # compiled from another language
        return ()
    ways = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(one.name for one in every if one.kind in ways)
