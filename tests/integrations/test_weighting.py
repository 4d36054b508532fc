"""The scalar of somebody else's loop has the gradient of ours; its rays depend on the place."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos import Cosmos, Method, Objective, condition, cosmos_loss
from paretocosmos.errors import ConfigurationError
from paretocosmos.integrations.weighting import LossWeighting
from paretocosmos.methods import DirichletRays, Epo, Gram, Linear, State
from paretocosmos.objectives import MeanSquaredError, OneSidedError
from paretocosmos.training.engine import make_step
from paretocosmos.training.loss_scales import DRAWS
from paretocosmos.types import Batch, Targets

B, J = 12, 2
RAY = torch.tensor([0.5, 0.5])
OBJECTIVES = tuple(MeanSquaredError(name=name, target=name) for name in ("a", "b"))


class Own(nn.Module):
    """A network of one's own: it sees one ray, or one per sample."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3 + J, 2)

    def forward(self, x: Tensor, ray: Tensor) -> Tensor:
        return self.layer(torch.cat([x, ray.expand(len(x), J)], dim=1))


def _model(own: bool) -> nn.Module:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    return Own() if own else condition(network, J, how="film")


def _batch() -> Batch:
    generator = torch.Generator().manual_seed(2)
    x, a, b = (torch.randn(B, size, generator=generator) for size in (3, 2, 2))
    return Batch(x, {"a": a + 1, "b": b - 1})


def _make(model: nn.Module, method: str | Method | None = "cosmos", **given: Any) -> LossWeighting:
    rest: dict[str, Any] = {"settings": None, "targets": (), "rays_per_batch": 1, "ranks": "differ"}
    rest |= {"preset": "paper", "seed": 1, "objectives": OBJECTIVES}
    return LossWeighting(model, method=method, **(rest | given))


def _gradients(model: nn.Module, total: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(total, list(model.parameters()), materialize_grads=True))


@pytest.mark.parametrize("rays_per_batch", [1, 3])
@pytest.mark.parametrize("own", [False, True], ids=["conditioned", "own"])
def test_the_gradient_is_that_of_the_cosmos_loss(own: bool, rays_per_batch: int) -> None:
    model, batch = _model(own), _batch()
    weighting = _make(model, Cosmos(penalty=2.0), rays_per_batch=rays_per_batch)
    weighed = weighting(model, batch, epoch=0, position=(0, 5))
    size = B // rays_per_batch
    terms = []
    for at, ray in enumerate(weighting.draw_rays((0, 5), 0, rays_per_batch)):
        share = slice(at * size, (at + 1) * size)
        outputs = model(batch.inputs[share], ray)
        losses = [(outputs - batch.targets[name][share]).square().mean() for name in ("a", "b")]
        terms.append(cosmos_loss(torch.stack(losses), ray, penalty=2.0))
    literal = _gradients(model, torch.stack(terms).mean())
    for found, expected in zip(_gradients(model, weighed.total), literal, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", [Cosmos(penalty=0.5), Linear(), Epo()], ids=lambda m: str(m)[:4])
@pytest.mark.parametrize("rays_per_batch", [1, 2])
def test_it_is_a_step_of_our_own_loop(method: Method, rays_per_batch: int) -> None:
    model, batch = _model(False), _batch()
    weighting = _make(model, method, rays_per_batch=rays_per_batch)
    weighed = weighting(model, batch, epoch=0, position=(0, 0))
    step = make_step(model, OBJECTIVES, method)
    rays = weighting.draw_rays((0, 0), 0, rays_per_batch)
    expected = step(dict(model.named_parameters()), batch, rays, method.init(J))
    torch.testing.assert_close(weighed.losses, expected.losses.mean(dim=0))
    found = dict(zip(expected.gradients, _gradients(model, weighed.total), strict=True))
    for name, gradient in expected.gradients.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-6)
    assert weighting.state.keys() == expected.state.keys()
    for name, value in expected.state.items():
        assert torch.equal(weighting.state[name], value)


# ---------------------------------------------------------------- the default preset


def _usual(model: nn.Module, **given: Any) -> LossWeighting:
    return _make(model, None, **{"preset": "default", "rays_per_batch": None} | given)


def test_what_is_not_said_is_the_presets() -> None:
    weighting = _usual(_model(False))
    assert weighting.method == Linear(alpha=0.5, floor=0.01, stratified=True)
    assert _make(_model(False), None).method == Cosmos()
    assert _usual(_model(False), settings={"floor": 0.2}).method == Linear(
        alpha=0.5, floor=0.2, stratified=True
    )
    over, under = (OneSidedError(side=s, name=s, target="a") for s in ("over", "under"))
    levels = _usual(_model(False), objectives=(over, under))  # a ray is a level, as it is
    assert levels.method == Linear(alpha=0.5, floor=0.0, stratified=True)
    assert (levels.training.scale_losses, weighting.training.scale_losses) == (False, True)
    with pytest.raises(ConfigurationError, match=r"`penalty`.*set method=\"cosmos\" too"):
        _usual(_model(False), settings={"penalty": 2.0})
    with pytest.raises(ConfigurationError, match="preset `own`"):
        _usual(_model(False), preset="own")
    rays = weighting.draw_rays((0, 0), 0, 4)
    # one in each quarter of Beta(.5, .5), whose quantiles are sin² of a quarter turn's parts
    cuts = torch.sin(torch.pi / 8 * torch.arange(5)).square()
    assert torch.histogram(rays[:, 0], cuts).hist.tolist() == [1, 1, 1, 1]


def test_a_batch_has_four_rays_and_the_papers_one() -> None:
    model, seen = _model(False), []
    model.register_forward_pre_hook(lambda _, given: seen.append(len(given[1])))
    _usual(model)(model, _batch(), epoch=0, position=(0, 0))
    _make(model, rays_per_batch=None)(model, _batch(), epoch=0, position=(0, 0))
    assert seen == [4, 1]


class Times(MeanSquaredError):  # noqa: N818
    """The same in another unit."""

    def __init__(self, factor: float, *, name: str) -> None:
        super().__init__(name=name, target=name)
        self.factor = factor

    def loss(self, outputs: Any, targets: Targets) -> Tensor:
        return self.factor * super().loss(outputs, targets)


@pytest.mark.parametrize("method", [None, Cosmos(penalty=0.5)], ids=["linear", "cosmos"])
def test_a_loss_in_another_unit_has_the_same_gradient(method: Method | None) -> None:
    model, found = _model(False), []
    for factor in (1.0, 1024.0):
        weighting = _make(model, method, preset="default", rays_per_batch=None)
        weighting.objectives = (OBJECTIVES[0], Times(factor, name="b"))
        for at in range(2):  # the scale is the first batch's
            weighed = weighting(model, _batch(), epoch=0, position=(0, at))
        found.append(_gradients(model, weighed.total))
        missed = model(_batch().inputs, RAY).detach() - _batch().targets["b"]
        raw = factor * float(missed.square().mean())
        assert float(weighed.losses[1]) == pytest.approx(raw, rel=1e-4)  # logged as it is
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)
    assert max(float(one.abs().max()) for one in found[0]) > 0.01


def test_scales_are_those_of_gradients_by_hand() -> None:
    model, batch = _model(False), _batch()
    weighting = _usual(model)
    weighting(model, batch, epoch=0, position=(0, 0))
    drawn = torch.Generator().manual_seed(1)
    noise = torch.stack([torch.randn((B, 2), generator=drawn) for _ in range(DRAWS)])
    outputs = model(batch.inputs, RAY).detach() + noise  # film begins without the ray
    expected = [  # B times the gradient of a mean of squares over B x 2 numbers
        float((outputs - batch.targets[name]).square().sum(dim=-1).mean().sqrt()) for name in "ab"
    ]
    assert weighting.state["loss_scales"].tolist() == pytest.approx(expected, rel=1e-5)


def test_a_loss_without_a_gradient_waits_for_its_scale_and_a_resumed_training_knows() -> None:
    model, batch = _model(False), _batch()
    missing = Batch(batch.inputs, {"a": batch.targets["a"], "b": torch.full((B, 2), torch.nan)})
    weighting = _usual(model)
    weighting(model, missing, epoch=0, position=(0, 0))
    first = weighting.state["loss_scales"].tolist()
    assert first[0] > 0
    assert first[1] == 0
    resumed = _usual(model)
    resumed.load_state_dict(json.loads(json.dumps(weighting.state_dict())))
    resumed(model, batch, epoch=0, position=(0, 1))
    after = resumed.state["loss_scales"].tolist()
    assert after[0] == first[0]
    assert after[1] > 0
    resumed(model, Batch(batch.inputs, {"a": 9 * batch.targets["a"], "b": batch.targets["b"]}),
            epoch=0, position=(0, 2))  # fmt: skip
    assert resumed.state["loss_scales"].tolist() == after
    with pytest.raises(ConfigurationError, match="loss_scales, this one nothing"):
        _make(model, None).load_state_dict(weighting.state_dict())


def test_processes_agree_on_scales() -> None:
    """The mean of those that know one."""
    model = _model(False)

    def mean(part: Tensor) -> Tensor:
        return (part + torch.tensor([[4.0, 0.0], [1.0, 0.0]])) / 2

    alone, among = _usual(model), _usual(model)
    alone(model, _batch(), epoch=0, position=(0, 0))
    among(model, _batch(), epoch=0, position=(0, 0), mean=mean)
    own = alone.state["loss_scales"].tolist()
    assert among.state["loss_scales"].tolist() == pytest.approx([(own[0] + 4) / 2, own[1]])


# ---------------------------------------------------------------- whatever the preset


def test_a_batch_that_cannot_be_shared_equally_has_fewer_rays() -> None:
    model, seen = _model(False), []
    model.register_forward_pre_hook(lambda _, given: seen.append(len(given[1])))
    weighting = _make(model, rays_per_batch=8)
    weighting(model, _batch(), epoch=0, position=(0, 0))
    assert seen == [4]  # of 12 samples


def test_rays_depend_on_seed_place_and_rank_alone() -> None:
    model = _model(False)
    one = _make(model)
    places = [(epoch, index) for epoch in range(3) for index in range(3)]
    drawn = {place: one.draw_rays(place, 0, 1) for place in places}
    one.draw_rays((7, 7), 0, 1)
    again = _make(model)
    for place in reversed(places):
        assert torch.equal(again.draw_rays(place, 0, 1), drawn[place])
    firsts = [round(float(ray[0, 0]), 6) for ray in drawn.values()]
    assert len(set(firsts)) == len(places)
    assert not torch.equal(_make(model, seed=2).draw_rays((0, 0), 0, 1), drawn[0, 0])


def test_ranks_differ_or_agree() -> None:
    model = _model(False)
    differ, agree = (_make(model, ranks=ranks) for ranks in ("differ", "agree"))
    assert not torch.equal(differ.draw_rays((0, 0), 0, 1), differ.draw_rays((0, 0), 1, 1))
    assert torch.equal(agree.draw_rays((0, 0), 0, 1), agree.draw_rays((0, 0), 1, 1))
    with pytest.raises(ConfigurationError, match="known: agree, differ"):
        _make(model, ranks="agre")


@pytest.mark.parametrize("ranks", ["differ", "agree"])
def test_where_ranks_agree_the_losses_of_all_are_weighed(ranks: str) -> None:
    model, batch, others = _model(False), _batch(), torch.tensor([[3.0, 0.5]])
    weighting = _make(model, Cosmos(penalty=2.0), ranks=ranks)
    own = weighting(model, batch, epoch=0, position=(0, 0), mean=lambda seen: (seen + others) / 2)
    ray = weighting.draw_rays((0, 0), 0, 1)[0]
    seen = own.losses if ranks == "differ" else (own.losses + others[0]) / 2
    seen = seen.clone().requires_grad_()
    (weights,) = torch.autograd.grad(cosmos_loss(seen, ray, penalty=2.0), seen)
    expected = (weights * own.losses).sum()
    torch.testing.assert_close(own.total.detach(), expected.detach(), rtol=1e-5, atol=1e-6)


@dataclass(frozen=True, kw_only=True)
class Watching(DirichletRays):
    """Counts its epochs, and refuses to weigh anything in less than float32."""

    def init(self, objectives: int) -> State:
        return {"begun": torch.zeros((), dtype=torch.int64), "sums": torch.zeros(objectives)}

    def at_epoch(self, epoch: int, state: State) -> State:
        return {**state, "begun": state["begun"] + 1}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        assert losses.dtype == rays.dtype == torch.float32
        assert not torch.is_autocast_enabled("cpu")
        assert not losses.requires_grad
        return rays, {**state, "sums": state["sums"] + losses[0] / 3}


class Square(Objective):
    """In the type of the outputs, whatever that is."""

    def loss(self, outputs: Any, targets: Targets) -> Tensor:
        return torch.square(outputs).mean()


def test_losses_are_never_in_half_precision() -> None:
    model, batch = _model(False), _batch()
    weighting = _make(model, Watching())
    weighting.objectives = (Square(name="a"), Square(name="b"))
    with torch.autocast("cpu", torch.bfloat16):
        weighed = weighting(model, batch, epoch=0, position=(0, 0))
    outputs: Any = weighed.outputs
    assert outputs.dtype == torch.bfloat16  # the network was
    assert weighed.total.dtype == weighed.losses.dtype == torch.float32


def test_what_a_method_remembers_survives_json_and_an_epoch_begins_once() -> None:
    model, batch = _model(False), _batch()
    whole = _make(model, Watching())
    halves = _make(model, Watching())
    for at in range(4):
        whole(model, batch, epoch=at // 2, position=(at // 2, at % 2))
    for at in range(3):
        halves(model, batch, epoch=at // 2, position=(at // 2, at % 2))
    kept = json.loads(json.dumps(halves.state_dict()))
    resumed = _make(model, Watching())
    resumed.load_state_dict(kept)
    resumed(model, batch, epoch=1, position=(1, 1))
    assert int(resumed.state["begun"]) == 2
    for name, value in whole.state.items():
        assert resumed.state[name].dtype == value.dtype
        assert torch.equal(resumed.state[name], value)


def test_losses_a_method_cannot_weigh_are_refused_on_the_first_batch() -> None:
    model = _model(False)
    outputs = model(_batch().inputs, torch.tensor([0.5, 0.5])).detach()
    targets: Mapping[str, Tensor] = {
        "a": outputs,
        "b": outputs + 1,
    }  # film begins without the ray: a loss of 0
    with pytest.raises(ConfigurationError, match=r"`epo`.*found 0 for `a`"):
        _make(model, "epo")(model, Batch(_batch().inputs, targets), epoch=0, position=(0, 0))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"rays_per_batch": 0}, "`rays_per_batch`.*at least 1"),
        ({"seed": -1}, "`seed` must be a whole number"),
        ({"seed": 1.5}, "`seed` must be a whole number"),
    ],
    ids=["rays_per_batch", "negative", "fraction"],
)
def test_settings_out_of_range(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        _make(_model(False), **given)
