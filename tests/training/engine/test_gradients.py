"""Gradients of several losses against torch's Jacobian and the ordinary backward pass."""

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.functional import jacobian
from torch.func import functional_call

from paretocosmos.methods import Cosmos, Epo, Mgda, ParetoMtl
from paretocosmos.nn.conditioning import Unconditioned
from paretocosmos.training.engine import LossGradients, find_head_modules

DOUBLE = torch.float64
Parameters = dict[str, Tensor]


class Tasks(nn.Module):
    """A convolution and a temperature that all tasks share, a head for each, something unused."""

    def __init__(self, objectives: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.temperature = nn.Parameter(torch.tensor(1.3))  # no axes
        self.tasks = nn.ModuleList(nn.Linear(12, 2) for _ in range(objectives))
        self.taskless = nn.Parameter(torch.ones(2))  # its name begins as the heads' does
        self.to(DOUBLE)

    def forward(self, inputs: Tensor) -> Tensor:
        features = torch.tanh(self.conv(inputs) * self.temperature).flatten(1)
        return torch.stack([task(features) for task in self.tasks], dim=1)


HEADS = ("tasks",)


def _close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-13)


def _parameters(model: nn.Module, layout: str) -> Parameters:
    found = {name: p.detach().clone() for name, p in model.named_parameters()}
    if layout == "channels last":
        found["conv.weight"] = found["conv.weight"].contiguous(memory_format=torch.channels_last)
        assert not found["conv.weight"].is_contiguous()
    return {name: value.requires_grad_() for name, value in found.items()}


def _losses(model: nn.Module, inputs: Tensor, groups: int) -> Callable[[Parameters], Tensor]:
    """Parameters to losses ``[G, J]``."""

    def losses(parameters: Parameters) -> Tensor:
        outputs: Tensor = functional_call(model, parameters, (inputs,))
        size = len(inputs) // groups
        return torch.stack([part.exp().mean(dim=(0, 2)) for part in outputs.split(size)])

    return losses


def _jacobians(losses: Callable[[Parameters], Tensor], at: Parameters) -> Parameters:
    """Every loss's gradient, ``[G, J, ...]`` by name, as torch computes it."""
    names = list(at)

    def flat(*values: Tensor) -> Tensor:
        return losses(dict(zip(names, values, strict=True)))

    found = jacobian(flat, tuple(value.detach() for value in at.values()))
    return dict(zip(names, found, strict=True))


def _expected_gram(jacobians: Parameters, apart: tuple[str, ...], shape: torch.Size) -> Tensor:
    rows = torch.cat(
        [
            part.flatten(2) if part.ndim > 2 else part.unsqueeze(-1)
            for name, part in jacobians.items()
            if name.split(".")[0] not in apart
        ],
        dim=-1,
    )
    gram = torch.zeros(*shape, shape[-1], dtype=DOUBLE)
    for group in range(shape[0]):
        for i in range(shape[1]):
            for j in range(shape[1]):
                gram[group, i, j] = rows[group, i].dot(rows[group, j])
    return gram


@pytest.mark.parametrize("layout", ["contiguous", "channels last"])
@pytest.mark.parametrize("apart", [(), HEADS], ids=["all", "shared"])
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("objectives", [2, 3])
def test_inner_products_are_those_of_the_jacobians_rows(
    objectives: int, groups: int, apart: tuple[str, ...], layout: str
) -> None:
    model, inputs = Tasks(objectives), torch.randn(8, 2, 4, 4, dtype=DOUBLE)
    losses, leaves = _losses(model, inputs, groups), _parameters(model, layout)
    found = losses(leaves)
    each_loss = LossGradients(found, leaves, apart, stacked=False)
    gram = each_loss.gram()
    assert gram.shape == (groups, objectives, objectives)
    assert torch.equal(gram, gram.mT)
    expected = _expected_gram(_jacobians(losses, leaves), apart, found.shape)
    _close(gram, expected)
    _weighted_is_a_backward_pass(each_loss, losses(leaves), leaves)


@pytest.mark.parametrize("apart", [(), HEADS], ids=["all", "shared"])
@pytest.mark.parametrize("asked", [False, True], ids=["plain", "after the gram"])
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("objectives", [2, 3])
def test_several_seeds_are_each_alone(
    objectives: int, groups: int, asked: bool, apart: tuple[str, ...]
) -> None:
    seeds = 3
    models = [Tasks(objectives) for _ in range(seeds)]
    inputs = torch.randn(seeds, 8, 2, 4, 4, dtype=DOUBLE)
    own = [_parameters(model, "channels last") for model in models]
    stack = {n: torch.stack([p[n].detach() for p in own]).requires_grad_() for n in own[0]}

    def one(parameters: Parameters, inputs: Tensor) -> Tensor:
        return _losses(models[0], inputs, groups)(parameters)

    found = torch.vmap(one)(stack, inputs)
    each_loss = LossGradients(found, stack, apart, stacked=True)
    weights = torch.randn(seeds, groups, objectives, dtype=DOUBLE)
    gram = each_loss.gram() if asked else None
    gradients = each_loss.weighted(weights)
    for place, (model, leaves) in enumerate(zip(models, own, strict=True)):
        losses = _losses(model, inputs[place], groups)
        total = (weights[place] * losses(leaves)).sum()
        expected = torch.autograd.grad(total, list(leaves.values()), materialize_grads=True)
        for name, gradient in zip(leaves, expected, strict=True):
            _close(gradients[name][place], gradient)
        if gram is not None:
            jacobians = _jacobians(losses, leaves)
            shape = torch.Size((groups, objectives))
            _close(gram[place], _expected_gram(jacobians, apart, shape))


def _weighted_is_a_backward_pass(
    each_loss: LossGradients, losses: Tensor, leaves: Parameters
) -> None:
    weights = torch.randn(losses.shape, dtype=DOUBLE)
    found = each_loss.weighted(weights)
    expected = torch.autograd.grad(
        (weights * losses).sum(), list(leaves.values()), materialize_grads=True
    )
    assert set(found) == set(leaves)
    for name, gradient in zip(leaves, expected, strict=True):
        assert found[name].shape == leaves[name].shape
        _close(found[name], gradient)
    assert not found["taskless"].any()
    assert found["conv.weight"].any()


class Declared(nn.Module):
    """Says in `heads` what serves single objectives; or has something else of that name."""

    heads: object

    def __init__(self, heads: object) -> None:
        super().__init__()
        self.trunk, self.head = nn.Linear(2, 2), nn.Linear(2, 2)
        self.heads = heads


@pytest.mark.parametrize(
    ("heads", "names"),
    [
        (("head", "trunk.tip"), ("head", "trunk.tip")),
        (["head"], ("head",)),
        ("head", ("head",)),
        (nn.ModuleList([nn.Linear(2, 2)]), ("heads",)),
        (nn.ModuleDict({"left": nn.Linear(2, 2)}), ("heads",)),
        (8, ()),  # of attention
        ((), ()),
    ],
    ids=["tuple", "list", "one", "modules", "named modules", "a number", "none"],
)
@pytest.mark.parametrize("wrapped", [False, True], ids=["own", "conditioned"])
def test_heads_are_left_out_as_a_network_declares_them(
    heads: object, names: tuple[str, ...], wrapped: bool
) -> None:
    model: nn.Module = Declared(heads)
    if wrapped:
        model = Unconditioned(model, 2)
        names = tuple(f"backbone.{name}" for name in names)
    over: Literal["all", "shared"]
    for method, over in ((Mgda(), "shared"), (ParetoMtl(), "shared"), (Epo(), "all")):
        assert method.over == over
        assert find_head_modules(model, method) == (names if over == "shared" else ())
    assert find_head_modules(model, Cosmos()) == ()
    assert find_head_modules(nn.Linear(2, 2), Mgda()) == ()
