"""Gradients through a hypernetwork's last layer, against those of every parameter."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from paretocosmos.nn.conditioning import Hypernet, HypernetOutput
from paretocosmos.training.engine import HypernetGradients, HypernetWithFeatures, LossGradients

SAMPLES, WIDTH = 12, 6


def hypernet(objectives: int, seed: int = 0) -> Hypernet:
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, objectives))
    return Hypernet(network, objectives, width=WIDTH).double()


def told(
    model: Hypernet, leaves: dict[str, Tensor], inputs: Tensor, rays: Tensor
) -> tuple[Tensor, ...]:
    """Losses ``[G, J]`` and what was emitted for them."""
    named = {f"model.{name}": leaf for name, leaf in leaves.items()}
    outputs, emission = functional_call(HypernetWithFeatures(model), named, (inputs, rays))
    losses = outputs.square().unflatten(0, (len(rays), -1)).mean(dim=1)
    return losses, *emission


def check(mine: HypernetGradients, every: LossGradients, losses: Tensor) -> None:
    torch.testing.assert_close(mine.gram(), every.gram(), rtol=1e-10, atol=1e-13)
    weights = torch.rand_like(losses)
    ours, theirs = mine.weighted(weights), every.weighted(weights)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-10, atol=1e-13, msg=name)


@pytest.mark.parametrize("objectives", [2, 4])
@pytest.mark.parametrize("groups", [1, 3])
def test_as_every_parameter_s_gradient(objectives: int, groups: int) -> None:
    model = hypernet(objectives)
    leaves = {n: p.detach().clone().requires_grad_() for n, p in model.named_parameters()}
    inputs, rays = torch.randn(SAMPLES, 3).double(), torch.rand(groups, objectives).double()
    losses, *emission = told(model, leaves, inputs, rays)
    every = LossGradients(losses, leaves, (), stacked=False)
    check(HypernetGradients(losses, leaves, HypernetOutput(*emission)), every, losses.detach())


@pytest.mark.parametrize("groups", [1, 3])
def test_with_several_seeds(groups: int) -> None:
    models = [hypernet(2, seed) for seed in (1, 2, 3)]
    stacked, _ = stack_module_state(models)
    leaves = {name: value.detach().requires_grad_() for name, value in stacked.items()}
    inputs, rays = torch.randn(3, SAMPLES, 3).double(), torch.rand(3, groups, 2).double()
    losses, *emission = torch.vmap(lambda *given: told(models[0], *given))(leaves, inputs, rays)
    every = LossGradients(losses, leaves, (), stacked=True)
    check(HypernetGradients(losses, leaves, HypernetOutput(*emission)), every, losses.detach())
