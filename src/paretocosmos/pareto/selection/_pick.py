"""Which point of a front meets the criteria best."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import InfeasibleError
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.selection._criteria import Criteria
from paretocosmos.pareto.selection._point import Point, columns, point_of

__all__ = ["closest", "constant", "cost_of", "is_constant", "pick", "within"]

Mask = npt.NDArray[np.bool_]
# Metrics that betray a classifier which gives everybody the same answer, and the numbers that do.
BETRAYING = {"positive_rate": (0.0, 1.0), "largest_share": (1.0,)}


def pick(front: Front, criteria: Criteria) -> int:
    """The place of the point that meets the criteria best; refused where none keeps the bounds."""
    criteria.check(front)
    cost = cost_of(front, criteria)
    allowed = within(front, criteria) & np.isfinite(cost)
    if not allowed.any():
        why = _refusal(front, criteria, cost)
        raise InfeasibleError(why).by({"allow_constant": True} if "allow_constant" in why else {})
    # a count, such as errors, is often the same at several rays: then the first objective decides
    order = np.lexsort((front.values[:, 0], np.where(allowed, cost, np.inf)))
    return int(order[0])


def closest(front: Front, criteria: Criteria) -> int:
    """The place of the point that comes nearest to the bounds, constant classifiers last."""
    total = np.zeros(len(front))
    for name, bound, side in criteria.bounds():
        values = columns(front)[name]
        spread = float(np.nanmax(values) - np.nanmin(values)) if np.isfinite(values).any() else 1
        excess = np.maximum(side * (values - bound), 0) / (spread or 1)
        total += np.where(np.isnan(excess), np.inf, excess)
    last = constant(front) if not criteria.allow_constant else np.zeros(len(front), dtype=bool)
    return int(np.lexsort((front.values[:, 0], total, last))[0])


def within(front: Front, criteria: Criteria) -> Mask:
    """``[N]``: which points keep the bounds and are not passed over."""
    kept = np.ones(len(front), dtype=bool) if criteria.allow_constant else ~constant(front)
    for name, bound, side in criteria.bounds():
        kept &= side * columns(front)[name] <= side * bound  # not for NaN
    return kept


def cost_of(front: Front, criteria: Criteria) -> Array:
    """``[N]``: what is smallest at the best point, infinite where a point does not count."""
    if criteria.maximize is not None:
        cost = -columns(front)[criteria.maximize]
    elif criteria.near is not None:
        cost = _distance(front, criteria.near)
    elif criteria.knee or criteria.weights is not None:
        scaled = _scaled(front)
        if criteria.weights is None:
            cost = scaled.sum(axis=1)
        else:
            from_worst = 1 - scaled
            total = from_worst.sum(axis=1, keepdims=True)
            share = from_worst / np.where(total > 0, total, 1)
            wanted = np.asarray(criteria.weights, dtype=np.float64)
            cost = np.linalg.norm(share - wanted / wanted.sum(), axis=1)
        cost = np.where(front.non_dominated, cost, np.inf)
    else:
        free = [name for name in front.names if name not in (*criteria.max, *criteria.min)]
        cost = columns(front)[criteria.minimize or (free or front.names)[0]]
    return np.where(np.isnan(cost), np.inf, cost)


def constant(front: Front) -> Mask:
    """``[N]``: which points are classifiers that give everybody the same answer."""
    return _same_answer(front.metrics, len(front))


def is_constant(point: Point) -> bool:
    """Whether a point is a classifier that gives everybody the same answer."""
    return bool(_same_answer(point.metrics, 1)[0])


def _same_answer(metrics: Mapping[str, Array] | Mapping[str, float], count: int) -> Mask:
    found = np.zeros(count, dtype=bool)
    for name, values in metrics.items():
        for betraying, numbers in BETRAYING.items():
            # of one of several targets: `largest_share_income`
            if name == betraying or name.startswith(f"{betraying}_"):
                found |= np.isin(values, numbers)
    return found


def _scaled(front: Front) -> Array:
    """Every objective from 0 at its best to 1 at its worst among the non-dominated points."""
    values = front.values[front.non_dominated]
    if not len(values):
        return np.full(front.values.shape, np.nan)
    low, width = values.min(axis=0), np.ptp(values, axis=0)
    scaled: Array = (front.values - low) / np.where(width > 0, width, 1)
    return scaled


def _distance(front: Front, near: Mapping[str, float] | Sequence[float]) -> Array:
    """How far every point is from a given one, in units of how far its numbers spread."""
    named = near if isinstance(near, Mapping) else dict(zip(front.names, near, strict=True))
    total = np.zeros(len(front))
    for name, value in named.items():
        numbers = columns(front)[name]
        width = np.ptp(numbers[np.isfinite(numbers)]) if np.isfinite(numbers).any() else 1
        total += ((numbers - value) / (width if width > 0 else 1)) ** 2
    return np.sqrt(total)


def _refusal(front: Front, criteria: Criteria, cost: Array) -> str:
    """Why no point can be chosen, how close one comes, and the way out."""
    if not np.isfinite(cost).any():
        return (
            f"no ray has a number to choose by on {front.split}: a group or a class may be missing "
            "there; choose by another objective or metric"
        )
    same = constant(front)
    if same.all() and not criteria.allow_constant:
        return (
            f"every ray gives a constant classifier on {front.split}, which `allow_constant` "
            "takes: train longer, or with another penalty"
        )
    if not criteria.bounds():
        return f"no ray but constant classifiers' has a number to choose by on {front.split}"
    kept = within(front, Criteria(max=criteria.max, min=criteria.min, allow_constant=True))
    if (kept & (criteria.allow_constant | ~same)).any():
        return (
            f"every ray that has {criteria.text()} on {front.split} is dominated, so that none is "
            "a knee or fits weights: choose with `minimize` or `maximize`"
        )
    near = point_of(front, closest(front, criteria))
    reached = " and ".join(f"`{name}` {near[name]:.4g}" for name, _, _ in criteria.bounds())
    ray = ",".join(f"{part:.4g}" for part in near.ray)
    if (kept & same).any():
        return (
            f"only a constant classifier has {criteria.text()} on {front.split}, which "
            f"`allow_constant` takes: the closest of the others has {reached}, at the ray {ray}"
        )
    return (
        f"no ray has {criteria.text()} on {front.split}: the closest has {reached}, at the ray "
        f"{ray}; allow that much, or train for a wider front"
    )
