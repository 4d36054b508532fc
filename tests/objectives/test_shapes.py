"""Objectives read shapes as torch does, or refuse them."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import (
    BinaryCrossEntropy,
    ClassLoss,
    CrossEntropy,
    DemographicParity,
    GaussianWell,
    MeanAbsoluteError,
    MeanSquaredError,
    Objective,
    OneSidedError,
    PredictionGap,
    WorstGroup,
    accuracy,
    misclassification,
)
from paretocosmos.types import Metric

RAYS = 3


def _dense(*shape: int, classes: int) -> tuple[Tensor, Tensor]:
    """Logits with the classes second, as torch has them, and labels."""
    logits = torch.randn(RAYS, shape[0], classes, *shape[1:])
    return logits, torch.randint(0, classes, shape)


@pytest.mark.parametrize("shape", [(4,), (4, 16), (4, 16, 16), (2, 3, 4, 5)])
@pytest.mark.parametrize("first", [True, False], ids=["classes second", "classes last"])
def test_dense_cross_entropy_is_torchs_under_every_ray(shape: tuple[int, ...], first: bool) -> None:
    logits, labels = _dense(*shape, classes=21)
    given = logits if first else logits.movedim(2, -1)
    expected = torch.stack([F.cross_entropy(one, labels) for one in logits])
    right = torch.stack([(one.argmax(dim=1) == labels).double().mean() for one in logits])
    targets = {"label": labels}

    def per_ray(metric: Metric) -> Tensor:
        return torch.vmap(metric, in_dims=(0, None))(given, targets)

    torch.testing.assert_close(per_ray(CrossEntropy().loss), expected)
    torch.testing.assert_close(per_ray(accuracy), right)
    torch.testing.assert_close(per_ray(misclassification), 1 - right)
    of_one = torch.stack(
        [F.cross_entropy(one, labels, reduction="none")[labels == 3].mean() for one in logits]
    )
    found = per_ray(ClassLoss(of=3).score)
    torch.testing.assert_close(found, of_one, equal_nan=True)


def test_as_many_positions_as_classes_need_an_axis() -> None:
    logits, labels = torch.randn(4, 16, 16), torch.randint(0, 16, (4, 16))
    targets = {"label": labels}
    for objective in (CrossEntropy(), ClassLoss()):
        with pytest.raises(ConfigurationError, match=r"`axis=1` or `axis=-1`"):
            objective.loss(logits, targets)
    with pytest.raises(ConfigurationError, match="`axis=1`"):
        accuracy(logits, targets)
    second = CrossEntropy(axis=1).loss(logits, targets)
    torch.testing.assert_close(second, F.cross_entropy(logits, labels))
    last = CrossEntropy(axis=-1).loss(logits, targets)
    torch.testing.assert_close(last, F.cross_entropy(logits.mT, labels))
    found = accuracy(logits, targets, axis=-1)
    assert float(found) == (logits.argmax(dim=-1) == labels).double().mean()


@pytest.mark.parametrize(
    ("outputs", "labels", "axis"),
    [
        ((4, 21, 16, 16), (4, 16, 15), None),
        ((4, 21, 16), (4, 21), 1),
        ((4, 21, 16), (4, 16), -1),
        ((4, 21), (4, 1), None),
        ((8, 21), (4,), None),
        ((4,), (4,), None),
    ],
)
def test_cross_entropy_refuses_what_it_would_misread(
    outputs: tuple[int, ...], labels: tuple[int, ...], axis: int | None
) -> None:
    targets = {"label": torch.zeros(labels, dtype=torch.long)}
    with pytest.raises(ConfigurationError, match=r"`label` \["):
        CrossEntropy(axis=axis).loss(torch.zeros(outputs), targets)


@pytest.mark.parametrize("kind", [CrossEntropy, ClassLoss])
def test_an_axis_is_the_second_or_the_last(kind: type[Objective]) -> None:
    with pytest.raises(ConfigurationError, match="`axis` must be 1"):
        kind(axis=2)  # type: ignore[call-arg]


ERRORS = (MeanSquaredError, MeanAbsoluteError, GaussianWell, OneSidedError, BinaryCrossEntropy)


@pytest.mark.parametrize("kind", ERRORS)
def test_channels_are_not_compared_with_positions(kind: type[Objective]) -> None:
    """Channels second against channels last: torch refuses to broadcast them too."""
    outputs, target = torch.rand(2, 3, 8, 8), torch.rand(2, 8, 8, 3)
    with pytest.raises(RuntimeError):
        torch.broadcast_tensors(outputs, target)
    for rays in (False, True):
        loss = torch.vmap(kind().loss, in_dims=(0, None)) if rays else kind().loss
        with pytest.raises(ConfigurationError, match=r"order of the outputs"):
            loss(outputs.expand(RAYS, -1, -1, -1, -1) if rays else outputs, {"label": target})
    same = kind().loss(outputs, {"label": target.movedim(-1, 1)})
    assert same.isfinite()


@pytest.mark.parametrize("kind", ERRORS)
def test_axes_of_one_may_differ(kind: type[Objective]) -> None:
    outputs, target = torch.rand(2, 1, 8, 9), torch.rand(2, 8, 9)
    expected = kind().loss(outputs, {"label": target[:, None]})
    torch.testing.assert_close(kind().loss(outputs, {"label": target}), expected)


def test_a_weight_of_a_sample_is_that_of_all_its_positions() -> None:
    logits, labels, weight = torch.randn(4, 7, 5), torch.randint(0, 5, (4, 7)), torch.rand(4)
    each = F.cross_entropy(logits.movedim(-1, 1), labels, reduction="none")
    expected = (each * weight[:, None]).sum() / (7 * weight.sum())
    found = CrossEntropy().loss(logits, {"label": labels, "weight": weight})
    torch.testing.assert_close(found, expected)
    with pytest.raises(ConfigurationError, match="`weight`"):
        CrossEntropy().loss(logits, {"label": labels, "weight": torch.rand(7, 4)})


@pytest.mark.parametrize("objective", [DemographicParity(), WorstGroup(), PredictionGap()])
def test_groups_are_of_samples(objective: Objective) -> None:
    targets = {"label": torch.zeros(4), "sensitive": torch.tensor([0, 1, 0, 1])}
    for verb in (objective.loss, objective.score):
        with pytest.raises(ConfigurationError, match=r"one value per sample"):
            verb(torch.zeros(4, 16, 4), targets)
