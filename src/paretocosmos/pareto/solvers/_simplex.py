"""The dual simplex method for a linear programme on the simplex, batched, of fixed length."""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Vertex", "best_vertex"]

# What counts as negative, for rows scaled to entries of about one.
TOLERANCE = 1e-12
# How much the gains are changed to break ties; the certificate of the caller contains it.
TIE = 1e-11
GOLDEN = 0.6180339887498949


class Vertex(NamedTuple):
    """A point of the simplex, and the prices of the rows that show it to be the best."""

    point: Tensor
    prices: Tensor


def best_vertex(rows: Tensor, gain: Tensor, *, pivots: int) -> Vertex:
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
    >>> best_vertex(rows, gain, pivots=2)
    Vertex(point=tensor([0.7500, 0.2500]), prices=tensor([0.2500]))
    """
    m, n = rows.shape[-2:]
    here = torch.arange(n + 1, device=rows.device)
    identity = torch.eye(n, dtype=rows.dtype, device=rows.device).expand(*rows.shape[:-2], n, n)
    # without it, equal gains (a corner ray has none at all) make pivots go in circles
    gain = gain + TIE * ((here[:n] + 1) * GOLDEN).frac()
    # one row per variable, then the gain; one column per non-basic variable, then the constant
    tableau = torch.cat([identity, rows, gain.unsqueeze(-2)], dim=-2)
    tableau = torch.cat([tableau, torch.zeros_like(tableau[..., :1])], dim=-1)
    # x_k = 1 - the others; its column is then without a variable
    corner = (here == gain.argmax(dim=-1, keepdim=True)).unsqueeze(-2)
    column = (tableau * corner).sum(dim=-1, keepdim=True)
    row = torch.where(here == n, 1.0, -1.0).to(rows.dtype)
    tableau = torch.where(corner, 0.0, tableau) + column * torch.where(corner, 0.0, row)
    names = torch.full_like(here[:n], -1).expand(*rows.shape[:-2], n)
    for _ in range(pivots):
        lowest = tableau[..., :-1, -1].argmin(dim=-1, keepdim=True)
        index = lowest.unsqueeze(-1).expand(*lowest.shape, n + 1)
        row = tableau.gather(-2, index)
        usable = (row[..., :-1] > TOLERANCE) & (row[..., -1:] < -TOLERANCE)
        loss = torch.where(usable, -tableau[..., -1:, :-1].clamp_max(0) / row[..., :-1], torch.inf)
        least = loss.argmin(dim=-1, keepdim=True)
        enters = (here == least) & usable.any(dim=-1, keepdim=True)
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
