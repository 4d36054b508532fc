"""`ParetoRegressor` against closed forms, and scikit-learn's and fairlearn's numbers."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame
from scipy.stats import expectile
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.model_selection import train_test_split
from tests.estimators.conftest import People
from torch import Tensor

from paretocosmos.estimators import ParetoRegressor

ENDS = ([0.95, 0.05], [0.5, 0.5], [0.05, 0.95])


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_ray_asks_for_an_expectile_or_a_quantile(loss: str) -> None:
    """Two kinds of rows, one skewed: what a ray asks of each is known."""
    draw = np.random.default_rng(0)
    kind = np.arange(2000) % 2
    y = np.where(kind, draw.exponential(10, 2000), 60 + draw.normal(0, 10, 2000))
    fitted = ParetoRegressor(loss=loss, random_state=0).fit(kind[:, None], y)
    for t in (0.1, 0.3, 0.5, 0.7, 0.9):
        found = fitted.predict([[0], [1]], preference=[1 - t, t])
        parts = [y[kind == k] for k in (0, 1)]
        expected = [expectile(p, t) if loss == "squared" else np.quantile(p, t) for p in parts]
        np.testing.assert_allclose(found, expected, atol=0.1 * y.std())


def test_a_ray_is_the_share_that_is_covered() -> None:
    """Of skewed numbers, too: neither side of the error is scaled, and no end of the simplex moved.

    With the median below the mean, scaled losses cover 15 % of these where 10 % are asked for.
    """
    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, size=(16_000, 1))
    y = (1 + x[:, 0] ** 2) * draw.exponential(size=16_000)
    x, rest, y, truth = train_test_split(x, y, random_state=0, test_size=0.5)
    fitted = ParetoRegressor(loss="absolute", random_state=0, epochs=60).fit(x, y)
    for t in (0.1, 0.3, 0.5, 0.7, 0.9):
        covered = (truth <= fitted.predict(rest, preference=[1 - t, t])).mean()
        assert covered == pytest.approx(t, abs=0.02)


def test_it_is_as_good_as_linear_regression_on_what_that_can_do() -> None:
    x, y = make_regression(800, 6, noise=30, random_state=0)
    x, rest, y, truth = train_test_split(x, y, random_state=0, test_size=0.4)
    oracle = LinearRegression().fit(x, y).score(rest, truth)
    assert ParetoRegressor(random_state=0).fit(x, y).score(rest, truth) > oracle - 0.03


class TestUnits:
    def test_the_front_is_in_the_targets_unit(self) -> None:
        draw = np.random.default_rng(2)
        x = draw.normal(size=(80, 3))
        y = 5000 + 300 * x[:, 0] + 50 * draw.normal(size=80)
        weight = draw.integers(1, 4, 80)
        fitted = ParetoRegressor(random_state=0, rays=5, epochs=10)
        fitted.fit(x, y, sample_weight=weight)
        front = fitted.front_
        assert front.names == ("over_prediction", "under_prediction")
        for at, ray in enumerate(front.rays):
            above = fitted.predict(x, preference=ray) - y
            sides = [np.average(s.clip(0) ** 2, weights=weight) for s in (above, -above)]
            np.testing.assert_allclose(front.values[at], sides, rtol=1e-6)
            wanted = {
                "rmse": mean_squared_error(y, above + y, sample_weight=weight) ** 0.5,
                "mae": mean_absolute_error(y, above + y, sample_weight=weight),
                "bias": np.average(above, weights=weight),
                "over_rate": np.average(above > 0, weights=weight),
            }
            for name, value in wanted.items():
                assert front.metrics[name][at] == pytest.approx(value, rel=1e-6)
            assert fitted.score(x, y, weight, preference=ray) == pytest.approx(
                r2_score(y, above + y, sample_weight=weight)
            )

    def test_the_unit_changes_nothing_else(self) -> None:
        x, y = make_regression(60, 3, noise=5, random_state=0)
        plain = ParetoRegressor(random_state=0, epochs=30).fit(x, y).predict(x)
        other = ParetoRegressor(random_state=0, epochs=30).fit(x, 1e6 + 1e-3 * y).predict(x)
        np.testing.assert_allclose((other - 1e6) * 1e3, plain, rtol=1e-3, atol=0.05 * y.std())

    def test_a_constant_target(self) -> None:
        x = np.random.default_rng(0).normal(size=(40, 2))
        fitted = ParetoRegressor(random_state=0).fit(x, np.full(40, 7.0))
        np.testing.assert_allclose(fitted.predict(x), 7, atol=0.2)


class TestGroups:
    @pytest.mark.parametrize("loss", ["squared", "absolute"])
    @pytest.mark.parametrize("fairness", ["error_gap", "prediction_gap"])
    def test_the_front_has_fairlearns_gaps(self, loss: str, fairness: str) -> None:
        draw = np.random.default_rng(3)
        x, group = draw.normal(size=(90, 2)), draw.integers(0, 3, 90)
        y = 100 * x[:, 0] + 30 * group + (1 + group) * draw.normal(size=90)
        fitted = ParetoRegressor(random_state=0, loss=loss, fairness=fairness, rays=3, epochs=10)
        front = fitted.fit(x, y, sensitive=group).front_
        error = mean_squared_error if loss == "squared" else mean_absolute_error
        assert front.names == (error.__name__, fairness)
        for at, ray in enumerate(front.rays):
            gaps = MetricFrame(
                metrics={"error_gap": error, "prediction_gap": lambda _, p: p.mean()},
                y_true=y,
                y_pred=fitted.predict(x, preference=ray),
                sensitive_features=group,
            ).difference()
            found = {**dict(zip(front.names, front.values[at], strict=True))}
            found |= {name: values[at] for name, values in front.metrics.items()}
            for name in ("error_gap", "prediction_gap"):
                assert found[name] == pytest.approx(gaps[name], rel=1e-5)

    def test_a_ray_trades_error_for_the_gap(self, people: People) -> None:
        fitted = ParetoRegressor(random_state=0, fairness="prediction_gap")
        fitted.fit(people.x, people.income, sensitive=people.sex)

        def gap(ray: list[float]) -> float:
            found = fitted.predict(people.x, preference=ray)
            return float(abs(found[people.sex == "f"].mean() - found[people.sex == "m"].mean()))

        assert gap(ENDS[2]) < gap(ENDS[0]) / 2
        scores = [fitted.score(people.x, people.income, preference=ray) for ray in ENDS]
        assert scores[0] > scores[2]


class TestTargets:
    @pytest.mark.system
    def test_several_are_traded(self) -> None:
        """One hidden unit is too few for two targets that have nothing in common."""
        x = np.random.default_rng(0).normal(size=(600, 4))
        both = pd.DataFrame(
            {"x": 10 * (np.abs(x[:, 0]) + x[:, 1]), "y": 1000 * (np.abs(x[:, 2]) + x[:, 3])}
        )
        fitted = ParetoRegressor(random_state=0, hidden=(1,), epochs=300).fit(x, both)
        assert fitted.front_.names == ("x", "y")
        first, last = (
            r2_score(both, fitted.predict(x, preference=ray), multioutput="raw_values")
            for ray in (ENDS[0], ENDS[2])
        )
        assert first[0] > last[0] + 0.02
        assert last[1] > first[1] + 0.02
        assert fitted.score(x, both) == pytest.approx(r2_score(both, fitted.predict(x)))
        assert {"rmse_x", "bias_y"} <= set(fitted.front_.metrics)


def test_functions_of_ones_own_see_the_targets_unit(people: People) -> None:
    def far(outputs: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        assert outputs.shape == targets["label"].shape
        return (outputs - targets["label"]).square().mean() / 1e4

    def above(outputs: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        return (outputs - 800).clamp_min(0).mean() / 100  # nobody is to be told more than 800

    fitted = ParetoRegressor(objectives={"far": far, "above": above}, random_state=0)
    fitted.fit(people.x, people.income)
    low, high = (fitted.predict(people.x, preference=r).mean() for r in (ENDS[2], ENDS[0]))
    assert low < 850
    assert high > 950
