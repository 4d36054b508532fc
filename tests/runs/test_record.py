"""What `run.json` says of the objectives, and who is refused by it."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from paretocosmos import evaluate, fit, load_problem, load_run
from paretocosmos.errors import FindingWarning, RunError
from paretocosmos.evaluation import Diagnosis, Finding
from paretocosmos.io.files import hash_json
from paretocosmos.objectives import GaussianWell, MeanSquaredError, Objective
from paretocosmos.pareto.metrics import front_report
from paretocosmos.problems import Problem
from paretocosmos.training import seed_run
from paretocosmos.types import Outputs, Targets

Trained = Callable[[Problem], Path]


class Cubed(Objective):
    """|output - target|³, with a setting that JSON cannot say."""

    def __init__(self, *, name: str, target: str, by: object = torch.add) -> None:
        super().__init__(name=name, target=target)
        self.by = by

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return (outputs - targets[self.target]).abs().pow(3).mean()


@pytest.fixture
def trained(tmp_path: Path) -> Trained:
    def folder(problem: Problem) -> Path:
        settings = {"hidden": (4,), "batch_size": 500, "reference": (50.0, 50.0)}
        run = fit(
            problem,
            preset="paper",
            epochs=1,
            out=tmp_path / "run",
            settings=settings,
            engine="eager",
        )
        return run.folder

    return folder


def _with(*objectives: Objective) -> Problem:
    """`toy_convex`, by its spec, with other objectives of the same names."""
    return dataclasses.replace(load_problem("toy_convex"), objectives=objectives)


def _wells() -> Problem:
    return _with(
        GaussianWell(name="first", target="first"), MeanSquaredError(name="second", target="second")
    )


def _cubes() -> Problem:
    return _with(Cubed(name="first", target="first"), Cubed(name="second", target="second"))


def _changed(folder: Path, **changes: Any) -> None:
    path = folder / "run.json"
    record = json.loads(path.read_text()) | changes
    absent = {"sha256", *(key for key, value in changes.items() if value is None)}
    record = {key: value for key, value in record.items() if key not in absent}
    path.write_text(json.dumps(record | {"sha256": hash_json(record)}))


def test_objectives_of_this_package_are_recorded_and_come_back(trained: Trained) -> None:
    folder = trained(_wells())
    record = json.loads((folder / "run.json").read_text())
    first, second = record["objective_specs"]
    assert first == {
        "name": "gaussian_well",
        "settings": {"name": "first", "output": None, "target": "first"},
    }
    assert second["name"] == "mean_squared_error"
    assert {"name": "second", "target": "second"}.items() <= second["settings"].items()
    run = load_run(folder)
    assert [type(o) for o in run.problem().objectives] == [GaussianWell, MeanSquaredError]
    again = evaluate(run.model, run.problem(), rays=run.front.rays.tolist())
    assert again.values.tolist() == run.front.values.tolist()


def test_those_of_ones_own_are_refused_with_the_way_out(trained: Trained) -> None:
    folder = trained(_cubes())
    with pytest.raises(RunError, match=r"rebuild .*Cubed.*problem=problem") as refused:
        load_run(folder).problem()
    assert "\n" not in str(refused.value)
    run = load_run(folder, problem=_cubes())
    again = evaluate(run.model, run.problem(), rays=run.front.rays.tolist())
    assert again.values.tolist() == run.front.values.tolist()


def test_a_problem_with_others_is_refused_wherever_it_is_handed_over(trained: Trained) -> None:
    folder = trained(_wells())
    with pytest.raises(RunError, match=r"other objectives .*gaussian_well"):
        load_run(folder, problem=load_problem("toy_convex"))
    with pytest.raises(RunError, match="other objectives"):
        load_run(folder).choose(max={"second": 3.0}, problem=load_problem("toy_convex"))
    with pytest.raises(RunError, match=r"other settings .*objective"):
        fit(load_problem("toy_convex"), preset="paper", epochs=1, out=folder, resume=True)


@pytest.mark.parametrize(
    ("specs", "says"),
    [
        ("gaussian_well", "`objective_specs` must be a list"),
        ([{"name": "gaussian_well"}], r"`objective_specs\[0\]\.settings`"),
        ([{"name": "os:system", "settings": {"command": "ls"}}] * 2, "cannot rebuild"),
        (
            [{"name": "gaussian_well", "settings": {"wrong": 1}}] * 2,
            r"gaussian_well\(wrong=1\) there",
        ),
    ],
    ids=["text", "half", "code", "settings"],
)
def test_a_record_that_names_something_else_imports_and_builds_nothing(
    trained: Trained, specs: object, says: str
) -> None:
    folder = trained(load_problem("toy_convex"))
    _changed(folder, objective_specs=specs)
    with pytest.raises(RunError, match=says):
        load_run(folder).problem()


def test_objectives_too_large_to_build_are_refused(trained: Trained) -> None:
    folder = trained(load_problem("toy_convex"))
    huge = {"name": "demographic_parity", "settings": {"groups": 200_000_000}}
    _changed(folder, objective_specs=[huge, huge])
    with pytest.raises(RunError, match="cannot rebuild"):
        load_run(folder).problem()


def test_an_objective_that_meant_something_else_is_not_evaluated_as_what_it_means_now(
    trained: Trained,
) -> None:
    """`demographic_parity` once was a difference of counts with a `steepness`."""
    count = {"name": "demographic_parity", "settings": {"name": None, "steepness": 1.0}}
    folder = trained(load_problem("toy_convex"))
    _changed(folder, objective_specs=[count, count])
    says = r"objectives that its folder cannot rebuild .*steepness=1\.0.* there"
    with pytest.raises(RunError, match=says):
        load_run(folder).problem()
    with pytest.raises(RunError, match=r"other objectives .*steepness=1\.0.* there"):
        load_run(folder, problem=load_problem("toy_convex"))


def test_what_was_found_is_warned_of_recorded_and_read_again(
    trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Diagnosis(0.004, (Finding("insensitive", "the rays change nothing: try `film`"),))
    monkeypatch.setattr(seed_run, "diagnose", lambda *given, **named: found)
    with pytest.warns(FindingWarning, match="the rays change nothing: try `film`"):
        folder = trained(load_problem("toy_convex"))
    record = load_run(folder).record
    assert record["sensitivity"] == 0.004
    assert record["findings"] == [dataclasses.asdict(found.findings[0])]
    front = load_run(folder).front
    report = front_report(front).to_dict()
    assert record["metrics"]["test"] == report["numbers"]
    assert record["by_objective"]["test"] == report["by_objective"]


def test_a_folder_of_before_a_training_was_examined_is_read(trained: Trained) -> None:
    folder = trained(load_problem("toy_convex"))
    _changed(folder, sensitivity=None, findings=None, by_objective=None)
    assert "findings" not in load_run(folder).record
    _changed(folder, findings=[{"kind": "insensitive"}])
    with pytest.raises(RunError, match=r"`findings\[0\]\.text` is missing"):
        load_run(folder)


def test_networks_of_one_ray_each_are_not_examined(tmp_path: Path) -> None:
    run = fit("toy_convex", method="single_task", epochs=1, out=tmp_path / "run")
    assert (run.record["sensitivity"], run.record["findings"]) == (None, [])
