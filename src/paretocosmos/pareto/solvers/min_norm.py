"""The shortest vector in the convex hull of a few gradients, from their Gram matrix."""

from typing import NamedTuple

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError

TINY = torch.finfo(torch.float64).tiny

# Up to here all 2^n - 1 faces of the simplex are solved side by side: some 50 operations instead
# of the 1300 of the interior-point method. Beyond it, the memory doubles with every vector.
FACES = 6


class MinNorm(NamedTuple):
    """The weights of the shortest vector, and how far from the shortest it can be."""

    weights: Tensor
    gap: Tensor


def min_norm(gram: Tensor, *, plane: bool = False) -> MinNorm:
    r"""Compute the convex combination of n vectors that is shortest.

    .. math:: \min_{s \ge 0, \; 1^\top s = 1} \; s^\top C s

    Closed forms for up to six vectors (every face of the simplex side by side), an interior-point
    method of a fixed number of iterations for more. Always in float64.

    Args:
        gram: the Gram matrix C ``[..., n, n]``, symmetric and positive semi-definite, in any
            floating type; C_ij is the inner product of vectors i and j.
        plane: the vectors lie in a plane and do not surround the origin (those of ParetoMTL with
            two objectives), so the solution lies between two of them: the best of all pairs.
            Where the promise is broken, `gap` shows it.

    Returns:
        Weights s ``[..., n]`` on the simplex, and a certificate ``[...]``

        .. math:: \mathrm{gap} = \big(s^\top C s - \min_i (Cs)_i\big) / \mathrm{trace}\, C

        which is 0 for the solution (and for a zero matrix). It bounds from above both the distance
        of ½ sᵀCs to its minimum and the squared distance of the vector found to the shortest one,
        relative to the trace. Below 1e-9 for every positive semi-definite C; where C is not, to
        rounding, the bound does not hold.

    Désidéri 2012, Sener and Koltun 2018. Use when a step must lower every loss; avoid when a
    trade-off is asked for, which it does not know.

    >>> min_norm(torch.tensor([[1.0, 0.0], [0.0, 3.0]])).weights
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    if gram.ndim < 2 or gram.shape[-1] != gram.shape[-2] or gram.shape[-1] < 1:
        raise ConfigurationError(
            f"`gram` must hold square matrices, found shape {tuple(gram.shape)}"
        )
    gram = gram.double()
    n = gram.shape[-1]
    diagonal = gram.diagonal(dim1=-2, dim2=-1)
    if n == 1:
        return MinNorm(torch.ones_like(diagonal), torch.zeros_like(diagonal[..., 0]))
    trace = diagonal.sum(dim=-1)
    if n == 2:
        weights = _solve_pair(gram, diagonal, trace)
    elif plane:
        weights = _find_best_pair(gram, diagonal)
    else:
        scaled = gram / trace.clamp_min(TINY)[..., None, None]
        weights = _find_best_face(scaled) if n <= FACES else minimise_on_simplex(scaled)
        weights = weights / weights.sum(dim=-1, keepdim=True)
    along = (gram @ weights.unsqueeze(-1)).squeeze(-1)
    gap = (weights * along).sum(dim=-1) - along.amin(dim=-1)
    return MinNorm(weights, gap / trace.clamp_min(TINY))


def _solve_pair(gram: Tensor, diagonal: Tensor, trace: Tensor) -> Tensor:
    first, second = diagonal.unbind(dim=-1)
    apart = torch.sub(trace, gram[..., 0, 1], alpha=2)
    # (1 ± u) / 2: the middle where both vectors are the same
    u = ((second - first) / apart.clamp_min(TINY)).clamp(-1, 1)
    return torch.stack([1 + u, 1 - u], dim=-1) / 2


def _find_best_pair(gram: Tensor, diagonal: Tensor) -> Tensor:
    """Return the best of all pairs (i, j), each as (1 + u) / 2 of i and (1 - u) / 2 of j."""
    across = gram + gram.mT
    rows, columns = diagonal.unsqueeze(-1), diagonal.unsqueeze(-2)
    total, longer = rows + columns, columns - rows
    apart = total - across
    u = (longer / apart.clamp_min(TINY)).clamp(-1, 1)
    # four times the squared length
    length = torch.addcmul(total + across, u, torch.addcmul(-2 * longer, u, apart))
    # symmetric, so (i, j) comes with (j, i); more than one best: their mean is as good
    best = length == length.amin(dim=(-2, -1), keepdim=True)
    weights = (best * (1 + u)).sum(dim=-1)
    return weights / weights.sum(dim=-1, keepdim=True)


def _find_best_face(scaled: Tensor) -> Tensor:
    """Return the best of the shortest vectors of all faces of the simplex, pushed inside."""
    n = scaled.shape[-1]
    bits = torch.arange(n, device=scaled.device)
    faces = torch.arange(1, 2**n, device=scaled.device)
    inside = ((faces.unsqueeze(-1) >> bits) & 1).to(scaled.dtype)
    # + 1 everywhere changes no minimiser (the weights sum to one) and makes every face of affinely
    # independent vectors regular, also one that holds the origin
    lifted = (scaled + 1).unsqueeze(-3) * (inside.unsqueeze(-1) * inside.unsqueeze(-2))
    factor = factor_inverse(lifted + torch.diag_embed(1 - inside), floor=1e-15)
    points = factor.mT @ (factor @ inside.unsqueeze(-1))
    points = (points.squeeze(-1) * inside).clamp_min(0)
    points = points / points.sum(dim=-1, keepdim=True).clamp_min(TINY)
    # by the certificate, not by length, which is blind to what rounding does to short vectors
    along = points @ scaled
    gap = (along * points).sum(dim=-1, keepdim=True) - along.amin(dim=-1, keepdim=True)
    best = gap.argmin(dim=-2, keepdim=True)
    return points.gather(-2, best.expand_as(points[..., :1, :])).squeeze(-2)


# On 10^5 matrices of every family in tests/solvers 12 give a relative gap of 1.4e-9 with n = 16,
# 13 give 2.1e-10, 14 give 3.5e-11.
ITERATIONS = 14
# How much of the longest step is taken. Cautious (0.995 is usual): with it, and with the second
# order damped below, none of 8 * 10^5 matrices was stuck; without, one in some thousand was.
FRACTION = 0.95
# Where the products x z stop shrinking: a gap of n times this, far below what is asked for, and
# far enough from rounding that the last equations are still regular for matrices of low rank.
CENTRE = 1e-12


def factor_inverse(matrix: Tensor, *, floor: float) -> Tensor:
    r"""Return a lower triangular W with WᵀW = M⁻¹, for M ``[..., n, n]`` positive definite.

    Eliminates the rows of [M | I] one by one; four tensor operations each. Pivots below `floor`
    are raised to it: then W belongs to a matrix that differs from M by about as much.

    >>> factor = factor_inverse(torch.tensor([[4.0, 2.0], [2.0, 2.0]]), floor=1e-15)
    >>> factor.mT @ factor
    tensor([[ 0.5000, -0.5000],
            [-0.5000,  1.0000]])
    """
    n = matrix.shape[-1]
    identity = torch.eye(n, dtype=matrix.dtype, device=matrix.device).expand_as(matrix)
    rest = torch.cat([matrix, identity], dim=-1)
    rows = []
    for size in range(n, 0, -1):
        pivot = rest[..., :1, :1].clamp_min(floor)
        row = rest[..., :1, :] * pivot.rsqrt()
        rows.append(row[..., size:])
        rest = torch.addcmul(rest[..., 1:, 1:], row[..., 1:size].mT, row[..., 1:], value=-1)
    return torch.cat(rows, dim=-2)


def minimise_on_simplex(matrix: Tensor, *, iterations: int = ITERATIONS) -> Tensor:
    r"""Minimise ½ xᵀQx over the simplex by Mehrotra's predictor-corrector method.

    .. math:: Qx - \lambda 1 - z = 0, \quad 1^\top x = 1, \quad x_i z_i = \mu \to 0

    The centre of the simplex starts it, with λ low enough that z is positive: both sides are
    feasible from the first step to the last, so only the products x z have to shrink.

    Args:
        matrix: Q ``[..., n, n]``, symmetric, positive semi-definite, of trace one (or zero).
        iterations: a fixed number; there is no test for convergence, as that would ask the device.

    Returns:
        x ``[..., n]``, positive, of sum one up to rounding.
    """
    n = matrix.shape[-1]
    diagonal = torch.eye(n, dtype=matrix.dtype, device=matrix.device)
    x = torch.full_like(matrix[..., 0], 1 / n)
    z = matrix.mean(dim=-1)
    z = z - z.amin(dim=-1, keepdim=True) + 1 / n
    for _ in range(iterations):
        scale = (x / z).sqrt()
        # D Q D + I has no eigenvalue below one, whatever x and z are
        scaled = scale.unsqueeze(-1) * matrix * scale.unsqueeze(-2) + diagonal
        factor = factor_inverse(scaled, floor=0.5) * scale.unsqueeze(-2)
        ones = factor.sum(dim=-1, keepdim=True)
        across = ones / (ones * ones).sum(dim=-2, keepdim=True)
        mu = (x * z).mean(dim=-1, keepdim=True)

        dx, dz = _compute_direction(factor, ones, across, x, z, -z)
        reach = _compute_step(x, z, dx, dz, 1.0)
        after = ((x + reach * dx) * (z + reach * dz)).mean(dim=-1, keepdim=True)
        target = (after**3 / (mu * mu)).clamp_min(CENTRE)
        second = reach * reach * dx * dz
        dx, dz = _compute_direction(factor, ones, across, x, z, (target - second) / x - z)
        reach = _compute_step(x, z, dx, dz, FRACTION)
        x = (x + reach * dx).clamp_min(CENTRE**2)
        z = (z + reach * dz).clamp_min(CENTRE**2)
    return x


def _compute_direction(
    factor: Tensor, ones: Tensor, across: Tensor, x: Tensor, z: Tensor, right: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the Newton step for z/x·dx + dz = right, staying on both sides' equations."""
    white = factor @ right.unsqueeze(-1)
    white = white - across * (ones * white).sum(dim=-2, keepdim=True)
    dx = (factor.mT @ white).squeeze(-1)
    return dx, right - z / x * dx


def _compute_step(x: Tensor, z: Tensor, dx: Tensor, dz: Tensor, fraction: float) -> Tensor:
    """Compute the longest step, at most 1, that keeps x and z positive, times `fraction`."""
    shrink = torch.maximum(-dx / x, -dz / z).amax(dim=-1, keepdim=True)
    return fraction / shrink.clamp_min(fraction)
