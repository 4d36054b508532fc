"""Code from outside at full speed, where it promises to decide nothing in Python and keeps that."""

import ctypes
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from examples.own_method import SmoothTchebycheff
from examples.own_objective import CostGap, people
from examples.own_problem import stock
from tests.inside import registered_in
from torch import Tensor, nn

from paretocosmos import Run, TabularProblem, fit
from paretocosmos.errors import EngineWarning
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.methods import Gram, Method, State
from paretocosmos.objectives import MeanSquaredError, Objective
from paretocosmos.types import Outputs, Targets

Train = Callable[..., Any]
SETTINGS = {"hidden": (8,), "batch_size": 100}


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    # the trainings here are short
    monkeypatch.setattr("paretocosmos.training.engine.WORTH_RECORDING", 1)
    numbers = itertools.count()

    def trained(problem: Any = "toy_concave", **given: Any) -> Any:
        every: Any = {"epochs": 2, "settings": SETTINGS, "device": "cpu"} | given
        return fit(problem, preset="paper", out=tmp_path / f"run-{next(numbers)}", **every)

    return trained


def _weights(run: Run) -> list[Tensor]:
    return list(run.model.state_dict().values())


def _same(one: Run, two: Run) -> bool:
    return np.array_equal(one.front.values, two.front.values) and all(
        torch.equal(a, b) for a, b in zip(_weights(one), _weights(two), strict=True)
    )


# ---------------------------------------------------------------- as fast as inside


def test_a_method_from_outside_is_run_as_the_same_file_inside(train: Train, tmp_path: Path) -> None:
    outside = train(method=SmoothTchebycheff())
    with registered_in("methods", "stch", "own_method", "SmoothTchebycheff", tmp_path) as kind:
        assert kind is not SmoothTchebycheff
        inside = train(method="stch")
        seeds = train(method="stch", seeds=(1, 2))
    assert outside.record["engine"] == inside.record["engine"] == "traced"
    assert _same(outside, inside)
    assert _same(outside, train(method=SmoothTchebycheff(), engine="eager"))
    together = train(method=SmoothTchebycheff(), seeds=(1, 2))
    for ours, theirs in zip(together, seeds, strict=True):
        assert ours.record["seeds_together"] == theirs.record["seeds_together"] == 2
        assert _same(ours, theirs)


def test_an_objective_from_outside_likewise(train: Train, tmp_path: Path) -> None:
    columns = {"target": "loan", "sensitive": "sex", "positive": "granted"}
    frame = people(1000)
    problem = TabularProblem.from_frame(frame, fairness=CostGap, **columns)  # type: ignore[arg-type]
    outside = train(problem)
    with registered_in("objectives", "cost_gap", "own_objective", "CostGap", tmp_path):
        own = TabularProblem.from_frame(frame, fairness="cost_gap", **columns)  # type: ignore[arg-type]
        inside = train(own)
    assert own.names == ("binary_cross_entropy", "cost_gap")
    assert problem.names == ("binary_cross_entropy", "CostGap")
    assert outside.record["engine"] == inside.record["engine"] == "traced"
    assert _same(outside, inside)


def test_a_problem_and_a_network_from_outside_likewise(train: Train) -> None:
    class Net(nn.Module):
        traceable = True

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.last(self.first(inputs).relu())

    class Silent(Net):
        pass

    torch.manual_seed(1)
    problem, net, silent = stock(500), Net(), Silent()
    silent.load_state_dict(net.state_dict())
    given = {"conditioning": "concat", "settings": {"batch_size": 100}}
    traced = train(problem, backbone=net, **given)
    eager = train(problem, backbone=silent, **given)
    assert traced.record["engine"] == "traced"
    assert _same(traced, eager)
    assert eager.record["engine"].startswith("eager: `Silent` may branch in Python on values")
    assert eager.record["engine"].endswith("in the class, or on the function")


def test_several_of_a_kind_from_outside_are_one_where_they_say_so() -> None:
    from paretocosmos.training.engine import compute_group_losses

    calls = []

    class Plain(Objective):
        def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
            calls.append(self.name)
            assert not isinstance(outputs, Tensor)
            return (outputs[str(self.output)] - targets[self.target]).square().mean()

    class PerHead(Plain):
        per_head = True

    outputs = {name: torch.randn(6, 2) for name in "abc"}
    targets = {name: torch.randn(6, 2) for name in "abc"}
    found = {}
    for kind, called in ((Plain, 3), (PerHead, 1), (MeanSquaredError, 0)):
        calls.clear()
        every = [kind(name=name, output=name, target=name) for name in "abc"]
        found[kind] = compute_group_losses(every, outputs, targets, 1)
        assert len(calls) == called
    torch.testing.assert_close(found[Plain], found[PerHead])
    torch.testing.assert_close(found[Plain], found[MeanSquaredError])


def test_objectives_of_an_estimator_promise_for_themselves() -> None:
    from paretocosmos.config.plan import find_third_party, keeps_promise
    from paretocosmos.estimators.objectives import wrap_objectives

    given: Any = {"gap": CostGap(), "loss": lambda outputs, targets: outputs.mean()}
    gap, loss = wrap_objectives(given, [])
    assert keeps_promise(gap)
    assert not keeps_promise(loss)
    (checked,) = find_third_party(gap)
    assert isinstance(checked, CostGap)


def test_an_estimator_takes_a_gap_of_ones_own() -> None:
    frame = people(400)
    sex, loan = frame.pop("sex"), frame.pop("loan")
    model = ParetoClassifier(fairness=CostGap, epochs=2, random_state=1)
    model.fit(frame, loan == "granted", sensitive=sex)
    assert model.front_.names == ("binary_cross_entropy", "CostGap")


# ---------------------------------------------------------------- promises that are not kept


class Deciding(SmoothTchebycheff):
    """Weighs by the rays, times a number that it decides on in Python."""

    traceable = True

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return rays * self.factor(losses, rays), state

    def factor(self, losses: Tensor, rays: Tensor) -> float:
        raise NotImplementedError


class Reads(Deciding):
    """Decides by values that it reads."""

    traceable = True

    def factor(self, losses: Tensor, rays: Tensor) -> float:
        worst = max(max(row) for row in losses.reshape(-1, losses.shape[-1]).tolist())
        return 2.0 if worst > 0.5 else 1.0


class Asks(Deciding):
    """Decides by a value that it asks for, of all seeds together."""

    traceable = True

    def factor(self, losses: Tensor, rays: Tensor) -> float:
        return 2.0 if losses.max() > 0.5 else 1.0


class Counts(Deciding):
    """Decides by the number of the step."""

    traceable = True

    def factor(self, losses: Tensor, rays: Tensor) -> float:
        vars(self)["steps"] = vars(self).get("steps", 0) + 1
        return 1.0 if self.steps < 5 else 2.0  # type: ignore[attr-defined]


class Anneals(Deciding):
    """Decides by a number that it hides elsewhere."""

    traceable = True
    heat: list[float] = [1.0]  # noqa: RUF012, that is the mistake

    def factor(self, losses: Tensor, rays: Tensor) -> float:
        self.heat[0] *= 0.9
        return self.heat[0]


class Selects(Deciding):
    """Decides by how many entries a selection has."""

    traceable = True

    def factor(self, losses: Tensor, rays: Tensor) -> float:
        first = rays[..., 0].flatten()
        return 1.0 + len(first[first > 0.5])


class Peeks(Deciding):
    """Decides by a value that it reads where nobody looks."""

    traceable = True

    def factor(self, losses: Tensor, rays: Tensor) -> float:
        first = rays[..., 0].contiguous()
        value = ctypes.c_float.from_address(first.data_ptr()).value
        return 2.0 if value > 0.5 else 1.0


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (Reads(), "(`tolist`)"),
        (Asks(), "cannot be traced ("),
        (Counts(), "`Counts` changes its `steps`"),
        (Anneals(), "not repeat the eager"),
        (Selects(), "(`__getitem__`)"),
        (Peeks(), "on other samples"),
    ],
    ids=["reads", "asks", "counts", "anneals", "selects", "peeks"],
)
@pytest.mark.parametrize("seeds", [(1,), (1, 2)], ids=["alone", "stacked"])
def test_a_method_that_decides_in_python_is_noticed_and_run_eagerly(
    train: Train, method: Method, says: str, seeds: tuple[int, ...]
) -> None:
    def fresh() -> Method:
        vars(method).pop("steps", None)
        if isinstance(method, Anneals):
            method.heat[:] = [1.0]
        return method

    with pytest.warns(EngineWarning, match="take `traceable = True` off") as caught:
        found = train(method=fresh(), seeds=seeds)
    assert all(says in str(one.message) for one in caught if one.category is EngineWarning)
    assert all(run.record["engine"].startswith("eager: ") for run in found)
    assert all(run.record["seeds_together"] == 1 for run in found)
    if isinstance(method, Anneals):
        return  # what is hidden cannot be taken back after the trial
    fresh()
    for run, seed in zip(found, seeds, strict=True):  # which count on from one to the next
        assert _same(run, train(method=method, seed=seed, engine="eager"))
