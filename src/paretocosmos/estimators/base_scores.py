"""A classifier that the caller trusts, as an input: its scores of a row become further columns."""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import has_fit_parameter

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.estimators.inputs import Floats, Rows, encode_features, translate_errors
from paretocosmos.estimators.targets import Target
from paretocosmos.problems.tables import BASE_SCORE, Table

FOLDS = 5
# The distance a probability keeps from 0 and 1 before its logarithm is taken.
MARGIN = 1e-6


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
        cls,
        base: Any,
        rows: Rows,
        targets: Sequence[Target],
        categorical: Collection[str],
        seed: int,
    ) -> tuple["BaseScores | None", Rows]:
        """Fit a copy of the classifier, if there is one.

        Args:
            base: a classifier of scikit-learn's kind; it is not changed.
            rows: those that train.
            targets: what is predicted.
            categorical: columns to read as categories although they hold numbers.
            seed: of the folds.

        Returns:
            The fitted copy, and the rows with its scores: of every row, those of a copy that was
            fitted without it and its fold. A copy that knew the row would be too sure of it.
        """
        if base is None:
            return None, rows
        if len(targets) > 1:
            raise ConfigurationError(
                f"`base` scores one target, found {len(targets)}: fit one estimator for each"
            )
        classes = len(targets[0].answer.classes)
        if isinstance(base, type | str) or not is_classifier(base):
            raise ConfigurationError(
                f"`base` must be a scikit-learn classifier, found {base!r}: give an unfitted one, "
                "such as HistGradientBoostingClassifier()"
            )
        if BASE_SCORE in rows.frame.columns:
            raise DataError(
                f"`X` has a column `{BASE_SCORE}`, the name that `base` uses: rename it"
            )
        table = Table.fit(rows.frame, categorical=categorical, weight=rows.weight)
        features, codes = table.transform(rows.frame), rows.truth[0]
        fitted = cls(table, _fit_classifier(base, features, rows), classes)
        # a class must be in every fold, or a copy would not know it
        folds = min(FOLDS, int(np.bincount(codes, minlength=classes).min()))
        if folds < 2:
            raise DataError("with `base` every class needs 2 rows to train on, found 1: give more")
        scores = np.empty((len(rows), fitted.columns))
        cut = StratifiedKFold(folds, shuffle=True, random_state=seed)
        for inside, outside in cut.split(features, codes):
            model = _fit_classifier(base, features[inside], rows.take(inside))
            scores[outside] = replace(fitted, model=model).compute(features[outside])
        return fitted, replace(rows, frame=_add_columns(rows.frame, scores))

    @property
    def columns(self) -> int:
        """The number of scores of a row: one for two classes, else one for each."""
        return 1 if self.classes == 2 else self.classes

    def add_to(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return new rows with their scores."""
        return _add_columns(frame, self.compute(encode_features(self.table, frame)))

    def add_to_held_out(self, rows: Rows) -> Rows:
        """Return rows to validate on with their scores."""
        with warnings.catch_warnings():
            # a category that only validation rows have is nobody's mistake
            warnings.simplefilter("ignore", UserWarning)
            return replace(rows, frame=self.add_to(rows.frame))

    def compute(self, features: Any) -> Floats:
        """Compute logits of two classes, log-probabilities of more, or the decision function."""
        if hasattr(self.model, "predict_proba"):
            # its columns follow the numbers of the classes that it knows
            probabilities = np.full((len(features), self.classes), MARGIN)
            probabilities[:, self.model.classes_] = self.model.predict_proba(features)
            logs: Floats = np.log(probabilities.clip(MARGIN, 1 - MARGIN))
            return logs[:, 1:] - logs[:, :1] if self.classes == 2 else logs
        scores = self.model.decision_function(features)
        return np.asarray(scores, dtype=np.float64).reshape(len(features), self.columns)


def _fit_classifier(base: Any, features: Any, rows: Rows) -> Any:
    settings = {}
    if rows.weight is not None:
        if not has_fit_parameter(base, "sample_weight"):
            raise DataError(
                f"`base`, {type(base).__name__}, takes no `sample_weight`: leave it out, or give "
                "another classifier"
            )
        settings["sample_weight"] = rows.weight
    with translate_errors("`base` could not be fitted"):
        # a clone: the caller's classifier stays unfitted
        return clone(base).fit(features, rows.truth[0], **settings)


def _add_columns(frame: pd.DataFrame, scores: Floats) -> pd.DataFrame:
    count = scores.shape[1]
    names = [BASE_SCORE] if count == 1 else [f"{BASE_SCORE} {code}" for code in range(count)]
    return pd.concat([frame, pd.DataFrame(scores, frame.index, names)], axis=1)
