"""The update against torch's own optimiser, and several seeds against each alone."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from paretocosmos.training.engine import Optimizer, UpdateRule

SHAPES = {"a": (3, 4), "b": (4,), "c": (1, 2, 5), "d": ()}
STEPS = 20


def _rate(step: int) -> float:
    return 0.05 if step < STEPS // 2 else 0.005


def _start(seed: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return {n: torch.randn(shape, generator=draw, dtype=dtype) for n, shape in SHAPES.items()}


def _gradients(seed: int, step: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    return _start(1000 * seed + step + 1, dtype)


def _theirs(
    seed: int, weight_decay: float, *, fused: bool
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """The parameters after all steps of torch's optimiser, and its state by name."""
    parameters = [torch.nn.Parameter(p) for p in _start(seed).values()]
    optimiser = torch.optim.Adam(parameters, lr=1.0, weight_decay=weight_decay, fused=fused)
    for step in range(STEPS):
        optimiser.param_groups[0]["lr"] = _rate(step)
        for parameter, gradient in zip(parameters, _gradients(seed, step).values(), strict=True):
            parameter.grad = gradient
        optimiser.step()
    state = {"step": optimiser.state[parameters[0]]["step"]}
    for name, parameter in zip(SHAPES, parameters, strict=True):
        for kind in ("exp_avg", "exp_avg_sq"):
            state[f"{name}.{kind}"] = optimiser.state[parameter][kind]
    return [p.detach() for p in parameters], state


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_it_is_the_optimisers_own_step(weight_decay: float) -> None:
    parameters = _start(1)
    adam = Optimizer(parameters, UpdateRule("adam", weight_decay))
    for step in range(STEPS):
        adam.set_rates([_rate(step)])
        given = _gradients(1, step)
        before = {name: gradient.clone() for name, gradient in given.items()}
        adam.update(given)
        assert all(torch.equal(given[name], value) for name, value in before.items())
    expected, state = _theirs(1, weight_decay, fused=True)
    for one, two in zip(parameters.values(), expected, strict=True):
        assert torch.equal(one, two)
    assert set(adam.state()) == set(state)
    assert _equal(adam.state(), state)
    plain, _ = _theirs(1, weight_decay, fused=False)  # and the textbook's formula
    for one, two in zip(parameters.values(), plain, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


def _stacked(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([part[name] for part in parts]) for name in parts[0]}


def _equal(one: Mapping[str, Tensor], two: Mapping[str, Tensor]) -> bool:
    return all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("piece", [1, 7, 64, 10**6])
def test_cut_into_pieces_it_is_the_same_step(piece: int) -> None:
    """As on a GPU: flat, in pieces, whatever the order of the axes in memory."""
    draw = torch.Generator().manual_seed(1)
    conv = torch.randn(6, 2, 5, 5, generator=draw).contiguous(memory_format=torch.channels_last)
    turned = torch.randn(4, 9, generator=draw).mT
    storage = torch.randn(3, 20, generator=draw)
    start = {"conv": conv, "turned": turned, "row": storage[1], "number": torch.tensor(2.0)}
    whole, cut = ({n: p.clone() for n, p in start.items()} for _ in range(2))
    cut["row"] = storage[1]  # a part of something larger, of which the rest is left alone
    rest = storage[[0, 2]].clone()
    both = [Optimizer(parameters, UpdateRule("adam", 0.01)) for parameters in (whole, cut)]
    both[1]._piece = piece
    both[1]._live = [both[1]._cut(k) for k in (both[1]._parameters, *both[1]._moments, [])]
    for _ in range(5):
        gradients = {n: torch.randn(p.shape, generator=draw) for n, p in start.items()}
        # with the strides of the parameters, as a step gives them
        match_layout = {n: torch.empty_like(start[n]).copy_(g) for n, g in gradients.items()}
        for adam in both:
            adam.set_rates([0.1])
            adam.update(match_layout)
    for name, value in whole.items():
        torch.testing.assert_close(cut[name], value)
        assert cut[name].stride() == start[name].stride()
    for name, value in both[0].state().items():
        torch.testing.assert_close(both[1].state()[name], value)
    assert torch.equal(storage[[0, 2]], rest)


RATES = [0.05 * (STEPS - step) / STEPS for step in range(STEPS)]


def _advanced(
    recipe: UpdateRule, seeds: tuple[int, ...] = (1,)
) -> tuple[Optimizer, dict[str, Tensor]]:
    """An optimiser after all steps, with a rate of its own for each, and its parameters."""
    stacked = len(seeds) > 1
    parameters = _stacked([_start(seed) for seed in seeds]) if stacked else _start(1)
    optimizer = Optimizer(parameters, recipe, stacked=stacked)
    optimizer.set_rates(RATES)
    for step in range(STEPS):
        every = [_gradients(seed, step) for seed in seeds]
        optimizer.update(_stacked(every) if stacked else every[0])
    return optimizer, parameters


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_decoupled_decay_and_changing_rates_are_the_optimisers_own(name: str) -> None:
    left_alone = ("b", "d")
    found, parameters = _advanced(UpdateRule(name, 0.3, left_alone))
    leaves = {n: torch.nn.Parameter(p) for n, p in _start(1).items()}
    groups = [
        {"params": [p for n, p in leaves.items() if n not in left_alone], "weight_decay": 0.3},
        {"params": [leaves[n] for n in left_alone], "weight_decay": 0.0},
    ]
    if name == "adamw":
        theirs: torch.optim.Optimizer = torch.optim.AdamW(groups, lr=1.0)
    else:  # whose own decay is coupled: shrunk by hand
        plain = [{"params": group["params"]} for group in groups]
        theirs = torch.optim.SGD(plain, lr=1.0, momentum=0.9, nesterov=True)
    for step, rate in enumerate(RATES):
        for group in theirs.param_groups:
            group["lr"] = rate
        for n, gradient in _gradients(1, step).items():
            if name == "sgd" and n not in left_alone:
                leaves[n].data.mul_(1 - rate * 0.3)
            leaves[n].grad = gradient
        theirs.step()
    for n, leaf in leaves.items():
        torch.testing.assert_close(parameters[n], leaf.detach(), rtol=1e-5, atol=1e-6)
    assert "a.average" not in found.state()


def test_the_average_is_torchs() -> None:
    share = 0.1
    optimizer, parameters = _advanced(UpdateRule("adamw", 0.1, average=share))
    module = torch.nn.ParameterDict(_start(1))
    theirs = torch.optim.swa_utils.AveragedModel(
        module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(1 - share)
    )
    theirs.update_parameters(module)  # the first call copies
    other = Optimizer({n: p.data for n, p in module.items()}, UpdateRule("adamw", 0.1))
    other.set_rates(RATES)
    for step in range(STEPS):
        other.update(_gradients(1, step))
        theirs.update_parameters(module)
    raw = {n: p.clone() for n, p in parameters.items()}
    with optimizer.averaged():
        for n, value in theirs.module.named_parameters():
            torch.testing.assert_close(parameters[n], value.detach(), rtol=1e-5, atol=1e-6)
        assert not _equal(parameters, raw)
    assert _equal(parameters, raw)  # bit for bit as before


def test_clipped_gradients_are_torchs() -> None:
    optimizer = Optimizer(_start(1), UpdateRule("adam", clip=0.7))
    given = _gradients(1, 0)
    leaves = [torch.nn.Parameter(g) for g in given.values()]
    for leaf in leaves:
        leaf.grad = leaf.detach().clone()
    torch.nn.utils.clip_grad_norm_(leaves, 0.7)
    for own, leaf in zip(optimizer._clip(list(given.values())), leaves, strict=True):
        assert leaf.grad is not None
        torch.testing.assert_close(own, leaf.grad)
    short = [1e-3 * g for g in given.values()]
    for own, gradient in zip(optimizer._clip(short), short, strict=True):
        torch.testing.assert_close(own, gradient)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_stacked_seeds_with_all_ingredients_are_as_each_alone(name: str) -> None:
    recipe = UpdateRule(name, 0.3, ("b",), 0.1, 0.5)
    together, stack = _advanced(recipe, (1, 2))
    alone, parameters = _advanced(recipe)
    for n, value in parameters.items():
        torch.testing.assert_close(stack[n][0], value, rtol=1e-5, atol=1e-6)
    assert together.state(0).keys() == alone.state().keys()
    for n, value in alone.state().items():
        torch.testing.assert_close(together.state(0)[n], value, rtol=1e-5, atol=1e-6)
