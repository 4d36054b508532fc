"""Decisions at another probability than 0.5: what they are worth, and when they are taken."""

import dataclasses
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from fairlearn.metrics import equal_opportunity_difference
from sklearn.metrics import accuracy_score
from torch import Tensor, nn

from paretocosmos import Run, TabularProblem, evaluate, fit, load_problem
from paretocosmos.errors import ConfigurationError, FrontWarning, InfeasibleError
from paretocosmos.evaluation import at_threshold, choose_point, evaluate_choice, takes_threshold
from paretocosmos.pareto import Criteria
from paretocosmos.problems import Split
from paretocosmos.types import Batch

Floats = npt.NDArray[np.float64]
BELOW = "ignore:the chosen point has an accuracy:paretocosmos.errors.FrontWarning"
FEW = "ignore:`tpr_gap` is hardly known:paretocosmos.errors.FrontWarning"
NOBODY = "ignore:the chosen point finds no positive row"


class Known(nn.Module):
    """Logits that are known: they lean on skill, and with the ray on what differs by sex."""

    def __init__(self, *, shift: float, steep: float = 1.0, least: float = 0.0) -> None:
        super().__init__()
        self.shift, self.steep, self.least = shift, steep, least

    def forward(self, x: Tensor, ray: Tensor) -> Tensor:
        skill, pay = x[:, :1], x[:, 1:2]
        lean = self.least + (1 - self.least) * ray[0]
        return self.steep * (skill + lean * (pay - skill)) + self.shift


def table(rows: int, *, positives: float, seed: int = 0) -> TabularProblem:
    """Men are paid more for the same skill; a share of all is positive."""
    draw = np.random.default_rng(seed)
    sex = draw.choice(["f", "m"], rows, p=[0.3, 0.7])
    skill = draw.normal(size=rows)
    pay = skill + 0.8 * (sex == "m") + draw.normal(0, 0.3, rows)
    score = skill + 0.4 * (sex == "m") + draw.logistic(0, 0.5, rows)
    frame = pd.DataFrame({"skill": skill, "pay": pay, "sex": sex})
    frame["hit"] = score > np.quantile(score, 1 - positives)
    return TabularProblem.from_frame(frame, target="hit", sensitive="sex")


def chances(model: nn.Module, problem: TabularProblem, ray: Any, split: Split = "val") -> Floats:
    with torch.inference_mode():
        logits = model(problem.split(split).inputs, torch.tensor(ray, dtype=torch.float32))
    return torch.sigmoid(logits.double()).squeeze(1).numpy()


def truth(problem: TabularProblem, split: Split = "val") -> tuple[Any, Any]:
    targets = problem.split(split).targets
    return targets["label"].numpy() > 0.5, targets["sensitive"].numpy()


def best(
    model: nn.Module, problem: TabularProblem, rays: Any, bound: float, least: float = 0.25
) -> float:
    """The largest accuracy within the bound, at any ray and any threshold, by trying all."""
    label, sex = truth(problem)
    low, high = least * label.mean(), 1 - least * (1 - label.mean())
    found = -np.inf
    for ray in rays:
        likely = chances(model, problem, ray)
        for threshold in np.unique(likely):
            said = likely > threshold
            rates = [said[label & (sex == group)].mean() for group in (0, 1)]
            if low <= said.mean() <= high and abs(rates[0] - rates[1]) <= bound:
                found = max(found, (said == label).mean())
    return found


def chosen(model: nn.Module, problem: TabularProblem, **given: Any) -> Any:
    front = evaluate(model, problem, split="val", rays=9)
    threshold = given.pop("threshold", None)
    found = choose_point(
        model, problem, front, Criteria(**given), fixed=False, evaluations=11, threshold=threshold
    )
    return evaluate_choice(model, found)


def agrees(model: nn.Module, problem: TabularProblem, choice: Any) -> None:
    """Both points have what sklearn and fairlearn find at the ray and the threshold."""
    splits: tuple[Split, ...] = ("val", "test")
    for point, split in zip((choice.val, choice.test), splits, strict=True):
        (label, sex), likely = truth(problem, split), chances(model, problem, choice.ray, split)
        said = likely > choice.threshold
        assert point["accuracy"] == pytest.approx(accuracy_score(label, said))
        gap = equal_opportunity_difference(label, said, sensitive_features=sex)
        assert point["tpr_gap"] == pytest.approx(gap)
        assert point["positive_rate"] == pytest.approx(said.mean())
        assert point["selection_rate_m"] == pytest.approx(said[sex == 1].mean())
        for name, value in point.metrics.items():
            assert point.intervals[name][0] <= value <= point.intervals[name][1]


def test_what_is_of_decisions_is_moved_and_nothing_else() -> None:
    problem, model = table(800, positives=0.4), Known(shift=0.3)
    label, sex = truth(problem)
    for ray, threshold in product(([1.0, 0.0], [0.2, 0.8]), (0.1, 0.35, 0.5, 0.8)):
        front = evaluate(model, at_threshold(problem, threshold), split="val", rays=[ray])
        said = chances(model, problem, ray) > threshold
        assert front.metrics["accuracy"][0] == pytest.approx(accuracy_score(label, said))
        assert front.metrics["misclassification"][0] == pytest.approx((label != said).mean())
        gap = equal_opportunity_difference(label, said, sensitive_features=sex)
        assert front.values[0, 1] == pytest.approx(gap)
        before = evaluate(model, problem, split="val", rays=[ray])
        assert front.values[0, 0] == before.values[0, 0]
        assert front.metrics["calibration_error"] == before.metrics["calibration_error"]
    assert at_threshold(problem, 0.5) is problem


@pytest.mark.filterwarnings(FEW)
def test_another_threshold_where_no_ray_keeps_the_bound_at_one_half() -> None:
    problem, model = table(3000, positives=0.45, seed=1), Known(shift=0.0, least=0.4)
    front, bound = evaluate(model, problem, split="val", rays=9), 0.05
    assert front.values[:, 1].min() > bound
    choice = chosen(model, problem, max={"tpr_gap": bound}, maximize="accuracy")
    agrees(model, problem, choice)
    assert choice.threshold != 0.5
    assert choice.val["tpr_gap"] <= bound
    # thresholds are tried in steps of 0.8 % of the rows, not at every one
    assert choice.val["accuracy"] > best(model, problem, front.rays, bound) - 0.01
    # a loss cannot see a threshold: the accuracy decides
    assert chosen(model, problem, max={"tpr_gap": bound}).threshold == choice.threshold
    assert " and the threshold 0." in repr(choice)
    assert choice.to_dict()["threshold"] == choice.threshold
    with pytest.raises(InfeasibleError, match="no ray has `tpr_gap` at most -1"):
        chosen(model, problem, max={"tpr_gap": -1})


@pytest.mark.filterwarnings(BELOW, FEW, NOBODY)
def test_another_threshold_where_everybody_is_told_no(tmp_path: Path) -> None:
    problem = table(3000, positives=0.1)
    run: Run = fit(problem, preset="paper", epochs=3, out=tmp_path / "run", device="cpu")
    assert run.front_val.metrics["positive_rate"].max() == 0
    choice = run.choose(max={"tpr_gap": 0.3})
    agrees(run.model, problem, choice)
    assert choice.threshold < 0.5
    assert 0.25 * truth(problem)[0].mean() <= choice.val["positive_rate"] < 0.5
    found = best(run.model, problem, run.front_val.rays, 0.3)
    assert choice.val["accuracy"] == pytest.approx(found, abs=0.01)
    assert run.choose(knee=True).threshold < 0.5


@pytest.mark.filterwarnings(FEW)
def test_less_accuracy_than_one_answer_for_everybody_is_said_aloud() -> None:
    """Where one in eight is positive, a bound may be kept by saying yes to hundreds of others."""
    problem, model = table(3000, positives=0.12, seed=2), Known(shift=-4.0, least=0.6)
    label, _ = truth(problem)
    with pytest.warns(FrontWarning) as warned:
        choice = chosen(model, problem, max={"tpr_gap": 0.01})
    reached, majority = choice.val["accuracy"], 1 - label.mean()
    assert reached < majority
    said, few = (str(one.message) for one in warned)
    assert "hardly known" in few
    assert f"{reached:.1%}" in said
    assert f"{majority:.1%}" in said
    # the ways out
    better = chosen(model, problem, max={"tpr_gap": 0.5}, min={"accuracy": majority})
    assert better.val["accuracy"] >= majority
    with pytest.warns(FrontWarning, match="constant classifier") as warned:
        constant = chosen(model, problem, max={"tpr_gap": 0.01}, allow_constant=True)
    assert len(warned) == 2
    assert constant.val["accuracy"] == pytest.approx(majority)


@pytest.mark.filterwarnings(BELOW, FEW)
def test_nothing_worse_than_one_answer_for_everybody_where_a_ray_is_better() -> None:
    problem, model = table(3000, positives=0.25, seed=0), Known(shift=-1.6, least=1.0)
    front, bound = evaluate(model, problem, split="val", rays=3), 0.05
    label, _ = truth(problem)
    gap, right = front.values[0, 1], front.metrics["accuracy"][0]
    # another threshold keeps the bound, and is wrong more often than a no for everybody
    assert -np.inf < best(model, problem, front.rays, bound) < 1 - label.mean() < right
    with pytest.raises(InfeasibleError) as refused:
        chosen(model, problem, max={"tpr_gap": bound})
    closest = f"closest has `tpr_gap` {gap:.4g} and an accuracy of {right:.1%}"
    assert closest in str(refused.value)
    assert "no bound below about" in str(refused.value)
    # whoever wants it gets it
    least = chosen(model, problem, max={"tpr_gap": bound}, min={"positive_rate": 0.1})
    assert least.val["accuracy"] < 1 - label.mean()


@pytest.mark.filterwarnings(BELOW)
def test_another_threshold_for_a_gain_that_is_no_chance() -> None:
    # right at 0.5: whatever another threshold gains on these rows is luck
    problem = table(2000, positives=0.5, seed=4)
    right = Known(shift=-0.3, steep=2.0)
    choice, rays = chosen(right, problem, maximize="accuracy"), np.eye(2)
    assert choice.threshold == 0.5
    assert best(right, problem, rays, 1.0) > choice.val["accuracy"]
    # the same ranking with logits too high by 3
    moved = chosen(Known(shift=2.7, steep=2.0), problem, maximize="accuracy")
    agrees(Known(shift=2.7, steep=2.0), problem, moved)
    assert 0.85 < moved.threshold < 0.99
    assert moved.val["accuracy"] > choice.val["accuracy"] - 0.01
    assert moved.test["accuracy"] > choice.test["accuracy"] - 0.05
    # what is to be small, or is no decision, is chosen at 0.5
    assert chosen(Known(shift=2.7), problem, minimize="binary_cross_entropy").threshold == 0.5
    assert chosen(Known(shift=2.7), problem, maximize="calibration_error").threshold == 0.5


@pytest.mark.filterwarnings(FEW)
def test_weighted_rows_count_as_much() -> None:
    plain, model = table(3000, positives=0.1), Known(shift=-6.0)
    draw = torch.Generator().manual_seed(0)
    splits = {
        name: Batch(one.inputs, {**one.targets, "weight": torch.rand(len(one), generator=draw)})
        for name, one in plain.splits.items()
    }
    problem = dataclasses.replace(plain, splits=splits)
    choice = chosen(model, problem, max={"tpr_gap": 0.4})
    (label, _), weight = truth(problem), splits["val"].targets["weight"].numpy()
    said = chances(model, problem, choice.ray) > choice.threshold
    right = accuracy_score(label, said, sample_weight=weight)
    assert choice.threshold < 0.1
    assert choice.val["accuracy"] == pytest.approx(right, abs=1e-6)
    share = np.average(said, weights=weight)
    assert share >= 0.25 * np.average(label, weights=weight)


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_a_threshold_that_is_given(confidence: float | None) -> None:
    problem, model = table(3000, positives=0.45), Known(shift=1.0)
    criteria = {"max": {"tpr_gap": 0.6}, "maximize": "accuracy", "confidence": confidence}
    choice = chosen(model, problem, **criteria, threshold=0.7)
    agrees(model, problem, choice)
    assert choice.threshold == 0.7
    assert choice.val["accuracy"] >= max(
        accuracy_score(truth(problem)[0], chances(model, problem, ray) > 0.7)
        for ray in evaluate(model, problem, split="val", rays=9).rays
    )
    if confidence is not None:
        assert choice.val["tpr_gap"] < choice.val.limits["tpr_gap"] <= 0.6
        # none is looked for: that would be a choice by the rows that are to prove the bound
        assert chosen(model, problem, **criteria).threshold == 0.5


def test_thresholds_that_are_refused() -> None:
    problem, toy = table(300, positives=0.4), load_problem("toy_convex")
    assert takes_threshold(problem)
    for wrong in (0, 1, -0.1, float("nan"), "0.3", True, None):
        with pytest.raises(ConfigurationError, match="a probability above 0 and below 1"):
            at_threshold(problem, wrong)  # type: ignore[arg-type]
    assert not takes_threshold(toy)
    with pytest.raises(ConfigurationError, match="`toy_convex` does not decide between two"):
        at_threshold(toy, 0.3)
