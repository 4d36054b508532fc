"""Outputs that are kept."""

import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import sweep
from paretocosmos.evaluation.kept import KeptOutputs, keeping


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
        first = sweep(model, inputs, rays)
        assert sweep(model, inputs, rays.clone()) is first
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
