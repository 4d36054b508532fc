"""Quality indicators of a front: volume, distance to another front, range, order, dominance."""

import warnings
from typing import Literal

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.pareto.front import Array, Front

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
    """Compute the volume between the front and the reference point; larger is better.

    Args:
        front: a front, or values ``[N, J]``, smaller is better.
        reference: ``[J]`` or one number for all; a front brings its own.
        how: ``"exact"``; ``"approximate"``, deterministic, and good to about 0.1 % up to eight
            objectives, 0.2 % at 12, 1 % at 20 and 5 % at 31; ``"auto"``: exact up to six.

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
    # also leaves out NaN, of which moocore would make a NaN
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
    """Return the best value of every objective over all points ``[J]``, which no point can beat.

    A value that is NaN counts nothing; an objective without another has NaN.

    >>> ideal(Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("a", "b"), (2, 2)))
    array([0.3, 0.1])
    """
    best: Array = np.fmin.reduce(front.values, axis=0)
    return best


def ideal_hypervolume(front: Front) -> float:
    """Compute the hypervolume of the ideal point: a bound on that of the front.

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
    """Return the ideal and the nadir ``[J]`` of the non-dominated points: the box they span.

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
    """Compute the share of a box that the front dominates.

    Unlike the hypervolume, no choice of a far reference point inflates it.

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
    # beyond the ideal counts as on the edge, or the share could be above 1
    inside = np.maximum((front.values - low) / size, 0)
    inside = inside[(inside < 1).all(axis=1)]
    return hypervolume(inside, 1.0) if len(inside) else 0.0


def range_covered(front: Front, reference: Front | None = None) -> Array:
    """Compute the range of each objective over the rays, as a share of another front's range.

    The extent of the non-dominated points, ``[J]``.

    Args:
        front: whose range is measured.
        reference: the front to compare with, such as that of `separate`; without one the extents
            are in the objectives' own units.

    Returns:
        1 is all of the other's range, 0 a single point; NaN where the other has none.

    >>> rays, names = [[0.9, 0.1], [0.1, 0.9]], ("loss", "gap")
    >>> narrow = Front(rays, [[0.25, 0.5], [0.5, 0.25]], names, (2, 2))
    >>> wide = Front(rays, [[0.0, 1.0], [1.0, 0.0]], names, (2, 2))
    >>> range_covered(narrow, wide), range_covered(narrow)
    (array([0.25, 0.25]), array([0.25, 0.25]))
    """
    low, high = box_of(front)
    if reference is None:
        return high - low
    check_same_objectives(front, reference, "reference")
    least, most = box_of(reference)
    # NaN, not infinity, where the other front is a point
    extent = most - least
    share: Array = (high - low) / np.where(extent > 0, extent, np.nan)
    return share


def span(front: Front) -> float:
    """Compute the width of the front: the diagonal of the box of its non-dominated points.

    Known as maximum spread (Zitzler, Deb and Thiele 2000). NaN if no point is without a NaN.
    """
    low, high = box_of(front)
    return float(np.linalg.norm(high - low))


def spacing(front: Front) -> float:
    """Compute the deviation of nearest distances of the non-dominated points (Schott 1995).

    0 for evenly spaced points, and for fewer than three.
    """
    values = front.values[front.non_dominated]
    if len(values) < 3:
        return 0.0
    distance = np.abs(values[:, None] - values[None]).sum(axis=2)
    # a point is no neighbour of its own
    np.fill_diagonal(distance, np.inf)
    return float(distance.min(axis=1).std(ddof=1))


def angle(front: Front, *, alignment: Literal["ray", "inverse"] = "ray") -> float:
    """Compute the mean angle in degrees between values and rays (or 1/rays).

    This is what the penalty of COSMOS lowers.
    """
    # the same floor as in `cosmos_loss`
    directions = front.rays if alignment == "ray" else 1 / np.maximum(front.rays, 1e-6)
    norms = np.linalg.norm(front.values, axis=1) * np.linalg.norm(directions, axis=1)
    defined = norms > 0
    if not defined.any():
        return float("nan")
    cosine = (front.values * directions).sum(axis=1)[defined] / norms[defined]
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean())


def check_same_objectives(front: Front, other: Front, name: str) -> None:
    """Raise if a second front has other objectives."""
    if front.names != other.names:
        raise ConfigurationError(
            f"`{name}` needs the objectives of `front`, {', '.join(front.names)}, found "
            f"{', '.join(other.names)}: evaluate both on one problem"
        )


# Weights that stand for all: the mean over them is good to three digits.
EVEN, DRAWN = 100, 2000


def expected_utility(front: Front, *, scale: npt.ArrayLike | None = None) -> float:
    r"""Average the weighted loss of the best point over all weights; smaller is better.

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
    # weights that fill the simplex evenly
    if front.objectives == 2:
        # midpoints: the error of the integral falls with the square of their number
        first = (np.arange(EVEN) + 0.5) / EVEN
        weights = np.stack([first, 1 - first], axis=1)
    else:
        weights = np.random.default_rng(0).dirichlet(np.ones(front.objectives), DRAWN)
    return float((weights @ (values / _check_scale(front, scale)).T).min(axis=1).mean())


def igd_plus(front: Front, reference: Front, *, scale: npt.ArrayLike | None = None) -> float:
    """Compute by how much the front is worse than another, averaged over the other's points.

    Ishibuchi's IGD+ (2015), from the other's non-dominated points to the nearest of the front's;
    where the front is better, nothing is counted. 0 is best.

    Args:
        front: what is judged.
        reference: what it is judged by, such as the front of `separate`.
        scale: ``[J]``, what each objective is divided by.

    Returns:
        The mean distance; NaN if one of them has no point without a NaN.

    >>> rays, names = [[0.9, 0.1], [0.1, 0.9]], ("loss", "gap")
    >>> best = Front(rays, [[0.0, 1.0], [1.0, 0.0]], names, (2, 2))
    >>> igd_plus(Front(rays, [[0.5, 1.0], [1.0, 0.5]], names, (2, 2)), best)
    0.5
    """
    import moocore

    check_same_objectives(front, reference, "reference")
    sizes = _check_scale(front, scale)
    points, goal = (f.values[f.non_dominated] / sizes for f in (front, reference))
    return float(moocore.igd_plus(points, ref=goal)) if len(points) and len(goal) else float("nan")


def _check_scale(front: Front, scale: npt.ArrayLike | None) -> Array:
    sizes = np.ones(front.objectives) if scale is None else np.asarray(scale, dtype=np.float64)
    if sizes.shape != (front.objectives,) or not (sizes > 0).all():
        raise ConfigurationError(
            f"`scale` needs {front.objectives} positive numbers, found {sizes.tolist()}: leave it "
            "out, or give the extents of a front"
        )
    return sizes


# The share of paired draws in which a difference has one sign to be beyond noise: the two-sided
# 5 % of a bootstrap interval.
BEYOND = 0.975
# Weights closer than this are one: rays are float32.
DIGITS = 6


def monotonicity(front: Front) -> Array:
    """Compute how an objective's weight correlates with a lower value, for each ``[J]``.

    Spearman's rank correlation over rays between the weight and minus the value: 1 if more weight
    always lowers it, -1 if it always raises it, 0 if it does not matter. Ties share their ranks; a
    ray whose value is NaN is left out.

    >>> rays = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    >>> monotonicity(Front(rays, [[1, 1], [2, 2], [3, 3]], ("loss", "gap"), (4, 4)))
    array([ 1., -1.])
    """
    pairs = zip(front.rays.T.round(DIGITS), front.values.T, strict=True)
    return np.array([_compute_spearman(weight, -value) for weight, value in pairs])


def inverted_share(front: Front, draws: npt.ArrayLike) -> Array:
    """Compute the share of pairs of rays in the wrong order, for each objective ``[J]``; 0 is best.

    Args:
        front: whose rays are compared, where their weights differ.
        draws: its values ``[draws, N, J]`` on samples drawn again, the same ones for every ray
            (`evaluation.draw_paired_scores`). A pair is wrong if the ray with more weight has
            the larger value in at least 97.5 % of them: by more than chance would explain.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[1, 2], [3, 4]], ("loss", "gap"), (5, 5))
    >>> inverted_share(front, [front.values] * 40)
    array([0., 1.])
    """
    drawn = _check_draws(front, draws)
    weights = front.rays.round(DIGITS)
    more = weights[:, None] > weights[None]
    larger = np.zeros(more.shape, dtype=np.int64)
    # draw by draw: [draws, N, N, J] at once would take gigabytes for a large front
    for values in drawn:
        larger += values[:, None] > values[None]
    wrong = more & (larger >= BEYOND * len(drawn))
    share: Array = wrong.sum(axis=(0, 1)) / np.maximum(more.sum(axis=(0, 1)), 1)
    return share


def dominated_share(front: Front, draws: npt.ArrayLike | None = None) -> float:
    """Compute the share of rays that another ray's point dominates; 0 is best.

    Args:
        front: whose points are counted; one with a NaN counts as dominated.
        draws: count only what is beyond chance: paired draws of the values ``[draws, N, J]``, in
            97.5 % of which another point must dominate.

    >>> rays, values = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], [[1, 3], [2, 4], [3, 1]]
    >>> round(dominated_share(Front(rays, values, ("loss", "gap"), (5, 5))), 2)
    0.33
    """
    if draws is None:
        return float(1 - front.non_dominated.mean())
    drawn = _check_draws(front, draws)
    counts = np.zeros((len(front), len(front)), dtype=np.int64)
    for values in drawn:
        counts += _find_dominated(values, values)
    missing = np.isnan(front.values).any(axis=1)
    return float(np.mean((counts >= BEYOND * len(drawn)).any(axis=1) | missing))


def coverage(front: Front, rivals: Front) -> float:
    """Compute the share of the front's points that another front dominates; 0 is best.

    Zitzler and Thiele's coverage C(rivals, front) (1999), with strict dominance: as good
    everywhere and better somewhere, so equal points do not count. `coverage(a, b)` and
    `coverage(b, a)` are two numbers and need not add up to 1; `coverage(a, a)` is
    `dominated_share(a)`.

    Args:
        front: whose points are counted; one with a NaN is dominated by any that has none.
        rivals: their points dominate, with the same objectives; one with a NaN dominates nothing.

    >>> rays, names = [[0.9, 0.1], [0.1, 0.9]], ("loss", "gap")
    >>> first = Front(rays, [[0.3, 0.2], [0.5, 0.1]], names, (2, 2))
    >>> second = Front(rays, [[0.3, 0.3], [0.4, 0.1]], names, (2, 2))
    >>> coverage(first, second), coverage(second, first)
    (0.5, 0.5)
    """
    check_same_objectives(front, rivals, "rivals")
    # what a dominated point dominates, the one that dominates it dominates, too
    best = rivals.values[rivals.non_dominated]
    values = front.values.copy()
    values[np.isnan(values).any(axis=1)] = np.inf
    return float(_find_dominated(values, best).any(axis=1).mean())


def _find_dominated(values: Array, rivals: Array) -> npt.NDArray[np.bool_]:
    """Return ``[N, M]``: which rivals ``[M, J]`` dominate which of the values ``[N, J]``."""
    no_worse = np.all(rivals[None] <= values[:, None], axis=2)
    better = np.any(rivals[None] < values[:, None], axis=2)
    return np.asarray(no_worse & better)


def _check_draws(front: Front, draws: npt.ArrayLike) -> Array:
    drawn = np.asarray(draws, dtype=np.float64)
    if drawn.ndim != 3 or drawn.shape[1:] != front.values.shape or not len(drawn):
        raise ConfigurationError(
            f"draws of a front's values need the shape [draws, {len(front)}, {front.objectives}], "
            f"found {drawn.shape}: use `evaluation.draw_paired_scores`"
        )
    return drawn


def _compute_spearman(first: Array, second: Array) -> float:
    finite = ~np.isnan(second)
    if not finite.any():
        return 0.0
    ranks = []
    for values in (first, second):
        _, index, counts = np.unique(values[finite], return_inverse=True, return_counts=True)
        # equal values share the mean of their ranks
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[index])
    a, b = (rank - rank.mean() for rank in ranks)
    size = np.sqrt((a @ a) * (b @ b))
    # equal weights or equal values have no order: 0, where numpy's corrcoef gives NaN
    return float(np.clip(a @ b / size, -1, 1)) if size > 0 else 0.0
