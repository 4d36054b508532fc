"""Run folders of several networks and of methods that remember: resumed, read back, refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.resumed import results, stop_at
from torch import Tensor, nn

from paretocosmos import evaluate, fit, registry
from paretocosmos.config.settings import get_pairs
from paretocosmos.errors import RunError
from paretocosmos.nn.conditioning import list_networks
from paretocosmos.pareto import Front
from paretocosmos.problems import load_problem
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.runs import Run, find_newest_checkpoint, load_run, load_tensors

SETTINGS: dict[str, Any] = {"batch_size": 128, "evaluate_every": 2, "rays": 3}
EVERY = [*registry.names("methods"), *get_pairs()]
SINGLE = ["mgda", "pareto_mtl", "separate", "single_task", "uniform"]


def _go(out: Path, method: str, **changes: Any) -> Run:
    given: dict[str, Any] = {"epochs": 4, "device": "cpu", "engine": "eager"}
    given["settings"] = SETTINGS | (
        {} if {"model", "backbone"} & set(changes) else {"hidden": (6,)}
    )
    if method not in SINGLE:
        given["settings"] |= {"rays_per_batch": 2}
    return fit(
        changes.pop("problem", "toy_convex"),
        preset="paper",
        method=method,
        out=out,
        **given | changes,
    )


# ---------------------------------------------------------------- resumed


@pytest.mark.system
@pytest.mark.parametrize("stops", [(1, 2), (3,)], ids=str)
@pytest.mark.parametrize("method", EVERY)
def test_stopped_and_resumed_equals_uninterrupted(
    method: str, stops: tuple[int, ...], tmp_path: Path
) -> None:
    whole, cut = _go(tmp_path / "whole", method), tmp_path / "cut"
    for epoch in stops:
        with pytest.raises(InterruptedError):
            _go(cut, method, resume=True, progress=stop_at(epoch))
        torch.rand(11)  # the caller goes on living
    run = _go(cut, method, resume=True)
    assert results(cut) == results(whole.folder)
    assert run.record["networks"] == whole.record["networks"]
    last = [load_tensors(find_newest_checkpoint(folder))[0] for folder in (cut, whole.folder)]
    assert set(last[0]) == set(last[1])
    for name, value in last[0].items():
        assert torch.equal(value, last[1][name]), name


def test_what_each_network_remembers_is_in_the_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InterruptedError):
        _go(tmp_path / "run", "pareto_mtl", progress=stop_at(1))
    saved, numbers = load_tensors(find_newest_checkpoint(tmp_path / "run"))
    kept = {name for name in saved if name.startswith("method.")}
    names = ("rays", "searching", "steps_searching", "reached_cone", "gap")
    assert kept == {f"method.{k}.{name}" for k in range(5) for name in names}
    # four steps of an epoch, unless a batch was in the cone before
    assert all(1 <= saved[f"method.{k}.steps_searching"] <= 4 for k in range(5))
    assert numbers["selected"] == [None] * 5  # before the first validation


# ---------------------------------------------------------------- read back


@pytest.mark.parametrize("precision", ["tf32", "fp64"])
@pytest.mark.parametrize("method", EVERY)
def test_a_run_comes_back_and_evaluates_to_its_front(
    method: str, precision: str, tmp_path: Path
) -> None:
    run = _go(tmp_path / "run", method, precision=precision, epochs=2)
    again = load_run(run.folder)
    assert again.front == run.front == Front.from_json((run.folder / "front.json").read_text())
    assert again.record == run.record
    assert not again.model.training
    found = evaluate(again.model, again.problem(), rays=torch.tensor(run.front.rays))
    np.testing.assert_array_equal(found.values, run.front.values)
    state = run.model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in again.model.state_dict().items())


def test_a_table_predicts_with_the_nearest_network(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    people = pd.DataFrame({name: draw.normal(size=200) for name in "abc"})
    people["sex"] = draw.choice(["f", "m"], 200)
    people["paid"] = people["a"] + draw.normal(size=200) > 0
    problem = TabularProblem.from_frame(people, target="paid", sensitive="sex")
    run = _go(tmp_path / "run", "single_task", problem=problem)
    again = load_run(run.folder)
    inputs = torch.from_numpy(again.table.transform(people)).float()
    for k, ray in enumerate(([0.9, 0.1], [0.1, 0.9])):
        with torch.inference_mode():
            logits = list_networks(run.model)[k](inputs, torch.tensor(ray)).flatten()
        found = again.predict(people, ray=ray)
        np.testing.assert_allclose(found, torch.sigmoid(logits).numpy(), rtol=1e-5)


# ---------------------------------------------------------------- networks of one's own


class Own(nn.Module):
    """A network of one's own, told its ray, and with a state that a stack would share."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        copies = ray.expand(len(inputs), -1)
        return self.net(torch.cat([inputs, copies], dim=1))


@pytest.mark.parametrize("method", SINGLE)
def test_a_network_of_ones_own_is_trained_for_each_ray(method: str, tmp_path: Path) -> None:
    torch.manual_seed(4)
    model = Own()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    run = _go(tmp_path / "run", method, model=model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    networks = list_networks(run.model)
    assert len(networks) == len(run.front)
    with pytest.raises(RunError, match=r"pass .* as `model`"):
        load_run(run.folder)
    for given in (Own(), run.model):  # one of its kind, or all of them
        again = load_run(run.folder, model=given)
        assert len(list_networks(again.model)) == len(run.front)
        found = evaluate(again.model, load_problem("toy_convex"), rays=torch.tensor(run.front.rays))
        np.testing.assert_array_equal(found.values, run.front.values)
    if len(run.front) > 1:
        assert len(np.unique(run.front.values, axis=0)) == len(run.front)
    with pytest.raises(RunError, match="do not fit"):
        load_run(run.folder, model=nn.Linear(2, 2))


# ---------------------------------------------------------------- what is recorded


NOTED = {
    "epo": {"infeasible_share", "largest_gap"},
    "phn_epo": {"infeasible_share", "largest_gap"},
    "mgda": {"largest_gap"},
    "pareto_mtl": {"steps_searching", "reached_cone", "largest_gap"},
}


@pytest.mark.parametrize("method", EVERY)
def test_the_record_says_what_was_trained(method: str, tmp_path: Path) -> None:
    run = _go(tmp_path / "run", method, epochs=2)
    record = json.loads((run.folder / "run.json").read_text())
    assert record["label"] == method
    assert (record["method"]["name"], record["conditioning"]["name"]) == {
        **{name: (name, "none" if name in SINGLE else "concat") for name in EVERY},
        "phn_ls": ("linear", "hypernet"),
        "phn_epo": ("epo", "hypernet"),
    }[method]
    rays = run.front.rays.tolist() if method in SINGLE else None
    assert record["fixed_rays"] == rays
    assert record["parameters"] == sum(p.numel() for p in run.model.parameters())
    assert [one["ray"] for one in record["networks"]] == (rays or [None])
    for one in record["networks"]:
        assert set(one) == {"ray", "epoch_selected"} | NOTED.get(method, set())
        assert one["epoch_selected"] == 2
        assert 0 <= one.get("largest_gap", 0) < 1e-6
    if "epo" in method:
        (one,) = record["networks"]
        assert 0 <= one["infeasible_share"] <= 1
    if method == "pareto_mtl":
        for one in record["networks"]:
            assert 1 <= one["steps_searching"] <= 8
            # a search that did not last for its two epochs found the cone
            assert one["reached_cone"] == 1 or one["steps_searching"] == 8
    assert run.front.provenance["method"] == method


@pytest.mark.parametrize("method", ["cosmos", "phn_ls", "pareto_mtl"])
def test_a_run_on_a_backbone_of_ones_own_comes_back_with_it(method: str, tmp_path: Path) -> None:
    problem = load_problem("toy_convex")
    assert isinstance(problem.outputs, int)
    backbone = nn.Sequential(
        nn.Linear(problem.input_shape[0], 8), nn.ReLU(), nn.Linear(8, problem.outputs)
    )
    run = fit(
        problem,
        preset="paper",
        method=method,
        backbone=backbone,
        epochs=1,
        out=tmp_path / "run",
        engine="eager",
    )
    with pytest.raises(RunError, match=r"pass .* as `backbone`"):
        load_run(run.folder)
    again = load_run(run.folder, backbone=backbone)
    inputs = torch.rand(5, *problem.input_shape)
    for ray in torch.eye(2):
        assert torch.equal(again.model(inputs, ray), run.model(inputs, ray))
