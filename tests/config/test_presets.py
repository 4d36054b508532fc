"""The presets: one rule for every problem, and the paper's settings where they are asked for."""

import dataclasses
from typing import Any, Literal

import pytest
import torch
from tests.small import Joined, plan_of
from torch import nn

from paretocosmos.config.plan import Plan
from paretocosmos.config.presets import choose_preset
from paretocosmos.errors import ConfigurationError
from paretocosmos.estimators.objectives import InUnit
from paretocosmos.objectives import MeanSquaredError, Objective, OneSidedError
from paretocosmos.problems import SPLITS, Problem, load_problem
from paretocosmos.problems.functions import ToyProblem
from paretocosmos.types import Batch

SIDES: tuple[Literal["over", "under"], ...] = ("over", "under")


def _rows(count: int) -> ToyProblem:
    """A problem with so many rows to train on, which no settings are known for."""
    point = torch.zeros(count, 2)
    batch = Batch(torch.ones(count, 4), {"first": point, "second": point + 1})
    toy = load_problem("toy_convex")
    assert isinstance(toy, ToyProblem)
    return dataclasses.replace(toy, spec=None, splits=dict.fromkeys(SPLITS, batch))


def _plan(problem: str | Problem = "toy_convex", **changes: Any) -> Plan:
    return plan_of(problem, **{"preset": "default", "method": None} | changes)


@pytest.mark.parametrize(
    ("rows", "size", "rays_per_batch", "epochs"),
    [
        (30, 30, 2, 1000),  # a single batch, which four rays do not share evenly
        (100, 32, 4, 250),  # four steps an epoch, the last one short
        (512, 64, 4, 125),
        (20_000, 2048, 4, 100),
        (200_000, 2048, 4, 20),  # 98 steps an epoch: never less than 20 epochs
    ],
)
def test_a_table_is_trained_for_a_thousand_steps(
    rows: int, size: int, rays_per_batch: int, epochs: int
) -> None:
    training = _plan(_rows(rows)).training
    assert (training.batch_size, training.rays_per_batch, training.epochs) == (
        size,
        rays_per_batch,
        epochs,
    )
    assert -(-rows // size) * epochs >= 1000
    assert training.learning_rate == 2e-3
    assert training.weight_decay == 0.25


def test_the_rule_knows_rows_and_shapes_but_no_names() -> None:
    toy = load_problem("toy_convex")
    named, nameless = _plan(toy), _plan(dataclasses.replace(toy, name="other", spec=None))
    assert named.training == nameless.training
    for one in (named, nameless):
        assert one.configuration.preset == "default"
        assert one.configuration.method.name == "cosmos"
        assert one.configuration.method.settings["alignment"] == "inverse"
        assert one.configuration.method.settings["least_epochs"] == one.training.epochs // 2
        assert one.configuration.method.settings["floor"] == 0.01
        assert one.configuration.method.settings["stratified"] is True
        assert one.configuration.conditioning.name == "film"
        assert one.configuration.conditioning.settings["rank"] == 1
        training = one.training
        assert (training.optimizer, training.schedule) == ("adamw", "cosine")
        assert not training.scale_losses  # COSMOS divides by sizes of its own
        assert training.calibrate
        assert training.average == 0.06


@pytest.mark.parametrize(
    "given",
    [{"backbone": nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))}, {"model": Joined()}],
    ids=["backbone", "model"],
)
def test_a_network_of_ones_own_has_little_decay(given: dict[str, Any]) -> None:
    training = _plan(**given).training
    assert training.learning_rate == 3e-3
    assert training.weight_decay == 0.05
    assert training.batch_size == _plan().training.batch_size


def test_a_large_network_of_ones_own_takes_small_steps() -> None:
    large = nn.Sequential(nn.Linear(4, 1001), nn.ReLU(), nn.Linear(1001, 1001), nn.Linear(1001, 2))
    assert _plan(backbone=large).training.learning_rate == 5e-4


def test_what_is_given_comes_on_top() -> None:
    settings = {"learning_rate": 0.5, "rays": 7, "epochs": 3, "alpha": 2.0, "hidden": (9,)}
    plan = _plan(settings=settings)
    assert plan.training == dataclasses.replace(
        _plan().training, learning_rate=0.5, rays=7, epochs=3, evaluate_every=1
    )
    assert plan.configuration.method.settings["alpha"] == 2.0


# ---------------------------------------------------------------- what follows from what is given


@pytest.mark.parametrize("key", ["batch_size", "training.batch_size"])
@pytest.mark.parametrize(
    ("size", "rays_per_batch", "epochs"), [(128, 4, 250), (6, 2, 20), (5, 1, 20)]
)
def test_rays_divide_a_batch_size_that_is_given(
    key: str, size: int, rays_per_batch: int, epochs: int
) -> None:
    training = _plan(settings={key: size}).training  # 512 rows
    assert (training.batch_size, training.rays_per_batch, training.epochs) == (
        size,
        rays_per_batch,
        epochs,
    )


def test_rays_are_as_many_as_micro_batches() -> None:
    training = _plan(settings={"accumulate": 8}).training
    assert (training.rays_per_batch, training.accumulate) == (8, 8)
    both = _plan(settings={"accumulate": 2, "rays_per_batch": 16}).training
    assert (both.rays_per_batch, both.accumulate) == (16, 2)


def test_a_network_for_one_ray_has_one_ray_in_a_batch() -> None:
    plan = _plan(method="single_task")
    assert plan.training.rays_per_batch == 1
    assert plan.configuration.conditioning.name == "none"


def test_a_batch_size_that_is_no_number_is_refused_as_one() -> None:
    with pytest.raises(ConfigurationError, match=r"`batch_size`.*many"):
        _plan(settings={"batch_size": "many"})


# ---------------------------------------------------------------- which preset


@pytest.mark.parametrize(
    ("asked", "protocol", "found"),
    [
        (None, "clean", "default"),
        (None, "paper", "paper"),
        ("default", "paper", "default"),
        ("paper", "clean", "paper"),
    ],
)
def test_the_protocol_chooses_the_preset_unless_one_is_named(
    asked: str | None, protocol: str, found: str
) -> None:
    problem = load_problem("toy_convex", protocol=protocol)
    assert choose_preset(asked, problem) == found
    plan = _plan("toy_convex", preset=asked, protocol=protocol)
    assert plan.configuration.preset == found
    assert plan.configuration.method.name == "cosmos"


def test_an_unknown_preset_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"`papr`.*paper"):
        _plan(preset="papr")


@pytest.mark.parametrize("key", ["penalty", "method.penalty"])
def test_a_penalty_needs_the_method_that_has_one(key: str) -> None:
    over, under = (OneSidedError(side=s, name=s, target="first") for s in ("over", "under"))
    levels = dataclasses.replace(load_problem("toy_convex"), objectives=(over, under), spec=None)
    with pytest.raises(
        ConfigurationError, match=r'penalty`: it belongs to cosmos, so set method="cosmos"'
    ):
        _plan(levels, settings={key: 2.0})
    for given in ({"method": "cosmos"}, {"preset": "paper"}):
        plan = _plan(settings={key: 2.0}, **given)
        assert plan.configuration.method.settings["penalty"] == 2.0


def test_an_input_of_another_shape_needs_a_network_of_ones_own() -> None:
    toy = load_problem("toy_convex")
    words = dataclasses.replace(
        toy,
        spec=None,
        input_shape=(5, 4),
        objectives=(MeanSquaredError(name="a"), MeanSquaredError(name="b")),
    )
    with pytest.raises(ConfigurationError, match=r"\(5, 4\).*`backbone` and `conditioning`"):
        _plan(words)


@pytest.mark.parametrize(
    ("rows", "rate", "decay", "epochs", "every"),
    [(700, 0.0018, 1 / 0.09, 46, 46), (3750, 0.003, 4.0, 34, 2), (30_000, 0.006, 1.0, 67, 5)],
)
def test_the_network_of_a_table_goes_by_its_rows(
    rows: int, rate: float, decay: float, epochs: int, every: int
) -> None:
    batch = _rows(rows).split("train")
    few = _rows(rows // 7).split("train")
    splits = {"train": batch, "val": few, "test": few}
    plan = _plan(Tabled(**vars(_rows(2)) | {"splits": splits}))
    assert plan.configuration.backbone.name == "tabular"
    training = plan.training
    assert training.learning_rate == pytest.approx(rate)
    assert training.weight_decay == pytest.approx(decay)
    assert (training.epochs, training.evaluate_every) == (epochs, every)


class Tabled(ToyProblem):
    """A problem whose inputs are the rows of a table."""

    tabular = True


class TestLevels:
    """Too high against too low: the weights of a ray are those of the pinball loss, as they are."""

    def _problem(self, *objectives: Objective) -> Problem:
        toy = load_problem("toy_convex")
        return dataclasses.replace(toy, objectives=objectives, spec=None)

    @pytest.mark.parametrize("power", [1, 2])
    def test_weights_are_taken_as_they_are(self, power: int) -> None:
        over, under = (OneSidedError(name=s, side=s, power=power) for s in SIDES)
        for objectives in ((over, under), (under, over), (InUnit(over, 3), InUnit(under, 3))):
            plan = _plan(self._problem(*objectives))
            assert not plan.training.scale_losses
            assert not plan.training.calibrate
            assert plan.configuration.method.settings["floor"] == 0
        given = _plan(self._problem(over, under), settings={"calibrate": True, "floor": 0.1})
        assert given.training.calibrate
        assert given.configuration.method.settings["floor"] == 0.1

    def test_other_errors_are_on_one_scale_as_ever(self) -> None:
        over, under = (OneSidedError(name=s, side=s, power=1) for s in SIDES)
        squared = OneSidedError(name="squared", side="under", power=2)
        other = OneSidedError(name="other", side="under", power=1, target="other")
        for objectives in ((over, squared), (over, other), (over, under, squared), (over, over)):
            plan = _plan(self._problem(*objectives), method="linear")
            assert plan.training.scale_losses
