"""The functional update against the optimiser's own step."""

import copy

import pytest
import torch

from paretocosmos.engine.adam import make_adam, make_update


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_it_is_the_optimisers_own_step(weight_decay: float) -> None:
    shapes = [(3, 4), (4,), (1, 2, 5)]
    start = [torch.randn(shape) for shape in shapes]
    ours, theirs = ([torch.nn.Parameter(part.clone()) for part in start] for _ in range(2))
    optimiser = make_adam(ours, learning_rate=0.05, weight_decay=weight_decay)
    expected = torch.optim.Adam(theirs, lr=0.05, weight_decay=weight_decay, fused=True)
    for step in range(20):
        for group in (*optimiser.param_groups, *expected.param_groups):
            group["lr"] = 0.05 if step < 10 else 0.005
        gradients = [torch.randn(shape) for shape in shapes]
        make_update(optimiser)(gradients)
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient
        expected.step()
    for one, two in zip(ours, theirs, strict=True):
        assert torch.equal(one, two)
        assert one.grad is None
        for name, value in expected.state[two].items():
            assert torch.equal(optimiser.state[one][name], value)


def test_a_loaded_state_goes_on() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    optimiser = make_adam([parameter], learning_rate=0.1, weight_decay=0.0)
    make_update(optimiser)([torch.ones(3)])
    twin = torch.nn.Parameter(parameter.detach().clone())
    other = make_adam([twin], learning_rate=0.1, weight_decay=0.0)
    other.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    for one in (optimiser, other):
        make_update(one)([torch.tensor([1.0, -2.0, 0.5])])
    assert torch.equal(parameter, twin)
