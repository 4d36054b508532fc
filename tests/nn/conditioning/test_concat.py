"""The split first layer against literal concatenation, in float64."""

import copy
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import Mlp
from paretocosmos.nn.conditioning import Concat

B, FEATURES, J = 12, 5, 3
DOUBLE = torch.float64


def _plain(bias: bool = True) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(FEATURES, 7, bias=bias), nn.Tanh(), nn.Linear(7, 4), nn.Tanh(), nn.Linear(4, 2)
    ).to(DOUBLE)


def _split(model: Concat) -> tuple[nn.Linear, nn.Linear]:
    """The layer that reads the samples and the one that reads the rays."""
    layers = tuple(model.get_submodule(f"backbone.0.{name}") for name in ("layer", "ray"))
    assert isinstance(layers[0], nn.Linear)
    assert isinstance(layers[1], nn.Linear)
    return layers[0], layers[1]


def _rest(model: Concat) -> nn.Sequential:
    assert isinstance(model.backbone, nn.Sequential)
    return nn.Sequential(*list(model.backbone)[1:])


class Joined(nn.Module):
    """The textbook: torch.cat of samples and copies of their ray, through [W_x | W_r]."""

    def __init__(self, model: Concat) -> None:
        super().__init__()
        layer, ray = _split(model)
        wide = nn.Linear(
            FEATURES + J, layer.out_features, bias=layer.bias is not None, dtype=DOUBLE
        )
        with torch.no_grad():
            wide.weight.copy_(torch.cat([layer.weight, ray.weight], dim=1))
            if layer.bias is not None:
                wide.bias.copy_(layer.bias)
        self.wide = wide
        self.rest = copy.deepcopy(_rest(model))

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        each = ray.reshape(-1, J).repeat_interleave(len(inputs) // ray.reshape(-1, J).shape[0], 0)
        return self.rest(self.wide(torch.cat([inputs, each], dim=1)))


def _rays(*shape: int) -> Tensor:
    return torch.rand(*shape, J, dtype=DOUBLE).softmax(dim=-1)


def _inputs(count: int = B) -> Tensor:
    return torch.randn(count, FEATURES, dtype=DOUBLE)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (B,)], ids=["[J]", "[1,J]", "[G,J]", "[B,J]"])
def test_forward_and_gradients_are_those_of_literal_concatenation(
    shape: tuple[int, ...], bias: bool
) -> None:
    model = Concat(_plain(bias), J)
    joined = Joined(model)
    ours = _inputs().requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    ray = _rays(*shape)
    found, expected = model(ours, ray), joined(theirs, ray)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    found.square().sum().backward()
    expected.square().sum().backward()
    layer, columns = _split(model)
    assert layer.weight.grad is not None
    assert columns.weight.grad is not None
    pairs = [
        (ours.grad, theirs.grad),
        (torch.cat([layer.weight.grad, columns.weight.grad], dim=1), joined.wide.weight.grad),
        *zip(
            (p.grad for p in _rest(model).parameters()),
            (p.grad for p in joined.rest.parameters()),
            strict=True,
        ),
    ]
    if bias:
        pairs.append((layer.bias.grad, joined.wide.bias.grad))
    for one, two in pairs:
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)


class Skip(nn.Module):
    """The input also goes past the conditioned layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, FEATURES)

    def forward(self, inputs: Tensor) -> Mapping[str, Tensor]:
        out = self.first(inputs)
        return {"sum": out + inputs, "out": out}


def test_a_skip_connection_is_swept_ray_by_ray() -> None:
    model = Concat(Skip().to(DOUBLE), J)
    inputs, rays = _inputs(), _rays(4)
    swept = model.each_ray(inputs, rays)
    for index, ray in enumerate(rays):
        for name, out in model(inputs, ray).items():
            torch.testing.assert_close(swept[name][index], out)
    torch.testing.assert_close(swept["sum"] - swept["out"], inputs.expand(4, -1, -1))


def test_a_backbone_names_its_first_layer_itself() -> None:
    class Late(nn.Module):
        first_layer = "enters"

        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 1)  # registered first, used last
            self.enters = nn.Linear(FEATURES, 4)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.head(self.enters(inputs))

    assert Concat(Late(), J).where == "enters"


def test_rays_are_forgotten_after_each_call_even_a_failing_one() -> None:
    model = Concat(_plain(), J)
    model(_inputs(), _rays())
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        model(torch.zeros(B, FEATURES + 1, dtype=DOUBLE), _rays())
    assert model.backbone.get_submodule("0").injected is None


def test_adult_has_the_papers_parameter_counts() -> None:
    plain = Mlp((88,), 1, hidden=(60, 25))
    assert sum(p.numel() for p in plain.parameters()) == 6891
    assert sum(p.numel() for p in Concat(plain, 2).parameters()) == 7011


# Mistakes


def test_a_single_ray_is_a_sweep_of_one() -> None:
    model, ray, inputs = Concat(_plain(), J), _rays(), _inputs()
    torch.testing.assert_close(model.each_ray(inputs, ray), model(inputs, ray)[None])


@pytest.mark.parametrize(
    ("network", "layer", "says"),
    [
        (nn.Sequential(nn.Conv2d(1, 1, 3), nn.ReLU()), None, "no linear layer.*Sequential"),
        (_plain(), "9", "`9`; .*0, 2, 4"),
        (_plain(), "1", "found Tanh at `1`.*: 0, 2, 4"),
    ],
)
def test_a_network_or_layer_that_is_not_linear_is_refused(
    network: nn.Module, layer: str | None, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Concat(network, 2, layer=layer)
