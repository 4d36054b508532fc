"""Every network of the list, several rays at once, against one ray at a time."""

from typing import Any

import pytest
import torch
from tests.networks.listed import KINDS, NEEDS_EXTRAS
from tests.networks.tried import conditioned, floats, nudged
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError

REFUSED = {"int8 MLP": "quantised"}
EVERY = [name for kind, made in KINDS.items() if kind != NEEDS_EXTRAS for name in made]
TAKEN = [name for name in EVERY if name not in REFUSED]


def check_ray_by_ray(name: str, how: str = "film") -> None:
    """One ray per sample, groups and a sweep, all equal to one ray at a time."""
    model, inputs = conditioned(name, how)
    nudged(model)
    with torch.no_grad():
        for groups in (6, 3, 2):
            rays = torch.rand(groups, 2).softmax(dim=1)
            alone = [list(floats(model(inputs, ray))) for ray in rays]
            together = list(floats(model(inputs, rays)))
            swept = list(floats(model.each_ray(inputs, rays)))
            assert together
            for at, found in enumerate(together):
                rows = found.shape[0] // groups
                every = torch.stack([outs[at] for outs in alone])
                each = torch.cat([every[g, g * rows : (g + 1) * rows] for g in range(groups)])
                torch.testing.assert_close(found, each, rtol=1e-5, atol=1e-5)
                torch.testing.assert_close(swept[at], every, rtol=1e-5, atol=1e-5)
        moved = [(one - two).abs().max() for one, two in zip(alone[0], alone[1], strict=True)]
    assert max(moved) > 1e-3


def test_there_are_sixty_and_five_of_each_kind() -> None:
    assert {len(kind) for kind in KINDS.values()} == {5}
    assert sum(map(len, KINDS.values())) == 60


@pytest.mark.parametrize("name", TAKEN)
def test_several_rays_are_one_ray_at_a_time(name: str) -> None:
    check_ray_by_ray(name)


@pytest.mark.parametrize(
    "name", ["time-first mixer", "flattened steps", "nodes of one graph", "spectral_norm"]
)
def test_beside_the_input_too(name: str) -> None:
    check_ray_by_ray(name, "input")


@pytest.mark.parametrize("name", ["flattened steps", "nodes of one graph", "table as a dict"])
def test_weights_of_a_hypernetwork_too(name: str) -> None:
    model, inputs = conditioned(name, "hypernet")
    rays = torch.rand(3, 2)
    alone = torch.stack([model(inputs, ray) for ray in rays])
    expected = torch.cat([alone[at, 2 * at : 2 * at + 2] for at in range(3)])
    torch.testing.assert_close(model(inputs, rays), expected, rtol=1e-4, atol=1e-5)


OTHERWISE = [
    ("time-first mixer", "concat"),
    ("LeNet", "transposed_conv"),
    ("time-first mixer", "hypernet"),
    ("LeNet", "hypernet"),
]


@pytest.mark.parametrize(("name", "how"), [*((name, "film") for name in TAKEN), *OTHERWISE])
def test_many_backward_passes_at_once(name: str, how: str) -> None:
    """What TorchJD does, against one backward pass after the other."""
    model, inputs = conditioned(name, how)
    nudged(model)
    out = next(floats(model(inputs, torch.tensor([0.3, 0.7]))))
    losses = torch.stack([(out - 1).square().mean(), (out + 1).abs().mean()])
    weights = [p for p in model.parameters() if p.requires_grad]

    def back(rows: Tensor, at_once: bool) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(
            losses, weights, rows, retain_graph=True, is_grads_batched=at_once, allow_unused=True
        )

    both = back(torch.eye(2), True)
    for row in range(2):
        for found, expected in zip(both, back(torch.eye(2)[row], False), strict=True):
            if expected is None:
                assert found is None
            else:
                near = max(1e-6, 1e-5 * float(expected.abs().max()))
                torch.testing.assert_close(found[row], expected, rtol=1e-4, atol=near)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_learn_is_refused_for_the_true_reason(name: str) -> None:
    with pytest.raises(ConfigurationError, match=REFUSED[name]):
        conditioned(name)


class TimeFirst(nn.Module):
    """A network whose inputs have time first."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 8), nn.Linear(8, 2)

    def forward(self, steps: Tensor) -> Tensor:
        return self.head(self.rnn(steps)[0])


def test_inputs_may_have_time_first_themselves() -> None:
    from paretocosmos import condition

    torch.manual_seed(0)
    model = nudged(condition(TimeFirst(), 2))
    steps, rays = torch.randn(4, 6, 3), torch.rand(6, 2)
    alone = torch.stack([model(steps, ray)[:, at] for at, ray in enumerate(rays)], dim=1)
    torch.testing.assert_close(model(steps, rays), alone)
    swept: Any = model.each_ray(steps, rays)
    torch.testing.assert_close(swept, torch.stack([model(steps, ray) for ray in rays]))
