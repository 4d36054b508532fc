"""The weights of exact Pareto optimal search (EPO): a linear programme per step."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.solvers._simplex import best_vertex

__all__ = ["EpoWeights", "epo"]

TINY = torch.finfo(torch.float64).tiny

# At most this far from the ray, descend; beyond, balance. The reference's `eps`.
BALANCED = 1e-4
# A point is feasible if no row, scaled as in `_rows`, is lower than minus this.
FEASIBLE = 1e-9
# Pivots per objective. Two are enough for gradients of like length; with lengths over eight decades
# and J = 10 a third helps one in a hundred programmes on the ray, more help one in some thousand.
PIVOTS = 3


class EpoWeights(NamedTuple):
    """The weights of EPO, whether the programme has a solution, and how good the weights are."""

    weights: Tensor
    feasible: Tensor
    gap: Tensor


def epo(gram: Tensor, losses: Tensor, rays: Tensor) -> EpoWeights:
    r"""The combination of gradients that moves the losses to the ray, or down along it.

    With m objectives, C the Gram matrix and

    .. math:: \hat l = \frac{r \circ L}{r^\top L}, \quad \mu = \sum_j \hat l_j \log(m \hat l_j),
              \quad a = r \circ (\log(m \hat l) - \mu)

    the weights solve, off the ray (μ > 1e-4),

    .. math:: \max_w w^\top C a \;\text{ s.t. } (Cw)_j \ge b_j, \qquad
              b_j = 0 \text{ at the largest } r_j L_j, \; -\infty \text{ where } (Ca)_j > 0, \;
              (Ca)_j \text{ elsewhere}

    (b = 0 if no (Ca)_j is positive), and on the ray

    .. math:: \max_w 1^\top Cw \;\text{ s.t. } Cw \ge 0, \;
              w^\top C a \ge \min(0, \max_j (Ca)_j)

    both over the simplex. The first always has a solution, the second need not have one.

    Args:
        gram: the Gram matrix C ``[..., J, J]`` of the objectives' gradients.
        losses: ``[..., J]``, positive.
        rays: ``[..., J]``, on the simplex (divided by their sum here); an entry may be 0.

    Returns:
        ``weights`` w ``[..., J]`` in float64, on the simplex: a method multiplies by m.
        ``feasible`` ``[...]``: False where the programme has no solution or a loss is not a
        positive number; there the weights are the ray.
        ``gap`` ``[...]``: the larger of the violation and the distance to the optimum. The
        violation of (Cw)_j is relative to the length of gradient j times the longest, that of
        wᵀCa to a hundredth of the longest squared; the distance, relative to the largest
        coefficient of the objective, comes from dual prices and is a bound, not an estimate. For
        two objectives the solution is a closed form and only the violation is left. Where
        ``feasible`` is False: the violation of the point at which the search ended.

    Of several maximisers one is returned. A row counts as fulfilled down to -1e-9. The gap is
    about 1e-11, and below 1e-8 while the gradients' lengths differ by less than eight decades;
    for sixteen, a programme in some thousand is missed, which `gap` or ``feasible`` tells.

    Mahapatra and Rajan 2020, section 4. Use when the losses must lie on the ray exactly; avoid
    when gradients of every loss are too dear.

    >>> gram, losses = torch.eye(2), torch.tensor([1.0, 3.0])
    >>> epo(gram, losses, torch.tensor([0.5, 0.5])).weights  # the second loss is too large
    tensor([0., 1.], dtype=torch.float64)
    """
    if gram.shape[-1:] != losses.shape[-1:] or losses.shape[-1:] != rays.shape[-1:]:
        raise ConfigurationError(
            f"`gram`, `losses` and `rays` need the same last axis, found {tuple(gram.shape)}, "
            f"{tuple(losses.shape)} and {tuple(rays.shape)}"
        )
    gram, losses, rays = gram.double(), losses.double(), rays.double()
    rays = rays / rays.sum(dim=-1, keepdim=True)
    positive = losses.amin(dim=-1) > 0
    rows, gain = _programme(gram, torch.where(positive.unsqueeze(-1), losses, 1.0), rays)
    weights, short = _interval(rows, gain) if losses.shape[-1] == 2 else _vertex(rows, gain)
    lowest = (rows @ weights.unsqueeze(-1)).amin(dim=(-2, -1))
    feasible = (lowest >= -FEASIBLE) & positive
    weights = torch.where(feasible.unsqueeze(-1), weights, rays)
    return EpoWeights(weights, feasible, torch.maximum(-lowest, short))


def _programme(gram: Tensor, losses: Tensor, rays: Tensor) -> tuple[Tensor, Tensor]:
    """Both programmes as D ``[..., J + 1, J]`` and c ``[..., J]``: maximise cᵀw with Dw ≥ 0."""
    # C times a positive number: the same programme
    longest = gram.diagonal(dim1=-2, dim2=-1).amax(dim=-1).clamp_min(TINY)
    gram = gram / longest[..., None, None]
    scaled = rays * losses
    share = scaled / scaled.sum(dim=-1, keepdim=True).clamp_min(TINY)
    # log(m l) - mu without the m, which cancels; 0 log 0 = 0
    logs = share.clamp_min(TINY).log()
    mean = (share * logs).sum(dim=-1, keepdim=True)
    ca = (gram @ (rays * (logs - mean)).unsqueeze(-1)).squeeze(-1)
    most = ca.amax(dim=-1, keepdim=True)
    off = mean > BALANCED - math.log(losses.shape[-1])
    # rows with a bound other than 0; -4 is none, as no entry of C is below -1
    free = (scaled < scaled.amax(dim=-1, keepdim=True)) & (most > 0) & off
    bound = torch.where(free, torch.where(ca > 0, -4.0, ca), 0.0)
    length = gram.diagonal(dim1=-2, dim2=-1).clamp_min(TINY).sqrt()
    rows = ((gram - bound.unsqueeze(-1)) / length.unsqueeze(-1)).clamp(-4, 4)
    # a is known to 1e-16, however small it is: in these units that is no constraint
    last = torch.where(off, 1.0, (ca - most.clamp_max(0)) * 100)
    return torch.cat([rows, last.unsqueeze(-2)], dim=-2), torch.where(off, ca, gram.sum(dim=-2))


def _interval(rows: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """Two objectives: every row bounds w_1 from one side; the gain picks an end."""
    first, second = rows.unbind(dim=-1)
    slope = second - first
    bound = second / slope
    low = torch.where(slope < 0, bound, 0.0).amax(dim=-1)
    high = torch.where(slope > 0, bound, 1.0).amin(dim=-1)
    t = torch.where(gain[..., 0] > gain[..., 1], high, low).clamp(0, 1)
    return torch.stack([t, 1 - t], dim=-1), torch.zeros_like(t)


def _vertex(rows: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """More objectives: the dual simplex method, and by how much it can miss the best."""
    gain = gain / gain.abs().amax(dim=-1, keepdim=True).clamp_min(TINY)
    point, prices = best_vertex(rows, gain, pivots=PIVOTS * gain.shape[-1])
    best = (gain + (prices.unsqueeze(-2) @ rows).squeeze(-2)).amax(dim=-1)
    return point, (best - (gain * point).sum(dim=-1)).clamp_min(0)
