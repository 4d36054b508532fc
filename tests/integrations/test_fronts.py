"""A front gathered batch by batch is the one `evaluate` gives, and its numbers are metrics'."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from paretocosmos import Problem, condition, evaluate, hypervolume
from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.integrations.fronts import FrontEvaluator, Tallies
from paretocosmos.objectives import BinaryCrossEntropy, TprGap, accuracy
from paretocosmos.types import Batch


@dataclass(frozen=True, kw_only=True, eq=False)
class Fair(Problem):
    batch: Batch

    def split(self, name: str) -> Batch:
        return self.batch


def _problem() -> Fair:
    x = torch.randn(70, 5)
    label, group = (x[:, 0] > 0).float(), (x[:, 1] > 0.3).long()
    return Fair(
        name="fair",
        objectives=(BinaryCrossEntropy(), TprGap()),
        reference=(20.0, 2.0),
        input_shape=(5,),
        outputs=1,
        metrics={"accuracy": accuracy},
        batch=Batch(x, {"label": label, "sensitive": group}),
    )


def _model(how: str) -> nn.Module:
    model = condition(nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1)), 2, how=how)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model


def _tallies(evaluator: FrontEvaluator, model: nn.Module, batch: Batch, size: int) -> Tallies:
    tallies: Tallies = []
    with torch.no_grad():
        for start in range(0, len(batch), size):
            share = slice(start, start + size)
            targets = {name: target[share] for name, target in batch.targets.items()}
            evaluator.add(tallies, model, Batch(batch.inputs[share], targets))
    return tallies


@pytest.mark.parametrize("how", ["input", "film"])
@pytest.mark.parametrize("rays", [7, [[0.9, 0.1], [0.2, 0.8]]], ids=["even", "given"])
def test_it_is_the_front_that_evaluate_gives(how: str, rays: Any) -> None:
    problem, model = _problem(), _model(how)
    evaluator = FrontEvaluator(problem.objectives, problem.reference, problem.metrics, rays)
    # batches of 32, 32 and 6: a gap is not the mean of the batches' gaps
    front, numbers = evaluator.front(_tallies(evaluator, model, problem.batch, 32), split="val")
    expected = evaluate(model, problem, rays=rays, split="val")
    np.testing.assert_allclose(front.values, expected.values, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(front.metrics["accuracy"], expected.metrics["accuracy"], atol=1e-6)
    assert np.array_equal(front.rays, expected.rays)
    assert (front.names, front.split) == (expected.names, "val")
    assert numbers["hypervolume"] == pytest.approx(hypervolume(expected), rel=1e-5)
    centre = evaluate(model, problem, rays=[[0.5, 0.5]])
    named = ("binary_cross_entropy", "tpr_gap")
    assert [numbers[name] for name in named] == pytest.approx(centre.values[0], rel=1e-5)
    assert numbers["accuracy"] == pytest.approx(centre.metrics["accuracy"][0])


def test_half_precision_around_it_does_not_enter() -> None:
    problem, model = _problem(), _model("film")
    evaluator = FrontEvaluator(problem.objectives, problem.reference, None, 5)
    plain = evaluator.front(_tallies(evaluator, model, problem.batch, 70), split="val")[0]
    with torch.autocast("cpu", torch.bfloat16):
        inside = evaluator.front(_tallies(evaluator, model, problem.batch, 70), split="val")[0]
    assert plain == inside


def test_an_early_front_beyond_the_reference_warns_nobody() -> None:
    problem, model = _problem(), _model("film")
    evaluator = FrontEvaluator(problem.objectives, (1e-9, 1e-9), None, 5)
    numbers = evaluator.front(_tallies(evaluator, model, problem.batch, 70), split="val")[1]
    assert numbers["hypervolume"] == 0


def test_a_loader_without_batches_is_refused() -> None:
    with pytest.raises(DataError, match=r"batch.*found none"):
        FrontEvaluator(_problem().objectives, (2, 2), None, 3).front([], split="val")


def test_rays_are_at_least_one() -> None:
    with pytest.raises(ConfigurationError, match=r"`rays`.*found 0"):
        FrontEvaluator(_problem().objectives, (2, 2), None, 0)
