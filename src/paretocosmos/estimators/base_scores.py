"""A classifier that the caller trusts, as an input: its scores of a row become further columns."""

import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import has_fit_parameter

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.estimators.inputs import Floats, Rows, features_of, ours
from paretocosmos.problems.tables import Table

FOLDS = 5
# How near a probability may come to 0 and 1 before its logarithm is taken.
NEAREST = 1e-6
NAME = "score of base"


@dataclass(frozen=True)
class BaseScores:
    """A fitted classifier, and how columns become what it reads.

    Attributes:
        table: the columns' preprocessing.
        model: the classifier, which knows classes by their numbers.
        classes: how many there are.
    """

    table: Table
    model: Any
    classes: int

    @classmethod
    def fit(
        cls, base: Any, rows: Rows, classes: int, categorical: Collection[str], seed: int
    ) -> tuple["BaseScores", Rows]:
        """Fit a copy of the classifier.

        Args:
            base: a classifier of scikit-learn's kind; it is not changed.
            rows: those that train.
            classes: how many there are.
            categorical: columns to read as categories although they hold numbers.
            seed: of the folds.

        Returns:
            The fitted copy, and the rows with its scores: of every row, what a copy says that was
            fitted without it and its fold. A copy that knew the row would be too sure of it.
        """
        if isinstance(base, type | str) or not is_classifier(base):
            raise ConfigurationError(
                f"`base` must be a scikit-learn classifier, found {base!r}: give an unfitted one, "
                "such as HistGradientBoostingClassifier()"
            )
        if NAME in rows.frame.columns:
            raise DataError(f"`X` has a column `{NAME}`, the name that `base` uses: rename it")
        table = Table.fit(rows.frame, categorical=categorical, weight=rows.weight)
        features, label = table.transform(rows.frame), rows.truth[0]
        fitted = cls(table, _fitted(base, features, rows), classes)
        folds = min(FOLDS, int(np.bincount(label, minlength=classes).min()))
        if folds < 2:
            raise DataError("with `base` every class needs 2 rows to train on, found 1: give more")
        apart = np.empty((len(rows), fitted.columns))
        cut = StratifiedKFold(folds, shuffle=True, random_state=seed)
        for known, new in cut.split(features, label):
            other = replace(fitted, model=_fitted(base, features[known], rows.take(known)))
            apart[new] = other.scores(features[new])
        return fitted, replace(rows, frame=_beside(rows.frame, apart))

    @property
    def columns(self) -> int:
        """How many scores a row has: one for two classes, else one for each."""
        return 1 if self.classes == 2 else self.classes

    def beside(self, frame: pd.DataFrame) -> pd.DataFrame:
        """New rows with their scores."""
        return _beside(frame, self.scores(features_of(self.table, frame)))

    def judging(self, rows: Rows) -> Rows:
        """Rows to validate on with their scores."""
        with warnings.catch_warnings():
            # a category that only validation rows have is nobody's mistake
            warnings.simplefilter("ignore", UserWarning)
            return replace(rows, frame=self.beside(rows.frame))

    def scores(self, features: Any) -> Floats:
        """Logits of two classes, log-probabilities of more, or what the classifier decides by."""
        known = self.model.classes_
        if hasattr(self.model, "predict_proba"):
            chance = np.full((len(features), self.classes), NEAREST)
            chance[:, known] = self.model.predict_proba(features)
            logs: Floats = np.log(chance.clip(NEAREST, 1 - NEAREST))
            return logs[:, 1:] - logs[:, :1] if self.classes == 2 else logs
        decided = self.model.decision_function(features)
        return np.asarray(decided, dtype=np.float64).reshape(len(features), self.columns)


def _fitted(base: Any, features: Any, rows: Rows) -> Any:
    given = {}
    if rows.weight is not None:
        if not has_fit_parameter(base, "sample_weight"):
            raise DataError(
                f"`base`, {type(base).__name__}, takes no `sample_weight`: leave it out, or give "
                "another classifier"
            )
        given["sample_weight"] = rows.weight
    with ours("`base` could not be fitted"):
        return clone(base).fit(features, rows.truth[0], **given)


def _beside(frame: pd.DataFrame, scores: Floats) -> pd.DataFrame:
    several = scores.shape[1] > 1
    names = [f"{NAME} {at}" if several else NAME for at in range(scores.shape[1])]
    return pd.concat([frame, pd.DataFrame(scores, frame.index, names)], axis=1)
