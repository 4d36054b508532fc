"""The paper's conditionings: the ray concatenated to a table's columns or an image's channels.

Sizes are read as ``x.shape[0]``: ``len(x)`` is a plain number, which an exported model would keep.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.injection import ConditionedLayer, InjectedConditioning
from paretocosmos.nn.conditioning.layer_search import check_is_called, find_opaque_parent
from paretocosmos.nn.conditioning.sample_layout import (
    FIRST,
    SampleAxis,
    add_terms,
    move_samples_back,
    move_samples_first,
    stack_outputs,
    unflatten_rays,
)
from paretocosmos.nn.kernels import map_term, ray_maps
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
        several, layer = rays.shape[0] > 1, self.layer
        # calling it does no more than its weight and its bias say
        plain = type(layer) is nn.Linear and layer.bias is not None and not has_hooks(layer)
        if batching == "groups" and not several and plain:
            # one ray for the whole batch is a bias
            shift = torch.addmv(layer.bias, self.ray.weight, rays[0])
            return F.linear(inputs, layer.weight, shift)
        axis = axis if several else FIRST  # one term broadcasts, wherever the samples are
        features = move_samples_first(layer(inputs), axis)
        return move_samples_back(add_terms(features, self.ray(rays), batching), axis)


class SplitConv(Split[nn.Conv2d]):
    """A convolution that also reads maps ``[G, J, h, w]``, enlarged to the image."""

    def __init__(
        self, layer: nn.Conv2d, objectives: int, *, zero: bool = False, joined: bool = False
    ) -> None:
        if layer.groups != 1:
            raise ConfigurationError(
                "`groups` of a convolution that reads a ray must be 1, so that every filter sees "
                f"the ray, found {layer.groups}: name another convolution with `layer`"
            )
        ray = nn.Conv2d(
            objectives,
            layer.out_channels,
            layer.kernel_size,  # type: ignore[arg-type]  # torch declares tuples of any length
            stride=layer.stride,  # type: ignore[arg-type]
            padding=layer.padding,  # type: ignore[arg-type]
            dilation=layer.dilation,  # type: ignore[arg-type]
            padding_mode=layer.padding_mode,
            bias=False,
        )
        super().__init__(layer, ray, zero=zero, joined=joined)
        self._simple = (ray.stride, ray.padding, ray.dilation) == ((1, 1), (0, 0), (1, 1))

    def forward(self, inputs: Tensor) -> Tensor:
        _, batching, axis = self.current()
        features = move_samples_first(self.layer(inputs), axis)
        return move_samples_back(add_terms(features, self.compute_term(inputs), batching), axis)

    def supports(self, axis: SampleAxis) -> bool:
        return axis.axis == 0

    def compute_term(self, inputs: Tensor) -> Tensor:
        """Return what the rays add to the layer's output: ``[G, O, H', W']``, without its bias."""
        maps = self.current().term
        size = (inputs.shape[-2], inputs.shape[-1])
        if self._simple:
            return map_term(maps, self.ray.weight, size)
        term: Tensor = self.ray(F.interpolate(maps, size=size, mode="nearest"))
        return term

    def fuse_conv_pool(self, inputs: Tensor, kernel: Callable[..., Tensor]) -> Tensor:
        """Compute the pooled, rectified outputs by a kernel, as `ConvPool` asks for."""
        fused = partial(kernel, inputs, self.layer.weight, self.layer.bias)
        term = self.compute_term(inputs)
        if self.current().batching == "groups":
            outputs: Tensor = fused(term)
            return outputs
        # every sample once per ray: convolving again costs less than moving what a shared
        # convolution would leave in memory, four times the size of what the pool leaves of it
        outputs = torch.vmap(fused)(term.unsqueeze(1))
        return outputs.flatten(0, 1)


class RayMaps(nn.Module):
    """Rays ``[G, J]`` to maps ``[G, J, 10, 10]`` (section 5.3, the strides from its code)."""

    def __init__(self, objectives: int) -> None:
        super().__init__()
        self.first = nn.ConvTranspose2d(objectives, objectives, 4, bias=False)
        self.second = nn.ConvTranspose2d(objectives, objectives, 6, stride=2, padding=1, bias=False)

    def forward(self, rays: Tensor) -> Tensor:
        return ray_maps(rays, self.first.weight, self.second.weight)


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
        self.places = (self.where,)

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

    >>> model = Concat(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), 2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    _name = "concat"
    _kind = nn.Linear
    _kind_name = "linear layer"

    def _split(self, layer: nn.Linear, *, zero: bool, joined: bool) -> SplitLinear:
        return SplitLinear(layer, self.objectives, zero=zero, joined=joined)


class TransposedConv(FirstLayerConditioning[nn.Conv2d]):
    """J maps computed from the ray as further channels of the image, as in the paper (section 5.3).

    conv([x, maps(r)]) is computed as conv(x, W_x) + conv(maps(r), W_r), the second term once per
    ray. maps(r): two transposed convolutions with ReLU, J x 10 x 10, then the nearest pixel.

    Args:
        backbone: any network whose input enters a convolution; it is copied.
        objectives: entries in a ray, J.
        layer: the dotted name of that convolution; found by itself if `None`.
        zero: start with zeros where the layer reads the ray: with the network as it was.
        joined: scale a freshly drawn layer as if it had been drawn with the maps among its inputs.

    >>> model = TransposedConv(nn.Sequential(nn.Conv2d(1, 8, 5), nn.Flatten()), 2)
    >>> model(torch.zeros(4, 1, 12, 12), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 512])
    """

    _name = "transposed_conv"
    _kind = nn.Conv2d
    _kind_name = "2d convolution"

    def __init__(
        self,
        backbone: nn.Module,
        objectives: int,
        *,
        layer: str | None = None,
        zero: bool = False,
        joined: bool = False,
    ) -> None:
        super().__init__(backbone, objectives, layer=layer, zero=zero, joined=joined)
        self.maps = RayMaps(objectives)
        split: Any = self.backbone.get_submodule(self.where)
        self.maps.to(split.ray.weight.device, split.ray.weight.dtype)

    def _split(self, layer: nn.Conv2d, *, zero: bool, joined: bool) -> SplitConv:
        return SplitConv(layer, self.objectives, zero=zero, joined=joined)

    def _encode(self, rays: Tensor) -> Tensor:
        maps: Tensor = self.maps(rays)
        return maps
