"""A conditioned network under TorchJD's backward pass and engine, against one loss at a time."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchjd.aggregation import MGDA
from torchjd.autogram import Engine
from torchjd.autojac import backward, jac_to_grad

from paretocosmos import condition

B = 12
RAYS = {"one": (2,), "groups": (3, 2), "each": (B, 2)}


def _model(how: str) -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    return condition(layers, 2, how=how)


def _rays(kind: str) -> Tensor:
    return torch.rand(RAYS[kind], generator=torch.Generator().manual_seed(1))


def _losses(model: nn.Module, ray: Tensor) -> Tensor:
    x = torch.randn(B, 6, generator=torch.Generator().manual_seed(2))
    apart = model(x[:, :5], ray) - x[:, 5:]
    return torch.stack([apart.square().mean(), apart.abs().mean()])


def _jacobian(model: nn.Module, losses: Tensor) -> Tensor:
    """One loss after the other, by torch alone."""
    rows = []
    for loss in losses:
        parts: Any = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
        rows.append(torch.cat([part.flatten() for part in parts]))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", RAYS)
@pytest.mark.parametrize("how", ["concat", "film", "hypernet"])
def test_backward_and_jac_to_grad(how: str, kind: str) -> None:
    model, ray = _model(how), _rays(kind)
    expected = MGDA()(_jacobian(model, _losses(model, ray)))
    backward(_losses(model, ray))  # all losses at once: vmap over the backward pass
    jac_to_grad(model.parameters(), aggregator=MGDA())
    found = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", RAYS)
@pytest.mark.parametrize("how", ["concat"])
def test_the_engines_gramian(how: str, kind: str) -> None:
    model, ray = _model(how), _rays(kind)
    rows = _jacobian(model, _losses(model, ray))
    engine = Engine(model, batch_dim=None)
    found = engine.compute_gramian(_losses(model, ray))
    torch.testing.assert_close(found, rows @ rows.mT, rtol=1e-4, atol=1e-5)
