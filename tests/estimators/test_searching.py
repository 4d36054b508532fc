"""Scores of fronts in searches, choices in pipelines, preferences by name, fronts as frames."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.estimators import ParetoClassifier, best_within, choose_in, front_hypervolume
from paretocosmos.pareto.metrics import hypervolume

NAMES = ("binary_cross_entropy", "tpr_gap")


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any, Any]:
    inputs, label = make_classification(400, 6, random_state=0)
    group = (inputs[:, 0] + np.random.default_rng(0).normal(size=400) > 0).astype(int)
    return inputs, label, group


@pytest.fixture(scope="module")
def pipeline(rows: tuple[Any, Any, Any]) -> Any:
    inputs, label, group = rows
    whole = make_pipeline(StandardScaler(), ParetoClassifier(epochs=3, random_state=0))
    return whole.fit(inputs, label, paretoclassifier__sensitive=group)


def test_a_choice_in_a_pipeline_is_that_of_its_last_step(
    pipeline: Any, rows: tuple[Any, Any, Any]
) -> None:
    bounds = {"tpr_gap": float(np.median(pipeline[-1].front_.values[:, 1]))}
    with pytest.warns(FrontWarning, match="hardly known"):
        chosen, alone = choose_in(pipeline, max=bounds), pipeline[-1].choose(max=bounds)
    assert chosen[-1].choice_ == alone.choice_
    inputs = rows[0]
    expected = alone.predict_proba(pipeline[0].transform(inputs))
    np.testing.assert_array_equal(chosen.predict_proba(inputs), expected)
    assert pipeline[-1].preference is None  # as it was
    with pytest.warns(FrontWarning, match="hardly known"):
        assert choose_in(pipeline[-1], max=bounds).choice_ == alone.choice_


def test_scorers_read_the_front(pipeline: Any) -> None:
    front = pipeline[-1].front_
    assert front_hypervolume(pipeline) == hypervolume(front)
    bound = float(np.median(front.values[:, 1]))
    kept = front.values[:, 1] <= bound
    constant = np.isin(front.metrics["positive_rate"], (0, 1))
    expected = front.metrics["accuracy"][kept & ~constant].max()
    assert best_within(max={"tpr_gap": bound})(pipeline) == expected
    assert best_within(max={"tpr_gap": -1.0})(pipeline) == -np.inf


def test_a_search_takes_the_front_with_the_most_volume(rows: tuple[Any, Any, Any]) -> None:
    inputs, label, group = rows
    search = GridSearchCV(
        ParetoClassifier(random_state=0), {"epochs": [1, 4]}, scoring=front_hypervolume, cv=2
    )
    search.fit(inputs, label, sensitive=group)
    volumes = search.cv_results_["mean_test_score"]
    assert search.best_params_["epochs"] == [1, 4][int(np.argmax(volumes))]


def test_another_estimator_has_no_front() -> None:
    with pytest.raises(ConfigurationError, match="found LogisticRegression"):
        choose_in(LogisticRegression())


def test_weights_by_name_are_rays(pipeline: Any, rows: tuple[Any, Any, Any]) -> None:
    last, inputs = pipeline[-1], rows[0]
    by_name = last.predict_proba(inputs, preference={"tpr_gap": 0.3, "accuracy": 0.7})
    np.testing.assert_array_equal(by_name, last.predict_proba(inputs, preference=[0.7, 0.3]))
