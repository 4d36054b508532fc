"""One ray after the other."""

import torch
from torch import Tensor

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.types import Inputs, Outputs, map_tensors

__all__ = ["ray_by_ray"]


def ray_by_ray(model: Conditioning, inputs: Inputs, rays: Tensor) -> Outputs:
    """Outputs ``[N, B, ...]`` at N rays ``[N, J]``, where samples share nothing between rays.

    A batch of all rays at once would only take more memory.
    """
    model.rays_for(rays)
    several = rays.unsqueeze(0) if rays.ndim == 1 else rays
    outputs: Outputs = map_tensors(
        lambda *outs: torch.stack(outs), *(model(inputs, ray) for ray in several)
    )
    return outputs
