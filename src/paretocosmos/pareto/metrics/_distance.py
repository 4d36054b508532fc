"""How far a front is from another, and what it is worth to somebody whose weights are unknown."""

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics._shape import check_same

__all__ = ["expected_utility", "igd_plus"]

# Weights that stand for all: the mean over them is good to three digits.
EVEN, DRAWN = 100, 2000


def expected_utility(front: Front, *, scale: npt.ArrayLike | None = None) -> float:
    r"""The weighted loss of the best point, averaged over all weights; smaller is better.

    .. math:: E_w \min_n w \cdot v_n

    with even weights for two objectives and fixed draws from the flat Dirichlet for more.

    Args:
        front: whose points are chosen from; one with a NaN is never chosen.
        scale: ``[J]``, what each objective is divided by, so that a large one does not decide.

    Returns:
        The mean; NaN if no point is without a NaN.

    >>> values = [[0.0, 1.0], [1.0, 0.0]]
    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], values, ("loss", "gap"), (2, 2))
    >>> round(expected_utility(front), 2)
    0.25
    """
    values = front.values[~np.isnan(front.values).any(axis=1)]
    if not len(values):
        return float("nan")
    weights = _weights(front.objectives)
    return float((weights @ (values / _sizes(front, scale)).T).min(axis=1).mean())


def igd_plus(front: Front, of: Front, *, scale: npt.ArrayLike | None = None) -> float:
    """How much worse the front is than another, averaged over the other's points.

    Ishibuchi's IGD+ (2015), from the other's non-dominated points to the nearest of the front's;
    where the front is better, nothing is counted. 0 is best.

    Args:
        front: what is judged.
        of: what it is judged by, such as the front of `separate`.
        scale: ``[J]``, what each objective is divided by.

    Returns:
        The mean distance; NaN if one of them has no point without a NaN.

    >>> rays, names = [[0.9, 0.1], [0.1, 0.9]], ("loss", "gap")
    >>> best = Front(rays, [[0.0, 1.0], [1.0, 0.0]], names, (2, 2))
    >>> igd_plus(Front(rays, [[0.5, 1.0], [1.0, 0.5]], names, (2, 2)), best)
    0.5
    """
    import moocore

    check_same(front, of, "of")
    sizes = _sizes(front, scale)
    points, goal = (one.values[one.non_dominated] / sizes for one in (front, of))
    return float(moocore.igd_plus(points, ref=goal)) if len(points) and len(goal) else float("nan")


def _weights(objectives: int) -> Array:
    """Weights ``[n, J]`` that fill the simplex evenly."""
    if objectives == 2:
        first = (np.arange(EVEN) + 0.5) / EVEN
        return np.stack([first, 1 - first], axis=1)
    return np.random.default_rng(0).dirichlet(np.ones(objectives), DRAWN)


def _sizes(front: Front, scale: npt.ArrayLike | None) -> Array:
    sizes = np.ones(front.objectives) if scale is None else np.asarray(scale, dtype=np.float64)
    if sizes.shape != (front.objectives,) or not (sizes > 0).all():
        raise ConfigurationError(
            f"`scale` needs {front.objectives} positive numbers, found {sizes.tolist()}: leave it "
            "out, or give the extents of a front"
        )
    return sizes
