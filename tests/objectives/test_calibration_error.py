import numpy as np
import numpy.typing as npt
import pytest
import torch

from paretocosmos.objectives import calibration_error

BINS = 15


def _by_hand(p: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    """Fifteen equal parts of the sorted rows, one after the other."""
    order = np.argsort(p)
    parts = zip(np.array_split(p[order], BINS), np.array_split(y[order], BINS), strict=True)
    return float(sum(len(a) / len(p) * abs(a.mean() - b.mean()) for a, b in parts))


def test_it_is_the_mean_distance_of_bins() -> None:
    draw = np.random.default_rng(0)
    p = draw.random(BINS * 40)
    y = (draw.random(len(p)) < p**2).astype(np.float64)
    found = calibration_error(torch.logit(torch.from_numpy(p)), {"label": torch.from_numpy(y)})
    assert float(found) == pytest.approx(_by_hand(p, y), abs=1e-12)


def test_probabilities_that_are_true_and_that_are_not() -> None:
    """A fifth of the rows each at p, of which a share of exactly p, or of p + 0.1, is positive."""
    p = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 30)
    for more in (0.0, 0.1):
        y = np.concatenate([np.arange(30) < round(30 * (share + more)) for share in p[::30]])
        label = torch.from_numpy(y.astype(np.float64))
        found = calibration_error(torch.logit(torch.from_numpy(p)), {"label": label})
        assert float(found) == pytest.approx(more, abs=1e-9)


def test_equal_probabilities_share_a_bin() -> None:
    label = (torch.arange(1000) < 300).double()  # in file order, so that bins by it would be off
    found = calibration_error(torch.full((1000,), 0.4).logit(), {"label": label})
    assert float(found) == pytest.approx(0.1, abs=1e-7)


def test_a_weight_is_as_many_rows() -> None:
    draw = np.random.default_rng(1)
    logits = torch.from_numpy(draw.normal(size=60)).repeat_interleave(3)
    label = torch.from_numpy(draw.integers(0, 2, 60)).double().repeat_interleave(3)
    many = calibration_error(logits, {"label": label})
    few = {"label": label[::3], "weight": torch.full((60,), 3.0)}
    assert float(calibration_error(logits[::3], few)) == pytest.approx(float(many), abs=1e-12)
