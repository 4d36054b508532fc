"""What a training finds of its front is told once, in one line, as of the caller's own line."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from tests.estimators.conftest import People
from torch import Tensor

from paretocosmos.errors import FindingWarning
from paretocosmos.estimators import ParetoClassifier, ParetoRegressor
from paretocosmos.objectives import Objective
from paretocosmos.types import Targets


class Level(Objective):
    """How far predictions are from a number; its score may say the opposite of its loss."""

    def __init__(self, *, name: str, at: float, sign: float = 1.0) -> None:
        super().__init__(name=name)
        self.at, self.sign = at, sign

    def loss(self, outputs: Any, targets: Targets) -> Tensor:
        return torch.square(outputs - self.at).mean()

    def score(self, outputs: Any, targets: Targets) -> Tensor:
        return self.sign * self.loss(outputs, targets)


def _told(estimator: ParetoClassifier | ParetoRegressor, *given: Any, **named: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FindingWarning)
        estimator.fit(*given, **named)
    found = [one for one in caught if issubclass(one.category, FindingWarning)]
    assert all(one.filename == __file__ for one in found)
    texts = [str(one.message) for one in found]
    assert not any("\n" in text for text in texts)
    return texts


def test_rays_that_change_nothing(people: People) -> None:
    insensitive = ParetoClassifier(
        method="tchebycheff", random_state=0, epochs=2, learning_rate=1e-9
    )
    (said,) = _told(insensitive, people.x, people.rich, sensitive=people.sex)
    assert said.startswith("every ray gives nearly the same outputs (sensitivity 0.00")


def test_a_trade_off_within_the_noise() -> None:
    """Two groups that differ in nothing."""
    draw = np.random.default_rng(1)
    x, group = draw.normal(size=(1500, 3)), draw.integers(0, 2, 1500)
    y = (x[:, 0] + draw.normal(size=1500) > 0).astype(int)
    (said,) = _told(ParetoClassifier(random_state=0, epochs=20), x, y, sensitive=group)
    assert "noise" in said
    assert "take any" not in said


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_order_that_is_wrong(sign: float) -> None:
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(600, 2)), draw.normal(size=600)
    goals = [Level(name="low", at=-1.0), Level(name="high", at=1.0, sign=sign)]
    told = _told(ParetoRegressor(random_state=0, epochs=30, objectives=goals), x, y)
    if sign > 0:
        assert told == []
    else:
        (said,) = told
        assert "raises the objective on validation rows (rank correlation: `high` (-1.00))" in said
