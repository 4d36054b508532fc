"""Intervals of metrics: each by its method; the bootstrap beside scipy's and the binomial."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import roc_auc_score

from paretocosmos.estimators.objectives import InUnit
from paretocosmos.evaluation import (
    bootstrap_intervals,
    compute_gap_interval,
    compute_intervals,
    compute_share_interval,
    draw_paired_scores,
)
from paretocosmos.objectives import (
    AccuracyGap,
    BinaryCrossEntropy,
    Deo,
    EqualizedOdds,
    PredictionGap,
    TprGap,
    WorstGroup,
    accuracy,
    calibration_error,
    misclassification,
    roc_auc,
)

DRAW = torch.Generator().manual_seed(0)
LOGITS = torch.randn(800, generator=DRAW)
TARGETS = {
    "label": (LOGITS + 1.5 * torch.randn(800, generator=DRAW) > 0).float(),
    "sensitive": torch.randint(2, (800,), generator=DRAW),
}


def test_a_share_spreads_as_the_binomial_distribution_says() -> None:
    low, high = bootstrap_intervals({"a": accuracy}, LOGITS, TARGETS, resamples=4000)["a"]
    share = float(accuracy(LOGITS, TARGETS))
    width = 1.96 * math.sqrt(share * (1 - share) / 800)
    assert (low, high) == pytest.approx((share - width, share + width), abs=0.004)


def test_it_is_scipys_percentile_bootstrap() -> None:
    label = TARGETS["label"].numpy()
    found = bootstrap_intervals({"auc": roc_auc}, LOGITS, TARGETS, resamples=2000)["auc"]
    theirs = stats.bootstrap(
        (label, LOGITS.numpy()),
        roc_auc_score,
        paired=True,
        vectorized=False,
        n_resamples=2000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert found == pytest.approx((theirs.low, theirs.high), abs=0.006)


def test_several_at_once_are_what_each_is_alone() -> None:
    several = {"gap": TprGap().score, "deo": Deo().score, "accuracy": accuracy}
    together = bootstrap_intervals(several, LOGITS, TARGETS, resamples=300)
    for name, metric in several.items():
        assert (
            bootstrap_intervals({name: metric}, LOGITS, TARGETS, resamples=300)[name]
            == together[name]
        )
    assert together != bootstrap_intervals(several, LOGITS, TARGETS, resamples=300, seed=1)


def test_scores_of_batches_stay_means_over_batches() -> None:
    rows = torch.arange(800)
    flat = {"label": torch.ones(800), "sensitive": torch.zeros(800, dtype=torch.long)}
    # one group, all positive: the gap of every batch of 100 is its share of predicted positives
    low, high = bootstrap_intervals(
        {"d": Deo().score}, torch.where(rows % 2 == 0, 1.0, -1.0), flat, score_batch=100
    )["d"]
    assert 0.4 < low < 0.5 < high < 0.6


def test_draws_without_a_number_do_not_count() -> None:
    few = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    low, high = bootstrap_intervals({"gap": TprGap().score}, torch.tensor([1.0, -1, 1, 1]), few)[
        "gap"
    ]
    assert 0 <= low < high <= 1
    none = {"label": torch.zeros(4), "sensitive": torch.tensor([0, 0, 1, 1])}
    ends = bootstrap_intervals({"gap": TprGap().score}, torch.zeros(4), none)["gap"]
    assert np.isnan(ends).all()


def test_heads_by_name() -> None:
    heads = {"left": LOGITS, "right": -LOGITS}

    def left(outputs: object, targets: object) -> torch.Tensor:
        return accuracy(outputs, targets, output="left")  # type: ignore[arg-type]

    assert bootstrap_intervals({"a": left}, heads, TARGETS, resamples=50) == bootstrap_intervals(
        {"a": accuracy}, LOGITS, TARGETS, resamples=50
    )


def test_a_bootstrap_holds_its_own_estimate() -> None:
    # one person in fifty: a gap of counts whose draws lie to one side
    few = {"label": torch.ones(50), "sensitive": (torch.arange(50) < 1).long()}
    for seed in range(5):
        logits = torch.randn(50, generator=torch.Generator().manual_seed(seed))
        for name, metric in {"deo": Deo().score, "worst": WorstGroup().score}.items():
            low, high = bootstrap_intervals({name: metric}, logits, few, resamples=100)[name]
            estimate = float(metric(logits, few))
            assert low - 1e-6 <= estimate <= high + 1e-6  # float32, batched there


def table(rows: torch.Tensor) -> np.ndarray[Any, Any]:
    """Hits and positives of both groups, counted in numpy: what a gap's interval follows from."""
    found = (LOGITS > 0).numpy()
    each = []
    for group in (0, 1):
        inside = (TARGETS["sensitive"] == group).numpy() & rows.numpy()
        each.append([found[inside].sum(), found[inside].sum(), inside.sum()])
    return np.array(each, dtype=float)


def test_every_metric_by_its_method() -> None:
    positives = TARGETS["label"] == 1
    several = {
        "tpr_gap": TprGap().score,
        "equalized_odds": EqualizedOdds().score,
        "accuracy": accuracy,
        "misclassification": misclassification,
        "auc": roc_auc,
        "worst_group": WorstGroup().score,
    }
    found = compute_intervals(several, LOGITS, TARGETS)
    assert list(found) == list(several)
    hits, misses = table(positives), table(~positives)
    assert found["tpr_gap"] == pytest.approx(compute_gap_interval(hits[None]))
    assert found["equalized_odds"] == pytest.approx(compute_gap_interval(np.stack([hits, misses])))
    right = np.array(float(accuracy(LOGITS, TARGETS)))
    assert found["accuracy"] == pytest.approx(compute_share_interval(right, np.array(800.0)))
    assert found["misclassification"] == pytest.approx([1 - end for end in found["accuracy"][::-1]])
    rest = {name: several[name] for name in ("auc", "worst_group")}
    assert {name: found[name] for name in rest} == bootstrap_intervals(rest, LOGITS, TARGETS)


def test_scores_of_batches_have_a_bootstrap() -> None:
    one = {"gap": TprGap().score}
    found = compute_intervals(one, LOGITS, TARGETS, score_batch=100)
    assert found == bootstrap_intervals(one, LOGITS, TARGETS, score_batch=100)


def test_several_classes_are_as_many_rates() -> None:
    draw = torch.Generator().manual_seed(3)
    logits, label = torch.randn(600, 3, generator=draw), torch.randint(3, (600,), generator=draw)
    targets = {"label": label, "sensitive": torch.randint(2, (600,), generator=draw)}
    objective = TprGap()
    low, high = compute_intervals({"gap": objective.score}, logits, targets)["gap"]
    each = np.zeros((3, 2, 3))
    chosen = logits.argmax(dim=1)
    for kind in range(3):
        for group in (0, 1):
            inside = (label == kind) & (targets["sensitive"] == group)
            hits = int(((chosen == kind) & inside).sum())
            each[kind, group] = hits, hits, int(inside.sum())
    assert (low, high) == pytest.approx(compute_gap_interval(each))
    assert low <= objective.score(logits, targets) <= high
    right = AccuracyGap().moments(logits, targets)
    assert right[..., 0].sum() == (chosen != label).sum()  # counted once, not class by class


def test_weighted_rows_count_as_many_as_tell_as_much() -> None:
    twice = {**TARGETS, "weight": torch.full((800,), 2.0)}
    one = {"gap": TprGap().score, "accuracy": accuracy}
    same = compute_intervals(one, LOGITS, TARGETS)
    for name, ends in compute_intervals(one, LOGITS, twice).items():
        assert ends == pytest.approx(same[name])
    # half of the rows do not count: as if they were not there
    half = torch.arange(800) % 2
    part = {name: target[half == 1] for name, target in TARGETS.items()}
    fewer = compute_intervals(one, LOGITS[half == 1], part)
    for name, ends in compute_intervals(one, LOGITS, {**TARGETS, "weight": half.float()}).items():
        assert ends == pytest.approx(fewer[name])


def test_a_gap_of_numbers_in_their_unit() -> None:
    plain, scaled = PredictionGap(), InUnit(PredictionGap(), 100.0)
    ends = compute_intervals({"gap": plain.score}, LOGITS, TARGETS)["gap"]
    many = compute_intervals({"gap": scaled.score}, LOGITS, TARGETS)["gap"]
    assert many == pytest.approx([100 * end for end in ends])
    first, second = (LOGITS[TARGETS["sensitive"] == group].numpy() for group in (0, 1))
    error = math.sqrt(first.var() / len(first) + second.var() / len(second))
    assert 1.6 * error < ends[1] - abs(first.mean() - second.mean()) < 2 * error


def test_a_metric_that_picks_rows_by_a_mask() -> None:
    def own(outputs: Any, targets: Any) -> torch.Tensor:
        return outputs[targets["sensitive"] == 1].mean()

    low, high = bootstrap_intervals({"own": own}, LOGITS, TARGETS, resamples=200)["own"]
    mean = float(LOGITS[TARGETS["sensitive"] == 1].mean())
    assert low < mean < high
    assert high - low == pytest.approx(2 * 1.96 / math.sqrt(400), rel=0.25)


def _without_weights(out: Any, targets: Any) -> torch.Tensor:
    return torch.as_tensor(out.flatten().median())


@pytest.mark.parametrize("weighted", [False, True])
def test_draws_are_of_rows_whether_a_metric_takes_weights_or_not(weighted: bool) -> None:
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(300, generator=generator).round(decimals=1)  # with ties
    targets = {"label": (torch.rand(300, generator=generator) < 0.4).float()}
    if weighted:
        targets["weight"] = torch.rand(300, generator=generator)
    cross_entropy = BinaryCrossEntropy().score
    every: list[Any] = [calibration_error, roc_auc, cross_entropy, accuracy, _without_weights]
    found = draw_paired_scores(every, logits[None], targets, draws=20, seed=7)
    rows = torch.randint(300, (20, 300), generator=torch.Generator().manual_seed(7))
    for draw, numbers in zip(rows, found[:, 0], strict=True):
        there = {name: target[draw] for name, target in targets.items()}
        expected = [float(metric(logits[draw], there)) for metric in every]
        assert numbers == pytest.approx(expected, rel=1e-5)
