"""The benchmark of robustness: the attack against closed forms, and the measures side by side."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from examples.robust_accuracy import EPSILON, attacked, network, split
from torch import Tensor, nn

from benchmarks import robustness
from paretocosmos import condition, even_rays

RAY = torch.tensor([0.5, 0.5])


class TwoClasses(nn.Module):
    """Logits that are linear in the pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 2)

    def forward(self, images: Tensor, ray: Tensor) -> Tensor:
        return self.layer(images.flatten(1))


@pytest.fixture
def images() -> Tensor:
    """Pixels from end to end, some of them at the ends."""
    return (1.4 * torch.rand(40, 1, 8, 8) - 0.2).clamp(0, 1)


@pytest.mark.parametrize("steps", [1, 5, 20])
def test_the_attack_stays_where_it_may(images: Tensor, steps: int) -> None:
    label = torch.randint(10, (40,))
    model = condition(network(), objectives=2)
    for ray in even_rays(3, 2, ends=True):
        found = attacked(model, images, label, ray, steps=steps)
        assert float((found - images).abs().max()) <= EPSILON + 1e-6
        assert 0 <= float(found.min()) <= float(found.max()) <= 1
        assert not found.requires_grad
        assert all(p.grad is None for p in model.parameters())


def test_on_a_linear_network_it_finds_the_worst_image(images: Tensor) -> None:
    """Two classes: the loss grows with (w_wrong - w_right)·x, which is largest in a corner."""
    model, label = TwoClasses(), torch.randint(2, (40,))
    weight = model.layer.weight.detach()
    toward = (weight[1 - label] - weight[label]).reshape(40, 1, 8, 8).sign()
    worst = (images + EPSILON * toward).clamp(0, 1)
    found = attacked(model, images, label, RAY, steps=10)
    torch.testing.assert_close(found, worst)
    losses = [F.cross_entropy(model(x, RAY), label, reduction="none") for x in (images, found)]
    assert bool((losses[1] > losses[0]).all())


def test_it_attacks_the_network_at_the_ray(images: Tensor) -> None:
    """A network that is another one at each end of the simplex."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ends = nn.ModuleList(TwoClasses() for _ in range(2))

        def forward(self, images: Tensor, ray: Tensor) -> Tensor:
            first, second = (end(images, ray) for end in self.ends)
            return ray[0] * first + ray[1] * second

    model, label = Mixed(), torch.randint(2, (40,))
    for ray, end in zip(torch.eye(2), model.ends, strict=True):
        found, alone = (attacked(one, images, label, ray, steps=10) for one in (model, end))
        torch.testing.assert_close(found, alone)


def test_no_digit_is_in_two_splits() -> None:
    parts = split(seed=4)
    assert [len(parts[name][1]) for name in ("train", "val", "test")] == [1000, 297, 500]
    rows = torch.cat([images.flatten(1) for images, _ in parts.values()])
    original = split(seed=5)
    again = torch.cat([images.flatten(1) for images, _ in original.values()])
    # the same digits, each as often
    assert torch.equal(rows.sum(dim=1).sort().values, again.sum(dim=1).sort().values)
    assert not torch.equal(rows, again)


def test_a_little_of_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ["-", "--steps", "3", "--seeds", "1", "--split", "val", "--out", "it.json"]
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(robustness, "ATTACK", 2)
    monkeypatch.chdir(tmp_path)
    robustness.main()
    found: dict[str, Any] = json.loads(Path("it.json").read_text())
    (cell,) = found["cells"]
    assert found["split"] == cell["one"]["split"] == "val"
    for name in ("one", "separate"):
        assert all(0 <= share <= 1 for point in cell[name]["values"] for share in point)
        assert len(cell[name]["values"]) == len(found["weights"])
    assert {"machine", "versions", "git", "source"} <= found.keys()
