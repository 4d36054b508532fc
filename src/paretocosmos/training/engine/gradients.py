"""Gradients of several losses: their weighted sum and, on demand, their inner products."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import Hypernet, HypernetOutput, find_heads, is_inside
from paretocosmos.types import Inputs, Outputs

# The attribute of a `Hypernet` whose layer emits the weights.
LAST_LAYER = "emit"


def find_head_modules(model: nn.Module, method: Method) -> tuple[str, ...]:
    """Return the modules, by dotted name, that a method's Gram matrix leaves out: the heads."""
    return find_heads(model) if method.over == "shared" else ()


class LossGradients:
    """The gradients of losses ``[..., G, J]`` of one forward pass.

    A weighted sum needs one backward pass and no loss's own gradient. Once the Gram matrix was
    asked for, each loss has had its backward pass, and the sum is made of their gradients.

    Args:
        losses: with their graph.
        leaves: the parameters by name; with several seeds, stacked along the first axis.
        heads: modules left out of the Gram matrix, by dotted name.
        sum_up: sums gradients over processes.
        stacked: whether there are several seeds.
    """

    def __init__(
        self,
        losses: Tensor,
        leaves: Mapping[str, Tensor],
        heads: tuple[str, ...],
        sum_up: Callable[[Sequence[Tensor]], list[Tensor]] = list,
        *,
        stacked: bool,
    ) -> None:
        self._losses, self._leaves, self._heads = losses, leaves, heads
        self._sum_up, self._axes = sum_up, int(stacked)
        self._rows: Tensor | None = None
        self._row_names: list[str] = []

    def gram(self) -> Tensor:
        """Compute the inner products ``[..., G, J, J]`` of the gradients of a group's losses."""
        rows = self._compute_rows()
        # rows begin with the shared parameters, so that a slice leaves the heads out
        shared = [name for name in self._leaves if not is_inside(name, self._heads)]
        width = sum(math.prod(self._leaves[name].shape[self._axes :]) for name in shared)
        return compute_inner_products(rows[..., :width])

    def weighted(self, weights: Tensor) -> dict[str, Tensor]:
        """Compute Σ weights ∇losses by name, for weights ``[..., G, J]``."""
        if self._rows is None:
            leaves = list(self._leaves.values())
            # `materialize_grads`: zeros for heads of other tasks, which a loss does not reach
            grads = torch.autograd.grad(self._losses, leaves, weights, materialize_grads=True)
            return dict(zip(self._leaves, self._sum_up(grads), strict=True))
        total = (weights.unsqueeze(-1) * self._rows).flatten(self._axes, -2).sum(dim=self._axes)
        # rays and losses are summed; what is left, ``[..., P]``, is cut into parameters again
        leaves = [self._leaves[name] for name in self._row_names]
        pieces = total.split([math.prod(leaf.shape[self._axes :]) for leaf in leaves], dim=-1)
        shaped = (piece.reshape(leaf.shape) for piece, leaf in zip(pieces, leaves, strict=True))
        return dict(zip(self._row_names, shaped, strict=True))

    def _compute_rows(self) -> Tensor:
        """Compute the gradients as rows ``[..., G, J, P]``: a backward pass for each loss, once."""
        if self._rows is not None:
            return self._rows
        # the shared parameters first, so that those of the Gram matrix lie side by side
        self._row_names = sorted(self._leaves, key=lambda name: is_inside(name, self._heads))
        leaves, flat = [self._leaves[name] for name in self._row_names], []
        for loss in self._losses.flatten(self._axes).unbind(-1):
            # the sum over seeds: no seed's loss depends on another's parameters
            grads = torch.autograd.grad(
                loss.sum(), leaves, retain_graph=True, materialize_grads=True
            )
            flat += [grad.reshape(*grad.shape[: self._axes], -1) for grad in grads]
        shape = (*self._losses.shape[-2:], -1)
        # one message for all rows: each costs a round trip between processes
        (rows,) = self._sum_up([torch.cat(flat, dim=-1)])
        self._rows = torch.unflatten(rows, -1, shape)
        return self._rows


def compute_inner_products(rows: Tensor) -> Tensor:
    """Compute all inner products ``[..., J, J]`` of rows ``[..., J, P]``."""
    count = rows.shape[-2]
    # not a matrix product, which a GPU may round to tf32: differences of these numbers decide
    products = [(rows[..., i:, :] * rows[..., i : i + 1, :]).sum(dim=-1) for i in range(count)]
    # only j >= i was computed, since the matrix is symmetric
    both = [products[min(i, j)][..., abs(i - j)] for i in range(count) for j in range(count)]
    return torch.unflatten(torch.stack(both, dim=-1), -1, (count, count))


class HypernetWithFeatures(nn.Module):
    """A hypernetwork whose outputs come with what its last layer reads and gives."""

    def __init__(self, model: Hypernet) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Inputs, ray: Tensor) -> tuple[Outputs, HypernetOutput]:
        emission = self.model.generate(self.model.rays_for(ray))
        return self.model.call_generated(inputs, emission), emission


class HypernetGradients:
    r"""Compute what `LossGradients` computes, at little more than the cost of one gradient.

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
        """Compute the inner products ``[..., G, J, J]`` of the gradients of a group's losses."""
        features, emitted = self._emission
        # a ray's losses depend on its own weights alone, so that rays need no pass each
        rows = [
            torch.autograd.grad(loss.sum(), emitted, retain_graph=True)[0]
            for loss in self._losses.unbind(-1)
        ]
        self._rows = torch.stack(rows, dim=-2)
        squared = features.detach().square().sum(dim=-1)[..., None, None]
        # the 1 is of the bias b, the second term of the layers before the last
        return compute_inner_products(self._rows) * (1 + squared) + compute_inner_products(
            self._compute_earlier_rows(self._rows)
        )

    def weighted(self, weights: Tensor) -> dict[str, Tensor]:
        """Compute Σ weights ∇losses by name, for weights ``[..., G, J]``."""
        start, upstream = self._losses, weights
        if self._rows is not None:
            start = self._emission.emitted
            # by linearity: the sum of the g_j, each by its weight, has one backward pass
            upstream = (weights.unsqueeze(-1) * self._rows).sum(dim=-2)
        grads = torch.autograd.grad(start, list(self._leaves.values()), upstream)
        return dict(zip(self._leaves, grads, strict=True))

    def _compute_earlier_rows(self, rows: Tensor) -> Tensor:
        """Compute gradients ``[..., G, J, T]`` of the parameters before the last layer."""
        features = self._emission.features
        earlier = [
            leaf for name, leaf in self._leaves.items() if not name.startswith(f"{LAST_LAYER}.")
        ]
        layer = self._leaves[f"{LAST_LAYER}.weight"].detach()
        # dL/dh = g W; a stack of seeds has an axis before, and W needs one for the rays
        upstream = rows @ (layer if layer.ndim == 2 else layer.unsqueeze(-3))
        axes = features.ndim - 2  # of seeds
        by_ray = []
        for group in range(rows.shape[-3]):
            columns = []
            for of_loss in upstream.unbind(-2):
                # one ray at a time: autograd would sum the gradients of all rays
                masked = torch.zeros_like(features)
                masked[..., group, :] = of_loss[..., group, :]
                grads = torch.autograd.grad(features, earlier, masked, retain_graph=True)
                columns.append(torch.cat([grad.flatten(axes) for grad in grads], dim=-1))
            by_ray.append(torch.stack(columns, dim=-2))
        return torch.stack(by_ray, dim=-3)
