"""What adds up over samples gives, piece by piece, the number of all of them."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from paretocosmos import registry
from paretocosmos.objectives import (
    CrossEntropy,
    MeanSquaredError,
    Objective,
    TprGap,
    accuracy,
    calibration_error,
    misclassification,
    roc_auc,
    streamed,
    streaming,
)
from paretocosmos.types import Measure, Metric, Outputs, Targets

B, N = 60, 3
PIECES = (slice(0, 7), slice(7, 40), slice(40, 60))
CLASSES = {"accuracy_gap", "class_loss", "cross_entropy", "demographic_parity", "deo"}
CLASSES |= {"equalized_odds", "fpr_gap", "selection_and_tpr_gap", "tpr_gap", "worst_group"}


def _targets(classes: int, weighted: bool) -> dict[str, Tensor]:
    targets = {"label": torch.arange(B) % classes, "sensitive": torch.arange(B) // 7 % 3}
    return targets | ({"weight": torch.rand(B).double()} if weighted else {})


def _streamed(metric: Metric, outputs: Tensor, targets: dict[str, Tensor]) -> Tensor:
    """By pieces of unequal sizes; the first has one group only."""
    how = streamed(metric)
    per_ray = torch.vmap(how.sums, in_dims=(0, None))
    parts = [
        per_ray(outputs[:, piece], {name: t[piece] for name, t in targets.items()})
        for piece in PIECES
    ]
    return torch.vmap(how.finish)(torch.stack(parts).sum(dim=0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", registry.names("objectives"))
def test_pieces_of_every_objective_make_the_whole(name: str, weighted: bool) -> None:
    kind: Any = registry.find("objectives", name)
    objective = kind(groups=3) if hasattr(kind, "groups") else kind()
    for classes in (2, 4) if name in CLASSES else (2,):
        if (name, classes) == ("cross_entropy", 2):
            continue
        shape = (N, B) if classes == 2 else (N, B, classes)
        outputs, targets = torch.randn(shape).double(), _targets(classes, weighted)
        whole = torch.vmap(objective.score, in_dims=(0, None))(outputs, targets)
        found = _streamed(objective.score, outputs, targets)
        assert whole.isfinite().all()
        torch.testing.assert_close(found, whole, check_dtype=False)


@pytest.mark.parametrize("metric", [accuracy, misclassification, partial(accuracy, target="label")])
@pytest.mark.parametrize("weighted", [False, True])
def test_pieces_of_accuracies_make_the_whole(metric: Metric, weighted: bool) -> None:
    outputs, targets = torch.randn(N, B, 4), _targets(4, weighted)
    whole = torch.vmap(metric, in_dims=(0, None))(outputs, targets)
    torch.testing.assert_close(_streamed(metric, outputs, targets), whole)


@pytest.mark.parametrize("metric", [roc_auc, calibration_error, partial(roc_auc, target="y")])
def test_what_orders_samples_needs_all_of_them(metric: Metric) -> None:
    assert streamed(metric) is None


class Thousandfold(MeanSquaredError):  # noqa: N818
    """A loss of its own, with which the sums it inherits have nothing to do."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return 1000 * super().loss(outputs, targets)


class Rooted(CrossEntropy):
    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().score(outputs, targets).sqrt()


class Decided(TprGap):
    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        return super().decided(positive, targets) ** 2


class Declared(Thousandfold):
    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().sums(outputs, targets) * torch.tensor([1000.0, 1.0])


class Renamed(CrossEntropy):
    """Nothing of its own but words."""

    measure = Measure("surprise")


@pytest.mark.parametrize(
    ("objective", "adds_up"),
    [
        (Thousandfold(), False),
        (Rooted(), False),
        (Decided(), False),
        (Declared(), True),
        (Renamed(), True),
    ],
)
def test_a_subclass_with_a_score_of_its_own_declares_it_anew(
    objective: Objective, adds_up: bool
) -> None:
    assert (streamed(objective.score) is not None) is adds_up


def test_a_declared_sum_is_used() -> None:
    outputs, targets = torch.randn(N, B), {"label": torch.randn(B)}
    whole = torch.vmap(Declared().score, in_dims=(0, None))(outputs, targets)
    torch.testing.assert_close(_streamed(Declared().score, outputs, targets), whole)


def test_a_metric_of_ones_own_may_add_up() -> None:
    def squares(outputs: Tensor, targets: Targets) -> Tensor:
        return torch.stack([outputs.square().sum(), outputs.new_full((), outputs.numel())])

    @streaming(squares, lambda sums: (sums[0] / sums[1]).sqrt())
    def size(outputs: Any, targets: Targets) -> Tensor:
        return outputs.square().mean().sqrt()

    outputs, targets = torch.randn(N, B), {"label": torch.randn(B)}
    torch.testing.assert_close(
        _streamed(size, outputs, targets), outputs.square().mean(dim=1).sqrt()
    )
