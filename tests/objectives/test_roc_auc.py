"""The area under the ROC curve against scikit-learn's."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch import Tensor

from paretocosmos.objectives import roc_auc

# few values, so that ties are many; both zeros, which are one value
LOGITS = st.sampled_from([-3.0, -0.5, -0.0, 0.0, 0.25, 2.0])


@given(st.lists(st.tuples(LOGITS, st.booleans(), st.integers(0, 3)), min_size=2, max_size=40))
def test_it_is_sklearns(rows: list[tuple[float, bool, int]]) -> None:
    logits, label, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    given_ = torch.from_numpy(logits)
    for chosen in (np.ones_like(weight), weight):
        targets = {"label": torch.from_numpy(label), "weight": torch.from_numpy(chosen)}
        found = roc_auc(given_, targets).item()
        if not 0 < (chosen * label).sum() < chosen.sum():
            assert math.isnan(found)  # a class is missing
            continue
        expected = roc_auc_score(label, logits, sample_weight=chosen)
        assert found == pytest.approx(expected, abs=1e-12)
    plain = {"label": torch.from_numpy(label)}
    ones = {**plain, "weight": torch.ones(len(rows))}
    torch.testing.assert_close(roc_auc(given_, plain), roc_auc(given_, ones), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("levels", [None, 6])
def test_a_whole_split_at_every_ray(dtype: torch.dtype, levels: int | None) -> None:
    """20,000 samples, 25 rays, one positive in twenty, as `evaluate` asks for it."""
    logits = torch.randn(25, 20_000, 1, dtype=dtype)
    logits = logits if levels is None else (logits * levels / 4).round()
    label = (torch.rand(20_000) < 0.05).to(torch.uint8)
    outputs = {"left": torch.zeros(25, 20_000, 1), "right": logits}

    def one(out: dict[str, Tensor]) -> Tensor:
        return roc_auc(out, {"Bald": label}, output="right", target="Bald")

    found = torch.vmap(one)(outputs)
    assert found.dtype == dtype
    expected = [roc_auc_score(label, row[:, 0]) for row in logits]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_per_batch_as_the_paper_scores() -> None:
    """Vmapped twice, over batches that have a label each."""
    logits, label = torch.randn(4, 3, 50), torch.arange(150).reshape(3, 50) % 3 == 0
    inner = torch.vmap(lambda out, truth: roc_auc(out, {"label": truth}), in_dims=(0, None))
    found = torch.vmap(inner, in_dims=(1, 0))(logits, label)
    for ray in range(4):
        for batch in range(3):
            expected = roc_auc_score(label[batch], logits[ray, batch])
            assert float(found[batch, ray]) == pytest.approx(expected)


def test_what_has_no_area() -> None:
    logits = torch.tensor([0.5, -1.0, 2.0])
    assert math.isnan(roc_auc(logits, {"label": torch.zeros(3)}))
    assert math.isnan(roc_auc(logits, {"label": torch.ones(3)}))
    broken = torch.tensor([0.5, math.nan, 2.0])
    assert math.isnan(roc_auc(broken, {"label": torch.tensor([0, 1, 1])}))
    far = torch.tensor([-math.inf, math.inf, 0.0])
    assert roc_auc(far, {"label": torch.tensor([0, 1, 1])}) == 1
