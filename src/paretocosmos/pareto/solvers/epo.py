"""The weights of exact Pareto optimal search (EPO): a linear programme per step."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError

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
    r"""Compute the combination of gradients that moves the losses to the ray, or down along it.

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
    rows, gain = _build_programme(gram, torch.where(positive.unsqueeze(-1), losses, 1.0), rays)
    weights, short = (
        _solve_interval(rows, gain) if losses.shape[-1] == 2 else _solve_vertex(rows, gain)
    )
    lowest = (rows @ weights.unsqueeze(-1)).amin(dim=(-2, -1))
    feasible = (lowest >= -FEASIBLE) & positive
    weights = torch.where(feasible.unsqueeze(-1), weights, rays)
    return EpoWeights(weights, feasible, torch.maximum(-lowest, short))


def _build_programme(gram: Tensor, losses: Tensor, rays: Tensor) -> tuple[Tensor, Tensor]:
    """Return both programmes as D ``[..., J + 1, J]`` and c ``[..., J]``: max cᵀw with Dw ≥ 0."""
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


def _solve_interval(rows: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """Solve for two objectives: every row bounds w_1 from one side; the gain picks an end."""
    first, second = rows.unbind(dim=-1)
    slope = second - first
    bound = second / slope
    low = torch.where(slope < 0, bound, 0.0).amax(dim=-1)
    high = torch.where(slope > 0, bound, 1.0).amin(dim=-1)
    t = torch.where(gain[..., 0] > gain[..., 1], high, low).clamp(0, 1)
    return torch.stack([t, 1 - t], dim=-1), torch.zeros_like(t)


def _solve_vertex(rows: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """Solve for more objectives by the dual simplex method; also return how much it can miss."""
    gain = gain / gain.abs().amax(dim=-1, keepdim=True).clamp_min(TINY)
    point, prices = find_best_vertex(rows, gain, pivots=PIVOTS * gain.shape[-1])
    best = (gain + (prices.unsqueeze(-2) @ rows).squeeze(-2)).amax(dim=-1)
    return point, (best - (gain * point).sum(dim=-1)).clamp_min(0)


# What counts as negative, for rows scaled to entries of about one.
TOLERANCE = 1e-12
# How much the gains are changed to break ties; the certificate of the caller contains it.
TIE = 1e-11
GOLDEN = 0.6180339887498949


class Vertex(NamedTuple):
    """A point of the simplex, and the prices of the rows that show it to be the best."""

    point: Tensor
    prices: Tensor


def find_best_vertex(rows: Tensor, gain: Tensor, *, pivots: int) -> Vertex:
    r"""Maximise cᵀx over the simplex subject to Dx ≥ 0.

    .. math:: \max_x c^\top x \;\text{ s.t. }\; Dx \ge 0, \; 1^\top x = 1, \; x \ge 0

    Starts in the corner of the largest c, the best of all were it not for the rows, and repairs
    the row most below zero, pivot by pivot, at the least loss of gain: no first phase, no interior
    needed, and a single point that is feasible is found like any other. Every variable, x and the
    slacks Dx, keeps its row of the tableau: a pivot is then one rank-one update and there is no
    list of what is basic. Pivots after the last one needed change nothing.

    Args:
        rows: D ``[..., m, n]``, its rows scaled to entries of about one.
        gain: c ``[..., n]``.
        pivots: how many at most; a fixed number.

    Returns:
        The point ``[..., n]`` on the simplex (where no point is feasible: some point), and prices
        y ≥ 0 ``[..., m]``; for any such y, max_j (c + Dᵀy)_j bounds the gain of feasible points.

    >>> rows, gain = torch.tensor([[-1.0, 3.0]]), torch.tensor([2.0, 1.0])
    >>> find_best_vertex(rows, gain, pivots=2)
    Vertex(point=tensor([0.7500, 0.2500]), prices=tensor([0.2500]))
    """
    m, n = rows.shape[-2:]
    index_range = torch.arange(n + 1, device=rows.device)
    identity = torch.eye(n, dtype=rows.dtype, device=rows.device).expand(*rows.shape[:-2], n, n)
    # without it, equal gains (a corner ray has none at all) make pivots go in circles
    gain = gain + TIE * ((index_range[:n] + 1) * GOLDEN).frac()
    # one row per variable, then the gain; one column per non-basic variable, then the constant
    tableau = torch.cat([identity, rows, gain.unsqueeze(-2)], dim=-2)
    tableau = torch.cat([tableau, torch.zeros_like(tableau[..., :1])], dim=-1)
    # x_k = 1 - the others; its column is then without a variable
    corner = (index_range == gain.argmax(dim=-1, keepdim=True)).unsqueeze(-2)
    column = (tableau * corner).sum(dim=-1, keepdim=True)
    row = torch.where(index_range == n, 1.0, -1.0).to(rows.dtype)
    tableau = torch.where(corner, 0.0, tableau) + column * torch.where(corner, 0.0, row)
    names = torch.full_like(index_range[:n], -1).expand(*rows.shape[:-2], n)
    for _ in range(pivots):
        lowest = tableau[..., :-1, -1].argmin(dim=-1, keepdim=True)
        index = lowest.unsqueeze(-1).expand(*lowest.shape, n + 1)
        row = tableau.gather(-2, index)
        usable = (row[..., :-1] > TOLERANCE) & (row[..., -1:] < -TOLERANCE)
        loss = torch.where(usable, -tableau[..., -1:, :-1].clamp_max(0) / row[..., :-1], torch.inf)
        least = loss.argmin(dim=-1, keepdim=True)
        enters = (index_range == least) & usable.any(dim=-1, keepdim=True)
        column = (tableau * enters).sum(dim=-1, keepdim=True)
        pivot = torch.where(enters, row, 0.0).sum(dim=-1, keepdim=True)
        row = torch.where(enters, -1.0, row) / torch.where(pivot > 0, -pivot, 1.0)
        tableau = torch.addcmul(torch.where(enters, 0.0, tableau), column, row)
        names = torch.where(enters[..., 0, :-1], lowest, names)
    point = tableau[..., :n, -1].clamp_min(0)
    point = point / point.sum(dim=-1, keepdim=True).clamp_min(TOLERANCE)
    slack = torch.arange(n, n + m, device=rows.device).unsqueeze(-1) == names.unsqueeze(-2)
    prices = (slack * -tableau[..., -1:, :-1]).sum(dim=-1).clamp_min(0)
    return Vertex(point, prices)
