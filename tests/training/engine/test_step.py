"""One step against autograd through the scalar itself, on the textbook network, in float64."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.methods import Cosmos, Gram, Linear, Method, State
from paretocosmos.nn.backbones import LeNet, Mlp
from paretocosmos.nn.conditioning import Concat, Conditioning, TransposedConv
from paretocosmos.objectives import CrossEntropy, GaussianWell, MeanSquaredError, Objective
from paretocosmos.pareto import cosmos_loss
from paretocosmos.training.engine import Step, StepResult, TracedStep, make_step
from paretocosmos.types import Batch, Inputs, map_tensors

DOUBLE = torch.float64
B, FEATURES, J = 24, 3, 3
OBJECTIVES: tuple[Objective, ...] = (
    MeanSquaredError(name="one", target="a"),
    GaussianWell(name="two", target="b"),
    MeanSquaredError(name="three", target="b"),
)


class Joined(nn.Module):
    """The textbook: the ray copied beside every sample; groups are neighbouring samples."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES + J, 5), nn.Tanh(), nn.Linear(5, 2)).to(DOUBLE)
        self.unused = nn.Parameter(torch.ones(2, dtype=DOUBLE))

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        ray = ray.view(-1, J)  # one ray comes as [J]
        copies = ray.repeat_interleave(len(inputs) // len(ray), dim=0)
        return self.net(torch.cat([inputs, copies], dim=1))


@dataclass(frozen=True)
class Watching(Method):
    """Weighs by the rays; its state is what it was shown."""

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        raise AssertionError("a step draws no rays")

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        assert not losses.requires_grad
        return rays, {"gram": gram(), "steps": state["steps"] + 1, "losses": losses}


@pytest.fixture
def batch() -> Batch:
    targets = {name: torch.randn(B, 2, dtype=DOUBLE) for name in ("a", "b")}
    return Batch(torch.randn(B, FEATURES, dtype=DOUBLE), targets)


def _by_hand(model: Joined, batch: Batch, rays: Tensor, group: int) -> Tensor:
    """The losses ``[J]`` of one group alone."""
    size = B // len(rays)
    mine = slice(group * size, (group + 1) * size)
    outputs = model(batch.inputs[mine], rays[group].unsqueeze(0))
    targets = {name: target[mine] for name, target in batch.targets.items()}
    return torch.stack([objective.loss(outputs, targets) for objective in OBJECTIVES])


def _rays(groups: int) -> Tensor:
    return torch.rand(groups, J, dtype=DOUBLE).softmax(dim=1)


def _cosmos(penalty: float, alignment: str) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda losses, ray: cosmos_loss(losses, ray, penalty=penalty, alignment=alignment)  # type: ignore[arg-type]


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize(
    ("method", "scalar"),
    [
        (Cosmos(penalty=2.0), _cosmos(2.0, "ray")),
        (Cosmos(penalty=3.0, alignment="inverse"), _cosmos(3.0, "inverse")),
        (Linear(), _cosmos(0.0, "ray")),
    ],
    ids=["cosmos", "inverse", "linear"],
)
def test_gradients_are_those_of_the_mean_scalar_over_groups(
    method: Method, scalar: Callable[[Tensor, Tensor], Tensor], groups: int, batch: Batch
) -> None:
    model, rays = Joined(), _rays(groups)
    parameters = dict(model.named_parameters())
    result = make_step(model, OBJECTIVES, method)(parameters, batch, rays, {})

    losses = [_by_hand(model, batch, rays, group) for group in range(groups)]
    total = sum(
        (scalar(loss, ray) for loss, ray in zip(losses, rays, strict=True)), torch.zeros(())
    )
    expected = torch.autograd.grad(
        total / groups, list(parameters.values()), materialize_grads=True
    )
    torch.testing.assert_close(result.losses, torch.stack(losses).detach())
    for name, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(result.gradients[name], gradient, rtol=1e-10, atol=1e-13)
    assert result.gradients["net.0.weight"].abs().sum() > 0
    assert not result.gradients["unused"].any()


def test_a_step_changes_nothing_it_was_given(batch: Batch) -> None:
    model, rays = Joined(), _rays(1)
    parameters = dict(model.named_parameters())
    before = {name: p.detach().clone() for name, p in parameters.items()}
    result = make_step(model, OBJECTIVES, Cosmos())(parameters, batch, rays, {})
    assert all(p.grad is None and p.requires_grad for p in parameters.values())
    assert all(torch.equal(parameters[name], value) for name, value in before.items())
    assert not result.losses.requires_grad
    assert not any(gradient.requires_grad for gradient in result.gradients.values())


# ---------------------------------------------------------------- several seeds at once


HEADS = {"left": 4, "right": 4}
IMAGE = (1, 16, 16)


def _mlp(seed: int) -> Conditioning:
    torch.manual_seed(seed)
    return Concat(Mlp((FEATURES,), 4, hidden=(7, 5)), len(HEADS))


def _lenet(seed: int) -> Conditioning:
    torch.manual_seed(seed)
    return TransposedConv(LeNet(IMAGE, HEADS), len(HEADS))


def _images(inputs: Inputs, dtype: torch.dtype) -> Inputs:
    return map_tensors(lambda image: image.to(dtype) / 255, inputs)


NETWORKS: dict[str, tuple[Callable[[int], Conditioning], tuple[int, ...]]] = {
    "mlp": (_mlp, (FEATURES,)),
    "lenet": (_lenet, IMAGE),
}


def _classes(shape: tuple[int, ...], seed: int, samples: int = 12) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    inputs = (
        torch.randn(samples, *shape, generator=draw, dtype=DOUBLE)
        if len(shape) == 1
        else torch.randint(256, (samples, *shape), generator=draw, dtype=torch.uint8)
    )
    labels = {head: torch.randint(4, (samples,), generator=draw) for head in HEADS}
    return Batch(inputs, labels)


def _with_heads(
    model: nn.Module, method: Method, shape: tuple[int, ...], *, stacked: bool = False
) -> Step:
    objectives = [CrossEntropy(name=head, output=head, target=head) for head in HEADS]
    prepare = _images if len(shape) == 3 else None
    return make_step(model, objectives, method, prepare=prepare, stacked=stacked)


@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("stacked", [False, True], ids=["alone", "stacked"])
@pytest.mark.parametrize("network", NETWORKS)
def test_gradients_lie_in_memory_as_their_parameters_do(
    network: str, stacked: bool, recorded: bool
) -> None:
    """Fused Adam walks memory: other strides would update other weights."""
    make, shape = NETWORKS[network]
    model = make(1).to(DOUBLE)
    plain = {name: p.detach() for name, p in model.named_parameters()}
    batch, rays = _classes(shape, 1), _two_rays()
    if stacked:
        plain = {name: torch.stack([p] * 2) for name, p in plain.items()}
        batch = Batch(
            *(map_tensors(lambda t: torch.stack([t] * 2), part) for part in _parts(batch))
        )
        rays = torch.stack([rays] * 2)
    turned = {name: _turned(p) for name, p in plain.items()}
    assert any(turned[name].stride() != p.stride() for name, p in plain.items())
    for parameters in (plain, turned):
        step = _with_heads(model, Cosmos(), shape, stacked=stacked)
        if recorded:
            step = TracedStep(step, model, "traced")
        results: list[StepResult] = [step(parameters, batch, rays, {}) for _ in range(2)]
        assert getattr(step, "failure", None) is None
        expected = _with_heads(model, Cosmos(), shape, stacked=stacked)(plain, batch, rays, {})
        for result in results:  # the second is a replay
            for name, gradient in result.gradients.items():
                assert gradient.stride() == parameters[name].stride(), name
                torch.testing.assert_close(gradient, expected.gradients[name])


def _turned(parameter: Tensor) -> Tensor:
    """The same numbers in another order in memory."""
    if parameter.ndim == 4:
        return parameter.contiguous(memory_format=torch.channels_last)
    return parameter.mT.contiguous().mT if parameter.ndim > 1 else parameter


def _two_rays() -> Tensor:
    return torch.tensor([[0.3, 0.7], [0.9, 0.1]], dtype=DOUBLE)


def _parts(batch: Batch) -> tuple[Inputs, dict[str, Tensor]]:
    return batch.inputs, dict(batch.targets)


def test_half_precision_runs_the_network_and_nothing_else() -> None:
    model = _mlp(1)
    batch = _classes((FEATURES,), 1)
    batch = Batch(map_tensors(lambda t: t.float(), batch.inputs), batch.targets)
    model(batch.inputs, _two_rays())  # what a first call tries out is not what is counted
    seen: list[torch.dtype] = []
    layer = model.get_submodule("backbone.layers.2")
    layer.register_forward_hook(lambda module, given, out: seen.append(out.dtype))
    objectives = [CrossEntropy(name=head, output=head, target=head) for head in HEADS]
    results = [
        make_step(model, objectives, Cosmos(), half=half)(
            dict(model.named_parameters()), batch, _two_rays(), {}
        )
        for half in (True, False)
    ]
    assert seen == [torch.bfloat16, torch.float32]
    for result in results:
        assert result.losses.dtype == torch.float32
        assert all(gradient.dtype == torch.float32 for gradient in result.gradients.values())
    apart = (results[0].losses - results[1].losses).abs().max()
    assert 0 < apart < 0.05  # eight bits


# ---------------------------------------------------------------- micro-batches


@pytest.mark.parametrize("accumulate", [2, 3, 6])
@pytest.mark.parametrize("method", [Cosmos(penalty=2.0), Linear()])
def test_micro_batches_give_the_step_of_the_whole_batch(
    batch: Batch, method: Method, accumulate: int
) -> None:
    model, rays = Joined(), _rays(6)
    parameters = dict(model.named_parameters())
    whole = make_step(model, OBJECTIVES, method)(parameters, batch, rays, {})
    seen: list[int] = []
    model.net.register_forward_hook(lambda _, inputs, out: seen.append(len(inputs[0])))
    step = make_step(model, OBJECTIVES, method, accumulate=accumulate)
    parts = step(parameters, batch, rays, {})
    assert seen == [B // accumulate] * accumulate
    torch.testing.assert_close(parts.losses, whole.losses, rtol=0, atol=1e-14)
    for name, gradient in whole.gradients.items():
        torch.testing.assert_close(parts.gradients[name], gradient, rtol=0, atol=1e-14)


def test_micro_batches_hand_the_methods_state_on(batch: Batch) -> None:
    model, rays = Joined(), _rays(4)
    step = make_step(model, OBJECTIVES, Watching(), accumulate=4)
    state = {"steps": torch.zeros(()), "gram": torch.zeros(()), "losses": torch.zeros(())}
    after = step(dict(model.named_parameters()), batch, rays, state).state
    assert after["steps"] == 4
    torch.testing.assert_close(after["losses"][0], _by_hand(model, batch, rays, 3))


def test_micro_batches_of_several_seeds(batch: Batch) -> None:
    models, rays = [Joined() for _ in range(2)], torch.stack([_rays(4), _rays(4)])
    stacked = {
        name: torch.stack([dict(m.named_parameters())[name] for m in models])
        for name, _ in models[0].named_parameters()
    }
    twice = Batch(
        *(
            map_tensors(lambda t: torch.stack([t, t]), part)
            for part in (batch.inputs, batch.targets)
        )
    )
    step = make_step(models[0], OBJECTIVES, Cosmos(), stacked=True, accumulate=2)
    both = step(stacked, twice, rays, {})
    for seed, model in enumerate(models):
        alone = make_step(model, OBJECTIVES, Cosmos())
        own = alone(dict(model.named_parameters()), batch, rays[seed], {})
        torch.testing.assert_close(both.losses[seed], own.losses, rtol=0, atol=1e-14)
        for name, gradient in own.gradients.items():
            torch.testing.assert_close(both.gradients[name][seed], gradient, rtol=0, atol=1e-14)
