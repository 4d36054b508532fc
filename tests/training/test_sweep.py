"""`sweep`: combinations, their order, and what it refuses before any training."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from paretocosmos import fit, hypervolume, load_problem, load_run, sweep
from paretocosmos.errors import ConfigurationError

SMALL: dict[str, Any] = {"epochs": 2, "device": "cpu", "engine": "eager", "progress": False}
GRID: dict[str, Any] = {"method": ["linear", "cosmos"], "learning_rate": [0.001, 0.01]}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("sweep") / "runs"
    return sweep(["toy_convex", "toy_concave"], GRID, seeds=[1, 2], out=folder, **SMALL)


def test_every_combination_is_trained_as_fit_trains_it(done: Any, tmp_path: Path) -> None:
    combinations = itertools.product(("toy_convex", "toy_concave"), *GRID.values())
    rows = {(row["problem"], row["method"], row["learning_rate"]): row for row in done.rows}
    assert rows.keys() == {*combinations}
    trial = rows["toy_concave", "cosmos", 0.01]["trial"]
    alone = fit(
        "toy_concave",
        method="cosmos",
        seeds=[1, 2],
        settings={"learning_rate": 0.01},
        out=tmp_path,
        **SMALL,
    )
    for run, expected in zip(done.runs[trial], alone, strict=True):
        assert run.front.values.tolist() == expected.front.values.tolist()


def test_the_best_is_chosen_on_validation_data_for_each_problem(done: Any) -> None:
    for problem, runs in done.best.items():
        values = {
            trial: sum(hypervolume(load_run(run.folder).front_val) for run in runs) / 2
            for trial, runs in done.runs.items()
            if runs[0].front.provenance["problem"] == problem
        }
        assert done.runs[max(values, key=lambda trial: values[trial])] == runs
        ranked = [row["trial"] for row in done.rows if row["problem"] == problem]
        assert ranked == sorted(values, key=lambda trial: -values[trial])
    saved = json.loads((done.folder / "sweep.json").read_text())
    assert {**saved, "folder": str(done.folder)} == done.to_dict()
    assert "trial-1" in repr(done)


def test_a_sample_is_drawn_by_the_seed_and_continued(tmp_path: Path) -> None:
    drawn = [
        sweep("toy_convex", GRID, samples=2, seeds=[7], out=tmp_path / name, resume=resume, **SMALL)
        for name, resume in (("a", False), ("b", False), ("a", True))
    ]
    first, second, again = ([(row, row.pop("seconds"))[0] for row in one.rows] for one in drawn)
    assert first == second == again
    assert len(first) == 2


def test_a_trial_that_fails_leaves_the_others(tmp_path: Path) -> None:
    ended = sweep("toy_convex", {"learning_rate": [0.01, 1e30]}, out=tmp_path / "runs", **SMALL)
    assert list(ended.failures) == ["trial-2"]
    assert [row["trial"] for row in ended.rows] == ["trial-1"]


def test_smaller_is_better_for_some_measures(tmp_path: Path) -> None:
    ended = sweep(
        load_problem("toy_convex"),
        {"learning_rate": [0.001, 0.01]},
        measure="expected_utility",
        out=tmp_path / "runs",
        **SMALL,
    )
    first, second = (row["expected_utility"] for row in ended.rows)
    assert first < second


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"grid": {"method": ["liner"]}}, "did you mean `linear`"),
        ({"grid": {"rate": [1]}}, "unknown setting `rate`"),
        ({"grid": GRID | {"penalty": [1]}}, r"trial-1 \(.*method=linear.*: unknown setting `penal"),
        ({"grid": {"reference": [[2, 2]]}}, "`reference` changes what is measured"),
        ({"grid": {"data": ["a"]}, "problem": "adult"}, "`data` changes what is measured"),
        ({"grid": {"epochs": "12"}}, "must be a list of values"),
        ({"samples": 5}, "`samples` must be from 1 to 4"),
        ({"measure": "volume"}, "unknown measure `volume`"),
        ({"problem": []}, "at least one problem"),
        ({"seeds": [1, 1]}, "different whole numbers"),
        ({"workers": 2, "cluster": "local"}, "found both"),
    ],
)
def test_mistakes_are_refused_before_any_training(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    arguments: dict[str, Any] = {"problem": "toy_convex", "grid": GRID, "out": tmp_path / "runs"}
    with pytest.raises(ConfigurationError, match=says):
        sweep(**arguments | changes, **SMALL)
    assert list(tmp_path.iterdir()) == []
