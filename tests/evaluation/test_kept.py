"""Outputs that are kept."""

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import sweep
from paretocosmos.evaluation.intervals import paired_draws
from paretocosmos.evaluation.kept import KeptOutputs, keeping
from paretocosmos.fairness import AdjustedNetwork
from paretocosmos.objectives import accuracy, calibration_error
from paretocosmos.types import Metric, Outputs, Targets, first


class Counting(nn.Module):
    """Says how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        self.asked += 1
        return inputs @ ray


def test_the_same_question_is_computed_once() -> None:
    model, kept = Counting(), KeptOutputs()
    inputs, rays = torch.rand(5, 2), torch.tensor([[0.25, 0.75]])
    with keeping(kept):
        once = sweep(model, inputs, rays)
        assert sweep(model, inputs, rays.clone()) is once
        assert model.asked == 1
        sweep(model, inputs, rays.flip(1))  # another ray
        sweep(model, inputs.clone(), rays)  # other tensors, though the same numbers
        sweep(model, inputs[:3], rays)  # which begin at the same place
        assert model.asked == 4
        other = Counting()
        assert torch.equal(torch.stack([*sweep(other, inputs, rays)])[0], inputs @ rays[0])
        assert other.asked == 1
    sweep(model, inputs, rays)
    assert model.asked == 5  # outside of the block nothing is kept


def test_where_the_ray_enters_by_a_formula_the_network_runs_once() -> None:
    asked = []

    class Learning(nn.Linear):
        def forward(self, inputs: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
            asked.append(len(inputs))
            answer, *groups = super().forward(inputs).split([1, 2, 2], dim=1)
            return {"answer": answer, "groups_of_no": groups[0], "groups_of_yes": groups[1]}

    model, inputs = AdjustedNetwork(Learning(2, 5), 2), torch.rand(5, 2)
    model.adjustment.multiplier_path = torch.rand(3, 2, 2)
    model.eval()
    rays = torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    wanted = [first(model.each_ray(inputs, ray[None])) for ray in rays]
    assert len(asked) == 2
    with keeping(KeptOutputs()):
        found = [first(sweep(model, inputs, ray[None])) for ray in rays]
    assert len(asked) == 3
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))


def test_draws_are_the_same_kept_or_not() -> None:
    logits, targets = torch.randn(1, 40), {"label": (torch.rand(40) > 0.5).float()}

    def of_rows(outputs: Outputs, targets: Targets) -> Tensor:
        return first(outputs)[-1] + targets["label"][0]  # knows no weights

    metrics: list[Metric] = [accuracy, calibration_error, of_rows]
    wanted = paired_draws(metrics, logits, targets)
    with keeping(KeptOutputs()):
        for _ in range(2):
            assert np.array_equal(paired_draws(metrics, logits, targets), wanted)
    assert not np.array_equal(paired_draws(metrics, logits, targets, seed=1), wanted)


def test_what_was_asked_for_last_is_kept() -> None:
    model, kept = Counting(), KeptOutputs(numbers=10)
    inputs = torch.rand(5, 2)
    rays = [torch.tensor([[part, 1 - part]]) for part in (0.1, 0.2, 0.3)]
    with keeping(kept):
        for ray in (rays[0], rays[1], rays[0], rays[2]):  # the second has to go
            sweep(model, inputs, ray)
        assert (model.asked, len(kept)) == (3, 2)
        sweep(model, inputs, rays[0])
        assert model.asked == 3
        sweep(model, inputs, rays[1])
        assert model.asked == 4
        sweep(model, torch.rand(11, 2), rays[0])  # more than there is room for
        assert len(kept) == 2
