"""Networks that do not read the ray: one for all rays, or one for each of several."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.base import Conditioning
from paretocosmos.nn.conditioning.sample_layout import (
    check_group_count,
    join_outputs,
    stack_outputs,
)
from paretocosmos.types import Inputs, Outputs, first, map_tensors


class PerRayEnsemble(Conditioning):
    """Networks trained for one ray each; a ray is answered by the network of the nearest one.

    Args:
        networks: K of them, ``forward(inputs, ray) -> outputs``; copied.
        rays: ``[K, J]``.

    >>> import torch
    >>> networks = [Unconditioned(nn.Linear(3, 1), 2) for _ in range(2)]
    >>> PerRayEnsemble(networks, torch.eye(2))(torch.zeros(4, 3), torch.tensor([0.3, 0.7])).shape
    torch.Size([4, 1])
    """

    rays: Tensor

    def __init__(self, networks: Sequence[nn.Module], rays: Tensor) -> None:
        if len(networks) != len(rays):
            raise ConfigurationError(
                f"there must be one network per ray, found {len(networks)} networks and "
                f"{len(rays)} rays"
            )
        super().__init__(nn.ModuleList(), rays.shape[-1])
        # one by one: copied together, a network that comes twice would stay one
        self.backbone = nn.ModuleList(copy.deepcopy(network) for network in networks)
        self.register_buffer("rays", rays.clone())

    @property
    def ray_parameters(self) -> tuple[str, ...]:
        return tuple(
            f"backbone.{index}.{name}"
            for index, network in self.backbone.named_children()
            if isinstance(network, Conditioning)
            for name in network.ray_parameters
        )

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        rays = self.rays_for(ray)
        samples = len(first(inputs))
        check_group_count(samples, len(rays))
        share = samples // len(rays)
        outputs = [
            self._call_nearest(
                map_tensors(lambda x, i=i: x[i * share : (i + 1) * share], inputs), r
            )
            for i, r in enumerate(rays)
        ]
        return join_outputs(outputs)

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        return stack_outputs(self._call_nearest(inputs, ray) for ray in self.rays_for(rays))

    def nearest(self, ray: Tensor) -> tuple[nn.Module, Tensor]:
        """Return the network that answers a ray ``[J]``, and the ray that it was trained for."""
        nearest = F.cosine_similarity(self.rays, ray.to(self.rays).unsqueeze(0)).argmax()
        network: nn.Module = self.backbone[int(nearest)]  # type: ignore[index]
        return network, self.rays[nearest]

    def _call_nearest(self, inputs: Inputs, ray: Tensor) -> Outputs:
        network, its_ray = self.nearest(ray)
        outputs: Outputs = network(inputs, its_ray)
        return outputs

    def extra_repr(self) -> str:
        return f"objectives={self.objectives}, networks={len(self.rays)}"


def list_networks(model: nn.Module) -> list[nn.Module]:
    """Return the networks of a `PerRayEnsemble`, or a list of the model alone."""
    return list(model.backbone.children()) if isinstance(model, PerRayEnsemble) else [model]


class Unconditioned(Conditioning):
    """The network as it is, which ignores the ray: one point instead of a front, a baseline.

    >>> import torch
    >>> model = Unconditioned(torch.nn.Linear(3, 1), 2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        self.rays_for(ray)  # only to refuse a wrong one
        return self.call(inputs)

    def with_ray(self, ray: Tensor, function: Callable[[nn.Module], Any]) -> Any:
        self.rays_for(ray)
        return function(self.backbone)

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        count = len(self.rays_for(rays))
        # a view: the same numbers for all rays take no more memory than for one
        expanded: Outputs = map_tensors(
            lambda out: out.expand(count, *out.shape), self.call(inputs), keep_classes=True
        )
        return expanded
