"""Choosing the preference of an estimator by what it reaches."""

import copy
import warnings
from typing import Any, Self, Unpack

from sklearn.utils.validation import check_is_fitted
from torch import nn

from paretocosmos.conditioning import PerRayEnsemble
from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.estimators._problem import Fitted
from paretocosmos.evaluation.choose import choose_point
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.pareto.front import Front, Point, get_point
from paretocosmos.pareto.selection import Criteria, CriteriaOptions, find_best

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
        self, *, threshold: float | None = None, **criteria: Unpack[CriteriaOptions]
    ) -> Self:
        """Return an estimator that predicts at the preference that meets the criteria best.

        New rays are evaluated on the validation rows until the bounds are met there. These rows
        are not part of a pickle: an estimator read from one chooses among the rays of `front_`.

        Args:
            threshold: the probability above which `predict` says the second of two classes. `None`
                is 0.5, or another where no ray keeps the bounds at 0.5 but by giving everybody the
                same answer, or where it gains more of what is maximised than chance explains.
            criteria: bounds and what is best among the points that keep them, by the keywords of
                `pareto.selection.Criteria`: `max`, `min`, `minimize`, `maximize`, `knee`,
                `weights`, `near`, `allow_constant` and `confidence`. Without a confidence, bounds
                hold on the validation rows, and for gaps with `fairness_adjustment` on these and
                the training rows together.

        Returns:
            A fitted copy with the chosen ray as its `preference`, the point as `choice_` and
            the threshold as `threshold_`; the network is shared. Refused where no ray keeps the
            bounds, saying how close one comes.
        """
        check_is_fitted(self, "model_")
        checked = Criteria.from_options(criteria)
        chosen = copy.copy(self)
        chosen._judging = self._judging  # which a copy leaves behind, as a pickle does
        if self._judging is None:
            chosen.choice_, chosen.threshold_ = self._among_held(checked, threshold), MIDDLE
        else:
            found = choose_point(
                self.model_,
                self._judging,
                self.front_,
                checked,
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
        return get_point(self.front_, find_best(self.front_, criteria))
