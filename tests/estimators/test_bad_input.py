"""What the estimators refuse, each in one sentence with the way out."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning, NotFittedError
from tests.estimators.conftest import People

from paretocosmos.errors import (
    ConfigurationError,
    DataError,
    DivergedError,
    ParetoCosmosError,
)
from paretocosmos.estimators import ParetoClassifier, ParetoRegressor

DRAW = np.random.default_rng(0)
x = DRAW.normal(size=(120, 3))
y = DRAW.integers(0, 2, 120)
number = DRAW.normal(size=120)
sex = DRAW.integers(0, 2, 120)
FRAME = pd.DataFrame(x, columns=list("abc"))
SHUFFLED = pd.Series(sex).sample(frac=1, random_state=0)
few: dict[str, Any] = {"epochs": 1, "random_state": 0}


def classifier(**given: Any) -> ParetoClassifier:
    return ParetoClassifier(**{**few, **given})


def regressor(**given: Any) -> ParetoRegressor:
    return ParetoRegressor(**{**few, **given})


def with_one(values: Any, at: int, value: Any) -> Any:
    changed = np.array(values, dtype=object)
    changed[at] = value
    return changed


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        pytest.param(
            lambda: classifier().fit(x, y, sensitive=np.ones(120)),
            "two groups, found only `1`",
            id="one-group",
        ),
        pytest.param(
            lambda: classifier().fit(x, y, sensitive=with_one(sex, 3, None)),
            "found 1 missing of 120",
            id="missing-group",
        ),
        pytest.param(
            lambda: classifier().fit(x, y, sensitive=sex[:50]),
            "inconsistent numbers of samples",
            id="few-groups",
        ),
        pytest.param(
            lambda: classifier().fit(x, y, sensitive=np.ones((120, 2, 2))),
            "one column or several, found shape (120, 2, 2)",
            id="a-cube-of-groups",
        ),
        pytest.param(
            lambda: classifier().fit(FRAME, y, sensitive=SHUFFLED),
            "different index labels, so their rows may not match",
            id="shuffled-groups",
        ),
        pytest.param(
            lambda: classifier().fit(x, y, sensitive=number),
            "50 groups, found 120",
            id="a-number-for-a-group",
        ),
        pytest.param(
            lambda: classifier().fit(x, y, sensitive=with_one(sex, 0, 7)),
            "for validation, found too few of `7`",
            id="a-group-of-one",
        ),
        pytest.param(
            lambda: classifier().fit(x, sex, sensitive=sex),
            "in every group and split, found none of `0`",
            id="a-group-without-positives",
        ),
        pytest.param(
            lambda: classifier().fit(x, np.where(sex, y, y + 2), sensitive=sex),
            "rows of a class that",
            id="groups-without-a-common-class",
        ),
        pytest.param(
            lambda: classifier().fit(x, np.column_stack([y, y]), sensitive=sex),
            "one target, found 2",
            id="groups-and-several-targets",
        ),
        pytest.param(
            lambda: classifier(fairness="tpr").fit(x, y, sensitive=sex),
            "`tpr`; did you mean `tpr_gap`",
            id="fairness-of-a-classifier",
        ),
        pytest.param(
            lambda: regressor(fairness="tpr_gap").fit(x, number, sensitive=sex),
            "of a regressor `tpr_gap`",
            id="fairness-of-a-regressor",
        ),
        pytest.param(
            lambda: regressor(loss="square").fit(x, number),
            "`loss` `square`; did you mean `squared`",
            id="loss",
        ),
        pytest.param(
            lambda: classifier().fit(x, number),
            "found continuous values",
            id="numbers-for-classes",
        ),
        pytest.param(
            lambda: regressor().fit(x, np.where(y, "yes", "no")),
            "predicts numbers, found values",
            id="classes-for-numbers",
        ),
        pytest.param(
            lambda: classifier().fit(x, with_one(y.astype(float), 2, np.nan)),
            "missing or infinite of 120",
            id="missing-class",
        ),
        pytest.param(
            lambda: regressor().fit(x, with_one(number, 2, np.nan).astype(float)),
            "Input y contains NaN",
            id="missing-number",
        ),
        pytest.param(
            lambda: classifier().fit(x, np.ones(120)),
            "at least two classes",
            id="one-class",
        ),
        pytest.param(
            lambda: classifier().fit(x, with_one(y, 0, 2).astype(int)),
            "for validation, found too few of `2`",
            id="a-class-of-one",
        ),
        pytest.param(
            lambda: classifier().fit(x[:1], y[:1]), "2 rows with a positive weight", id="one-row"
        ),
        pytest.param(lambda: classifier().fit(x[:, :0], y), "0 feature(s)", id="no-features"),
        pytest.param(
            lambda: classifier().fit(pd.DataFrame(x).iloc[:0], y[:0]),
            "found shape (0, 3)",
            id="no-rows",
        ),
        pytest.param(
            lambda: classifier().fit(x, y, sample_weight=-np.ones(120)),
            "`sample_weight` must be finite",
            id="negative-weight",
        ),
        pytest.param(
            lambda: classifier().fit(x, y, sample_weight=["a"] * 120),
            "`sample_weight` is one number",
            id="a-word-for-a-weight",
        ),
        pytest.param(
            lambda: classifier(preference=[0.2, 0.3]).fit(x, y),
            "sum of 0.5: divide",
            id="preference-off-the-simplex",
        ),
        pytest.param(
            lambda: classifier(preference=[0.2, 0.3, 0.5]).fit(x, y),
            "per objective, here 2",
            id="preference-too-long",
        ),
        pytest.param(
            lambda: classifier(off_simplex="normalize").fit(x, y),
            "found `normalize`",
            id="off-simplex",
        ),
        pytest.param(
            lambda: classifier(objectives={"one": lambda o, t: o.mean()}).fit(x, y),
            "at least two, found 1",
            id="one-objective",
        ),
        pytest.param(
            lambda: classifier(objectives=["accuracy", "gap"]).fit(x, y),
            "`objectives` must be functions",
            id="names-for-objectives",
        ),
        pytest.param(
            lambda: classifier(validation_fraction=1.5).fit(x, y),
            "between 0 and 1, found 1.5",
            id="validation-fraction",
        ),
        pytest.param(lambda: classifier(epochs=0).fit(x, y), "`epochs` must be", id="epochs"),
        pytest.param(
            lambda: classifier(batch_size="many").fit(x, y), "`batch_size` takes int", id="batch"
        ),
        pytest.param(lambda: classifier(hidden=60).fit(x, y), "`hidden` takes tuple", id="hidden"),
        pytest.param(
            lambda: classifier(method="cosmo").fit(x, y), "did you mean `cosmos`", id="method"
        ),
        pytest.param(
            lambda: classifier(method="linear", penalty=1.0).fit(x, y),
            "unknown setting `penalty`",
            id="penalty-of-another-method",
        ),
        pytest.param(
            lambda: classifier(categorical="x1").fit(x, y),
            "found 'x1': ['x1']",
            id="categorical-is-a-list",
        ),
        pytest.param(
            lambda: classifier(categorical=["x7"]).fit(x, y),
            "unknown categorical column `x7`",
            id="categorical-unknown",
        ),
        pytest.param(
            lambda: classifier(random_state="now").fit(x, y),
            "`random_state` is a whole number",
            id="random-state",
        ),
        pytest.param(
            lambda: regressor().fit(x, pd.DataFrame({"weight": number, "b": number})),
            "target names must be unique",
            id="a-target-called-weight",
        ),
        pytest.param(
            lambda: regressor().fit(x, number * 1e200 * 1e100),
            "too large to standardise",
            id="huge-target",
        ),
    ],
)
def test_what_fit_refuses(attempt: Callable[[], object], message: str) -> None:
    with pytest.raises(ParetoCosmosError, match=re.escape(message)) as caught:
        attempt()
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
