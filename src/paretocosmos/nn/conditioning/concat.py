"""The paper's conditioning for tables: the ray is concatenated to the input.

Sizes are read as ``x.shape[0]``: ``len(x)`` is a plain number, which an exported model would keep.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.injection import ConditionedLayer, InjectedConditioning
from paretocosmos.nn.conditioning.layer_search import check_is_called, find_opaque_parent
from paretocosmos.nn.conditioning.sample_layout import (
    FIRST,
    add_terms,
    move_samples_back,
    move_samples_first,
    stack_outputs,
    unflatten_rays,
)
from paretocosmos.runtime.torch_private import has_hooks
from paretocosmos.types import Inputs, Outputs

Layer = TypeVar("Layer", bound=nn.Linear | nn.Conv2d)


class Split(ConditionedLayer, ABC, Generic[Layer]):
    """A layer that also reads what is injected: ``layer(x) + ray(r)``.

    Only the weights that read the rays are new; the given layer stays as it is, unless it is
    `joined`.

    Args:
        layer: what reads the samples.
        ray: what reads the rays.
        zero: start with new weights of zero, so that it gives what the layer alone gives; else they
            are drawn as a layer of the joined width draws them.
        joined: scale the layer's weights down to what a layer of the joined width draws, too.
    """

    layer: Layer

    def __init__(self, layer: Layer, ray: Layer, *, zero: bool, joined: bool) -> None:
        super().__init__(layer)
        self.ray = ray
        ray.to(layer.weight.device, layer.weight.dtype)
        fan_in, added = layer.weight[0].numel(), ray.weight[0].numel()
        if zero:
            nn.init.zeros_(ray.weight)
        else:  # the bound of torch's own layers, kaiming_uniform_ with a = sqrt(5)
            bound = 1 / math.sqrt(fan_in + added)
            nn.init.uniform_(ray.weight, -bound, bound)
        if joined:
            with torch.no_grad():  # from the bound of `fan_in` inputs to that of all of them
                for weight in layer.parameters():
                    weight.mul_(math.sqrt(fan_in / (fan_in + added)))

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """``[B, ...]`` to ``[B, ...]``, or to ``[N * B, ...]`` for every sample under every ray."""


class SplitLinear(Split[nn.Linear]):
    """A linear layer that also reads the rays ``[G, J]``."""

    def __init__(
        self, layer: nn.Linear, objectives: int, *, zero: bool = False, joined: bool = False
    ) -> None:
        ray = nn.Linear(objectives, layer.out_features, bias=False)
        super().__init__(layer, ray, zero=zero, joined=joined)

    def forward(self, inputs: Tensor) -> Tensor:
        rays, batching, axis = self.current()
        several = rays.shape[0] > 1
        if batching == "groups" and not several and _is_plain_linear(self.layer):
            # one ray for the whole batch is a bias
            shift = torch.addmv(self.layer.bias, self.ray.weight, rays[0])
            return F.linear(inputs, self.layer.weight, shift)
        axis = axis if several else FIRST  # one term broadcasts, wherever the samples are
        features = move_samples_first(self.layer(inputs), axis)
        return move_samples_back(add_terms(features, self.ray(rays), batching), axis)


def _is_plain_linear(layer: nn.Linear) -> bool:
    """Return True if calling a layer does no more than its weight and its bias say."""
    return type(layer) is nn.Linear and layer.bias is not None and not has_hooks(layer)


class FirstLayerConditioning(InjectedConditioning, Generic[Layer]):
    """Splits the layer that the input enters: ``layer(x)`` per sample, ``ray(r)`` once per ray.

    Concatenating a ray to every sample of a batch and multiplying equals ``W_x x + W_r r``. The
    second term is the same for all samples of a ray, so it is computed once per ray and added.

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
    """The conditioning's name, for messages."""

    _kind: type[Layer]
    """The class of layers that it can split."""

    _kind_name: str
    """The name of such a layer, for messages."""

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
        self.where = self._find_first_layer() if layer is None else layer
        # a place that the caller chose is tried out at the first call: it may have no effect
        self._named = () if layer is None else (layer,)
        try:
            entered = self.backbone.get_submodule(self.where)
        except AttributeError as error:
            raise ConfigurationError(
                f"the network has no layer `{self.where}`; {self._describe_candidates()}"
            ) from error
        if not isinstance(entered, self._kind):
            raise ConfigurationError(
                f"`{self._name}` needs a {self._kind_name}, found {type(entered).__name__} at "
                f"`{self.where}`; {self._describe_candidates()}; name one with `layer`, or use "
                "another conditioning"
            )
        check_is_called(self.backbone, self.where)
        self._insert(self._split(entered, zero=zero, joined=joined))

    @property
    def places(self) -> tuple[str, ...]:
        return (self.where,)

    @abstractmethod
    def _split(self, layer: Layer, *, zero: bool, joined: bool) -> Split[Layer]:
        """Return what takes the layer's place."""

    def _encode(self, rays: Tensor) -> Tensor:
        """Compute what the split layer reads of rays ``[G, J]``; by default the rays themselves."""
        return rays

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        rays = self.rays_for(rays)
        layout = self._layout(inputs, self._terms(rays))
        if layout is not None and layout.samples_first and layout.blocks == (FIRST,):
            try:
                # the layer repeats each sample once per ray; what comes after sees N * B samples
                outputs = self._call_with(inputs, self._terms(rays), "each")
                return unflatten_rays(outputs, len(rays))
            except (RuntimeError, ValueError):
                pass  # samples bypassed the layer (a skip connection), or were counted before it
        return stack_outputs(self._call_with(inputs, self._terms(ray)) for ray in rays.unsqueeze(1))

    def _terms(self, rays: Tensor) -> list[Tensor]:
        split: Any = self.backbone.get_submodule(self.where)
        return [self._encode(rays.to(split.ray.weight.dtype))]

    def _find_first_layer(self) -> str:
        named = getattr(self.backbone, "first_layer", None)
        if isinstance(named, str):  # a `Backbone` says so itself
            return named
        candidates = self._find_layers()
        if not candidates:
            raise ConfigurationError(
                f"`{self._name}` found no {self._kind_name} in {type(self.backbone).__name__}; "
                "name the layer the input enters with `layer`, or use another conditioning"
            )
        return candidates[0]

    def _find_layers(self) -> list[str]:
        modules = self.backbone.named_modules()
        names = [name for name, module in modules if isinstance(module, self._kind)]
        # a module that reads a layer's weights instead of calling it would skip the ray
        return [name for name in names if find_opaque_parent(self.backbone, name) is None]

    def _describe_candidates(self) -> str:
        return f"its {self._kind_name}s: {', '.join(self._find_layers()) or 'none'}"

    def extra_repr(self) -> str:
        return f"objectives={self.objectives}, layer={self.where!r}"


class Concat(FirstLayerConditioning[nn.Linear]):
    """The ray concatenated to the features, as in the paper (section 4): W_x x + W_r r.

    Args:
        backbone: any network whose input enters a linear layer; it is copied.
        objectives: entries in a ray, J.
        layer: the dotted name of that linear layer; found by itself if `None`.
        zero: start with zeros where the layer reads the ray: with the network as it was.
        joined: scale a freshly drawn layer as if it had been drawn with the ray among its inputs.

    >>> import torch
    >>> model = Concat(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), 2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    _name = "concat"
    _kind = nn.Linear
    _kind_name = "linear layer"

    def _split(self, layer: nn.Linear, *, zero: bool, joined: bool) -> SplitLinear:
        return SplitLinear(layer, self.objectives, zero=zero, joined=joined)
