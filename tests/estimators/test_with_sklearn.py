"""Pipelines, searches, copies, pickles and metadata: what people do with estimators."""

import pickle
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import sklearn
from fairlearn.metrics import equal_opportunity_difference
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators.conftest import People

from paretocosmos.errors import DataError, FrontWarning
from paretocosmos.estimators import ParetoClassifier, ParetoRegressor
from paretocosmos.problems import SPLITS

few: dict[str, Any] = {"epochs": 2, "random_state": 0}


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_they_are_what_they_are() -> None:
    assert is_classifier(ParetoClassifier())
    assert is_regressor(ParetoRegressor())


def test_a_clone_is_unfitted_and_has_the_same_parameters(fair: ParetoClassifier) -> None:
    chosen = fair.choose(knee=True)
    copy = clone(chosen)
    assert copy.get_params() == chosen.get_params()
    assert copy.preference == chosen.choice_.ray
    assert not hasattr(copy, "model_")
    assert not hasattr(copy, "choice_")


class TestPickles:
    def test_predictions_and_the_front_stay(self, people: People, fair: ParetoClassifier) -> None:
        read = pickle.loads(pickle.dumps(fair))
        answers = (one.predict_proba(people.x, preference=[0.5, 0.5]) for one in (read, fair))
        np.testing.assert_array_equal(*answers)
        assert read.front_ == fair.front_
        assert read.groups_ == fair.groups_

    def test_no_rows_are_in_it(self, people: People) -> None:
        x = people.x.assign(number=np.arange(1200) * 7919.0 + 1e9)
        fitted = ParetoClassifier(**few).fit(x, people.rich, sensitive=people.sex)
        found = pickle.dumps(fitted)
        kept = (*fitted.model_.parameters(), *fitted.model_.buffers())
        weights = sum(tensor.nbytes for tensor in kept)
        record = len(pickle.dumps(fitted._record))
        assert record < 5_000
        # the rest: the front, and where numbers are encoded
        assert len(found) < weights + record + 22_500
        for split in SPLITS:
            inputs = fitted._problem.split(split).inputs
            assert inputs.numpy().tobytes() not in found
            assert inputs[0].numpy().tobytes() not in found
        with warnings.catch_warnings(action="ignore", category=FrontWarning):  # it may be constant
            assert fitted.choose(knee=True, allow_constant=True)._problem is fitted._problem


class TestPipelines:
    def test_after_transformers_that_give_frames(self, people: People) -> None:
        numbers = make_pipeline(SimpleImputer(), StandardScaler())
        first = make_column_transformer(
            (numbers, ["age", "skill"]), remainder="passthrough", verbose_feature_names_out=False
        )
        last = ParetoClassifier(random_state=0, epochs=8, preference=[0.5, 0.5])
        whole = make_pipeline(first, last).set_output(transform="pandas")
        whole.fit(people.x, people.rich, paretoclassifier__sensitive=people.sex)
        assert whole[-1].feature_names_in_.tolist() == ["age", "skill", "work", "size"]
        assert whole.score(people.x, people.rich) > 0.6
        other = whole.predict_proba(people.x, preference=[0.9, 0.1])
        assert not np.array_equal(other, whole.predict_proba(people.x))

    def test_groups_and_preferences_are_routed(self, people: People, routing: None) -> None:
        last = ParetoClassifier(**few).set_fit_request(sensitive=True, sample_weight=True)
        last = last.set_predict_request(preference=True).set_score_request(preference=True)
        whole = Pipeline([("fill", SimpleImputer()), ("last", last)])
        x = people.x[["age", "skill"]].to_numpy()
        whole.fit(x, people.rich, sensitive=people.sex, sample_weight=np.ones(1200))
        assert whole[-1].groups_ == ("f", "m")
        plain = SimpleImputer().fit_transform(x)
        alone = ParetoClassifier(**few).fit(plain, people.rich, sensitive=people.sex)
        ray = [0.2, 0.8]
        expected = alone.predict(plain, preference=ray)
        np.testing.assert_array_equal(whole.predict(x, preference=ray), expected)
        assert whole.score(x, people.rich, preference=ray) == alone.score(
            plain, people.rich, preference=ray
        )


class TestSearches:
    def test_the_groups_go_with_their_rows(self, people: People, routing: None) -> None:
        """Every fit gets the groups of its rows: wrong ones would be of another length."""
        estimator = ParetoClassifier(**few).set_fit_request(sensitive=True)
        gap = make_scorer(
            lambda y, said, sensitive: (
                -equal_opportunity_difference(
                    y == "yes", said == "yes", sensitive_features=sensitive
                )
            )
        ).set_score_request(sensitive=True)
        search = GridSearchCV(
            estimator,
            {"preference": [(0.9, 0.1), (0.1, 0.9)], "hidden": [(8,)]},
            scoring={"gap": gap, "accuracy": "accuracy"},
            refit="accuracy",
            cv=2,
        )
        search.fit(people.x, people.rich, sensitive=people.sex)
        assert search.best_estimator_.groups_ == ("f", "m")
        assert np.isfinite(search.cv_results_["mean_test_gap"]).all()

    def test_a_chosen_preference_is_searched_with(
        self, people: People, fair: ParetoClassifier, routing: None
    ) -> None:
        chosen = fair.choose(knee=True).set_params(epochs=2).set_fit_request(sensitive=True)
        search = GridSearchCV(chosen, {"learning_rate": [1e-3, 1e-2]}, cv=2)
        search.fit(people.x, people.rich, sensitive=people.sex)
        assert search.best_estimator_.preference == chosen.choice_.ray

    def test_regressors(self, people: People) -> None:
        scores = cross_val_score(
            ParetoRegressor(random_state=0, epochs=60), people.x, people.income, cv=2
        )
        assert scores.min() > 0.7

    def test_what_a_fold_lacks_is_said(self, people: People, routing: None) -> None:
        """Folds in order, and the groups too: in each only one is left."""
        order = np.argsort(people.sex, kind="stable")
        estimator = ParetoClassifier(**few).set_fit_request(sensitive=True)
        search = GridSearchCV(estimator, {"epochs": [1]}, cv=[(order[:500], order[500:])] * 2)
        search.set_params(error_score="raise")
        with pytest.raises(DataError, match=r"two groups.*only `f`"):
            search.fit(people.x, people.rich, sensitive=people.sex)


def test_threads_fit_what_each_would_fit_alone(people: People) -> None:
    def fitted(seed: int) -> Any:
        model = ParetoClassifier(random_state=seed, epochs=2).fit(people.x, people.kind)
        return model.predict_proba(people.x[:50])

    with ThreadPoolExecutor(3) as threads:
        together = list(threads.map(fitted, range(3)))
    for seed, found in enumerate(together):
        np.testing.assert_array_equal(found, fitted(seed))
