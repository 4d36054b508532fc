"""Trainings of several networks: one front, each network judged by itself, stacked or not."""

import itertools
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.small import plan_of, watch
from torch import nn

from paretocosmos import fit, registry
from paretocosmos.config.plan import Plan
from paretocosmos.config.settings import get_pairs
from paretocosmos.methods import Separate
from paretocosmos.nn.conditioning import PerRayEnsemble, list_networks
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.pareto import even_rays
from paretocosmos.pareto.metrics import hypervolume
from paretocosmos.problems import Problem, Split
from paretocosmos.runs import Run, find_newest_checkpoint, load_tensors
from paretocosmos.training import fit as training
from paretocosmos.training.loop import Trainer
from paretocosmos.training.seed_run import SeedRun
from paretocosmos.types import Batch

SETTINGS: dict[str, Any] = {"hidden": (6,), "batch_size": 25, "evaluate_every": 2, "rays": 4}
SINGLE = ["mgda", "pareto_mtl", "separate", "single_task", "uniform"]
# all that can be trained: methods by themselves, and with the paper's conditioning
EVERY = [*registry.names("methods"), *get_pairs()]


@dataclass(frozen=True, kw_only=True, eq=False)
class Points(Problem):
    """Noise in, one point per objective to hit; other points on validation, if asked for."""

    aims: Mapping[Split, tuple[float, ...]]

    def split(self, name: Split) -> Batch:
        draw = torch.Generator().manual_seed(len(name))
        inputs = torch.randn(60, 4, generator=draw)
        targets = {
            objective.target: torch.full((60, 2), aim)
            for objective, aim in zip(self.objectives, self.aims[name], strict=True)
        }
        return Batch(inputs, targets)


def _points(*aims: float, val: tuple[float, ...] | None = None) -> Points:
    names = [f"to_{at}" for at in range(len(aims))]
    return Points(
        name="points",
        objectives=tuple(MeanSquaredError(name=name, target=name) for name in names),
        reference=(9.0,) * len(aims),
        input_shape=(4,),
        outputs=2,
        aims={"train": aims, "val": val or aims, "test": aims},
    )


def _go(out: Path, problem: str | Problem, method: str, **changes: Any) -> Run:
    given: dict[str, Any] = {"epochs": 4, "device": "cpu", "engine": "eager"}
    settings = SETTINGS | changes.pop("settings", {})
    return fit(
        problem, preset="paper", method=method, out=out, settings=settings, **given | changes
    )


def _plan(method: str, seed: int, **changes: Any) -> Plan:
    return plan_of(method=method, seed=seed, **{"settings": SETTINGS} | changes)


def _networks(method: str, objectives: int) -> int:
    known = {"mgda": 1, "uniform": 1, "pareto_mtl": 5, "separate": 9, "single_task": objectives}
    return known[method]


# ---------------------------------------------------------------- one front


@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("method", SINGLE)
def test_one_front_has_a_point_for_every_network(
    method: str, objectives: int, tmp_path: Path
) -> None:
    problem = _points(*(0.5 + at for at in range(objectives)))
    run = _go(tmp_path / "run", problem, method, epochs=2)
    count = _networks(method, objectives)
    assert len(list_networks(run.model)) == count
    expected = {
        "mgda": np.full((1, objectives), 1 / objectives),
        "uniform": np.full((1, objectives), 1 / objectives),
        "single_task": np.eye(objectives),
        "pareto_mtl": even_rays(5, objectives).numpy(),
        "separate": Separate().fixed_rays(objectives).numpy(),
    }[method]
    for front in (run.front, run.front_val):
        assert front.values.shape == (count, objectives)
        np.testing.assert_allclose(front.rays, expected, rtol=0, atol=1e-7)
    # every point is that of its own network, called by itself
    batch = problem.split("test")
    for network, values, ray in zip(
        list_networks(run.model), run.front.values, expected, strict=True
    ):
        with torch.inference_mode():
            outputs = network(batch.inputs, torch.tensor(ray).float())
            losses = [float(o.loss(outputs, batch.targets)) for o in problem.objectives]
        np.testing.assert_allclose(values, losses, rtol=1e-5)
    assert isinstance(run.model, PerRayEnsemble)


@pytest.mark.parametrize("method", EVERY)
def test_three_objectives_train_with_every_method(method: str, tmp_path: Path) -> None:
    run = _go(tmp_path / "run", _points(0.2, 1.0, 1.7), method, epochs=2)
    assert run.front.objectives == 3
    assert np.isfinite(run.front.values).all()
    assert run.record["status"] == "finished"
    assert run.record["label"] == method
    begun = run.record["evaluations"][0]
    assert set(begun["losses"]) == {"to_0", "to_1", "to_2"}


def test_the_networks_find_the_front(tmp_path: Path) -> None:
    """It is known in closed form: √L₁ + √L₂ = 1."""
    settings = {"learning_rate": 0.02, "batch_size": 128, "hidden": (16,), "evaluate_every": 60}
    run = _go(tmp_path / "run", "toy_convex", "pareto_mtl", epochs=60, settings=settings)
    np.testing.assert_allclose(np.sqrt(run.front.values).sum(axis=1), 1, atol=0.01)
    # the first is to have a large first loss, the last a large second one
    assert run.front.values[0, 0] - run.front.values[-1, 0] > 0.2
    single = _go(tmp_path / "single", "toy_convex", "single_task", epochs=60, settings=settings)
    assert np.diag(single.front.values).max() < 0.01
    assert single.record["metrics"]["test"]["hypervolume_ideal"] > 3.9


# ---------------------------------------------------------------- each judged by itself


def _own(method: str) -> Callable[[np.ndarray, int], float]:
    """How good network k is by its values ``[J]``, as FACTS.md, section 2, has it."""
    if method == "single_task":
        return lambda values, k: -float(values[k])
    return lambda values, k: float(np.prod(np.clip(9 - values, 0, None)))


@pytest.mark.parametrize("method", ["single_task", "pareto_mtl"])
def test_every_network_is_kept_at_its_own_best_epoch(method: str, tmp_path: Path) -> None:
    # on validation the first objective is best at the start, the others later
    problem = _points(2.0, 1.5, val=(0.0, 1.4))
    settings = {"evaluate_every": 1, "learning_rate": 0.05, "networks": 3, "hidden": (6,)}
    if method == "single_task":
        del settings["networks"]
    epochs = 5
    # a shorter training is the beginning of a longer one: its last epoch, looked at alone
    fronts = []
    for count in range(1, epochs + 1):
        only = settings | {"evaluate_every": count}
        run = _go(tmp_path / f"to-{count}", problem, method, epochs=count, settings=only)
        fronts.append((run.front_val.values, run.front.values))
    whole = _go(tmp_path / "whole", problem, method, epochs=epochs, settings=settings)
    quality, networks = _own(method), len(whole.front)
    best = [int(np.argmax([quality(val[k], k) for val, _ in fronts])) + 1 for k in range(networks)]
    assert len(set(best)) > 1
    assert [one["epoch_selected"] for one in whole.record["networks"]] == best
    assert whole.record["epoch_selected"] == max(best)
    for k, epoch in enumerate(best):
        np.testing.assert_array_equal(whole.front_val.values[k], fronts[epoch - 1][0][k])
        np.testing.assert_array_equal(whole.front.values[k], fronts[epoch - 1][1][k])
    assert whole.record["metrics"]["val"]["hypervolume"] == hypervolume(whole.front_val)
    # time is counted to the last of them
    times = {at["epoch"]: at["seconds_training"] for at in whole.record["evaluations"]}
    assert whole.record["seconds_to_selected"] == times[max(best)]


def test_an_objectives_training_loss_is_that_of_who_is_trained_for_it(tmp_path: Path) -> None:
    settings = {"learning_rate": 0.05, "evaluate_every": 20}
    problem = _points(1.0, -1.0)
    run = _go(tmp_path / "run", problem, "single_task", epochs=20, settings=settings)
    (evaluation,) = run.record["evaluations"]
    # the other network's loss of an objective, ½(2² + 2²) once trained, would show in a plain mean
    assert all(loss < 0.5 for loss in evaluation["losses"].values())
    assert run.front.values[0, 1] > 3


# ---------------------------------------------------------------- stacked or not, alone or not


def _near(one: Run, two: Run) -> None:
    """The last checkpoints (weights, moments, method's state), and the fronts."""
    saved = [load_tensors(find_newest_checkpoint(run.folder))[0] for run in (one, two)]
    assert set(saved[0]) == set(saved[1])
    for name, value in saved[0].items():
        if name != "rng.torch" and not name.endswith("gap"):  # a gap is rounding itself
            torch.testing.assert_close(value, saved[1][name], rtol=0, atol=1e-8, msg=name)
    for front, other in ((one.front, two.front), (one.front_val, two.front_val)):
        np.testing.assert_allclose(front.values, other.values, rtol=0, atol=1e-7)
    assert one.record["networks"][0].keys() == two.record["networks"][0].keys()


def _stacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many networks each stack has, of every training to come."""
    sizes: list[int] = []

    def note(trainer: Trainer) -> None:
        sizes.extend(stack.networks for stack in trainer.stacks)

    watch(monkeypatch, Trainer, "run", note)
    return sizes


@pytest.mark.parametrize("method", ["pareto_mtl", "single_task"])
def test_a_stack_of_networks_is_each_for_itself(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = _stacks(monkeypatch)
    stacked = _go(tmp_path / "stacked", "toy_convex", method, precision="fp64")
    assert sizes == [_networks(method, 2)]
    sizes.clear()
    monkeypatch.setattr(training, "_should_stack", lambda plan, _: False)
    apart = _go(tmp_path / "apart", "toy_convex", method, precision="fp64")
    assert sizes == [1] * _networks(method, 2)
    _near(stacked, apart)


@pytest.mark.system
@pytest.mark.parametrize(
    ("method", "rays_per_batch"),
    [(name, 1) for name in EVERY] + [(name, 5) for name in EVERY if name not in SINGLE],
)
def test_seeds_together_are_each_alone(method: str, rays_per_batch: int, tmp_path: Path) -> None:
    given: dict[str, Any] = {"epochs": 3, "precision": "fp64", "device": "cpu", "engine": "eager"}
    given |= {"settings": SETTINGS | {"rays_per_batch": rays_per_batch}, "method": method}
    together = fit("toy_convex", preset="paper", seeds=(1, 2), out=tmp_path / "together", **given)
    assert [run.record["seeds_together"] for run in together] == [2, 2]
    for run in together:
        seed = run.record["seed"]
        _near(
            run,
            fit("toy_convex", preset="paper", seed=seed, out=tmp_path / f"alone-{seed}", **given),
        )
    assert together[0].front != together[1].front


def frozen(input_shape: tuple[int, ...], outputs: int) -> nn.Sequential:
    """A backbone of torch's own layers, one as it was drawn: another for every network."""
    sizes = (*input_shape, 6, 5, outputs)
    layers = [nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
    layers[1].requires_grad_(False)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


def _drawn(method: str, seed: int, tmp_path: Path) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Two epochs of every network's order and rays."""
    seed_run = SeedRun(_plan(method, seed), tmp_path / "never")
    return [*seed_run.draw_epoch(60), *seed_run.draw_epoch(60)]


def test_networks_begin_differently_and_see_the_data_in_another_order(tmp_path: Path) -> None:
    """Five fresh networks for five vectors, not one copied five times."""
    plan = _plan("pareto_mtl", 1)
    weights = [next(network.parameters()).detach() for network in list_networks(plan.model)]
    for at, one in enumerate(weights):
        assert all((one - other).abs().max() > 0.05 for other in weights[at + 1 :])
    drawn = _drawn("pareto_mtl", 1, tmp_path)
    orders = torch.stack([order for order, _ in drawn])
    assert torch.equal(orders.sort(dim=1).values, torch.arange(60).expand(10, -1))  # all, once
    assert len(torch.unique(orders, dim=0)) == 10  # another for every network and epoch
    for k, (_, rays) in enumerate(drawn):  # three batches of 25, each under the network's own ray
        assert torch.equal(rays, even_rays(5, 2)[k % 5].expand(3, -1))
    for seed in (1, 2):
        again = torch.stack([order for order, _ in _drawn("pareto_mtl", seed, tmp_path)])
        assert torch.equal(orders, again) == (seed == 1)
    assert not (tmp_path / "never").exists()


# ---------------------------------------------------------------- who of several failed


# ---------------------------------------------------------------- images


# ---------------------------------------------------------------- out of memory


@pytest.mark.parametrize(
    ("method", "seeds"), [("pareto_mtl", (1,)), ("pareto_mtl", (1, 2, 3)), ("cosmos", (1, 2, 3))]
)
def test_networks_that_ran_out_of_memory_are_let_go(
    method: str, seeds: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever trains after them would find their memory taken."""
    inside, watched = Trainer.train_epoch, []

    def epoch(self: Trainer, *, prepare: bool) -> None:
        if self.stacks[0].networks > 1 and self.seed_runs[0].epoch == 1:
            living: list[Any] = [self, *self.seed_runs, *self.networks]
            for stack in self.stacks:
                living += [*stack.state.parameters.values(), *stack.state.optimizer.tensors()]
            watched.append([weakref.ref(one) for one in living])
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        assert [one() for tried in watched for one in tried if one() is not None] == []
        inside(self, prepare=prepare)

    monkeypatch.setattr(Trainer, "train_epoch", epoch)
    given: dict[str, Any] = {"method": method, "settings": SETTINGS, "epochs": 3, "device": "cpu"}
    runs = fit(
        "toy_convex", preset="paper", seeds=seeds, out=tmp_path / "runs", engine="eager", **given
    )
    assert [run.record["status"] for run in runs] == ["finished"] * len(seeds)
    assert len(watched) >= len(seeds) - 1
    assert watched
