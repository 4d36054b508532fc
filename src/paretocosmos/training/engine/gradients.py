"""Gradients of several losses that reach all parameters through a hypernetwork's last layer."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

import torch
from torch import Tensor, nn

from paretocosmos.conditioning import Hypernet, HypernetOutput, heads_of, inside
from paretocosmos.methods import Method
from paretocosmos.types import Inputs, Outputs


def head_modules(model: nn.Module, method: Method) -> tuple[str, ...]:
    """The modules, by dotted name, whose gradients a method's Gram matrix leaves out: the heads."""
    return heads_of(model) if method.over == "shared" else ()


class LossGradients:
    """The gradients of losses ``[..., G, J]`` of one forward pass.

    Nobody needs every loss's own gradient for a weighted sum: that is one backward pass. Once the
    Gram matrix was asked for, each has been paid for, and the sum is made of them.

    Args:
        losses: with their graph.
        leaves: the parameters by name; with several seeds, stacked along the first axis.
        apart: modules left out of the Gram matrix, by dotted name.
        total: what several processes make of their gradients: the sums.
        stacked: whether there are several seeds.
    """

    def __init__(
        self,
        losses: Tensor,
        leaves: Mapping[str, Tensor],
        apart: tuple[str, ...],
        total: Callable[[Sequence[Tensor]], list[Tensor]] = list,
        *,
        stacked: bool,
    ) -> None:
        own = [name for name in leaves if inside(name, apart)]
        shared = [name for name in leaves if name not in own]
        # those that count come first, so that they lie side by side
        self._leaves = {name: leaves[name] for name in (*shared, *own)}
        self._losses, self._total, self._axes = losses, total, int(stacked)
        self._shared = sum(_size(leaves[name], self._axes) for name in shared)
        self._rows: Tensor | None = None

    def gram(self) -> Tensor:
        """Inner products ``[..., G, J, J]`` of the gradients of the losses of a group."""
        return inner_products(self._every()[..., : self._shared])

    def weighted(self, weights: Tensor) -> dict[str, Tensor]:
        """Σ weights ∇losses by name, for weights ``[..., G, J]``."""
        names, leaves = list(self._leaves), list(self._leaves.values())
        if self._rows is None:
            parts = torch.autograd.grad(self._losses, leaves, weights, materialize_grads=True)
            return dict(zip(names, self._total(parts), strict=True))
        total = (weights.unsqueeze(-1) * self._rows).flatten(self._axes, -2).sum(dim=self._axes)
        pieces = total.split([_size(leaf, self._axes) for leaf in leaves], dim=-1)
        shaped = (piece.reshape(leaf.shape) for piece, leaf in zip(pieces, leaves, strict=True))
        return dict(zip(names, shaped, strict=True))

    def _every(self) -> Tensor:
        """The gradients as rows ``[..., G, J, P]``: one forward, a backward pass for each, once."""
        if self._rows is not None:
            return self._rows
        leaves, flat = list(self._leaves.values()), []
        for loss in self._losses.flatten(self._axes).unbind(-1):
            # the sum over seeds: no seed's loss depends on another's parameters
            parts = torch.autograd.grad(
                loss.sum(), leaves, retain_graph=True, materialize_grads=True
            )
            flat += [self._flat(part) for part in parts]
        shape = (*self._losses.shape[-2:], -1)
        (rows,) = self._total([torch.cat(flat, dim=-1)])
        self._rows = torch.unflatten(rows, -1, shape)
        return self._rows

    def _flat(self, part: Tensor) -> Tensor:
        return part.reshape(*part.shape[: self._axes], -1)


def inner_products(rows: Tensor) -> Tensor:
    """Of rows ``[..., J, P]`` all inner products, ``[..., J, J]``."""
    count = rows.shape[-2]
    # not a matrix product, which a GPU may round to tf32: differences of these numbers decide
    products = [(rows[..., i:, :] * rows[..., i : i + 1, :]).sum(dim=-1) for i in range(count)]
    both = [products[min(i, j)][..., abs(i - j)] for i in range(count) for j in range(count)]
    return torch.unflatten(torch.stack(both, dim=-1), -1, (count, count))


def _size(leaf: Tensor, axes: int) -> int:
    return math.prod(leaf.shape[axes:])


LAYER = "emit"


def emits(model: nn.Module, apart: tuple[str, ...]) -> TypeGuard[Hypernet]:
    """Whether every gradient goes through one linear layer, which reads one vector per ray."""
    return isinstance(model, Hypernet) and model.chunks is None and not apart


class Telling(nn.Module):
    """A hypernetwork whose outputs come with what its last layer reads and gives."""

    def __init__(self, model: Hypernet) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Inputs, ray: Tensor) -> tuple[Outputs, HypernetOutput]:
        emission = self.model.generate(self.model.rays_for(ray))
        return self.model.call_generated(inputs, emission), emission


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

    def __init__(
        self, losses: Tensor, leaves: Mapping[str, Tensor], emission: HypernetOutput
    ) -> None:
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
