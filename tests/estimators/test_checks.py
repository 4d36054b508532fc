"""scikit-learn's own suite, whole, for both estimators."""

import os
import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretocosmos.estimators import ParetoClassifier, ParetoRegressor

pytestmark = pytest.mark.system  # takes minutes


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [ParetoClassifier(epochs=4), ParetoRegressor(epochs=4)]
)
def test_it_passes(estimator: BaseEstimator, check: partial[Any]) -> None:
    """In a few epochs; where predictions have to be good, in as many as there are by default."""
    if check.func.__name__.endswith("_train"):
        estimator = clone(estimator).set_params(epochs=None)
    check(estimator)


ARRAY_API = """
from sklearn.utils.estimator_checks import check_array_api_input
from paretocosmos.estimators import ParetoClassifier, ParetoRegressor
for estimator in (ParetoClassifier(epochs=2), ParetoRegressor(epochs=2)):
    check_array_api_input(
        type(estimator).__name__,
        estimator,
        array_namespace="numpy",
        expect_only_array_outputs=False,
    )
print("passed")
"""


@pytest.mark.system
def test_it_passes_what_the_suite_leaves_out_without_a_switch_of_scipys() -> None:
    """The switch is read once, when scipy is imported."""
    done = subprocess.run(
        [sys.executable, "-c", ARRAY_API],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "passed"
