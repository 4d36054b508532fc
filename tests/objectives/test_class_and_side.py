"""Losses of single classes and sides, and gaps of numbers and of several classes."""

import math
from typing import Literal

import numpy as np
import pytest
import torch
from fairlearn.metrics import MetricFrame
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import expectile
from sklearn.metrics import log_loss, mean_absolute_error, mean_squared_error

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import (
    ClassLoss,
    ErrorGap,
    MeanAbsoluteError,
    OneSidedError,
    PredictionGap,
    TprGap,
)

SEEDS = st.integers(0, 2**31)


@given(seed=SEEDS, classes=st.integers(2, 5), weighted=st.booleans())
def test_class_loss_is_sklearns_log_loss_of_that_class(
    seed: int, classes: int, weighted: bool
) -> None:
    draw = np.random.default_rng(seed)
    label = np.concatenate([np.arange(classes), draw.integers(0, classes, 30)])
    weight = draw.random(len(label)) + 0.1
    logits = torch.from_numpy(draw.normal(size=(len(label), 1 if classes == 2 else classes)))
    every = torch.cat([torch.zeros_like(logits), logits], dim=1) if classes == 2 else logits
    targets = {"label": torch.from_numpy(label)}
    if weighted:
        targets["weight"] = torch.from_numpy(weight)
    for of in range(classes):
        own = label == of
        expected = log_loss(
            label[own],
            every.softmax(dim=1).numpy()[own],
            labels=range(classes),
            sample_weight=weight[own] if weighted else None,
        )
        objective = ClassLoss(of=of)
        assert objective.loss(logits, targets).item() == pytest.approx(expected, rel=1e-9)
        assert objective.score(logits, targets).item() == pytest.approx(expected, rel=1e-9)


def test_a_class_that_is_not_there_costs_nothing_in_training_and_is_nan_in_the_score() -> None:
    logits, targets = torch.randn(4, requires_grad=True), {"label": torch.zeros(4)}
    loss = ClassLoss(of=1).loss(logits, targets)
    assert loss == 0
    assert torch.autograd.grad(loss, logits)[0].abs().max() == 0
    assert ClassLoss(of=1).score(logits, targets).isnan()


def test_with_its_share_batches_add_up_to_the_whole_though_some_lack_the_class() -> None:
    logits, label = torch.randn(40, dtype=torch.float64), (torch.arange(40) == 7).double()
    weight = torch.rand(40, dtype=torch.float64)
    whole = ClassLoss().loss(logits, {"label": label, "weight": weight})
    share = float((label * weight).sum() / weight.sum())
    parts = [
        ClassLoss(share=share).loss(logits[at], {"label": label[at], "weight": weight[at]})
        * weight[at].sum()
        for at in torch.arange(40).chunk(5)
    ]
    torch.testing.assert_close(torch.stack(parts).sum() / weight.sum(), whole)


@given(seed=SEEDS, power=st.sampled_from([1, 2]))
def test_the_two_sides_add_up_to_sklearns_error(seed: int, power: int) -> None:
    draw = np.random.default_rng(seed)
    truth, predicted, weight = draw.normal(size=(3, 20))
    targets = {"label": torch.from_numpy(truth), "weight": torch.from_numpy(np.abs(weight))}
    sides: tuple[Literal["over", "under"], ...] = ("over", "under")
    total = sum(
        OneSidedError(side=side, power=power).loss(torch.from_numpy(predicted), targets).item()
        for side in sides
    )
    oracle = mean_squared_error if power == 2 else mean_absolute_error
    assert total == pytest.approx(oracle(truth, predicted, sample_weight=np.abs(weight)))
    if power == 1:
        whole = MeanAbsoluteError().loss(torch.from_numpy(predicted), targets).item()
        assert whole == pytest.approx(total)


@pytest.mark.parametrize(("power", "t"), [(1, 0.2), (1, 0.9), (2, 0.2), (2, 0.9)])
def test_their_weighted_sum_is_smallest_at_the_quantile_or_expectile(power: int, t: float) -> None:
    truth = np.random.default_rng(0).exponential(size=1001)
    grid = np.linspace(0, 6, 6001)
    targets = {"label": torch.from_numpy(truth)}
    rows = torch.from_numpy(grid).unsqueeze(1).expand(-1, len(truth))
    over, under = (
        torch.vmap(lambda out, o=objective: o.loss(out, targets))(rows)
        for objective in (
            OneSidedError(side="over", power=power),
            OneSidedError(side="under", power=power),
        )
    )
    best = grid[int(((1 - t) * over + t * under).argmin())]
    expected = np.quantile(truth, t) if power == 1 else expectile(truth, t)
    assert best == pytest.approx(expected, abs=2e-3)


@given(seed=SEEDS, groups=st.integers(2, 4), power=st.sampled_from([1, 2]))
def test_gaps_of_numbers_are_fairlearns(seed: int, groups: int, power: int) -> None:
    draw = np.random.default_rng(seed)
    sensitive = np.concatenate([np.arange(groups), draw.integers(0, groups, 30)])
    truth, predicted, weight = draw.normal(size=(3, len(sensitive)))
    weight = np.abs(weight) + 0.1
    targets = {
        "label": torch.from_numpy(truth),
        "sensitive": torch.from_numpy(sensitive),
        "weight": torch.from_numpy(weight),
    }
    oracles = {
        "error": mean_squared_error if power == 2 else mean_absolute_error,
        "prediction": lambda _, p, sample_weight: np.average(p, weights=sample_weight),
    }
    frame = MetricFrame(
        metrics=oracles,
        y_true=truth,
        y_pred=predicted,
        sensitive_features=sensitive,
        sample_params={name: {"sample_weight": weight} for name in oracles},
    )
    expected = frame.difference(method="between_groups")
    outputs = torch.from_numpy(predicted)
    error, prediction = ErrorGap(groups=groups, power=power), PredictionGap(groups=groups)
    assert error.score(outputs, targets).item() == pytest.approx(expected["error"])
    assert error.loss(outputs, targets).item() == pytest.approx(expected["error"])
    assert prediction.score(outputs, targets).item() == pytest.approx(expected["prediction"])


def test_a_group_that_is_not_there_is_left_out_of_a_batch_and_nan_in_the_score() -> None:
    targets = {"label": torch.zeros(3), "sensitive": torch.tensor([0, 0, 1])}
    outputs = torch.tensor([1.0, 1.0, 3.0])
    assert ErrorGap(groups=3).loss(outputs, targets) == 8
    assert ErrorGap(groups=3).score(outputs, targets).isnan()


def test_a_class_that_a_group_lacks_does_not_hide_the_gap_of_the_others() -> None:
    logits = torch.eye(3)[[0, 1, 0, 1, 2]]  # the second group's two of class 0: one is found
    targets = {"label": torch.tensor([0, 1, 0, 0, 2]), "sensitive": torch.tensor([0, 0, 1, 1, 1])}
    assert TprGap().score(logits, targets) == 0.5
    assert math.isfinite(TprGap().loss(logits, targets).item())
    alone = {"label": torch.tensor([0, 0, 1, 1, 2]), "sensitive": torch.tensor([0, 0, 1, 1, 1])}
    assert TprGap().score(logits, alone).isnan()


def test_the_loss_of_several_classes_is_that_of_the_probabilities() -> None:
    logits = torch.randn(20, 3, dtype=torch.float64)
    targets = {"label": torch.arange(20) % 3, "sensitive": torch.arange(20) // 2 % 2}
    probability, gaps = logits.softmax(dim=1), []
    for c in range(3):
        rates = [
            probability[(targets["label"] == c) & (targets["sensitive"] == g), c].mean()
            for g in (0, 1)
        ]
        gaps.append((rates[0] - rates[1]).abs())
    found = TprGap(sharpness=1.0).loss(logits, targets)
    torch.testing.assert_close(found, torch.stack(gaps).max())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: OneSidedError(side="left"), "`side`.*found `left`"),  # type: ignore[arg-type]
        (lambda: OneSidedError(power=3), "`power` must be 1 or 2, found 3"),
        (lambda: ErrorGap(power=0), "`power` must be 1 or 2, found 0"),
        (lambda: ClassLoss(share=0.0), r"`share`.*found 0\.0"),
        (lambda: ClassLoss(of=-1), "`of`.*found -1"),
    ],
)
def test_what_they_refuse(build: object, message: str) -> None:
    assert callable(build)
    with pytest.raises(ConfigurationError, match=message):
        build()
