"""Minimum recall of every group, capacity and costs of mistakes, against a search of all."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame, true_positive_rate
from sklearn.metrics import balanced_accuracy_score, confusion_matrix
from tests.evaluation.test_threshold import Floats, Known, chances, chosen, table, truth

from paretocosmos import evaluate
from paretocosmos.errors import ConfigurationError, InfeasibleError
from paretocosmos.evaluation import at_threshold
from paretocosmos.pareto import Criteria

pytestmark = [
    pytest.mark.filterwarnings("ignore:the chosen point has an accuracy"),
    pytest.mark.filterwarnings("ignore:`tpr_gap` is hardly known"),
]
PROBLEM = table(12_000, positives=0.3, seed=3)
MODEL = Known(shift=-1.0)
RAYS = evaluate(MODEL, PROBLEM, split="val", rays=9).rays


def score(said: Any, split: Any = "val") -> dict[str, float]:
    """What scikit-learn and fairlearn find of decisions."""
    label, sex = truth(PROBLEM, split)
    (_, wrong_yes), (wrong_no, _) = confusion_matrix(label, said)
    frame = MetricFrame(
        metrics=true_positive_rate, y_true=label, y_pred=said, sensitive_features=sex
    )
    return {
        "accuracy": float((said == label).mean()),
        "balanced_accuracy": balanced_accuracy_score(label, said),
        "false_positives": wrong_yes / len(label),
        "false_negatives": wrong_no / len(label),
        "lowest_tpr": frame.group_min(),
        "tpr_gap": frame.difference(),
        "positive_rate": float(said.mean()),
    }


def search(utility: Callable[[Mapping[str, float]], float]) -> float:
    """The largest utility at any ray and any threshold."""
    label, sex = truth(PROBLEM)
    best = -np.inf
    for ray in RAYS:
        likely = chances(MODEL, PROBLEM, ray)
        for threshold in np.quantile(likely, np.linspace(0.01, 0.99, 300)):
            said = likely > threshold
            found = [said[label & (sex == group)].mean() for group in (0, 1)]
            numbers = {
                "accuracy": (said == label).mean(),
                "balanced_accuracy": (said[label].mean() + (~said[~label]).mean()) / 2,
                "false_positives": (said & ~label).mean(),
                "false_negatives": (label & ~said).mean(),
                "lowest_tpr": min(found),
                "positive_rate": said.mean(),
            }
            best = max(best, utility(numbers))
    return best


def agrees(choice: Any) -> None:
    points: Mapping[Any, Any] = {"val": choice.val, "test": choice.test}
    for split, point in points.items():
        likely: Floats = chances(MODEL, PROBLEM, choice.ray, split)
        for name, value in score(likely > choice.threshold, split).items():
            assert point[name] == pytest.approx(value, abs=1e-6), name


def test_metrics_are_those_of_scikit_learn_and_fairlearn() -> None:
    for threshold in (0.2, 0.5, 0.7):
        front = evaluate(MODEL, at_threshold(PROBLEM, threshold), split="val", rays=RAYS.tolist())
        for k, ray in enumerate(RAYS):
            for name, value in score(chances(MODEL, PROBLEM, ray) > threshold).items():
                found = front.values[k, 1] if name == "tpr_gap" else front.metrics[name][k]
                assert found == pytest.approx(value, abs=1e-6), name


def test_every_group_is_found_often_enough() -> None:
    assert search(lambda s: s["lowest_tpr"] >= 0.85 and s["accuracy"]) > 0
    assert (
        evaluate(MODEL, PROBLEM, split="val", rays=RAYS.tolist()).metrics["lowest_tpr"].max() < 0.85
    )
    choice = chosen(MODEL, PROBLEM, min={"lowest_tpr": 0.85}, maximize="accuracy")
    agrees(choice)
    assert choice.val["lowest_tpr"] >= 0.85
    best = search(lambda s: s["accuracy"] if s["lowest_tpr"] >= 0.85 else 0)
    assert choice.val["accuracy"] > best - 0.01
    (check,) = choice.bounds
    assert check.kept
    assert 0 < check.chance < 1
    with pytest.raises(InfeasibleError, match="lowest_tpr"):
        chosen(MODEL, PROBLEM, min={"lowest_tpr": 0.85}, max={"positive_rate": 0.2})


@pytest.mark.parametrize("capacity", [0.12, 0.04])
def test_no_more_than_the_capacity_is_selected(capacity: float) -> None:
    choice = chosen(MODEL, PROBLEM, max={"positive_rate": capacity}, maximize="accuracy")
    agrees(choice)
    assert capacity * 0.8 < choice.val["positive_rate"] <= capacity
    best = search(lambda s: s["accuracy"] if s["positive_rate"] <= capacity else 0)
    assert choice.val["accuracy"] > best - 0.005


@pytest.mark.parametrize(
    ("asked", "utility"),
    [
        ({"maximize": "balanced_accuracy"}, lambda s: s["balanced_accuracy"]),
        (
            {"minimize": {"false_positives": 1, "false_negatives": 5}},
            lambda s: -s["false_positives"] - 5 * s["false_negatives"],
        ),
        (
            {"minimize": {"false_positives": 3, "false_negatives": 1}},
            lambda s: -3 * s["false_positives"] - s["false_negatives"],
        ),
    ],
)
def test_what_is_to_be_gained(asked: Any, utility: Callable[[Mapping[str, float]], float]) -> None:
    choice = chosen(MODEL, PROBLEM, **asked)
    agrees(choice)
    assert utility({**choice.val.values, **choice.val.metrics}) > search(utility) - 0.01


def test_costs_are_said_and_checked() -> None:
    costs = {"false_positives": 1, "false_negatives": 5}
    shown = str(chosen(MODEL, PROBLEM, minimize=costs, max={"tpr_gap": 0.3}))
    assert "minimised (times 5)" in shown
    assert Criteria(minimize=costs).to_dict() == {"minimize": costs}
    with pytest.raises(ConfigurationError, match="must name at least one"):
        Criteria(minimize={})
    with pytest.raises(ConfigurationError, match="must be a number"):
        Criteria(minimize={"accuracy": "five"})  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match="`misses`"):
        chosen(MODEL, PROBLEM, minimize={"misses": 1})
