"""People to predict something for, and estimators fitted once for many tests."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from paretocosmos.estimators import ParetoClassifier, ParetoRegressor


class People(NamedTuple):
    """Features with categories and missing values, a sensitive column and three targets."""

    x: pd.DataFrame
    sex: npt.NDArray[Any]
    rich: npt.NDArray[Any]
    kind: npt.NDArray[Any]
    income: npt.NDArray[np.float64]


def draw_people(rows: int, seed: int = 0) -> People:
    draw = np.random.default_rng(seed)
    sex = draw.choice(["f", "m"], rows)
    x = pd.DataFrame(
        {
            "age": draw.integers(18, 80, rows),
            "skill": draw.normal(size=rows) + 2 * (sex == "m"),
            "work": draw.choice(["state", "private", "none"], rows),
            "size": pd.Categorical(draw.choice(["s", "l"], rows)),
        }
    )
    signal = (x["age"] - 50) / 20 + x["skill"] + (x["work"] == "state") - 1
    x.loc[draw.random(rows) < 0.05, "skill"] = np.nan
    x.loc[draw.random(rows) < 0.05, "work"] = None
    rich = np.where(draw.random(rows) < 1 / (1 + np.exp(-1.5 * signal)), "yes", "no")
    kind = np.digitize(signal + draw.normal(scale=0.5, size=rows), [-0.5, 1.0])
    income = 1000 + 200 * signal.to_numpy() + draw.normal(scale=50, size=rows)
    return People(x, sex, rich, kind, income)


@pytest.fixture(scope="session")
def people() -> People:
    return draw_people(1200)


@pytest.fixture(scope="session")
def fair(people: People) -> ParetoClassifier:
    """Loss against gap, two classes, two groups; the target and the groups have names."""
    rich, sex = pd.Series(people.rich, name="rich"), pd.Series(people.sex, name="sex")
    return ParetoClassifier(random_state=0).fit(people.x, rich, sensitive=sex)


@pytest.fixture(scope="session")
def sided(people: People) -> ParetoRegressor:
    """Too high against too low."""
    return ParetoRegressor(random_state=0).fit(people.x, people.income)
