"""The paper's conditioning for images: the ray becomes maps beside the image's channels."""

from typing import Any

from torch import Tensor, nn

from paretocosmos.conditioning._first_layer import FirstLayerConditioning
from paretocosmos.conditioning._split import SplitConv
from paretocosmos.layers.kernels import ray_maps

__all__ = ["TransposedConv"]


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
