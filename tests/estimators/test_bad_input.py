"""What the estimators refuse, each in one sentence with the way out."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning, NotFittedError
from tests.estimators.conftest import People

from paretocosmos.errors import ConfigurationError, DataError, DivergedError, ParetoCosmosError
from paretocosmos.estimators import ParetoClassifier, ParetoRegressor

DRAW = np.random.default_rng(0)
x = DRAW.normal(size=(120, 3))
y = DRAW.integers(0, 2, 120)
number = DRAW.normal(size=120)
sex = DRAW.integers(0, 2, 120)
FRAME = pd.DataFrame(x, columns=list("abc"))
SHUFFLED = pd.Series(sex).sample(frac=1, random_state=0)


def classifier(**settings: Any) -> ParetoClassifier:
    return ParetoClassifier(**{"epochs": 1, "random_state": 0, **settings})


def regressor(**settings: Any) -> ParetoRegressor:
    return ParetoRegressor(**{"epochs": 1, "random_state": 0, **settings})


def replace_one(values: Any, index: int, value: Any) -> Any:
    changed = np.array(values, dtype=object)
    changed[index] = value
    return changed


def classify(rows: Any = x, target: Any = y, /, groups: Any = None, **weight: Any) -> object:
    return classifier().fit(rows, target, sensitive=groups, **weight)


def regress(target: Any) -> object:
    return regressor().fit(x, target)


REFUSED: dict[str, Callable[[], object]] = {
    # groups
    "two groups, found only `1`": lambda: classify(groups=np.ones(120)),
    "found 1 missing of 120": lambda: classify(groups=replace_one(sex, 3, None)),
    "inconsistent numbers of samples": lambda: classify(groups=sex[:50]),
    "one column or several, found shape (120, 2, 2)": lambda: classify(groups=np.ones((120, 2, 2))),
    "different index labels, so their rows may": lambda: classify(FRAME, groups=SHUFFLED),
    "50 groups, found 120": lambda: classify(groups=number),
    "for validation, found too few of `7`": lambda: classify(groups=replace_one(sex, 0, 7)),
    "in every group and split, found none of `0`": lambda: classify(x, sex, groups=sex),
    "rows of a class that": lambda: classify(x, np.where(sex, y, y + 2), groups=sex),
    "needs exactly one target, found 2": lambda: classify(x, np.column_stack([y, y]), groups=sex),
    "`tpr`; did you mean `tpr_gap`": lambda: classifier(fairness="tpr").fit(x, y, sensitive=sex),
    "regressor `tpr_gap`": lambda: regressor(fairness="tpr_gap").fit(x, number, sensitive=sex),
    # targets
    "found continuous values": lambda: classify(x, number),
    "predicts numbers, found values": lambda: regress(np.where(y, "yes", "no")),
    "missing or infinite of 120": lambda: classify(x, replace_one(y.astype(float), 2, np.nan)),
    "Input y contains NaN": lambda: regress(replace_one(number, 2, np.nan).astype(float)),
    "at least two classes": lambda: classify(x, np.ones(120)),
    "for validation, found too few of `2`": lambda: classify(x, replace_one(y, 0, 2).astype(int)),
    "target names must be unique": lambda: regress(pd.DataFrame({"weight": number, "b": number})),
    "too large to standardise": lambda: regress(number * 1e200 * 1e100),
    # rows and weights
    "2 rows with a positive weight": lambda: classify(x[:1], y[:1]),
    "0 feature(s)": lambda: classify(x[:, :0]),
    "found shape (0, 3)": lambda: classify(FRAME.iloc[:0], y[:0]),
    "`sample_weight` must be finite": lambda: classify(sample_weight=-np.ones(120)),
    "`sample_weight` is one number": lambda: classify(sample_weight=["a"] * 120),
    # settings
    "`loss` `square`; did you mean `squared`": lambda: regressor(loss="square").fit(x, number),
    "sum of 0.5: divide": lambda: classifier(preference=[0.2, 0.3]).fit(x, y),
    "per objective, here 2": lambda: classifier(preference=[0.2, 0.3, 0.5]).fit(x, y),
    "found `normalize`": lambda: classifier(off_simplex="normalize").fit(x, y),
    "at least two, found 1": lambda: classifier(objectives={"one": np.mean}).fit(x, y),
    "`objectives` must be functions": lambda: classifier(objectives=["gap", "loss"]).fit(x, y),
    "between 0 and 1, found 1.5": lambda: classifier(validation_fraction=1.5).fit(x, y),
    "`epochs` must be": lambda: classifier(epochs=0).fit(x, y),
    "`batch_size` takes int": lambda: classifier(batch_size="many").fit(x, y),
    "`hidden` takes tuple": lambda: classifier(hidden=60).fit(x, y),
    "did you mean `cosmos`": lambda: classifier(method="cosmo").fit(x, y),
    "unknown setting `penalty`": lambda: classifier(method="linear", penalty=1.0).fit(x, y),
    "found 'x1': ['x1']": lambda: classifier(categorical="x1").fit(x, y),
    "unknown categorical column `x7`": lambda: classifier(categorical=["x7"]).fit(x, y),
    "`random_state` is a whole number": lambda: classifier(random_state="now").fit(x, y),
}


@pytest.mark.parametrize("message", REFUSED)
def test_fit_refuses_in_one_sentence(message: str) -> None:
    with pytest.raises(ParetoCosmosError, match=re.escape(message)) as caught:
        REFUSED[message]()
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


class TestPredict:
    def test_an_estimator_that_was_not_fitted(self) -> None:
        for verb in ("predict", "predict_proba"):
            with pytest.raises(NotFittedError):
                getattr(classifier(), verb)(x)
        with pytest.raises(NotFittedError):
            classifier().choose(knee=True)
        failed = classifier()
        with pytest.raises(ConfigurationError):
            failed.set_params(epochs=0).fit(x, y)
        with pytest.raises(NotFittedError):
            failed.predict(x)

    @pytest.mark.parametrize("wide", [2, 4])
    def test_another_number_of_features(self, wide: int) -> None:
        fitted = regressor().fit(x, number)
        rows = np.ones((5, wide))
        for given in (rows, pd.DataFrame(rows)):
            with pytest.raises(DataError, match=f"X has {wide} features, but .* expecting 3"):
                fitted.predict(given)

    def test_columns_of_another_name(self, people: People, fair: ParetoClassifier) -> None:
        with pytest.raises(DataError, match="feature names should match"):
            fair.predict(people.x.rename(columns={"age": "years"}))

    @pytest.mark.parametrize(
        ("ray", "message"),
        [
            ([0.6, 0.6], "found a sum of 1.2"),
            ([1.5, -0.5], "finite entries >= 0"),
            ([np.nan, 1.0], "finite entries >= 0"),
            ([1.0], "per objective, here 2"),
            ([[0.5, 0.5]] * 3, "5 rows, found 3"),
            ("equal", "ray must be 2 numbers"),
        ],
    )
    def test_a_preference_off_the_simplex(
        self, people: People, fair: ParetoClassifier, ray: Any, message: str
    ) -> None:
        with pytest.raises(ConfigurationError, match=message):
            fair.predict(people.x[:5], preference=ray)

    def test_it_may_be_normalised(self) -> None:
        fitted = classifier(off_simplex="normalise").fit(x, y)
        with pytest.warns(UserWarning, match="sum of 4: .*divided"):
            found = fitted.predict_proba(x, preference=[1, 3])
        np.testing.assert_array_equal(found, fitted.predict_proba(x, preference=[0.25, 0.75]))
        with pytest.raises(ConfigurationError, match="finite entries >= 0"):
            fitted.predict(x, preference=[2, -1])
        with pytest.raises(ConfigurationError, match="a sum of 0"):
            fitted.predict(x, preference=[0, 0])


def test_a_column_of_targets_is_one_target_and_told() -> None:
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        fitted = regressor().fit(x, number[:, None])
    assert fitted.predict(x).shape == (120,)


def test_text_needs_a_frame() -> None:
    with pytest.raises(DataError, match=r"found text: .*DataFrame"):
        classifier().fit(np.array([["a"], ["b"]] * 60), y)


def test_a_loss_that_becomes_infinite_says_what_to_do() -> None:
    with pytest.raises(DivergedError, match=r"step .*`learning_rate`"):
        regressor(learning_rate=1e30, epochs=5).fit(x, number)


def test_an_objective_that_gives_no_number() -> None:
    def each(outputs: Any, targets: Any) -> Any:
        return (outputs - targets["label"]).square()

    with pytest.raises(ConfigurationError, match=r"`a`.*one number.*shape"):
        regressor(objectives={"a": each, "b": each}).fit(x, number)
