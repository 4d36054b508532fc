"""Gradients of several losses that reach all parameters through a hypernetwork's last layer."""

from collections.abc import Mapping
from typing import TypeGuard

import torch
from torch import Tensor, nn

from paretocosmos.conditioning import Emission
from paretocosmos.conditioning.hypernet import Hypernet
from paretocosmos.training.engine.gradients import inner_products
from paretocosmos.types import Inputs, Outputs

__all__ = ["EmittedLosses", "Telling", "emits"]

LAYER = "emit"


def emits(model: nn.Module, apart: tuple[str, ...]) -> TypeGuard[Hypernet]:
    """Whether every gradient goes through one linear layer, which reads one vector per ray."""
    return isinstance(model, Hypernet) and model.chunks is None and not apart


class Telling(nn.Module):
    """A hypernetwork whose outputs come with what its last layer reads and gives."""

    def __init__(self, model: Hypernet) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Inputs, ray: Tensor) -> tuple[Outputs, Emission]:
        emission = self.model.emission(self.model.rays_for(ray))
        return self.model.emitted_to(inputs, emission), emission


class EmittedLosses:
    r"""What `LossGradients` gives, at little more than the cost of one gradient.

    The last layer emits w = W h + b, which has nearly all parameters. A loss's gradient there is
    an outer product, so that inner products need no gradient of W at all:

    .. math:: \langle g_i h^\top, g_j h^\top \rangle = (g_i^\top g_j)(h^\top h), \qquad
        g_j = \partial L_j / \partial w

    Each loss has a backward pass through the emitted network alone; the layers before the last are
    small. The weighted sum of the g_j then takes one pass through the hypernetwork.

    Args:
        losses: ``[..., G, J]`` with their graph.
        leaves: the parameters by name; with several seeds, stacked along the first axis.
        emission: of the same forward pass, with its graph, ``[..., G, width]`` and ``[..., G, P]``.
    """

    def __init__(self, losses: Tensor, leaves: Mapping[str, Tensor], emission: Emission) -> None:
        self._losses, self._leaves, self._emission = losses, leaves, emission
        self._rows: Tensor | None = None

    def gram(self) -> Tensor:
        """Inner products ``[..., G, J, J]`` of the gradients of the losses of a group."""
        features, emitted = self._emission
        # a ray's losses depend on its own weights alone, so that groups need no pass each
        rows = [
            torch.autograd.grad(one.sum(), emitted, retain_graph=True)[0]
            for one in self._losses.unbind(-1)
        ]
        self._rows = torch.stack(rows, dim=-2)
        read = features.detach().square().sum(dim=-1)[..., None, None]
        return inner_products(self._rows) * (1 + read) + inner_products(self._before(self._rows))

    def weighted(self, weights: Tensor) -> dict[str, Tensor]:
        """Σ weights ∇losses by name, for weights ``[..., G, J]``."""
        start, pulled = self._losses, weights
        if self._rows is not None:
            start = self._emission.emitted
            pulled = (weights.unsqueeze(-1) * self._rows).sum(dim=-2)
        parts = torch.autograd.grad(start, list(self._leaves.values()), pulled)
        return dict(zip(self._leaves, parts, strict=True))

    def _before(self, rows: Tensor) -> Tensor:
        """Gradients ``[..., G, J, T]`` of the parameters before the last layer."""
        features = self._emission.features
        own = [leaf for name, leaf in self._leaves.items() if not name.startswith(f"{LAYER}.")]
        layer = self._leaves[f"{LAYER}.weight"].detach()
        reached = rows @ (layer if layer.ndim == 2 else layer.unsqueeze(-3))
        axes = features.ndim - 2  # of seeds
        groups = []
        for group in range(rows.shape[-3]):
            each = []
            for pulled in reached.unbind(-2):
                alone = torch.zeros_like(features)
                alone[..., group, :] = pulled[..., group, :]
                parts = torch.autograd.grad(features, own, alone, retain_graph=True)
                each.append(torch.cat([part.flatten(axes) for part in parts], dim=-1))
            groups.append(torch.stack(each, dim=-2))
        return torch.stack(groups, dim=-3)
