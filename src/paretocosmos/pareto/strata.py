"""Rays spread over the simplex at random: every step's few draws cover the whole distribution."""

from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.rays import Alpha, check_alpha

__all__ = ["stratified_rays"]

POINTS = 2**14
TAIL = 37.0  # exp(-37) is what float64 can tell from 1


def stratified_rays(
    steps: int,
    groups: int,
    objectives: int,
    *,
    alpha: Alpha = 1.0,
    generator: torch.Generator,
) -> Tensor:
    r"""Draw the rays of several steps from a Dirichlet distribution, spread within each step.

    .. math:: r_j = x_j \prod_{i < j} (1 - x_i), \qquad
        x_j \sim \mathrm{Beta}\Big(\alpha_j, \sum_{i > j} \alpha_i\Big)

    Each x_j is a quantile, and a step's uniform numbers for it lie one in each of the G intervals
    [k/G, (k+1)/G), in an order of their own (a Latin hypercube). So every ray by itself is a
    Dirichlet draw, and the mean of a step's rays varies less than that of independent ones.

    Args:
        steps: how many.
        groups: rays of a step, G.
        objectives: entries in a ray, J.
        alpha: the Dirichlet parameter; one number, or one per objective.
        generator: a CPU generator.

    Returns:
        Rays ``[steps * G, J]`` in float32 on the CPU, those of a step beside each other.

    >>> rays = stratified_rays(1, 2, 2, generator=torch.Generator().manual_seed(1))
    >>> sorted((rays[:, 0] > 0.5).tolist())
    [False, True]
    """
    if min(steps, groups, objectives) < 1:
        raise ConfigurationError(
            f"`steps`, `groups` and `objectives` must be at least 1, found {steps}, {groups} and "
            f"{objectives}"
        )
    concentration = check_alpha(alpha, objectives)
    shape = (steps, groups, objectives - 1)
    order = torch.rand(shape, generator=generator, dtype=torch.float64).argsort(dim=1)
    within = torch.rand(shape, generator=generator, dtype=torch.float64)
    uniform = ((order + within) / groups).flatten(0, 1).numpy()
    left = np.ones(steps * groups)
    rays = np.empty((steps * groups, objectives))
    for j in range(objectives - 1):
        logits = _quantiles(uniform[:, j], concentration[j], sum(concentration[j + 1 :]))
        rays[:, j] = left * _sigmoid(logits)
        left = left * _sigmoid(-logits)
    rays[:, -1] = left
    return torch.from_numpy(rays).float()


def _quantiles(uniform: npt.NDArray[np.float64], a: float, b: float) -> npt.NDArray[np.float64]:
    """Where the distribution function of Beta(a, b) is `uniform`, as log(x / (1 - x))."""
    shares, logits = _table(a, b)
    return np.interp(uniform, shares, logits)


@cache
def _table(a: float, b: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The distribution function of Beta(a, b) at even steps of log(x / (1 - x)).

    There the density is x^a (1 - x)^b: smooth, and exponential in both tails, also where that of x
    has poles.
    """
    middle, width = np.log(a / b), 9 * np.sqrt(1 / a + 1 / b)
    logits = np.linspace(middle - TAIL / a - width, middle + TAIL / b + width, POINTS)
    # log x and log(1 - x), whichever is near 0 to full precision
    log_density = -a * np.logaddexp(0, -logits) - b * np.logaddexp(0, logits)
    density = np.exp(log_density - log_density.max())
    shares = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return shares / shares[-1], logits


def _sigmoid(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.exp(-np.logaddexp(0, -logits))
