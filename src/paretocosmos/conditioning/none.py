"""No conditioning: the same network for every ray."""

from torch import Tensor

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.types import Inputs, Outputs, map_tensors

__all__ = ["Unconditioned"]


class Unconditioned(Conditioning):
    """The network as it is, which ignores the ray: one point instead of a front, a baseline.

    >>> import torch
    >>> model = Unconditioned(torch.nn.Linear(3, 1), 2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        self.rays_for(ray)
        return self.call(inputs)

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        count = len(self.rays_for(rays))
        outputs: Outputs = map_tensors(lambda out: out.expand(count, *out.shape), self.call(inputs))
        return outputs
