"""The paper's conditioning for images: the ray becomes maps beside the image's channels."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.concat import FirstLayerConditioning, Split
from paretocosmos.nn.conditioning.sample_layout import (
    SampleAxis,
    add_terms,
    check_group_count,
    move_samples_back,
    move_samples_first,
)
from paretocosmos.nn.kernels import map_term, ray_maps


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
        maps, batching, _ = self.current()
        if batching == "groups":
            check_group_count(inputs.shape[0], maps.shape[0])
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

    >>> import torch
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


class RayMaps(nn.Module):
    """Rays ``[G, J]`` to maps ``[G, J, 10, 10]`` (section 5.3, the strides from its code)."""

    def __init__(self, objectives: int) -> None:
        super().__init__()
        self.first = nn.ConvTranspose2d(objectives, objectives, 4, bias=False)
        self.second = nn.ConvTranspose2d(objectives, objectives, 6, stride=2, padding=1, bias=False)

    def forward(self, rays: Tensor) -> Tensor:
        return ray_maps(rays, self.first.weight, self.second.weight)
