"""What every problem promises, over every file of the room."""

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from paretocosmos.errors import BenchmarkWarning, ConfigurationError
from paretocosmos.find import find as find_thing
from paretocosmos.find import names, parameters, summary
from paretocosmos.problems import Problem, load_problem
from paretocosmos.problems._base import SPLITS

ROWS = "".join(f"{at % 17},{'abc'[at % 3]},{['no', 'yes'][at * 7 % 11 > 5]}\n" for at in range(300))


@pytest.fixture(scope="module", params=names("problems"))
def load(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Problem]:
    settings: dict[str, Any] = {}
    if request.param == "table":
        path: Path = tmp_path_factory.mktemp("csv") / "mine.csv"
        path.write_text("age,group,paid\n" + ROWS)
        settings = {"data": str(path), "target": "paid", "sensitive": "group"}

    def again(**changes: Any) -> Problem:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BenchmarkWarning)
            return load_problem(request.param, settings=settings | changes)

    return again


@pytest.fixture(scope="module")
def problem(load: Callable[[], Problem]) -> Problem:
    return load()


def random_outputs(problem: Problem, count: int, groups: int = 1) -> Tensor:
    assert isinstance(problem.outputs, int)
    return torch.randn(groups, count, problem.outputs, generator=torch.Generator().manual_seed(1))


def test_splits(problem: Problem) -> None:
    for name in SPLITS:
        batch = problem.split(name)
        assert len(batch) > 0
        assert isinstance(batch.inputs, Tensor)
        assert batch.inputs.shape == (len(batch), *problem.input_shape)
        assert batch.inputs.device.type == "cpu"
        assert bool(torch.isfinite(batch.inputs).all())
        assert all(len(target) == len(batch) for target in batch.targets.values())
    with pytest.raises(ConfigurationError, match="unknown split"):
        problem.split("all")  # type: ignore[arg-type]


def test_names(problem: Problem) -> None:
    assert problem.spec is not None
    # a table is called like its file
    assert problem.name == ("mine" if problem.spec.name == "table" else problem.spec.name)
    every = [*problem.names, *problem.metrics]
    assert len(set(every)) == len(every)
    assert len(problem.names) >= 2
    assert len(problem.reference) == len(problem.objectives)
    assert problem.protocol == "clean"


def test_losses_scores_and_metrics_are_numbers(problem: Problem) -> None:
    for name in SPLITS:
        batch = problem.split(name)
        outputs = random_outputs(problem, len(batch))[0]
        scored = [o.score for o in problem.objectives] + list(problem.metrics.values())
        for function in [o.loss for o in problem.objectives] + scored:
            value = function(outputs, batch.targets)
            assert value.shape == ()
            assert math.isfinite(value)


def test_losses_are_differentiable_and_vmappable(problem: Problem) -> None:
    batch = problem.split("val")
    outputs = random_outputs(problem, len(batch), groups=3).requires_grad_()
    for objective in problem.objectives:
        together = vmap(lambda one, o=objective: o.loss(one, batch.targets))(outputs)
        alone = torch.stack([objective.loss(one, batch.targets) for one in outputs])
        torch.testing.assert_close(together, alone)
        (slope,) = torch.autograd.grad(together.sum(), outputs)
        assert bool(torch.isfinite(slope).all())
        assert bool(slope.any())
    for metric in [o.score for o in problem.objectives] + list(problem.metrics.values()):
        together = vmap(lambda one, m=metric: m(one, batch.targets))(outputs)
        alone = torch.stack([metric(one, batch.targets) for one in outputs])
        torch.testing.assert_close(together, alone)


def test_loading_again_gives_the_same(problem: Problem, load: Callable[[], Problem]) -> None:
    again = load()
    assert again.spec == problem.spec
    for name in SPLITS:
        one, two = problem.split(name), again.split(name)
        assert torch.equal(torch.as_tensor(one.inputs), torch.as_tensor(two.inputs))
        assert one.targets.keys() == two.targets.keys()
        assert all(torch.equal(one.targets[key], two.targets[key]) for key in one.targets)


def test_the_paper_protocol(load: Callable[..., Problem]) -> None:
    paper = load(protocol="paper")
    assert (paper.protocol, paper.score_batch) == ("paper", 256)


def test_settings_are_keyword_only_and_said_in_one_line(problem: Problem) -> None:
    assert problem.spec is not None
    thing = find_thing("problems", problem.spec.name)
    assert set(parameters(thing)) == set(problem.spec.settings)
    assert 20 < len(summary("problems", problem.spec.name)) < 100
