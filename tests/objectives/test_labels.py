"""Missing labels, class weights, smoothing and sample weights against torch's own losses."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import (
    BinaryCrossEntropy,
    CrossEntropy,
    MeanAbsoluteError,
    MeanSquaredError,
    Objective,
)
from paretocosmos.training.engine import compute_group_losses

NAN = float("nan")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1)


@pytest.mark.parametrize(
    ("ignored", "weights", "smoothing"),
    list(itertools.product((None, -100, 255), (None, (0.5, 2.0, 0.0, 1.0)), (0.0, 0.1))),
)
def test_cross_entropy_is_torchs(
    ignored: int | None, weights: tuple[float, ...] | None, smoothing: float
) -> None:
    logits, labels = torch.randn(12, 4, dtype=torch.float64), torch.randint(0, 4, (12,))
    if ignored is not None:
        labels[::3] = ignored
    ours = CrossEntropy(ignore_index=ignored, class_weight=weights, label_smoothing=smoothing)
    theirs = F.cross_entropy(
        logits,
        labels,
        weight=None if weights is None else torch.tensor(weights, dtype=torch.float64),
        ignore_index=-100 if ignored is None else ignored,
        label_smoothing=smoothing,
    )
    assert float(ours.loss(logits, {"label": labels})) == pytest.approx(float(theirs))


def test_cross_entropy_of_pixels_leaves_the_void_out() -> None:
    logits, labels = torch.randn(2, 5, 6, 4), torch.randint(0, 4, (2, 5, 6))
    labels[:, 0] = 255
    ours = CrossEntropy(ignore_index=255).loss(logits, {"label": labels})
    theirs = F.cross_entropy(logits.movedim(-1, 1), labels, ignore_index=255)
    assert float(ours) == pytest.approx(float(theirs))


def test_binary_cross_entropy_is_torchs() -> None:
    logits = torch.randn(12)
    labels = torch.randint(0, 2, (12,)).float()
    own = torch.where(labels > 0, 3.0, 0.5)
    ours = BinaryCrossEntropy(class_weight=(0.5, 3.0)).loss(logits, {"label": labels})
    each = F.binary_cross_entropy_with_logits(logits, labels, weight=own, reduction="sum")
    assert float(ours) == pytest.approx(float(each / own.sum()))
    ours = BinaryCrossEntropy(label_smoothing=0.2).loss(logits, {"label": labels})
    theirs = F.binary_cross_entropy_with_logits(logits, labels * 0.8 + 0.1)
    assert float(ours) == pytest.approx(float(theirs))


@pytest.mark.parametrize(
    ("objective", "theirs"),
    [
        (MeanSquaredError(ignore_nan=True), F.mse_loss),
        (MeanAbsoluteError(ignore_nan=True), F.l1_loss),
        (BinaryCrossEntropy(ignore_nan=True), F.binary_cross_entropy_with_logits),
    ],
)
def test_targets_that_are_nan_count_for_nothing(objective: Objective, theirs: object) -> None:
    output = torch.randn(8, requires_grad=True)
    target = torch.rand(8)
    target[[1, 5]] = NAN
    there = ~target.isnan()
    loss = objective.loss(output, {"label": target})
    assert callable(theirs)
    expected = theirs(output[there], target[there])
    assert loss.item() == pytest.approx(expected.item())
    (gradient,) = torch.autograd.grad(loss, output)
    assert torch.equal(gradient != 0, there)


@pytest.mark.parametrize(
    ("objective", "outputs", "nothing"),
    [
        (CrossEntropy(ignore_index=-1), torch.randn(4, 3), torch.full((4,), -1)),
        (MeanSquaredError(ignore_nan=True), torch.randn(4, 2), torch.full((4, 2), NAN)),
        (BinaryCrossEntropy(ignore_nan=True), torch.randn(4), torch.full((4,), NAN)),
    ],
)
def test_without_any_label_the_loss_is_flat_and_the_score_unknown(
    objective: Objective, outputs: Tensor, nothing: Tensor
) -> None:
    outputs = outputs.clone().requires_grad_()
    loss = objective.loss(outputs, {"label": nothing})
    (gradient,) = torch.autograd.grad(loss, outputs)
    assert float(loss.detach()) == 0
    assert not gradient.any()
    assert math.isnan(objective.score(outputs.detach(), {"label": nothing}).item())


def test_every_objective_may_have_sample_weights_of_its_own() -> None:
    output, label = torch.randn(6, 2), torch.randn(6, 2)
    mine, other = torch.rand(6), torch.rand(6)
    targets = {"label": label, "mine": mine, "weight": other}
    each = (output - label).square().mean(dim=1)
    ours = MeanSquaredError(weight="mine").loss(output, targets)
    assert float(ours) == pytest.approx(float((each * mine).sum() / mine.sum()))
    ours = MeanSquaredError().loss(output, targets)
    assert float(ours) == pytest.approx(float((each * other).sum() / other.sum()))


def test_groups_divide_by_their_own_labels() -> None:
    logits, labels = torch.randn(8, 3), torch.randint(0, 3, (8,))
    labels[[0, 1, 5]] = -100
    found = compute_group_losses([CrossEntropy(ignore_index=-100)], logits, {"label": labels}, 2)
    for group, rows in enumerate((slice(0, 4), slice(4, 8))):
        theirs = F.cross_entropy(logits[rows], labels[rows])
        assert float(found[group, 0]) == pytest.approx(float(theirs))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"class_weight": (1.0, -1.0)}, "class_weight"),
        ({"class_weight": (0.0, 0.0)}, "class_weight"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
    ],
)
def test_settings_are_checked(settings: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        CrossEntropy(**settings)  # type: ignore[arg-type]


def test_there_is_one_weight_for_every_class() -> None:
    with pytest.raises(ConfigurationError, match="found 2"):
        CrossEntropy(class_weight=(1, 2)).loss(torch.randn(2, 3), {"label": torch.tensor([0, 1])})
    with pytest.raises(ConfigurationError, match="2 classes, found 1"):
        BinaryCrossEntropy(class_weight=(1.0,))
