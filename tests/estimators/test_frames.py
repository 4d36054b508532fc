"""Tables of people: categories, missing values, names, weights, and rows that are alike."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from tests.estimators.conftest import People, draw_people

from paretocosmos.estimators import ParetoClassifier, ParetoRegressor

few: dict[str, Any] = {"epochs": 2, "random_state": 0}


def test_categories_text_and_missing_values_count() -> None:
    """Everything that can be known is in the columns that are no plain numbers."""
    draw = np.random.default_rng(0)
    work, size = draw.choice(["a", "b", "c"], 600), draw.choice(["s", "l"], 600)
    number = pd.Series(draw.normal(size=600)).where(draw.random(600) < 0.5)
    x = pd.DataFrame({"work": work, "size": pd.Categorical(size), "number": number})
    y = (work == "a") ^ (size == "s") ^ number.isna().to_numpy()
    fitted = ParetoClassifier(random_state=0).fit(x, y)
    assert fitted.score(x, y) == 1
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == ["work", "size", "number"]


def test_it_finds_in_people_what_there_is(people: People) -> None:
    fitted = ParetoClassifier(random_state=0).fit(people.x, people.rich)
    new = draw_people(1000, seed=5)
    assert roc_auc_score(new.rich == "yes", fitted.predict_proba(new.x)[:, 1]) > 0.87


def test_numbers_can_be_read_as_categories() -> None:
    x = np.random.default_rng(0).integers(0, 8, (400, 2))
    y = np.isin(x[:, 1], [1, 2, 6])
    frame = pd.DataFrame(x, columns=["one", "two"])
    by_place = ParetoClassifier(categorical=[1], **few).fit(x, y)
    by_name = ParetoClassifier(categorical=["two"], **few).fit(frame, y)
    assert len(by_place._table.features) == 1 + 8
    np.testing.assert_array_equal(by_place.predict_proba(x), by_name.predict_proba(frame))


def test_an_array_and_a_frame_are_the_same() -> None:
    x, y = make_classification(200, 5, random_state=0)
    names = [f"x{k}" for k in range(5)]
    frame = pd.DataFrame(x, columns=names)
    plain = ParetoClassifier(**few).fit(x, y)
    named = ParetoClassifier(**few).fit(frame, y)
    np.testing.assert_array_equal(plain.predict_proba(x), named.predict_proba(frame))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        found = named.predict_proba(x)
    np.testing.assert_array_equal(found, named.predict_proba(frame))
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        found = plain.predict_proba(frame.set_axis(list("abcde"), axis=1))
    np.testing.assert_array_equal(found, plain.predict_proba(x))


def test_rows_are_never_modified(people: People) -> None:
    before = people.x.copy()
    fitted = ParetoClassifier(**few).fit(people.x, people.rich, sensitive=people.sex)
    fitted.predict(people.x, preference=[0.5, 0.5])
    pd.testing.assert_frame_equal(people.x, before)


class TestMissing:
    def test_a_value_that_was_never_missing_is_filled_with_the_median_and_told(self) -> None:
        x = np.random.default_rng(0).exponential(size=(151, 2))
        fitted = ParetoRegressor(**few).fit(x, x.sum(axis=1))
        rows, medians = x[:3].copy(), x[:3].copy()
        rows[:, 1] = np.nan
        with pytest.warns(UserWarning, match="missing in `x1`"):
            found = fitted.predict(rows)
        medians[:, 1] = fitted._table.numeric["x1"]
        np.testing.assert_array_equal(found, fitted.predict(medians))
        assert medians[0, 1] == pytest.approx(np.median(x[:, 1]), rel=0.1)

    def test_one_that_sometimes_was_is_nothing_new(self, people: People) -> None:
        fitted = ParetoClassifier(**few).fit(people.x, people.rich)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted.predict(people.x[people.x["skill"].isna()])

    def test_an_unseen_category_is_told(self, people: People, fair: ParetoClassifier) -> None:
        new = people.x[:4].assign(work="space")
        with pytest.warns(UserWarning, match="`work`.*training rows"):
            assert len(fair.predict(new, preference=[0.5, 0.5])) == 4

    def test_a_category_that_only_validation_rows_have_is_not(self) -> None:
        """Three rows have each: among those that validate are some that none has that trains."""
        x = pd.DataFrame({"name": [f"n{k % 40}" for k in range(120)], "x": np.arange(120.0)})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ParetoClassifier(**few).fit(x, np.arange(120) % 2)


class TestWeights:
    def test_a_weight_is_a_repetition_on_few_rows(self) -> None:
        draw = np.random.default_rng(0)
        x = pd.DataFrame({"a": draw.normal(size=30), "b": pd.Series(["x", None, "y"] * 10)})
        x.loc[::5, "a"] = np.nan
        y, sex, weight = draw.integers(0, 2, 30), np.arange(30) % 2, draw.integers(0, 4, 30)
        weighted = ParetoClassifier(**few).fit(x, y, sensitive=sex, sample_weight=weight)
        places = np.repeat(np.arange(30), weight)[::-1]
        repeated = ParetoClassifier(**few).fit(x.iloc[places], y[places], sensitive=sex[places])
        answers = (one.predict_proba(x, preference=[0.5, 0.5]) for one in (weighted, repeated))
        np.testing.assert_array_equal(*answers)
        assert weighted.front_ == repeated.front_

    def test_rows_of_weight_0_are_not_there(self, people: People) -> None:
        weight = np.where(np.arange(1200) < 900, 2.0, 0.0)
        y = np.where(weight > 0, people.kind, 17)  # a class that nobody is left of
        weighted = ParetoClassifier(**few).fit(people.x, y, sample_weight=weight)
        without = ParetoClassifier(**few).fit(people.x[:900], y[:900])
        assert weighted.classes_.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(
            weighted.predict_proba(people.x), without.predict_proba(people.x)
        )

    def test_heavy_rows_are_fitted_at_the_cost_of_light_ones(self) -> None:
        """One feature, two answers for each of its values: the heavier one is predicted."""
        x = np.tile([[0.0], [1.0]], (300, 1))
        y = np.repeat([10.0, 20.0], 300)
        heavy = np.where((x[:, 0] == 0) == (y == 10), 9.0, 1.0)
        fitted = ParetoRegressor(random_state=0).fit(x, y, sample_weight=heavy)
        np.testing.assert_allclose(fitted.predict([[0.0], [1.0]]), [11, 19], atol=0.7)


class TestSensitive:
    def test_several_columns_are_their_combinations(self, people: People) -> None:
        city = pd.Series(np.resize(["x", "y"], len(people.x)), index=people.x.index)
        both = pd.DataFrame({"sex": people.sex, "city": city})
        joined = both["sex"].astype(str) + " & " + both["city"]
        several = ParetoClassifier(**few).fit(people.x, people.rich, sensitive=both)
        one = ParetoClassifier(**few).fit(people.x, people.rich, sensitive=joined)
        assert several.groups_ == one.groups_ == tuple(sorted(set(joined)))
        assert several.front_ == one.front_

    def test_rows_with_labels_of_their_own(self) -> None:
        """Plain numbers for rows that have other labels are in the order of the rows."""
        x = pd.DataFrame({"a": np.random.default_rng(0).normal(size=200)}, index=range(500, 700))
        sex = np.arange(200) // 2 % 2
        y = np.arange(200) % 2
        found = [
            ParetoClassifier(**few).fit(x, y, sensitive=given).front_
            for given in (sex, pd.Series(sex), pd.Series(sex, index=x.index))
        ]
        assert found[0] == found[1] == found[2]
