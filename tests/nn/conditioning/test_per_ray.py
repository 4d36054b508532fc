"""Several networks under one roof: which one answers, and that they stay apart."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning import Concat, PerRayEnsemble, Unconditioned, list_networks
from paretocosmos.pareto import even_rays, sample_rays


class Constant(nn.Module):
    """Answers with its own number, and remembers the ray it was told."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self.number = nn.Parameter(torch.tensor(number))
        self.told: list[float] = []

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        self.told = ray.tolist()
        return self.number.expand(len(inputs), 1)


def _several(networks: int, objectives: int) -> PerRayEnsemble:
    return PerRayEnsemble(
        [Constant(float(k)) for k in range(networks)], even_rays(networks, objectives)
    )


@pytest.mark.parametrize("objectives", [2, 3])
def test_the_network_of_the_nearest_ray_answers(objectives: int) -> None:
    model = _several(5, objectives)
    own = model.rays.double().numpy()
    for ray in sample_rays(40, objectives, generator=1):
        angles = [
            np.arccos(min(1.0, one @ r / np.linalg.norm(one) / np.linalg.norm(r)))
            for one in own
            for r in [ray.double().numpy()]
        ]
        nearest = int(np.argmin(angles))
        assert model(torch.zeros(3, 2), ray).tolist() == [[nearest]] * 3
        network = list_networks(model)[nearest]
        assert isinstance(network, Constant)
        assert network.told == pytest.approx(own[nearest].tolist())  # its own, not the one asked
    for k in range(5):
        assert model(torch.zeros(1, 2), model.rays[k]).item() == k


def test_groups_of_samples_have_a_ray_each() -> None:
    model = _several(5, 2)
    rays = model.rays[[4, 0, 2]]
    assert model(torch.zeros(6, 2), rays).flatten().tolist() == [4, 4, 0, 0, 2, 2]
    assert model(torch.zeros(3, 2), rays).flatten().tolist() == [4, 0, 2]  # one per sample
    with pytest.raises(ConfigurationError, match=r"7 samples.*3 rays"):
        model(torch.zeros(7, 2), rays)


def test_every_ray_is_a_sweep_of_them_one_by_one() -> None:
    rays = sample_rays(9, 2, generator=2)
    networks = [Unconditioned(nn.Linear(3, 2), 2) for _ in range(4)]
    model, inputs = PerRayEnsemble(networks, even_rays(4, 2)), torch.randn(5, 3)
    swept = model.each_ray(inputs, rays)
    assert swept.shape == (9, 5, 2)
    for ray, outputs in zip(rays, swept, strict=True):
        assert torch.equal(model(inputs, ray), outputs)


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 1), nn.Linear(3, 2)

    def forward(self, first: Tensor, second: Tensor) -> dict[str, Tensor]:
        return {"left": self.left(first), "right": self.right(second)}


def test_mappings_go_in_and_come_out() -> None:
    networks = [Unconditioned(TwoHeads(), 2) for _ in range(2)]
    model = PerRayEnsemble(networks, torch.eye(2))
    inputs = {"first": torch.randn(4, 3), "second": torch.randn(4, 3)}
    outputs = model(inputs, torch.eye(2))
    assert {name: tuple(out.shape) for name, out in outputs.items()} == {
        "left": (4, 1),
        "right": (4, 2),
    }
    for k, network in enumerate(networks):
        share = slice(2 * k, 2 * k + 2)
        expected = network({name: part[share] for name, part in inputs.items()}, torch.eye(2)[k])
        assert torch.equal(outputs["right"][share], expected["right"])
    swept = model.each_ray(inputs, torch.eye(2))
    assert swept["left"].shape == (2, 4, 1)


@pytest.mark.parametrize(
    "make",
    [lambda one: [one] * 3, lambda one: [copy.deepcopy(one) for _ in range(3)]],
    ids=["one thrice", "three"],
)
def test_networks_are_copies_and_share_nothing(
    make: Callable[[nn.Module], list[nn.Module]],
) -> None:
    given = make(nn.Linear(2, 2))
    model = PerRayEnsemble(given, even_rays(3, 2))
    found = list_networks(model)
    assert len(found) == 3
    assert len({p.data_ptr() for p in model.parameters()}) == 6
    before = given[0].weight.clone()
    with torch.no_grad():
        for network in found:
            for parameter in network.parameters():
                parameter.zero_()
    assert torch.equal(given[0].weight, before)  # type: ignore[arg-type]


def test_its_state_names_every_network_and_comes_back() -> None:
    model = _several(3, 2)
    state = model.state_dict()
    assert set(state) == {"rays", *(f"backbone.{k}.number" for k in range(3))}
    other = PerRayEnsemble([Constant(9.0) for _ in range(3)], torch.rand(3, 2))
    other.load_state_dict(state)
    assert torch.equal(other.rays, model.rays)
    assert [other(torch.zeros(1, 2), ray).item() for ray in model.rays] == [0, 1, 2]
    with pytest.raises(RuntimeError):
        _several(2, 2).load_state_dict(state)


def test_rays_handed_over_are_copied_and_move_along() -> None:
    rays = even_rays(2, 2)
    model = PerRayEnsemble([nn.Linear(2, 2) for _ in range(2)], rays)
    rays.zero_()
    assert model.rays.any()
    assert model.double().rays.dtype == torch.float64
    assert "networks=2" in repr(model)


@pytest.mark.parametrize("networks", [0, 1, 3])
def test_as_many_networks_as_rays(networks: int) -> None:
    with pytest.raises(ConfigurationError, match=f"found {networks} networks and 2 rays"):
        PerRayEnsemble([nn.Linear(2, 2) for _ in range(networks)], torch.eye(2))


def test_a_ray_of_another_length_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"shape \[2\], .* found \(3,\)"):
        _several(2, 2)(torch.zeros(1, 2), torch.full((3,), 1 / 3))


def test_what_reads_the_ray_is_what_does_so_in_its_networks() -> None:
    linear = nn.Linear(3, 1)
    networks = [Unconditioned(linear, 2), Concat(linear, 2), Constant(1.0)]
    model = PerRayEnsemble(networks, even_rays(3, 2))
    assert model.ray_parameters == ("backbone.1.backbone.ray.weight",)
