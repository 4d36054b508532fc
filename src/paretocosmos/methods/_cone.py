"""Projection onto a dual cone, for TorchJD's UPGrad and DualProj: no solver need be installed."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# As TorchJD has them: below the first a Gram matrix is 0; the second makes it definite.
NO_GRADIENT, RIDGE = 1e-4, 1e-4
SLACK = 1e-12

Numbers = NDArray[np.float64]


def project(vectors: Tensor, gram: Tensor) -> Tensor:
    r"""Weights of the projections of combinations of gradients onto the cone that harms none.

    .. math:: \arg\min_v v^\top G v \quad\text{subject to}\quad v \ge u

    for every row u (Quinton and Rey 2024, proposition 1).

    Args:
        vectors: the rows u, ``[..., J]``.
        gram: G, the Gram matrix of the gradients ``[J, J]``.

    >>> conflict = torch.tensor([[1.0, -0.5], [-0.5, 1.0]])
    >>> project(torch.tensor([[1.0, 0.0]]), conflict).round(decimals=2)
    tensor([[1.0000, 0.5000]])
    """
    matrix = gram.detach().cpu().double().numpy()
    trace = float(np.trace(matrix))
    matrix = matrix / trace if trace > NO_GRADIENT**2 else np.zeros_like(matrix)
    matrix = matrix + RIDGE * np.eye(len(matrix))
    rows = vectors.detach().cpu().double().numpy().reshape(-1, len(matrix))
    found = np.stack([row + _raised(matrix, matrix @ row) for row in rows])
    return torch.from_numpy(found).to(gram).reshape(vectors.shape)


def _raised(matrix: Numbers, pull: Numbers) -> Numbers:
    """What to add: argmin of s·Gs / 2 + s·p over s >= 0, by Lawson and Hanson's active sets."""
    raised = np.zeros_like(pull)
    free = np.zeros(len(pull), dtype=bool)
    for _ in range(3 * len(pull)):
        gain = np.where(free, -np.inf, -(matrix @ raised + pull))
        if gain.max() <= SLACK:
            break
        free[gain.argmax()] = True
        while True:
            best = np.zeros_like(raised)
            best[free] = np.linalg.solve(matrix[np.ix_(free, free)], -pull[free])
            if best[free].min(initial=np.inf) > 0:
                break
            out = free & (best <= 0)
            step = (raised[out] / (raised[out] - best[out] + SLACK)).min()
            raised = raised + step * (best - raised)
            free &= raised > SLACK
        raised = best
    return raised
