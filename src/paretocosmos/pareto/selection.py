"""Choose a point of a front: criteria, the points that meet them, and points between rays."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from types import MappingProxyType
from typing import Any, Self, TypedDict

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, InfeasibleError, check_choice
from paretocosmos.pareto.front import Array, Front, Point, get_columns, get_point, to_plain

Mask = npt.NDArray[np.bool_]

# Criteria of which a choice has at most one.
KINDS = ("minimize", "maximize", "knee", "weights", "near")
# Metrics that reveal a classifier which gives everybody the same answer, and the values that do.
REVEALING = {"positive_rate": (0.0, 1.0), "largest_share": (1.0,)}


class CriteriaOptions(TypedDict, total=False):
    """Keywords of every `choose`, which turns them into `Criteria`, where they are documented."""

    max: Mapping[str, float] | None
    min: Mapping[str, float] | None
    minimize: str | Mapping[str, float] | None
    maximize: str | None
    knee: bool
    weights: Sequence[float] | None
    near: Mapping[str, float] | Sequence[float] | None
    allow_constant: bool
    confidence: float | None


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """Criteria for a point: the bounds it keeps, and what is best among those that keep them.

    Attributes:
        max: the largest value allowed, by the name of an objective or a metric.
        min: the smallest value allowed, likewise.
        minimize: what is to be small; by default the first objective without a bound. Of several,
            a weight each: ``{"false_positives": 1, "false_negatives": 5}`` are costs of mistakes.
        maximize: what is to be large, such as ``"accuracy"``.
        knee: where giving way in one objective gains least in the others: the non-dominated point
            with the smallest sum, every objective scaled to 0 at its best and 1 at its worst.
        weights: how much each objective matters, one number each: the non-dominated point whose
            pseudo-weights (its distance from each objective's worst, scaled; Deb 2001, section
            8.5) are nearest.
        near: a point to come close to: values by name, or one per objective.
        allow_constant: take a classifier that gives everybody the same answer, too.
        confidence: with which the bounds are to hold for new people, above 0.5 and below 1, such
            as 0.9: then a bound is kept by the upper limit of what is bounded, and the rays of the
            front are tested instead of new ones looked for. `None`: the bounds hold on the data at
            hand.

    >>> Criteria(max={"tpr_gap": 0.02}, maximize="accuracy").to_dict()
    {'max': {'tpr_gap': 0.02}, 'maximize': 'accuracy'}
    """

    max: Mapping[str, float] = field(default_factory=dict)
    min: Mapping[str, float] = field(default_factory=dict)
    minimize: str | Mapping[str, float] | None = None
    maximize: str | None = None
    knee: bool = False
    weights: Sequence[float] | None = None
    near: Mapping[str, float] | Sequence[float] | None = None
    allow_constant: bool = False
    confidence: float | None = None

    @classmethod
    def from_options(cls, options: CriteriaOptions) -> Self:
        """Build criteria from the keywords of `choose`, where `None` is no bound."""
        for name in options:
            check_choice("criterion", name, CriteriaOptions.__annotations__)
        bounds = {name: options.get(name) or {} for name in ("max", "min")}
        return cls(**{**options, **bounds})  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        for role in ("max", "min"):
            object.__setattr__(self, role, _check_named(role, getattr(self, role)))
        # not by truth: an array of weights has none
        used = [n for n in KINDS if not (getattr(self, n) is None or getattr(self, n) is False)]
        if len(used) > 1:
            raise ConfigurationError(
                f"a point has one criterion, found {' and '.join(f'`{name}`' for name in used)}: "
                "leave one out, or turn it into a bound with `max`"
            )
        if not used and not self.max and not self.min:
            raise ConfigurationError(
                "`choose` needs to know what to choose by: a bound such as "
                "max={'tpr_gap': 0.02}, knee=True, weights or near"
            )
        self._check_confidence()
        if isinstance(self.minimize, Mapping):
            object.__setattr__(self, "minimize", _check_named("minimize", self.minimize))
        for role in ("weights", "near"):
            values = getattr(self, role)
            if isinstance(values, Mapping) and role == "near":
                object.__setattr__(self, role, _check_named(role, values))
            elif values is not None:
                object.__setattr__(self, role, _check_numbers(role, values))

    def _check_confidence(self) -> None:
        value: object = self.confidence
        # a bool is a number for Python
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, Real) or not 0.5 < float(value) < 1:
            raise ConfigurationError(
                f"`confidence` must be above 0.5 and below 1, such as 0.9, found {value!r}"
            )
        if not self.max and not self.min:
            raise ConfigurationError(
                "`confidence` needs a bound: add one, such as max={'tpr_gap': 0.02}"
            )

    def bounds(self) -> list[tuple[str, float, int]]:
        """List the bounds: name, number, and 1 for an upper or -1 for a lower bound."""
        # the side is a factor: side * value <= side * bound holds for both kinds
        upper = [(name, value, 1) for name, value in self.max.items()]
        return upper + [(name, value, -1) for name, value in self.min.items()]

    @property
    def sought(self) -> Mapping[str, float]:
        """What is to be small by name, with a weight; that of what is to be large is -1."""
        if self.maximize is not None:
            return {self.maximize: -1.0}
        named = {} if self.minimize is None else self.minimize
        return named if isinstance(named, Mapping) else {named: 1.0}

    def to_dict(self) -> dict[str, Any]:
        """Return the criteria that were given, by keyword, as plain numbers and lists."""
        content = {keyword.name: to_plain(getattr(self, keyword.name)) for keyword in fields(self)}
        return {name: value for name, value in content.items() if value not in (None, False, {})}

    def describe_bounds(self) -> str:
        """Return the bounds in words."""
        return " and ".join(describe_bound(*bounded) for bounded in self.bounds())

    def check(self, front: Front) -> None:
        """Raise for names the front does not have, and numbers that do not fit its objectives."""
        by_name = self.near if isinstance(self.near, Mapping) else {}
        for name in (*self.max, *self.min, *self.sought, *by_name):
            check_choice("objective or metric", name, get_columns(front))
        for role in ("max", "min", "near"):
            values = getattr(self, role)
            if isinstance(values, Mapping):
                _check_shares(role, values)
        for role in ("weights", "near"):
            values = getattr(self, role)
            if not isinstance(values, Mapping | None) and len(values) != front.objectives:
                raise ConfigurationError(
                    f"`{role}` must have one number per objective, here {front.objectives} "
                    f"({', '.join(front.names)}); found {list(values)}"
                )


def describe_bound(name: str, bound: float, side: int) -> str:
    """Return a bound in words."""
    return f"`{name}` at {'most' if side > 0 else 'least'} {bound:g}"


def _check_named(role: str, values: object) -> Mapping[str, float]:
    if not isinstance(values, Mapping):
        raise ConfigurationError(
            f"`{role}` needs numbers by name, such as {{'tpr_gap': 0.02}}, found {values!r}"
        )
    if role in ("near", "minimize") and not values:
        raise ConfigurationError(f"`{role}` must name at least one value, found none")
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
            raise ConfigurationError(f"`{role}` of `{name}` must be a number, found {value!r}")
    return MappingProxyType({name: float(value) for name, value in values.items()})


def _check_numbers(role: str, values: Sequence[float]) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        raise ConfigurationError(f"`{role}` must have one number per objective, found {values!r}")
    if role == "weights" and (not numbers or min(numbers) < 0 or sum(numbers) <= 0):
        raise ConfigurationError(f"`weights` must not be negative and not all 0, found {values!r}")
    return numbers


def _check_shares(role: str, values: Mapping[str, float]) -> None:
    """Raise for a share, a rate or a gap between rates above 1: it was meant in percent."""
    from paretocosmos.objectives import measure_of  # which uses fronts

    for name, value in values.items():
        if measure_of(name).unit and 1 < value < math.inf:
            hint = f": did you mean {value / 100:g}?" if value <= 100 else ""
            raise ConfigurationError(
                f"`{role}` of `{name}` is a share, at most 1, found {value:g}{hint}"
            )


def find_best(front: Front, criteria: Criteria) -> int:
    """Return the index of the best point that keeps the bounds; raise if there is none."""
    criteria.check(front)
    cost = compute_cost(front, criteria)
    allowed = find_feasible(front, criteria) & np.isfinite(cost)
    if not allowed.any():
        raise InfeasibleError(_explain_infeasibility(front, criteria, cost))
    # a count, such as errors, is often the same at several rays: then the first objective decides
    order = np.lexsort((front.values[:, 0], np.where(allowed, cost, np.inf)))
    return int(order[0])


def find_closest(front: Front, criteria: Criteria) -> int:
    """Return the index of the point nearest to the bounds, constant classifiers last."""
    total = np.zeros(len(front))
    for name, bound, side in criteria.bounds():
        values = get_columns(front)[name]
        spread = float(np.nanmax(values) - np.nanmin(values)) if np.isfinite(values).any() else 1
        excess = np.maximum(side * (values - bound), 0) / (spread or 1)
        total += np.where(np.isnan(excess), np.inf, excess)
    # a constant classifier has no gap at all, but nobody wants to be told of it first
    last = find_constant(front) if not criteria.allow_constant else np.zeros(len(front), dtype=bool)
    return int(np.lexsort((front.values[:, 0], total, last))[0])


def find_feasible(front: Front, criteria: Criteria) -> Mask:
    """Return ``[N]``: which points keep the bounds and are no excluded constant classifiers."""
    allowed = ~find_constant(front) | criteria.allow_constant
    for name, bound, side in criteria.bounds():
        allowed &= side * get_columns(front)[name] <= side * bound  # not for NaN
    return allowed


def compute_cost(front: Front, criteria: Criteria) -> Array:
    """Return ``[N]``: smallest at the best point, infinite where a point does not count."""
    columns = get_columns(front)
    cost: Any
    if criteria.sought:
        cost = sum(weight * columns[name] for name, weight in criteria.sought.items())
    elif criteria.near is not None:
        near = criteria.near
        named = near if isinstance(near, Mapping) else dict(zip(front.names, near, strict=True))
        squares = np.zeros(len(front))
        for name, value in named.items():
            numbers = columns[name]
            width = np.ptp(numbers[np.isfinite(numbers)]) if np.isfinite(numbers).any() else 1
            # divided by its extent, or the objective in the largest unit would decide
            squares += ((numbers - value) / (width if width > 0 else 1)) ** 2
        cost = np.sqrt(squares)
    elif criteria.knee or criteria.weights is not None:
        scaled = _scale_values(front)
        if criteria.weights is None:
            cost = scaled.sum(axis=1)
        else:
            from_worst = 1 - scaled
            total = from_worst.sum(axis=1, keepdims=True)
            pseudo_weights = from_worst / np.where(total > 0, total, 1)
            wanted = np.asarray(criteria.weights, dtype=np.float64)
            cost = np.linalg.norm(pseudo_weights - wanted / wanted.sum(), axis=1)
        cost = np.where(front.non_dominated, cost, np.inf)
    else:
        free = [name for name in front.names if name not in (*criteria.max, *criteria.min)]
        cost = columns[(free or front.names)[0]]
    return np.where(np.isnan(cost), np.inf, cost)


def find_constant(front: Front) -> Mask:
    """Return ``[N]``: which points are classifiers that give everybody the same answer."""
    return _gives_same_answer(front.metrics, len(front))


def is_constant(point: Point) -> bool:
    """Return whether a point is a classifier that gives everybody the same answer."""
    return bool(_gives_same_answer(point.metrics, 1)[0])


def _gives_same_answer(metrics: Mapping[str, Array] | Mapping[str, float], count: int) -> Mask:
    same = np.zeros(count, dtype=bool)
    for name, values in metrics.items():
        for revealing, numbers in REVEALING.items():
            # of one of several targets: `largest_share_income`
            if name == revealing or name.startswith(f"{revealing}_"):
                same |= np.isin(values, numbers)
    return same


def _scale_values(front: Front) -> Array:
    """Scale every objective to 0 at the best and 1 at the worst non-dominated point."""
    # dominated points would stretch the scale by values that nobody would choose
    values = front.values[front.non_dominated]
    if not len(values):
        return np.full(front.values.shape, np.nan)
    low, width = values.min(axis=0), np.ptp(values, axis=0)
    scaled: Array = (front.values - low) / np.where(width > 0, width, 1)
    return scaled


def _explain_infeasibility(front: Front, criteria: Criteria, cost: Array) -> str:
    """Explain why no point can be chosen, how close one comes, and the way out."""
    if not np.isfinite(cost).any():
        return (
            f"no ray has a number to choose by on {front.split}: a group or a class may be missing "
            "there; choose by another objective or metric"
        )
    same = find_constant(front)
    if same.all() and not criteria.allow_constant:
        return (
            f"every ray gives a constant classifier on {front.split}, which `allow_constant` "
            "takes: the rows are too few, or the columns tell too little, for other answers; give "
            "more of them, train longer, or set a `threshold`"
        )
    if not criteria.bounds():
        return f"only constant classifiers have a number to choose by on {front.split}"
    bounds = criteria.describe_bounds()
    # the bounds alone, to tell whether it is they that nobody keeps
    kept = find_feasible(front, Criteria(max=criteria.max, min=criteria.min, allow_constant=True))
    if (kept & (criteria.allow_constant | ~same)).any():
        return (
            f"every ray that has {bounds} on {front.split} is dominated, so that none is "
            "a knee or fits weights: choose with `minimize` or `maximize`"
        )
    near = get_point(front, find_closest(front, criteria))
    reached = " and ".join(f"`{name}` {near[name]:.4g}" for name, _, _ in criteria.bounds())
    ray = ",".join(f"{weight:.4g}" for weight in near.ray)
    if (kept & same).any():
        return (
            f"only a constant classifier has {bounds} on {front.split}, which "
            f"`allow_constant` takes: the closest of the others has {reached}, at the ray {ray}"
        )
    return (
        f"no ray has {bounds} on {front.split}: the closest has {reached}, at the ray "
        f"{ray}; allow that much, or train for a wider front"
    )


def find_neighbours(rays: Array, index: int) -> list[tuple[Array, int | None]]:
    """Return rays around one, with their indices; `None` for a corner of the simplex.

    Two objectives: the next on either side. More: as many of the nearest as the simplex has
    directions, twice. The corners count as rays, so that one can go on beyond the outermost.
    """
    objectives = rays.shape[1]
    # beyond the outermost rays one can go as far as the corners
    candidates = np.concatenate([rays, np.eye(objectives)])
    distances = np.abs(candidates - rays[index]).max(axis=1)
    if objectives == 2:
        along = candidates[:, 0] - rays[index, 0]
        sides = [np.flatnonzero(sign * along > 1e-9) for sign in (1, -1)]
        nearest = [int(side[distances[side].argmin()]) for side in sides if len(side)]
    else:
        rest = np.flatnonzero(distances > 1e-9)
        order = np.linalg.norm(candidates[rest] - rays[index], axis=1).argsort(kind="stable")
        nearest = rest[order][: 2 * (objectives - 1)].tolist()
    return [(candidates[n], n if n < len(rays) else None) for n in nearest]
