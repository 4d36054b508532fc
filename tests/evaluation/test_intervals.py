"""Bootstrap intervals, beside scipy's and what the binomial distribution says."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import roc_auc_score

from paretocosmos.evaluation.intervals import bootstrap
from paretocosmos.objectives import accuracy, roc_auc
from paretocosmos.objectives.deo import Deo
from paretocosmos.objectives.tpr_gap import TprGap

DRAW = torch.Generator().manual_seed(0)
LOGITS = torch.randn(800, generator=DRAW)
TARGETS = {
    "label": (LOGITS + 1.5 * torch.randn(800, generator=DRAW) > 0).float(),
    "sensitive": torch.randint(2, (800,), generator=DRAW),
}


def test_a_share_spreads_as_the_binomial_distribution_says() -> None:
    low, high = bootstrap({"a": accuracy}, LOGITS, TARGETS, resamples=4000)["a"]
    share = float(accuracy(LOGITS, TARGETS))
    width = 1.96 * math.sqrt(share * (1 - share) / 800)
    assert (low, high) == pytest.approx((share - width, share + width), abs=0.004)


def test_it_is_scipys_percentile_bootstrap() -> None:
    label = TARGETS["label"].numpy()
    found = bootstrap({"auc": roc_auc}, LOGITS, TARGETS, resamples=2000)["auc"]
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
    together = bootstrap(several, LOGITS, TARGETS, resamples=300)
    for name, metric in several.items():
        assert bootstrap({name: metric}, LOGITS, TARGETS, resamples=300)[name] == together[name]
    assert together != bootstrap(several, LOGITS, TARGETS, resamples=300, seed=1)


def test_scores_of_batches_stay_means_over_batches() -> None:
    rows = torch.arange(800)
    flat = {"label": torch.ones(800), "sensitive": torch.zeros(800, dtype=torch.long)}
    # one group, all positive: the gap of every batch of 100 is its share of predicted positives
    low, high = bootstrap(
        {"d": Deo().score}, torch.where(rows % 2 == 0, 1.0, -1.0), flat, score_batch=100
    )["d"]
    assert 0.4 < low < 0.5 < high < 0.6


def test_draws_without_a_number_do_not_count() -> None:
    few = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    low, high = bootstrap({"gap": TprGap().score}, torch.tensor([1.0, -1, 1, 1]), few)["gap"]
    assert 0 <= low < high <= 1
    none = {"label": torch.zeros(4), "sensitive": torch.tensor([0, 0, 1, 1])}
    ends = bootstrap({"gap": TprGap().score}, torch.zeros(4), none)["gap"]
    assert np.isnan(ends).all()


def test_heads_by_name() -> None:
    heads = {"left": LOGITS, "right": -LOGITS}

    def left(outputs: object, targets: object) -> torch.Tensor:
        return accuracy(outputs, targets, output="left")  # type: ignore[arg-type]

    assert bootstrap({"a": left}, heads, TARGETS, resamples=50) == bootstrap(
        {"a": accuracy}, LOGITS, TARGETS, resamples=50
    )


def test_a_gap_of_nothing_is_hardly_ever_denied() -> None:
    # the same chance in both groups: an interval that ignored its bias would never begin near 0
    near, draw = 0, torch.Generator().manual_seed(4)
    for _ in range(20):
        targets = {"label": torch.ones(1000), "sensitive": (torch.arange(1000) < 150).long()}
        logits = torch.randn(1000, generator=draw)
        low, high = bootstrap({"gap": TprGap().score}, logits, targets, resamples=300)["gap"]
        assert low <= high
        near += low < 0.005
    assert near >= 17


def test_a_metric_that_picks_rows_by_a_mask() -> None:
    def own(outputs: Any, targets: Any) -> torch.Tensor:
        part: torch.Tensor = outputs[targets["sensitive"] == 1].mean()
        return part

    low, high = bootstrap({"own": own}, LOGITS, TARGETS, resamples=200)["own"]
    mean = float(LOGITS[TARGETS["sensitive"] == 1].mean())
    assert low < mean < high
    assert high - low == pytest.approx(2 * 1.96 / math.sqrt(400), rel=0.25)
