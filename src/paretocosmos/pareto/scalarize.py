"""Scalarizations: rays and losses to one number, for any training loop."""

import math
from typing import Literal

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError

Alignment = Literal["ray", "inverse"]


def linear_loss(losses: Tensor, ray: Tensor) -> Tensor:
    """Compute the weighted sum r·L over the last axis.

    >>> linear_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.5]))
    tensor(1.5000)
    """
    return (losses * ray).sum(dim=-1)


def apply_floor(ray: Tensor, floor: float) -> Tensor:
    """Move a ray towards the centre until no entry is below a floor: f + (1 - J f) r.

    >>> apply_floor(torch.tensor([1.0, 0.0]), 0.25)
    tensor([0.7500, 0.2500])
    """
    objectives = ray.shape[-1]
    if not 0 <= floor <= 1 / objectives:
        raise ConfigurationError(
            f"`floor` must be at least 0 and at most 1/J, here {1 / objectives:.3g}, found "
            f"{floor}: try 0.01"
        )
    return ray if floor == 0 else floor + (1 - objectives * floor) * ray


def tchebycheff_loss(losses: Tensor, ray: Tensor, *, smoothing: float = 0.0) -> Tensor:
    r"""Compute the weighted Tchebycheff scalarization, the largest r_j L_j, or a smooth one.

    .. math:: \max_j r_j L_j, \qquad \mu \log \sum_j \exp(r_j L_j / \mu)

    Args:
        losses: ``[..., J]``, at least 0.
        ray: ``[..., J]``, on the simplex.
        smoothing: μ, at least 0; 0 is the largest itself.

    >>> tchebycheff_loss(torch.tensor([1.0, 4.0]), torch.tensor([0.5, 0.5]))
    tensor(2.)
    """
    losses, ray, _ = _check_inputs(losses, ray, 0.0, "ray")
    _check_smoothing(smoothing)
    if smoothing == 0:
        return (ray * losses).amax(dim=-1)
    # logsumexp, as exp(r L / mu) overflows for a small mu
    return smoothing * torch.logsumexp(ray * losses / smoothing, dim=-1)


def tchebycheff_weights(losses: Tensor, ray: Tensor, *, smoothing: float = 0.0) -> Tensor:
    r"""Compute the gradient of `tchebycheff_loss` by the losses: what each loss weighs.

    .. math:: r_j \, \mathrm{softmax}(r \circ L / \mu)_j

    Without smoothing, r_j for the largest r_j L_j, the first of equals, and 0 for the others.

    >>> tchebycheff_weights(torch.tensor([1.0, 4.0]), torch.tensor([0.5, 0.5]))
    tensor([0.0000, 0.5000])
    """
    losses, ray, _ = _check_inputs(losses, ray, 0.0, "ray")
    _check_smoothing(smoothing)
    weighed = ray * losses
    if smoothing > 0:
        return ray * (weighed / smoothing).softmax(dim=-1)
    # comparing indices, not values: of equals only the first has a weight
    index = torch.arange(weighed.shape[-1], device=weighed.device)
    return torch.where(index == weighed.argmax(dim=-1, keepdim=True), ray, 0.0)


def cosmos_loss(
    losses: Tensor, ray: Tensor, *, penalty: float, alignment: Alignment = "ray"
) -> Tensor:
    r"""Compute the COSMOS loss: a weighted sum that also rewards losses lying along the ray.

    .. math:: r^\top L - \lambda \frac{d^\top L}{\|d\| \, \|L\|}

    with d = r (``alignment="ray"``, the paper's equation 5) or d = 1/r (``"inverse"``).

    The two terms of the paper read a preference in opposite ways: r·L makes a loss small where its
    entry is large, cos(r, L) lets it be large. With a small penalty the first wins, with a large
    one the second. ``"inverse"`` keeps the first reading at every penalty: *more weight, smaller
    loss*.

    Args:
        losses: ``[..., J]``, in any floating type; the cosine is computed in float32 or better.
        ray: ``[..., J]``, on the simplex.
        penalty: the weight λ of the cosine, at least 0. The paper: 0.01 for fairness, 2 to 8 for
            image pairs.
        alignment: which direction the losses are pulled to.

    Returns:
        One value per leading index. Where all losses are zero, or so small that their squares are
        (below 5e-19 in float32), the cosine is taken as 0 with a zero gradient.

    >>> cosmos_loss(torch.tensor([1.0, 1.0]), torch.tensor([0.5, 0.5]), penalty=2.0)
    tensor(-1.)
    """
    losses, ray, direction = _check_inputs(losses, ray, penalty, alignment)
    value = linear_loss(losses, ray)
    if penalty == 0:
        return value
    squared = losses.square().sum(dim=-1)
    norms = squared * direction.square().sum(dim=-1)
    defined = squared > _get_smallest_square(losses, penalty)
    # where() twice: the gradient of the branch not taken must be finite too
    # divided by sqrt, not times rsqrt: the latter's gradient overflows float32 for losses of 1e-14
    length = torch.where(defined, norms, 1.0).sqrt()
    cosine = torch.where(defined, linear_loss(losses, direction) / length, 0.0)
    return value - penalty * cosine


def cosmos_weights(
    losses: Tensor, ray: Tensor, *, penalty: float, alignment: Alignment = "ray"
) -> Tensor:
    r"""Compute the gradient of `cosmos_loss` by the losses: their weights in the backward pass.

    .. math:: r - \frac{\lambda}{\|d\| \, \|L\|} \Big( d - \frac{d^\top L}{\|L\|^2} L \Big)

    Written out, because autograd on a vector of J numbers is some forty tiny operations, which a
    small network feels in every step.

    >>> cosmos_weights(torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5]), penalty=0.0)
    tensor([0.5000, 0.5000])
    """
    losses, ray, direction = _check_inputs(losses, ray, penalty, alignment)
    if penalty == 0:
        return ray.expand_as(losses)
    squared = (losses * losses).sum(dim=-1, keepdim=True)
    norms = squared * (direction * direction).sum(dim=-1, keepdim=True)
    along = (losses * direction).sum(dim=-1, keepdim=True) / squared
    # the part of d that is orthogonal to L
    across = (direction - losses * along) / norms.sqrt()
    # no `where` inside: nobody differentiates this, so a NaN on the other branch does no harm
    return torch.where(squared > _get_smallest_square(losses, penalty), ray - penalty * across, ray)


def _check_inputs(
    losses: Tensor, ray: Tensor, penalty: float, alignment: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return losses and ray in float32 or better, and the direction losses are pulled to."""
    if not 0 <= penalty < math.inf:
        raise ConfigurationError(f"`penalty` must be finite and at least 0, found {penalty}")
    if alignment not in ("ray", "inverse"):
        raise ConfigurationError(f"`alignment` must be `ray` or `inverse`, found `{alignment}`")
    if not isinstance(losses, Tensor) or not isinstance(ray, Tensor):
        raise ConfigurationError(
            f"`losses` and `ray` are tensors, found {type(losses).__name__} and "
            f"{type(ray).__name__}: use torch.stack for a list of losses"
        )
    if losses.shape[-1:] != ray.shape[-1:]:
        raise ConfigurationError(
            f"`losses` and `ray` need the same last axis, found {tuple(losses.shape)} and "
            f"{tuple(ray.shape)}"
        )
    losses = losses.to(torch.promote_types(losses.dtype, torch.float32))
    ray = ray.to(losses.dtype)
    # 1/r only matters up to its length; the floor keeps a zero entry finite
    direction = ray if alignment == "ray" else ray.clamp_min(1e-6).reciprocal()
    return losses, ray, direction


def _check_smoothing(smoothing: float) -> None:
    if not 0 <= smoothing < math.inf:
        raise ConfigurationError(f"`smoothing` must be finite and at least 0, found {smoothing}")


def _get_smallest_square(losses: Tensor, penalty: float) -> float:
    """Return the squared length up to which it is too inexact, or its gradient too large."""
    return 16 * torch.finfo(losses.dtype).tiny * max(1.0, penalty / 64)
