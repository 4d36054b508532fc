"""What conditionings share whose ray enters the network beside its input, in the first layer."""

from abc import abstractmethod
from typing import Any, Generic

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._batch import FIRST
from paretocosmos.conditioning._layers import check_called, uncalled
from paretocosmos.conditioning._listening import ListeningConditioning
from paretocosmos.conditioning._split import Layer, Split
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs, map_tensors

__all__ = ["FirstLayerConditioning"]


class FirstLayerConditioning(ListeningConditioning, Generic[Layer]):
    """The layer the input enters, split: ``layer(x)`` once per sample, ``ray(r)`` once per ray.

    Args:
        backbone: any network whose input enters a layer of the right kind; it is copied.
        objectives: entries in a ray, J.
        layer: the dotted name of that layer; found by itself if `None`.
        zero: start with zeros where the layer reads the ray, so that the network starts as it was;
            by default those weights are drawn, as in the paper.
        joined: scale the layer's own weights as if it had been drawn with the ray among its inputs,
            as in the paper; for a network that was just drawn.
    """

    _name: str
    """What messages call the conditioning."""

    _kind: type[Layer]
    """The layer it can split."""

    _kind_name: str
    """What messages call such a layer."""

    def __init__(
        self,
        backbone: nn.Module,
        objectives: int,
        *,
        layer: str | None = None,
        zero: bool = False,
        joined: bool = False,
    ) -> None:
        super().__init__(backbone, objectives)
        if zero and joined:
            raise ConfigurationError(
                "`zero` keeps the initial outputs and `joined` changes the first layer, found "
                "both: set one of them to false"
            )
        self.where = self._first() if layer is None else layer
        self._named = () if layer is None else (layer,)
        try:
            found = self.backbone.get_submodule(self.where)
        except AttributeError as error:
            raise ConfigurationError(
                f"the network has no layer `{self.where}`; {self._candidates()}"
            ) from error
        if not isinstance(found, self._kind):
            raise ConfigurationError(
                f"`{self._name}` needs a {self._kind_name}, found {type(found).__name__} at "
                f"`{self.where}`; {self._candidates()}; name one with `layer`, or use another "
                "conditioning"
            )
        check_called(self.backbone, self.where)
        self._put(self._split(found, zero=zero, joined=joined))

    @property
    def places(self) -> tuple[str, ...]:
        return (self.where,)

    @abstractmethod
    def _split(self, layer: Layer, *, zero: bool, joined: bool) -> Split[Layer]:
        """What takes the layer's place."""

    def _encode(self, rays: Tensor) -> Tensor:
        """Rays ``[G, J]`` to what the split layer reads of them; themselves by default."""
        return rays

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        return self._tell(inputs, self._terms(self.rays_for(ray)))

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        rays = self.rays_for(rays)
        layout = self._layout(inputs, self._terms(rays))
        swept: Outputs
        if layout is not None and layout.plain and layout.blocks == (FIRST,):
            try:
                outputs = self._tell(inputs, self._terms(rays), "sweep")
                swept = map_tensors(lambda out: torch.unflatten(out, 0, (len(rays), -1)), outputs)
                return swept
            except (RuntimeError, ValueError):
                pass  # samples went past the layer, as in a skip connection, or were counted before
        alone = [self._tell(inputs, self._terms(ray)) for ray in rays.unsqueeze(1)]
        swept = map_tensors(lambda *outs: torch.stack(outs), *alone)
        return swept

    def _terms(self, rays: Tensor) -> list[Tensor]:
        split: Any = self.backbone.get_submodule(self.where)
        return [self._encode(rays.to(split.ray.weight.dtype))]

    def _first(self) -> str:
        named = getattr(self.backbone, "first_layer", None)
        if isinstance(named, str):
            return named
        found = self._layers()
        if not found:
            raise ConfigurationError(
                f"`{self._name}` found no {self._kind_name} in {type(self.backbone).__name__}; "
                "name the layer the input enters with `layer`, or use another conditioning"
            )
        return found[0]

    def _layers(self) -> list[str]:
        modules = self.backbone.named_modules()
        names = [name for name, part in modules if isinstance(part, self._kind)]
        return [name for name in names if uncalled(self.backbone, name) is None]

    def _candidates(self) -> str:
        return f"its {self._kind_name}s: {', '.join(self._layers()) or 'none'}"

    def extra_repr(self) -> str:
        return f"objectives={self.objectives}, layer={self.where!r}"
