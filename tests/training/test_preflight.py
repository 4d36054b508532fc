"""What cannot work is one sentence before a folder exists."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.small import few_digits
from torch import Tensor, nn

from paretocosmos import Objective, Problem, fit, load_problem
from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.problems import Split
from paretocosmos.problems.functions import ToyProblem
from paretocosmos.types import Batch, Outputs, Targets


class Indexed(Objective):
    """Boolean indexing, which torch.vmap cannot map."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return outputs[outputs > 0].sum()


class Unreduced(Objective):
    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return outputs.square().sum(dim=1)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.loss(outputs, targets).mean()


class Counting(nn.Module):
    """A network with a state that a rehearsal must not touch."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return self.net(torch.cat([inputs, ray.expand(len(inputs), -1)], dim=1))


def _with(objective: Objective) -> Problem:
    problem = load_problem("toy_convex")
    return dataclasses.replace(problem, objectives=(problem.objectives[0], objective))


class Halved(ToyProblem):
    """A problem without a test split."""

    def split(self, name: Any) -> Any:
        return {"train": super().split("train"), "val": super().split("val")}[name]


def _halved() -> Problem:
    problem = load_problem("toy_convex")
    fields = {f.name: getattr(problem, f.name) for f in dataclasses.fields(problem)}
    return Halved(**fields)


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "no ray": ({"problem": "toy_convex", "model": nn.Linear(4, 2)}, "forward\\(inputs, ray\\)"),
    "a class": ({"problem": "toy_convex", "model": nn.Linear}, "`model` must be a network"),
    "a name": ({"problem": "toy_convex", "model": "mlp"}, "`model` must be a network"),
    "indexing": ({"problem": _with(Indexed(name="b"))}, "torch.vmap"),
    "not reduced": ({"problem": _with(Unreduced(name="b"))}, "loss of `b` must be one number"),
    "no such target": ({"problem": _with(MeanSquaredError(name="b", target="c"))}, "KeyError: 'c'"),
    "no test split": ({"problem": _halved()}, "no split `test`"),
}


@pytest.mark.parametrize(("given", "says"), CASES.values(), ids=list(CASES))
def test_it_is_refused_before_a_folder_exists(
    given: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        fit(**given, out=tmp_path / "run", epochs=1)
    assert not list(tmp_path.iterdir())


def test_groups_reach_a_plain_network_as_one_ray_per_sample(tmp_path: Path) -> None:
    run = fit(
        "toy_convex",
        preset="paper",
        model=Counting(),
        settings={"rays_per_batch": 4},
        epochs=1,
        out=tmp_path / "run",
    )
    assert run.record["engine"].startswith("eager: `Counting` may branch")


@pytest.mark.parametrize(("split", "label"), [("train", 10), ("val", -1), ("test", 99)])
def test_labels_beyond_the_classes_are_refused_before_a_folder_exists(
    split: Split, label: int, tmp_path: Path
) -> None:
    digits = few_digits()
    targets = dict(digits.split(split).targets)
    targets["top_left"] = targets["top_left"].clone().index_fill_(0, torch.tensor([3]), label)
    spoilt = Batch(digits.split(split).inputs, targets)
    problem = dataclasses.replace(digits, splits={**digits.splits, split: spoilt})
    with pytest.raises(DataError, match=f"`top_left`.* found {label} in `{split}`"):
        fit(problem, preset="paper", epochs=1, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("width", [10, 20])
def test_one_tensor_for_several_heads_is_refused(width: int, tmp_path: Path) -> None:
    digits = few_digits()
    backbone = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2 * 22 * 22, width))
    with pytest.raises(ConfigurationError, match=r"top_left, bottom_right.*one tensor"):
        fit(
            digits,
            preset="paper",
            backbone=backbone,
            conditioning="transposed_conv",
            out=tmp_path / "run",
        )
    assert list(tmp_path.iterdir()) == []
