"""Whole trainings: closed-form fronts, a loop written by hand, and what must not be touched."""

import copy
import dataclasses
import inspect
import json
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from tests.small import few_digits, plan_of
from torch import Tensor, nn

from paretocosmos import evaluate, fit
from paretocosmos.errors import DataError, DivergedError, EngineWarning, FrontWarning
from paretocosmos.objectives import MeanSquaredError as Squared
from paretocosmos.pareto import cosmos_loss, sample_rays
from paretocosmos.pareto.metrics import hypervolume
from paretocosmos.problems import Problem, Split, load_problem
from paretocosmos.problems.functions import ToyProblem
from paretocosmos.problems.images.problem import ImageProblem, Pixels
from paretocosmos.runs import Run, find_newest_checkpoint, list_validation_fronts, load_tensors
from paretocosmos.training import fit as training
from paretocosmos.training.progress import Progress
from paretocosmos.types import Batch, Outputs, Targets

RESULTS = ("front.json", "front_val.json", "model.safetensors")
# Enough to converge on a toy in a second, and rays in all directions.
SETTLED = {
    "alpha": 1.0,
    "batch_size": 64,
    "rays_per_batch": 8,
    "hidden": (32, 32),
    "learning_rate": 1e-2,
    "milestones": (60, 80),
    "evaluate_every": 100,
}


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Run]:
    def run(problem: str | Problem = "toy_convex", **changes: Any) -> Run:
        given: dict[str, Any] = {"epochs": 3, "device": "cpu"}
        given["out"] = Path(tempfile.mkdtemp(dir=tmp_path)) / "run"
        return fit(problem, preset="paper", **given | changes)

    return run


def _bytes(run: Run) -> list[bytes]:
    return [(run.folder / name).read_bytes() for name in RESULTS]


def _toy(name: str) -> ToyProblem:
    problem = load_problem(name)
    assert isinstance(problem, ToyProblem)
    return problem


@dataclass(frozen=True, kw_only=True, eq=False)
class Constant(Problem):
    """Noise in, one point per objective and split to hit."""

    at: Mapping[Split, float]
    samples: int = 40

    def split(self, name: Split) -> Batch:
        inputs = torch.randn(self.samples, 4, generator=torch.Generator().manual_seed(len(name)))
        point = torch.full((self.samples, 2), self.at[name])
        return Batch(inputs, {"first": point, "second": point + 1})


def _constant(kind: type[Squared] = Squared, **at: float) -> Constant:
    return Constant(
        name="constant",
        objectives=(Squared(name="first", target="first"), kind(name="second", target="second")),
        reference=(400.0, 400.0),
        input_shape=(4,),
        outputs=2,
        at={"train": 0.0, "val": 0.0, "test": 0.0} | at,  # type: ignore[arg-type]
    )


# ---------------------------------------------------------------- does it find the front?


def test_linear_finds_the_convex_front(train: Callable[..., Run]) -> None:
    problem = _toy("toy_convex")
    run = train("toy_convex", method="linear", epochs=100, settings=SETTLED)
    exact = problem.exact_values(run.front.rays)  # the ray r belongs to y = r₁ a + r₂ b
    assert np.abs(run.front.values - exact).max() < 0.02
    best = hypervolume(exact, problem.reference)
    assert best - 0.01 < run.hypervolume < hypervolume(problem.exact_front(1001))
    assert run.record["metrics"]["test"]["monotonicity"] == 1


def test_the_penalty_finds_the_inside_of_a_concave_front(train: Callable[..., Run]) -> None:
    exact = _toy("toy_concave").exact_front(2001).values
    linear = train("toy_concave", method="linear", epochs=100, settings=SETTLED).front.values
    cosmos = train(
        "toy_concave", method="cosmos", epochs=100, settings=SETTLED | {"penalty": 5.0}
    ).front.values
    # at an end one of the two losses is 0, in the middle both are 0.63
    assert (linear.min(axis=1) < 0.1).sum() > 17
    assert (linear.min(axis=1) > 0.25).sum() < 5
    assert (cosmos.min(axis=1) > 0.25).sum() > 13
    assert cosmos.min(axis=1).max() > 0.58
    distance = np.linalg.norm(cosmos[:, None] - exact[None], axis=2).min(axis=1)
    assert distance.max() < 0.02
    assert np.ptp(cosmos, axis=0).min() > 0.6  # and it reaches far to both sides


# ---------------------------------------------------------------- is it the training we mean?


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 200},  # 200, 200 and a short batch of 112
        {
            "batch_size": 100,
            "rays_per_batch": 5,
        },  # of the last 12 samples, 10 can be shared by five rays
        {"batch_size": 100, "rays_per_batch": 20},  # the last 12 are too few for twenty
        {"batch_size": 256, "milestones": (1, 2), "decay": 0.1, "learning_rate": 0.01},
        {"batch_size": 256, "weight_decay": 0.1, "penalty": 3.0, "alignment": "inverse"},
    ],
    ids=["short batch", "rays_per_batch", "many rays_per_batch", "milestones", "decay and penalty"],
)
@pytest.mark.parametrize("engine", ["eager", "traced"])
def test_it_is_the_textbook_loop(
    train: Callable[..., Run], settings: dict[str, Any], engine: str
) -> None:
    seed, epochs = 3, 3
    run = train(epochs=epochs, seed=seed, settings=settings, engine=engine)
    assert run.record["engine"] == engine

    problem = load_problem("toy_convex")
    model = plan_of(seed=seed).model
    batch = problem.split("train")
    rays_per_batch, size = settings.get("rays_per_batch", 1), settings["batch_size"]
    rate, decay = settings.get("learning_rate", 1e-3), settings.get("weight_decay", 0.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    generator = torch.Generator().manual_seed(seed)
    for epoch in range(epochs):
        if epoch in settings.get("milestones", ()):
            optimiser.param_groups[0]["lr"] *= settings["decay"]
        order = torch.randperm(512, generator=generator)
        starts = range(0, 512, size)
        rays = sample_rays(len(starts) * rays_per_batch, 2, alpha=0.5, generator=generator)
        for at, start in enumerate(starts):
            chosen = order[start : start + size]
            share = len(chosen) // rays_per_batch
            if share == 0:
                continue
            total = torch.zeros(())
            for g, ray in enumerate(rays[at * rays_per_batch : (at + 1) * rays_per_batch]):
                mine = chosen[g * share : (g + 1) * share]
                outputs = model(batch.inputs[mine], ray)
                targets = {name: target[mine] for name, target in batch.targets.items()}
                losses = torch.stack([o.loss(outputs, targets) for o in problem.objectives])
                total = total + cosmos_loss(
                    losses,
                    ray,
                    penalty=settings.get("penalty", 0.01),
                    alignment=settings.get("alignment", "ray"),
                )
            optimiser.zero_grad()
            (total / rays_per_batch).backward()
            optimiser.step()
    found = run.model.state_dict()
    for name, expected in model.state_dict().items():
        torch.testing.assert_close(found[name], expected, rtol=1e-3, atol=2e-5)


class Own(nn.Module):
    """A network of one's own, with what makes a training stateful."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)
        )

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return self.net(torch.cat([inputs, ray.expand(len(inputs), -1)], dim=1))


@pytest.mark.parametrize("own", [False, True])
def test_the_same_seed_gives_the_same_bits(train: Callable[..., Run], own: bool) -> None:
    given: dict[str, Any] = {"model": Own()} if own else {"settings": {"rays_per_batch": 4}}
    one = train(**given)
    torch.manual_seed(99)  # the caller's generator has no say, not even in dropout
    torch.rand(7)
    two = train(**given)
    assert _bytes(one) == _bytes(two)
    assert one.front == two.front
    assert train(**given, seed=2).front != one.front


@pytest.mark.parametrize("settings", [{}, {"batch_size": 200, "rays_per_batch": 4, "penalty": 2.0}])
def test_the_engine_does_not_change_a_bit(
    train: Callable[..., Run], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paretocosmos.training.engine.WORTH_RECORDING", 1)
    eager, traced, auto = (
        train(settings=settings, engine=engine) for engine in ("eager", "traced", "auto")
    )
    assert _bytes(eager) == _bytes(traced) == _bytes(auto)
    found = [run.record["engine"] for run in (eager, traced, auto)]
    assert found == ["eager", "traced", "traced"]


def test_batch_norm_and_dropout_train_alike_in_every_engine(train: Callable[..., Run]) -> None:
    model = Own()
    eager, auto = (train(model=model, engine=engine) for engine in ("eager", "auto"))
    with pytest.warns(EngineWarning, match="buffer .*eager") as told:
        traced = train(model=model, engine="traced")
    assert len(told) == 1
    assert _bytes(eager) == _bytes(traced) == _bytes(auto)
    assert int(eager.model.state_dict()["net.1.num_batches_tracked"]) == 3 * 2
    assert str(traced.record["engine"]).startswith("eager: the network changes its buffer")


@pytest.fixture(scope="module")
def digits() -> ImageProblem:
    """A few images, kept as bytes: 190 to train on."""
    problem = few_digits(train=190, val=40, test=40)
    return dataclasses.replace(problem, spec=None, reference=(3.0, 3.0))


IMAGES: dict[str, Any] = {"batch_size": 40, "rays_per_batch": 4, "rays": 5, "weight_decay": 0.01}


@pytest.mark.parametrize("pixels", ["0..1", "0..255"])
@pytest.mark.parametrize("engine", ["eager", "traced"])
def test_images_train_as_in_the_textbook_loop(
    train: Callable[..., Run], digits: ImageProblem, engine: str, pixels: Pixels
) -> None:
    """Layouts in memory, kept bytes and heads computed together must not show in the weights."""
    digits = dataclasses.replace(digits, pixels=pixels, reference=(300.0, 300.0))
    seed, epochs = 3, 2
    run = train(digits, epochs=epochs, seed=seed, settings=IMAGES, engine=engine, precision="fp64")
    assert run.record["engine"] == engine
    model = plan_of(digits, seed=seed, precision="fp64").model.double()
    batch = digits.split("train")
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.01)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        order = torch.randperm(190, generator=generator)
        rays = sample_rays(5 * 4, 2, alpha=0.5, generator=generator).double()
        for chosen, some in zip(order.split(40), rays.split(4), strict=True):
            total = torch.zeros((), dtype=torch.float64)
            share = len(chosen) // 4  # of the last 30 samples, 28 can be shared
            for ray, mine in zip(some, chosen[: 4 * share].split(share), strict=True):
                outputs = model(batch.inputs[mine].double() / (255 if pixels == "0..1" else 1), ray)
                losses = [
                    nn.functional.cross_entropy(outputs[head], batch.targets[head][mine])
                    for head in digits.names
                ]
                total = total + cosmos_loss(torch.stack(losses), ray, penalty=0.01)
            optimiser.zero_grad()
            (total / 4).backward()
            optimiser.step()
    found = run.model.state_dict()
    for name, expected in model.state_dict().items():
        torch.testing.assert_close(found[name], expected, rtol=0, atol=1e-8)


# ---------------------------------------------------------------- precisions


@pytest.mark.parametrize("engine", ["eager", "traced"])
def test_half_precision_trains_nearly_the_same(train: Callable[..., Run], engine: str) -> None:
    half, single = (
        train(precision=precision, engine=engine, epochs=5) for precision in ("bf16", "tf32")
    )
    assert half.record["engine"] == engine
    assert {p.dtype for p in half.model.parameters()} == {torch.float32}
    apart = np.abs(half.front.values - single.front.values).max()
    assert 1e-6 < apart < 0.05
    assert half.hypervolume == pytest.approx(single.hypervolume, rel=0.02)


# ---------------------------------------------------------------- engines that step aside


def test_without_a_compiler_training_goes_on(
    train: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*given: object, **named: object) -> None:
        raise RuntimeError("no C++ compiler found")

    monkeypatch.setattr(torch, "compile", missing)
    with pytest.warns(EngineWarning, match="compiled .*no C.. compiler") as told:
        run = train(engine="compiled")
    assert [warning.category for warning in told].count(EngineWarning) == 1
    assert str(run.record["engine"]).startswith("eager: the step cannot be compiled (")
    assert _bytes(run) == _bytes(train(engine="eager"))


# ---------------------------------------------------------------- what it leaves alone


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("switch", [(False, False), (True, True), (True, False)])
def test_generators_and_switches_are_the_callers(
    train: Callable[..., Run], deterministic: bool, switch: tuple[bool, bool]
) -> None:
    np.random.seed(1)
    before = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(switch[0], warn_only=switch[1])
    try:
        train(epochs=1, deterministic=deterministic)
        assert torch.get_num_threads() == 2
        assert (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ) == switch
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(threads)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert repr(np.random.get_state()) == before[2]


def test_a_failure_gives_the_switches_back_too(train: Callable[..., Run]) -> None:
    def fail(at: Progress) -> None:
        raise InterruptedError

    before = torch.get_rng_state()
    with pytest.raises(InterruptedError):
        train(deterministic=True, progress=fail)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("role", ["model", "backbone"])
def test_a_network_handed_over_is_not_modified(train: Callable[..., Run], role: str) -> None:
    given = Own() if role == "model" else nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    next(given.parameters()).requires_grad_(False)  # one layer is frozen
    before, modes = copy.deepcopy(given.state_dict()), [m.training for m in given.modules()]
    run = train(**{role: given})
    assert list(given.state_dict()) == list(before)
    assert all(torch.equal(value, before[name]) for name, value in given.state_dict().items())
    assert [module.training for module in given.modules()] == modes
    assert all(p.grad is None for p in given.parameters())
    trained = list(run.model.state_dict().values())
    assert torch.equal(trained[0], next(iter(before.values())))  # frozen, so not trained
    assert not torch.equal(trained[-1], list(before.values())[-1])


def test_the_front_is_that_of_the_model(train: Callable[..., Run]) -> None:
    run = train(settings={"rays": 7})
    problem = load_problem("toy_convex")
    for split, front in (("test", run.front), ("val", run.front_val)):
        again = evaluate(run.model, problem, split=split, rays=7)
        np.testing.assert_array_equal(again.values, front.values)
        assert len(front) == 7
        assert front.split == split
        found = run.record["metrics"][split]["hypervolume"]
        assert found == pytest.approx(hypervolume(again))


# ---------------------------------------------------------------- validation and selection


def test_the_best_validation_epoch_is_selected(train: Callable[..., Run]) -> None:
    # what is learned (6) is ever further from what validation asks for (0)
    problem = _constant(train=6.0)
    settings = {"evaluate_every": 2, "learning_rate": 1e-2}
    run = train(problem, epochs=7, settings=settings)
    evaluations = run.record["evaluations"]
    reached = [one["hypervolume_val"] for one in evaluations]
    assert [one["epoch"] for one in evaluations] == [2, 4, 6, 7]  # and always the last
    assert reached == sorted(reached, reverse=True)
    assert run.record["epoch_selected"] == 2
    assert run.record["metrics"]["val"]["hypervolume"] == reached[0]
    short = train(problem, epochs=2, settings=settings)
    assert _bytes(run) == _bytes(short)
    assert run.record["seconds_to_selected"] < run.record["seconds_training"]

    better = train(_constant(), epochs=7, settings=settings)  # here validation asks for the same
    assert better.record["epoch_selected"] == 7


def test_a_run_keeps_its_validation_fronts(train: Callable[..., Run]) -> None:
    run = train(epochs=5, settings={"evaluate_every": 2, "rays": 4})
    course = list_validation_fronts(run.record, run.front_val)
    evaluations = run.record["evaluations"]
    assert [epoch for epoch, _ in course] == [2, 4, 5]
    for (_, front), judged in zip(course, evaluations, strict=True):
        assert front.split == "val"
        assert np.array_equal(front.rays, run.front_val.rays)
        assert hypervolume(front) == judged["hypervolume_val"]
    selected = dict(course)[run.record["epoch_selected"]]
    assert np.array_equal(selected.values, run.front_val.values)
    short = train(epochs=2, settings={"evaluate_every": 2, "rays": 4})
    assert np.array_equal(course[0][1].values, short.front_val.values)


@pytest.mark.parametrize("rays", [2, 3])
def test_a_run_says_what_it_reaches_with_equal_weights(
    rays: int, train: Callable[..., Run]
) -> None:
    """Whether its front has that ray, as three rays have, or not."""
    run = train(epochs=2, settings={"rays": rays})
    front = evaluate(run.model, load_problem("toy_convex"), rays=[[0.5, 0.5]])
    centre = run.record["centre"]
    assert centre["values"] == pytest.approx(dict(zip(front.names, front.values[0], strict=True)))
    assert centre["metrics"] == pytest.approx({k: v[0] for k, v in front.metrics.items()})
    assert train(method="single_task", epochs=1).record["centre"] is None


def test_while_no_point_counts_the_nearest_epoch_is_selected(train: Callable[..., Run]) -> None:
    """A hypervolume of 0 says nothing; the distance to the reference point does."""
    settings = {"evaluate_every": 1, "learning_rate": 1e-2, "reference": "0.001,0.001"}
    with pytest.warns(FrontWarning):
        run = train(_constant(train=6.0, val=6.0, test=6.0), epochs=5, settings=settings)
    assert {one["hypervolume_val"] for one in run.record["evaluations"]} == {0}
    assert run.record["epoch_selected"] == 5


def test_the_record_says_what_was_run(train: Callable[..., Run]) -> None:
    run = train(epochs=2, seed=5, settings={"penalty": 2, "hidden": "8"})
    assert run.record == json.loads((run.folder / "run.json").read_text())
    assert run.record["status"] == "finished"
    assert run.record["seed"] == 5
    assert run.record["method"]["settings"]["penalty"] == 2.0
    assert run.record["backbone"] == {"name": "mlp", "settings": {"hidden": [8]}}
    assert run.record["parameters"] == (4 + 2 + 1) * 8 + (8 + 1) * 2
    assert run.record["names"] == ["first", "second"]
    assert dict(run.front.provenance)["seed"] == 5
    _, numbers = load_tensors(find_newest_checkpoint(run.folder))
    assert numbers["epoch"] == 2


def test_folders_are_named_and_never_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [fit("toy_convex", preset="paper", epochs=1).folder.as_posix() for _ in range(3)]
    base = "runs/toy_convex-cosmos-1"
    assert folders == [base, f"{base}-2", f"{base}-3"]


# ---------------------------------------------------------------- numbers that are none


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("engine", ["eager", "traced"])
def test_a_loss_that_is_no_number_names_objective_and_step(
    train: Callable[..., Run], tmp_path: Path, value: float, engine: str
) -> None:
    seed, sample, size = 4, 17, 8

    @dataclass(frozen=True, kw_only=True, eq=False)
    class Spoiled(Constant):
        """One bad number in the data."""

        def split(self, name: Split) -> Batch:
            batch = super().split(name)
            if name == "train":
                batch.targets["second"][sample] = value
            return batch

    good = _constant()
    problem = Spoiled(**{one.name: getattr(good, one.name) for one in dataclasses.fields(good)})
    order = torch.randperm(good.samples, generator=torch.Generator().manual_seed(seed))
    step = int((order == sample).nonzero()) // size + 1
    folder = tmp_path / "diverged"
    with pytest.raises(DivergedError) as caught:
        train(problem, seed=seed, settings={"batch_size": size}, out=folder, engine=engine)
    says = str(caught.value)
    assert f"`second` became {value} at step {step} of epoch 1;" in says
    assert "checkpoint of epoch 0" in says
    assert "lower `learning_rate`" in says
    assert load_tensors(find_newest_checkpoint(folder))[1]["epoch"] == 0


class Fickle(Squared):
    """A loss that is NaN at one call, counted from its birth."""

    calls = 0
    bad_at = -1

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        self.calls += 1
        value = super().loss(outputs, targets)
        return value * float("nan") if self.calls == self.bad_at else value

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(outputs, targets)


@pytest.mark.parametrize(("slow", "epoch"), [(False, 3), (True, 1)])
def test_the_last_good_checkpoint_survives_and_goes_on(
    train: Callable[..., Run],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slow: bool,
    epoch: int,
) -> None:
    """Where writing counts as slow, the second and third epoch have no checkpoint."""
    problem, folder = _constant(Fickle), tmp_path / "diverged"
    fickle = problem.objectives[1]
    assert isinstance(fickle, Fickle)
    settings = {"batch_size": 10, "evaluate_every": 2}  # four steps an epoch
    given: dict[str, Any] = {"epochs": 5, "settings": settings, "engine": "eager"}
    whole = train(problem, **given)
    if slow:
        monkeypatch.setattr("paretocosmos.training.progress.FREE_SECONDS", 0.0)
        monkeypatch.setattr("paretocosmos.training.progress.CHECKPOINT_FRACTION", 0.0)
    fickle.calls, fickle.bad_at = 0, 1 + 4 * 3 + 2  # the first call is the rehearsal
    with pytest.raises(DivergedError, match=rf"`second`.*nan.*step 2 of epoch 4;.*epoch {epoch}"):
        train(problem, out=folder, **given)
    tensors, numbers = load_tensors(find_newest_checkpoint(folder))
    assert numbers["epoch"] == epoch
    assert all(bool(value.isfinite().all()) for value in tensors.values())
    assert json.loads((folder / "run.json").read_text())["status"] == "training"
    fickle.bad_at = -1  # the cause is mended
    assert _bytes(train(problem, out=folder, resume=True, **given)) == _bytes(whole)
    assert load_tensors(find_newest_checkpoint(folder))[1]["epoch"] == 5  # the last has one


class Rooted(Squared):
    """A loss of 0 whose gradient is NaN."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return (outputs * 0).sum().square().sqrt()

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(outputs, targets)


def test_weights_that_are_no_numbers_are_noticed_though_losses_are(
    train: Callable[..., Run],
) -> None:
    with pytest.raises(DivergedError, match=r"NaN .* epoch 1 .*epoch 0"):
        train(_constant(Rooted), settings={"batch_size": 40})  # one step


class Nothing(Squared):
    """A loss that is always exactly zero."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(outputs, targets) * 0


@pytest.mark.parametrize("alignment", ["ray", "inverse"])
def test_losses_that_are_all_zero_train_without_nan(
    train: Callable[..., Run], alignment: str
) -> None:
    problem = _constant(Nothing)
    objectives = Nothing(name="a", target="first"), Nothing(name="b", target="second")
    problem = dataclasses.replace(problem, objectives=objectives)
    run = train(problem, settings={"penalty": 5.0, "alignment": alignment})
    assert not run.front.values.any()
    assert all(bool(p.isfinite().all()) for p in run.model.parameters())
    assert run.hypervolume == 400.0**2
    assert run.record["metrics"]["test"]["angle"] is None  # the angle to nothing


class Undefined(Squared):
    """A score that does not exist."""

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(outputs, targets) * float("nan")


def test_a_score_that_exists_nowhere_is_one_sentence(train: Callable[..., Run]) -> None:
    with pytest.raises(DataError, match=r"`second` on `val`.*not a number"):
        train(_constant(Undefined))


def test_the_options_of_fit_are_its_arguments() -> None:
    """The list for type checkers and the signature that people read are the same one."""
    arguments = get_type_hints(fit)
    options = get_type_hints(training.FitOptions)
    own = {"problem", "data", "losses", "seed", "seeds", "return"}
    assert options == {name: kind for name, kind in arguments.items() if name not in own}
    kinds = {parameter.kind for parameter in inspect.signature(fit).parameters.values()}
    assert kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
