"""What may be asked of a point."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from types import MappingProxyType
from typing import Any

from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.selection._point import columns

__all__ = ["Criteria"]

# What a point is chosen by, one at a time.
KINDS = ("minimize", "maximize", "knee", "weights", "near")


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """What is asked of a point: bounds it keeps, and what is best among those that keep them.

    Attributes:
        max: the largest value allowed, by the name of an objective or a metric.
        min: the smallest value allowed, likewise.
        minimize: what is to be small; the first objective without a bound, where nothing is said.
        maximize: what is to be large (``"accuracy"``).
        knee: where giving way in one objective gains least in the others: the non-dominated point
            with the smallest sum, every objective scaled to 0 at its best and 1 at its worst.
        weights: how much each objective matters, one number each: the non-dominated point whose
            pseudo-weights (its distance from each objective's worst, scaled; Deb 2001, section
            8.5) are nearest.
        near: a point to come close to: values by name, or one per objective.
        allow_constant: take a classifier that gives everybody the same answer, too.
        confidence: with which the bounds are to hold for more people than were looked at, above
            0.5 and below 1; `None`: on the data at hand.
    """

    max: Mapping[str, float] = field(default_factory=dict)
    min: Mapping[str, float] = field(default_factory=dict)
    minimize: str | None = None
    maximize: str | None = None
    knee: bool = False
    weights: Sequence[float] | None = None
    near: Mapping[str, float] | Sequence[float] | None = None
    allow_constant: bool = False
    confidence: float | None = None

    def __post_init__(self) -> None:
        asked = [n for n in KINDS if not (getattr(self, n) is None or getattr(self, n) is False)]
        if len(asked) > 1:
            raise ConfigurationError(
                f"a point has one criterion, found {' and '.join(f'`{a}`' for a in asked)}: "
                "leave one out, or turn it into a bound with `max`"
            )
        if not asked and not self.max and not self.min:
            raise ConfigurationError(
                "`choose` needs to know what to choose by: a bound such as "
                "max={'tpr_gap': 0.02}, knee=True, weights or near"
            )
        self._check_confidence()
        for role in ("max", "min", "near"):
            given = getattr(self, role)
            if isinstance(given, Mapping):
                object.__setattr__(self, role, _named(role, given))
            elif role != "near":
                raise ConfigurationError(
                    f"`{role}` needs numbers by name, such as {{'tpr_gap': 0.02}}, found {given!r}"
                )
        for role in ("weights", "near"):
            given = getattr(self, role)
            if given is not None and not isinstance(given, Mapping):
                object.__setattr__(self, role, _numbers(role, given))

    def _check_confidence(self) -> None:
        given: object = self.confidence
        if given is None:
            return
        if isinstance(given, bool) or not isinstance(given, Real) or not 0.5 < float(given) < 1:
            raise ConfigurationError(
                f"`confidence` must be above 0.5 and below 1, such as 0.9, found {given!r}"
            )
        if not self.max and not self.min:
            raise ConfigurationError(
                "`confidence` needs a bound: add one, such as max={'tpr_gap': 0.02}"
            )

    def bounds(self) -> list[tuple[str, float, int]]:
        """Every bound: the name, the number, and 1 if the value may not be above it, else -1."""
        above = [(name, value, 1) for name, value in self.max.items()]
        return above + [(name, value, -1) for name, value in self.min.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return what was asked by its keyword, as plain numbers and lists; nothing else.

        >>> Criteria(max={"tpr_gap": 0.02}, maximize="accuracy").to_dict()
        {'max': {'tpr_gap': 0.02}, 'maximize': 'accuracy'}
        """
        asked = {}
        for keyword in fields(self):
            value = getattr(self, keyword.name)
            if isinstance(value, Mapping):
                # JSON has no infinite bound
                value = {name: v if math.isfinite(v) else None for name, v in value.items()}
            if value not in (None, False, {}):
                asked[keyword.name] = list(value) if isinstance(value, tuple) else value
        return asked

    def text(self) -> str:
        """The bounds in words."""
        return " and ".join(
            f"`{name}` at {'most' if side > 0 else 'least'} {bound:g}"
            for name, bound, side in self.bounds()
        )

    def check(self, front: Front) -> None:
        """Refuse names the front does not have, and numbers that do not fit its objectives."""
        by_name = self.near if isinstance(self.near, Mapping) else {}
        for name in (*self.max, *self.min, self.minimize, self.maximize, *by_name):
            if name is not None and name not in columns(front):
                raise unknown("objective or metric", name, columns(front))
        for role in ("max", "min", "near"):
            values = getattr(self, role)
            if isinstance(values, Mapping):
                _check_shares(role, values)
        for role in ("weights", "near"):
            given = getattr(self, role)
            if given is None or isinstance(given, Mapping):
                continue
            if len(given) != front.objectives:
                raise ConfigurationError(
                    f"`{role}` must have one number per objective, here {front.objectives} "
                    f"({', '.join(front.names)}); found {list(given)}"
                )


def _named(role: str, given: Mapping[str, float]) -> Mapping[str, float]:
    if role == "near" and not given:
        raise ConfigurationError("`near` must name at least one value, found none")
    for name, value in given.items():
        number: object = value  # whoever does not check types may give anything
        if isinstance(number, bool) or not isinstance(number, Real) or math.isnan(number):
            raise ConfigurationError(f"`{role}` of `{name}` must be a number, found {value!r}")
    return MappingProxyType({name: float(value) for name, value in given.items()})


def _check_shares(role: str, values: Mapping[str, float]) -> None:
    """Refuse a share, a rate or a gap between rates above 1: it was meant in percent."""
    from paretocosmos.objectives import measure_of  # which uses fronts

    for name, value in values.items():
        if measure_of(name).unit and 1 < value < math.inf:
            meant = f": did you mean {value / 100:g}?" if value <= 100 else ""
            raise ConfigurationError(
                f"`{role}` of `{name}` is a share, at most 1, found {value:g}{meant}"
            )


def _numbers(role: str, given: Sequence[float]) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in given)
    except (TypeError, ValueError):
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        raise ConfigurationError(f"`{role}` must have one number per objective, found {given!r}")
    if role == "weights" and (not numbers or min(numbers) < 0 or sum(numbers) <= 0):
        raise ConfigurationError(f"`weights` must not be negative and not all 0, found {given!r}")
    return numbers
