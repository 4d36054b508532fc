"""What lies between a front and a point: hypervolume, plain and in a box."""

import warnings
from typing import Literal

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.pareto.front import Array, Front

__all__ = ["box_of", "hypervolume", "ideal", "ideal_hypervolume", "normalised_hypervolume"]

# moocore's exact algorithm stays far below a second up to here for a few hundred points; beyond
# it the cost grows as N^(J-2) and its low-discrepancy estimate is the better choice.
EXACT_UP_TO = 6
# moocore refuses more.
MOST_OBJECTIVES = 31


def hypervolume(
    front: Front | npt.ArrayLike,
    reference: npt.ArrayLike | None = None,
    *,
    how: Literal["auto", "exact", "approximate"] = "auto",
) -> float:
    """The volume between the front and the reference point; larger is better.

    Args:
        front: a front, or values ``[N, J]``, smaller is better.
        reference: ``[J]`` or one number for all; a front brings its own.
        how: ``"exact"``; ``"approximate"``, deterministic, good to about 0.1 %; ``"auto"``: exact
            up to six objectives.

    Returns:
        The hypervolume; 0, with a `FrontWarning`, if no point is below the reference everywhere;
        NaN, with a `FrontWarning`, of more than 31 objectives.

    >>> hypervolume([[1.0, 1.0], [0.5, 1.5]], (2, 2))
    1.25
    """
    import moocore

    if isinstance(front, Front):
        values, reference = front.values, front.reference if reference is None else reference
    else:
        values = np.asarray(front, dtype=np.float64)
    if reference is None:
        raise ConfigurationError("`reference` is needed with plain values: try (2, 2)")
    point = np.asarray(reference, dtype=np.float64)
    if values.ndim != 2 or point.shape not in ((), (values.shape[1],)):
        raise ConfigurationError(
            "hypervolume needs values [N, J] and a reference of J numbers, found shapes "
            f"{values.shape} and {point.shape}"
        )
    point = np.broadcast_to(point, values.shape[1:])
    inside = values[(values < point).all(axis=1)]
    if len(inside) == 0:
        warnings.warn(
            f"no point of the front is below the reference point {point.tolist()} in every "
            "objective, so its hypervolume is 0; choose a reference point with larger entries",
            FrontWarning,
            stacklevel=2,
        )
        return 0.0
    if how not in ("auto", "exact", "approximate"):
        raise ConfigurationError(f"`how` must be `auto`, `exact` or `approximate`, found `{how}`")
    if values.shape[1] > MOST_OBJECTIVES:
        warnings.warn(
            f"the hypervolume is known for at most {MOST_OBJECTIVES} objectives, found "
            f"{values.shape[1]}, so it is NaN; judge the front by its other measures",
            FrontWarning,
            stacklevel=2,
        )
        return float("nan")
    if how == "exact" or (how == "auto" and values.shape[1] <= EXACT_UP_TO):
        return float(moocore.hypervolume(inside, ref=point))
    # it looks along rays from the reference point: in another unit it would see something else
    low = inside.min(axis=0)
    size = point - low
    return float(np.prod(size) * moocore.hv_approx((inside - low) / size, ref=np.ones(len(size))))


def ideal(front: Front) -> Array:
    """``[J]``, the best value of every objective over all points: what no point can beat.

    A value that is NaN counts nothing; an objective without another has NaN.

    >>> ideal(Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("a", "b"), (2, 2)))
    array([0.3, 0.1])
    """
    best: Array = np.fmin.reduce(front.values, axis=0)
    return best


def ideal_hypervolume(front: Front) -> float:
    """The hypervolume of the ideal point: a bound on that of the front.

    With one network per objective it is what the paper's code reports for Single Task.

    Returns:
        The volume; 0 if the ideal point is not below the reference.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[1.0, 1.5], [1.5, 1.0]], ("a", "b"), (2, 2))
    >>> hypervolume(front), ideal_hypervolume(front)
    (0.75, 1.0)
    """
    point = ideal(front)
    below = bool((point < front.reference).all())
    return float(np.prod(front.reference - point)) if below else 0.0


def box_of(front: Front) -> tuple[Array, Array]:
    """The ideal and the nadir ``[J]`` of the non-dominated points: the box that they span.

    NaN where no point is without a NaN.

    >>> values = [[0.3, 0.2], [0.5, 0.1], [0.9, 0.9]]
    >>> box_of(Front([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]], values, ("a", "b"), (2, 2)))
    (array([0.3, 0.1]), array([0.5, 0.2]))
    """
    values = front.values[front.non_dominated]
    if not len(values):
        nothing: Array = np.full(front.objectives, np.nan)
        return nothing, nothing
    return values.min(axis=0), values.max(axis=0)


def normalised_hypervolume(
    front: Front, box: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
) -> float:
    """The share of a box that the front dominates, which no choice of reference point inflates.

    Args:
        front: whose points count; one beyond the box's ideal counts as if it lay on the edge.
        box: its ideal and its nadir, ``[J]`` each: `box_of` a front of separately trained
            networks. The front's own if `None`, which says how it bends, not how good it is.

    Returns:
        Between 0 and 1; NaN for a box without a volume.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.0, 0.5], [0.5, 0.0]], ("a", "b"), (2, 2))
    >>> normalised_hypervolume(front, ((0, 0), (1, 1))), normalised_hypervolume(front)
    (0.75, 0.0)
    """
    low, high = (np.asarray(end, dtype=np.float64) for end in (box or box_of(front)))
    if low.shape != (front.objectives,) or high.shape != low.shape:
        raise ConfigurationError(
            f"`box` needs an ideal and a nadir of {front.objectives} numbers each, found shapes "
            f"{low.shape} and {high.shape}: use `box_of(front)`"
        )
    size = high - low
    if not (size > 0).all():
        return float("nan")
    inside = np.maximum((front.values - low) / size, 0)
    inside = inside[(inside < 1).all(axis=1)]
    return hypervolume(inside, 1.0) if len(inside) else 0.0
