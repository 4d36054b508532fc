"""Choosing the preference of an estimator by what it reaches."""

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted
from torch import nn

from paretocosmos.conditioning import PerRayEnsemble
from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.estimators._problem import Fitted
from paretocosmos.evaluation.choice import settle
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.selection import Criteria, Point, pick, point_of

__all__ = ["Chooses"]

# Rays to evaluate for a choice.
EVALUATIONS = 20


class Chooses:
    """An estimator whose preference can be chosen once it is fitted.

    Attributes:
        choice_: the point that was chosen, on the validation rows; of an estimator that `choose`
            has returned.
        threshold_: the probability above which `predict` says the second of two classes, at any
            preference: 0.5, or what `choose` found.
    """

    front_: Front
    model_: nn.Module
    choice_: Point
    threshold_: float = MIDDLE
    preference: Any
    _judging: Fitted | None

    def choose(
        self,
        *,
        max: Mapping[str, float] | None = None,  # noqa: A002
        min: Mapping[str, float] | None = None,  # noqa: A002
        minimize: str | None = None,
        maximize: str | None = None,
        knee: bool = False,
        weights: Sequence[float] | None = None,
        near: Mapping[str, float] | Sequence[float] | None = None,
        allow_constant: bool = False,
        confidence: float | None = None,
        threshold: float | None = None,
    ) -> Self:
        """An estimator that predicts at the preference that meets the criteria best.

        New rays are evaluated on the validation rows until the bounds are met there. These rows
        are not part of a pickle: an estimator read from one chooses among the rays of `front_`.

        Args:
            max: the largest value allowed, by the name of an objective or a metric of `front_`.
            min: the smallest value allowed, likewise.
            minimize: what is to be small; by default the first objective without a bound.
            maximize: what is to be large, such as ``"accuracy"``.
            knee: where giving way in one objective gains least in the others.
            weights: how much each objective matters (pseudo-weights).
            near: a point to come close to: values by name, or one per objective.
            allow_constant: take a classifier that gives everybody the same answer, too.
            confidence: with which bounds are to hold for new people, such as 0.9: then a bound is
                kept by the upper limit of what is bounded, and the rays of `front_` are tested
                instead of new ones looked for. `None`: bounds hold on the validation rows,
                gaps by `tilt` on these and the training rows together.
            threshold: the probability above which `predict` says the second of two classes. `None`
                is 0.5, or another where no ray keeps the bounds at 0.5 but by giving everybody the
                same answer, or where it gains more of what is maximised than chance explains.

        Returns:
            A fitted copy with the chosen ray as its `preference`, the point as `choice_` and
            the threshold as `threshold_`; the network is shared. Refused where no ray keeps the
            bounds, saying how close one comes.
        """
        check_is_fitted(self, "model_")
        criteria = Criteria(
            max=max or {},
            min=min or {},
            minimize=minimize,
            maximize=maximize,
            knee=knee,
            weights=weights,
            near=near,
            allow_constant=allow_constant,
            confidence=confidence,
        )
        chosen = copy.copy(self)
        chosen._judging = self._judging  # which a copy leaves behind, as a pickle does
        if self._judging is None:
            chosen.choice_, chosen.threshold_ = self._among_held(criteria, threshold), MIDDLE
        else:
            found = settle(
                self.model_,
                self._judging,
                self.front_,
                criteria,
                fixed=isinstance(self.model_, PerRayEnsemble),
                evaluations=EVALUATIONS,
                threshold=threshold,
            )
            chosen.choice_, chosen.threshold_ = found.point, found.threshold
        chosen.preference = chosen.choice_.ray
        return chosen

    def _among_held(self, criteria: Criteria, threshold: float | None) -> Point:
        """The point of `front_`, where there are no rows to evaluate another ray on."""
        given = {"confidence": criteria.confidence, "threshold": threshold}
        for name in (name for name, value in given.items() if value is not None):
            raise ConfigurationError(
                f"`{name}` needs the validation rows, which a pickle does not contain: choose "
                f"before saving the estimator, or leave `{name}` out"
            )
        warnings.warn(
            "a pickle does not contain the validation rows, so the preference is chosen only "
            f"among the {len(self.front_)} rays of `front_`",
            FrontWarning,
            stacklevel=3,
        )
        return point_of(self.front_, pick(self.front_, criteria))
