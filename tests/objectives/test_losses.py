"""The losses that are torch's own, weighted or not, and the accuracy beside them."""

import math

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import accuracy_score
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import (
    BinaryCrossEntropy,
    CrossEntropy,
    GaussianWell,
    MeanSquaredError,
    Objective,
    accuracy,
    misclassification,
)

B, K = 12, 4


def _binary() -> tuple[Tensor, Tensor]:
    return torch.randn(B, dtype=torch.float64) * 3, torch.randint(0, 2, (B,)).double()


def test_binary_cross_entropy_is_torchs_in_every_shape() -> None:
    logits, label = _binary()
    expected = F.binary_cross_entropy(logits.sigmoid(), label)
    loss = BinaryCrossEntropy().loss
    for outputs in (logits, logits[:, None]):
        for targets in (label, label[:, None], label.long(), label.bool(), label.float()):
            torch.testing.assert_close(loss(outputs, {"label": targets}), expected)


def test_binary_cross_entropy_of_huge_logits_is_finite() -> None:
    logits = torch.tensor([1e4, -1e4], requires_grad=True)
    loss = BinaryCrossEntropy().loss(logits, {"label": torch.tensor([0.0, 1.0])})
    assert loss.item() == 1e4
    loss.backward()
    assert logits.grad.tolist() == [0.5, -0.5]


@pytest.mark.parametrize("shape", [(B,), (B, 1), (B, 3), (B, 2, 3)])
def test_mean_squared_error_is_torchs(shape: tuple[int, ...]) -> None:
    outputs, target = torch.randn(shape), torch.randn(shape)
    found = MeanSquaredError().loss(outputs, {"label": target})
    torch.testing.assert_close(found, F.mse_loss(outputs, target))
    if shape == (B, 1):  # a column against a plain vector is no outer difference
        torch.testing.assert_close(
            MeanSquaredError().loss(outputs, {"label": target.squeeze(1)}), found
        )


@pytest.mark.parametrize("shape", [(B,), (B, 1), (B, 3), (B, 2, 3)])
def test_gaussian_well_is_its_formula(shape: tuple[int, ...]) -> None:
    outputs, target = torch.randn(shape), torch.randn(shape)
    each = [
        1 - math.exp(-sum((a - b) ** 2 for a, b in zip(o, t, strict=True)))
        for o, t in zip(
            outputs.reshape(B, -1).tolist(), target.reshape(B, -1).tolist(), strict=True
        )
    ]
    found = GaussianWell().loss(outputs, {"label": target})
    assert found.item() == pytest.approx(sum(each) / B, rel=1e-5)


@pytest.mark.parametrize(
    ("distance", "concave"), [(1.0, False), (1.5, False), (1.7, True), (2.0, True)]
)
def test_gaussian_wells_far_apart_have_a_concave_front(distance: float, concave: bool) -> None:
    one, two = GaussianWell(), GaussianWell(target="other")
    targets = {"label": torch.zeros(1, 1), "other": torch.full((1, 1), distance)}
    points = [torch.full((1, 1), distance * s) for s in (0.0, 0.5, 1.0)]
    first = [one.loss(point, targets).item() for point in points]
    second = [two.loss(point, targets).item() for point in points]
    assert first[1] == pytest.approx(second[1])
    assert (first[1] > (first[0] + first[2]) / 2) == concave  # above the chord


CASES: list[tuple[Objective, Tensor, Tensor]] = [
    (BinaryCrossEntropy(), torch.linspace(-2, 2, B), torch.arange(B) % 2),
    (CrossEntropy(), torch.linspace(-2, 2, B * K).reshape(B, K).sin(), torch.arange(B) % K),
    (MeanSquaredError(), torch.linspace(-2, 2, B * 2).reshape(B, 2), torch.ones(B, 2)),
    (GaussianWell(), torch.linspace(-2, 2, B * 2).reshape(B, 2), torch.ones(B, 2)),
]


@pytest.mark.parametrize(("objective", "outputs", "label"), CASES)
def test_weights_that_are_all_zero_give_zero(
    objective: Objective, outputs: Tensor, label: Tensor
) -> None:
    assert objective.loss(outputs, {"label": label, "weight": torch.zeros(B)}) == 0


@pytest.mark.parametrize(("objective", "outputs", "label"), CASES)
def test_gradcheck(objective: Objective, outputs: Tensor, label: Tensor) -> None:
    inputs = outputs.double().requires_grad_()
    label = label.double() if label.is_floating_point() else label
    weight = torch.linspace(0.1, 2, B, dtype=torch.float64)
    for targets in ({"label": label}, {"label": label, "weight": weight}):
        assert torch.autograd.gradcheck(lambda x, t=targets: objective.loss(x, t), (inputs,))


# Heads, names, scores


def test_objectives_read_their_own_head_and_target() -> None:
    outputs = {"left": torch.randn(B, K), "right": torch.randn(B, K)}
    targets = {"label": torch.randint(0, K, (B,)), "other": torch.randint(0, K, (B,))}
    objective = CrossEntropy(name="right task", output="right", target="other")
    expected = F.cross_entropy(outputs["right"], targets["other"])
    torch.testing.assert_close(objective.loss(outputs, targets), expected)
    torch.testing.assert_close(objective.score(outputs, targets), expected)
    assert objective.name == "right task"
    assert "right task" in repr(objective)


@pytest.mark.parametrize("output", [None, "middle"])
def test_a_head_that_is_not_there_is_refused(output: str | None) -> None:
    outputs = {"left": torch.randn(B, K), "right": torch.randn(B, K)}
    with pytest.raises(ConfigurationError, match="heads left, right"):
        CrossEntropy(output=output).loss(outputs, {"label": torch.zeros(B)})


def test_accuracy_is_sklearns() -> None:
    logits, label = _binary()
    expected = accuracy_score(label, logits > 0)
    for outputs in (logits, logits[:, None]):
        for truth in (label, label[:, None], label.bool()):
            assert accuracy(outputs, {"label": truth}).item() == pytest.approx(expected)
    scores, classes = torch.randn(B, K), torch.randint(0, K, (B,))
    expected = accuracy_score(classes, scores.argmax(dim=1))
    assert accuracy(scores, {"label": classes}).item() == pytest.approx(expected)
    assert misclassification(scores, {"label": classes}).item() == pytest.approx(1 - expected)


def test_a_binary_decision_is_made_at_zero() -> None:
    logits, label = torch.tensor([0.1, -0.1, 0.0]), torch.tensor([1, 0, 0])
    assert accuracy(logits, {"label": label}) == 1


def test_accuracy_takes_weights_heads_and_targets() -> None:
    logits, label = _binary()
    weight = torch.rand(B)
    expected = accuracy_score(label, logits > 0, sample_weight=weight)
    outputs, targets = {"a": -logits, "b": logits}, {"other": label, "weight": weight}
    found = accuracy(outputs, targets, output="b", target="other")
    assert found.item() == pytest.approx(expected, rel=1e-6)
