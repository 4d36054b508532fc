"""A classifier that the caller trusts, as an input: its scores of a row become further columns."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.estimators.inputs import Column, Floats, Rows, translate_errors
from paretocosmos.estimators.objectives import Classes, Target
from paretocosmos.problems.tables import BASE_SCORE

FOLDS = 5
# The distance a probability keeps from 0 and 1 before its logarithm is taken.
MARGIN = 1e-6
NOT_INCLUDED = (
    "the classifier given as `base` is not part of it: its score is a column of the rows, "
    f"`{BASE_SCORE}`"
)


@dataclass(frozen=True)
class BaseScores:
    """A fitted classifier, and the classes of the target.

    Attributes:
        model: the classifier.
        classes: what it may predict, in the order of their numbers.
    """

    model: Any
    classes: Column

    @classmethod
    def fit(
        cls, base: Any, rows: Rows, targets: Sequence[Target], seed: int
    ) -> tuple["BaseScores | None", Rows]:
        """Fit a copy of the classifier, if there is one and it is not fitted yet.

        Args:
            base: a classifier of scikit-learn's kind, which reads the features as they were given;
                it is not changed.
            rows: those that train.
            targets: what is predicted.
            seed: of the folds.

        Returns:
            The fitted classifier, and the rows with its scores: of every row, those of a copy that
            was fitted without it and its fold. A copy that knew the row would be too sure of it.
        """
        if base is None:
            return None, rows
        if len(targets) > 1:
            raise ConfigurationError(
                f"`base` scores one target, found {len(targets)}: fit one estimator for each"
            )
        if isinstance(base, type | str) or not is_classifier(base):
            raise ConfigurationError(
                f"`base` must be a scikit-learn classifier, found {base!r}: give one, such as "
                "HistGradientBoostingClassifier()"
            )
        if BASE_SCORE in rows.frame.columns:
            raise DataError(
                f"`X` has a column `{BASE_SCORE}`, the name that `base` uses: rename it"
            )
        (target,) = targets
        assert isinstance(target, Classes)
        with suppress(NotFittedError):
            check_is_fitted(base)
            return cls._use_fitted(base, rows, target.classes)
        labels, codes = target.classes[rows.truth[0]], rows.truth[0]
        fitted = cls(_fit_classifier(base, rows, labels), target.classes)
        # a class must be in every fold, or a copy would not know it
        folds = min(FOLDS, int(np.bincount(codes, minlength=len(target.classes)).min()))
        if folds < 2:
            raise DataError("with `base` every class needs 2 rows to train on, found 1: give more")
        scores = np.empty((len(rows), fitted.columns))
        cut = StratifiedKFold(folds, shuffle=True, random_state=seed)
        for inside, outside in cut.split(codes, codes):
            model = _fit_classifier(base, rows.take(inside), labels[inside])
            scores[outside] = replace(fitted, model=model).compute(rows.take(outside).given)
        return fitted, replace(rows, frame=_add_columns(rows.frame, scores))

    @classmethod
    def _use_fitted(cls, base: Any, rows: Rows, classes: Column) -> tuple["BaseScores", Rows]:
        unknown = [label for label in base.classes_ if label not in classes]
        if unknown:
            raise DataError(
                f"`base` was fitted for the class `{unknown[0]}`, which `y` does not have: give "
                "rows of all classes, or a `base` of these"
            )
        fitted = cls(base, classes)
        return fitted, replace(rows, frame=fitted.add_to(rows.frame, rows.given))

    @property
    def columns(self) -> int:
        """The number of scores of a row: one for two classes, else one for each."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def add_to(self, frame: pd.DataFrame, given: Any) -> pd.DataFrame:
        """Return rows with their scores.

        Args:
            frame: the rows.
            given: the same as the caller gave them.
        """
        return _add_columns(frame, self.compute(given))

    def compute(self, given: Any) -> Floats:
        """Compute logits of two classes, log-probabilities of more, or the decision function."""
        with translate_errors("`base` could not predict"):
            if hasattr(self.model, "predict_proba"):
                # its columns follow the classes that it knows
                known = np.searchsorted(self.classes, self.model.classes_)
                probabilities = np.full((len(given), len(self.classes)), MARGIN)
                probabilities[:, known] = self.model.predict_proba(given)
                logs: Floats = np.log(probabilities.clip(MARGIN, 1 - MARGIN))
                return logs[:, 1:] - logs[:, :1] if self.columns == 1 else logs
            scores = self.model.decision_function(given)
        return np.asarray(scores, dtype=np.float64).reshape(len(given), self.columns)


def _fit_classifier(base: Any, rows: Rows, labels: Column) -> Any:
    settings = {}
    if rows.weight is not None:
        if not has_fit_parameter(base, "sample_weight"):
            raise DataError(
                f"`base`, {type(base).__name__}, takes no `sample_weight`: leave it out, or give "
                "another classifier"
            )
        settings["sample_weight"] = rows.weight
    with translate_errors("`base` reads `X` as it is and could not be fitted: encode it there"):
        # a clone: the caller's classifier stays unfitted
        return clone(base).fit(rows.given, labels, **settings)


def _add_columns(frame: pd.DataFrame, scores: Floats) -> pd.DataFrame:
    count = scores.shape[1]
    names = [BASE_SCORE] if count == 1 else [f"{BASE_SCORE} {code}" for code in range(count)]
    return pd.concat([frame, pd.DataFrame(scores, frame.index, names)], axis=1)
