"""What is declared to be of decisions reads the signs of logits, and nothing else."""

import pandas as pd
import pytest
import torch

from paretocosmos import TabularProblem
from paretocosmos.objectives import (
    GroupObjective,
    Objective,
    RateObjective,
    decides,
    deciding,
    roc_auc,
)
from paretocosmos.registry import find, names
from paretocosmos.types import Outputs, Targets

DRAW = torch.Generator().manual_seed(0)
LOGITS = torch.randn(200, generator=DRAW, dtype=torch.float64)
TARGETS = {
    "label": (torch.rand(200, generator=DRAW) < 0.5).double(),
    "sensitive": torch.arange(200) % 2,
}


def by_signs(metric: object) -> bool:
    assert callable(metric)
    return bool(metric(LOGITS, TARGETS) == metric(LOGITS.sign() * 5, TARGETS))


@pytest.mark.parametrize("name", names("objectives"))
def test_objectives(name: str) -> None:
    kind = find("objectives", name)
    if name in ("cross_entropy", "gaussian_well"):  # of several outputs
        assert not decides(kind().score)
        return
    assert decides(kind().score) == by_signs(kind().score)


def test_metrics_of_a_table() -> None:
    frame = pd.DataFrame({"a": range(200), "sex": ["f", "m"] * 100, "y": [0, 0, 1, 1] * 50})
    problem = TabularProblem.from_frame(frame, target="y", sensitive="sex", keep=["a"])
    assert {name: decides(one) for name, one in problem.metrics.items()} == {
        name: by_signs(one) for name, one in problem.metrics.items()
    }
    assert not decides(roc_auc)


def test_a_score_of_ones_own_declares_it_anew() -> None:
    class Heir(RateObjective):
        pass

    class Own(RateObjective):
        def score(self, outputs: Outputs, targets: Targets) -> torch.Tensor:
            return self.loss(outputs, targets)

    class Declared(Own):
        decides = True

    assert [decides(kind().score) for kind in (Heir, Own, Declared)] == [True, False, True]
    assert not decides(Heir().loss)
    assert not Objective.decides
    assert GroupObjective.decides

    @deciding
    def yes(outputs: Outputs, targets: Targets) -> torch.Tensor:
        raise NotImplementedError

    assert decides(yes)
