"""Weights times losses, back-propagated, against autograd through the scalar itself."""

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Cosmos, Linear
from paretocosmos.pareto import cosmos_loss, sample_rays

Settings = dict[str, object]
METHODS: list[Cosmos | Linear] = [
    Linear(),
    Cosmos(),
    Cosmos(penalty=0.0),
    Cosmos(penalty=8.0),
    Cosmos(penalty=3.0, alignment="inverse"),
]
DOUBLE = torch.float64


def no_gram() -> Tensor:
    raise AssertionError("a scalarization never pays for the Gram matrix")


def _losses(network: nn.Module, inputs: Tensor, *leading: int) -> Tensor:
    """Three losses per leading index of one small network."""
    outputs: Tensor = network(inputs)
    return outputs.square().mean(dim=0).reshape(*leading, 3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("leading", [(), (4,), (2, 5)], ids=["[J]", "[G,J]", "[S,G,J]"])
def test_the_gradient_is_that_of_the_scalar_itself(
    method: Cosmos | Linear, leading: tuple[int, ...]
) -> None:
    width = 3 * int(torch.tensor(leading).prod()) if leading else 3
    network = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, width)).to(DOUBLE)
    inputs = torch.randn(8, 4, dtype=DOUBLE)
    rays = torch.rand(*leading, 3, dtype=DOUBLE).softmax(dim=-1)
    parameters = list(network.parameters())

    losses = _losses(network, inputs, *leading)
    weights, state = method.weights(losses, rays, no_gram, method.init(3))
    assert weights.shape == losses.shape
    assert not weights.requires_grad
    assert state == {}
    found = torch.autograd.grad((weights * losses).sum(), parameters)

    again = _losses(network, inputs, *leading)
    if isinstance(method, Linear):
        scalar = (rays * again).sum()
    else:
        scalar = cosmos_loss(again, rays, penalty=method.penalty, alignment=method.alignment).sum()
    expected = torch.autograd.grad(scalar, parameters)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)


def test_linear_weights_have_a_floor() -> None:
    rays = torch.tensor([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    weights, _ = Linear(floor=0.1).weights(torch.rand(2, 3), rays, no_gram, {})
    expected = torch.tensor([[0.8, 0.1, 0.1], [0.24, 0.31, 0.45]])  # 0.1 + 0.7 r
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("floor", [-0.1, 0.4])
def test_a_floor_above_the_centre_is_refused(floor: float) -> None:
    with pytest.raises(
        ConfigurationError, match=r"`floor` must be .* at most 1/J, here 0\.333, found"
    ):
        Linear(floor=floor).weights(torch.rand(3), torch.rand(3), no_gram, {})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_half_precision_losses_are_float32(
    method: Cosmos | Linear, dtype: torch.dtype
) -> None:
    losses = (torch.rand(4, 3) + 0.1).to(dtype)
    rays = torch.rand(4, 3).softmax(dim=1)
    weights, _ = method.weights(losses, rays, no_gram, {})
    expected, _ = method.weights(losses.double(), rays.double(), no_gram, {})
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [Cosmos, Linear])
def test_rays_are_drawn_from_the_dirichlet(kind: type[Cosmos | Linear]) -> None:
    method = kind(alpha=(0.1, 0.5))
    generator = torch.Generator().manual_seed(5)
    rays = method.sample(2, 4_000, generator)
    assert rays.shape == (4_000, 2)
    # the mean of Dir(0.1, 0.5) is (1/6, 5/6), with a standard error below 0.005
    torch.testing.assert_close(rays.mean(dim=0), torch.tensor([1 / 6, 5 / 6]), atol=0.025, rtol=0)
    assert torch.equal(rays, sample_rays(4_000, 2, alpha=(0.1, 0.5), generator=5))
    assert not torch.equal(rays[:7], method.sample(2, 7, generator))  # the generator moves on


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"penalty": -1.0}, "`penalty` .*found -1.0: 0.01"),
        ({"penalty": float("nan")}, "`penalty`"),
        ({"penalty": float("inf")}, "`penalty`"),
        ({"alignment": "across"}, "`alignment`.*found `across`"),
        ({"alpha": 0.0}, "`alpha` must be positive"),
        ({"alpha": (0.5, -1.0)}, "`alpha` must be positive"),
        ({"alpha": "abc"}, "`alpha` must be positive"),
    ],
)
def test_bad_settings_are_refused_at_once(settings: Settings, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Cosmos(**settings)  # type: ignore[arg-type]
    if "alpha" in settings:
        with pytest.raises(ConfigurationError, match=says):
            Linear(**settings)  # type: ignore[arg-type]


def test_the_defaults_are_the_papers_for_fairness() -> None:
    assert (Cosmos().penalty, Cosmos().alpha, Cosmos().alignment) == (0.01, 0.5, "ray")
