"""How good a front is: numbers computed from a `Front` and nothing else."""

import warnings
from typing import Literal

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.pareto.front import Array, Front

__all__ = [
    "angle",
    "covered",
    "dominated_share",
    "hypervolume",
    "ideal",
    "ideal_hypervolume",
    "monotonicity",
    "spacing",
    "span",
    "summary",
]

# moocore's exact algorithm stays far below a second up to here for a few hundred points; beyond
# it the cost grows as N^(J-2) and its low-discrepancy estimate is the better choice.
EXACT_UP_TO = 6


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
        The hypervolume; 0, with a `FrontWarning`, if no point is below the reference everywhere.

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
        raise ConfigurationError(f"`how` is `auto`, `exact` or `approximate`, found `{how}`")
    if how == "exact" or (how == "auto" and values.shape[1] <= EXACT_UP_TO):
        return float(moocore.hypervolume(inside, ref=point))
    return float(moocore.hv_approx(inside, ref=point))


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


def covered(front: Front, by: Front) -> float:
    """The share of the front's points that some point of another front dominates; 0 is best.

    Zitzler and Thiele's coverage C(by, front) (1999), with strict dominance: as good everywhere
    and better somewhere, so equal points do not count. `covered(a, b)` and `covered(b, a)` are two
    numbers and need not add up to 1; `covered(a, a)` is `dominated_share(a)`.

    Args:
        front: whose points are counted; one with a NaN is dominated by any that has none.
        by: whose points dominate, with the same objectives; one with a NaN dominates nothing.

    >>> rays, names = [[0.9, 0.1], [0.1, 0.9]], ("loss", "gap")
    >>> one = Front(rays, [[0.3, 0.2], [0.5, 0.1]], names, (2, 2))
    >>> two = Front(rays, [[0.3, 0.3], [0.4, 0.1]], names, (2, 2))
    >>> covered(one, two), covered(two, one)
    (0.5, 0.5)
    """
    if front.names != by.names:
        raise ConfigurationError(
            f"`by` needs the objectives of `front`, {', '.join(front.names)}, found "
            f"{', '.join(by.names)}: evaluate both on one problem"
        )
    rivals = by.values[by.non_dominated]  # what a dominated point dominates, they dominate too
    values = front.values.copy()
    values[np.isnan(values).any(axis=1)] = np.inf
    no_worse = (rivals[None] <= values[:, None]).all(axis=2)
    better = (rivals[None] < values[:, None]).any(axis=2)
    return float(np.any(no_worse & better, axis=1).mean())


def dominated_share(front: Front) -> float:
    """The share of rays whose point another ray's point dominates; 0 is best."""
    return float(1 - front.non_dominated.mean())


def span(front: Front) -> float:
    """How wide the front is: the diagonal of the box around its non-dominated points.

    Known as maximum spread (Zitzler, Deb and Thiele 2000). NaN if no point is without a NaN.
    """
    values = front.values[front.non_dominated]
    return float(np.linalg.norm(np.ptp(values, axis=0))) if len(values) else float("nan")


def spacing(front: Front) -> float:
    """How unevenly the non-dominated points lie: the deviation of nearest distances (Schott 1995).

    0 for evenly spaced points, and for fewer than three.
    """
    values = front.values[front.non_dominated]
    if len(values) < 3:
        return 0.0
    distance = np.abs(values[:, None] - values[None]).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    return float(distance.min(axis=1).std(ddof=1))


def angle(front: Front, *, alignment: Literal["ray", "inverse"] = "ray") -> float:
    """The mean angle in degrees between values and rays (or 1/rays); what the penalty lowers."""
    toward = front.rays if alignment == "ray" else 1 / np.maximum(front.rays, 1e-6)
    norms = np.linalg.norm(front.values, axis=1) * np.linalg.norm(toward, axis=1)
    defined = norms > 0
    if not defined.any():
        return float("nan")
    cosine = (front.values * toward).sum(axis=1)[defined] / norms[defined]
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean())


def monotonicity(front: Front) -> float:
    """Whether more weight on an objective lowers its value.

    Minus the mean over objectives of Kendall's tau-b between the weight and the value: 1 if more
    weight always lowers the value, -1 if it always raises it, 0 if it does not matter.
    """
    return float(
        -np.mean([_kendall(r, v) for r, v in zip(front.rays.T, front.values.T, strict=True)])
    )


def summary(front: Front) -> dict[str, float]:
    """Every number of one front above, by name; what runs record and tables show."""
    return {
        "hypervolume": hypervolume(front),
        "hypervolume_ideal": ideal_hypervolume(front),
        "span": span(front),
        "dominated_share": dominated_share(front),
        "spacing": spacing(front),
        "angle": angle(front),
        "monotonicity": monotonicity(front),
    }


def _kendall(first: Array, second: Array) -> float:
    above = np.triu_indices(len(first), k=1)
    one = np.sign(first[:, None] - first[None])[above]
    two = np.sign(second[:, None] - second[None])[above]
    untied = np.sqrt(np.count_nonzero(one) * np.count_nonzero(two))
    return float((one * two).sum() / untied) if untied else 0.0
