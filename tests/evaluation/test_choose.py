"""Choosing from a run: on val, beyond its rays; then one look at test."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from paretocosmos import Run, TabularProblem, evaluate, fit, load_run
from paretocosmos.errors import ConfigurationError, FrontWarning, InfeasibleError, RunError


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    rows = 3000
    sex = draw.choice(["f", "m"], rows)
    skill = draw.normal(size=rows)
    pay = skill + 0.8 * (sex == "m")
    rich = draw.random(rows) < 1 / (1 + np.exp(-2 * pay))
    return pd.DataFrame({"skill": skill, "pay": pay, "sex": sex, "rich": rich})


@pytest.fixture(scope="module")
def run(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Run:
    problem = TabularProblem.from_frame(people, target="rich", sensitive="sex")
    out = tmp_path_factory.mktemp("choice") / "run"
    return fit(
        problem, preset="paper", epochs=15, settings={"penalty": 0.05}, out=out, device="cpu"
    )


def test_the_bound_is_kept_on_val_and_test_is_what_it_is(run: Run) -> None:
    problem = run.problem()
    held = run.front_val.metrics["accuracy"], run.front_val.values[:, 1]
    bound = float(np.quantile(held[1], 0.3))
    choice = run.choose(max={"tpr_gap": bound}, maximize="accuracy")
    assert choice.val["tpr_gap"] <= bound
    assert choice.val["accuracy"] >= held[0][held[1] <= bound].max()
    assert choice.evaluations <= 20
    for point, split in ((choice.val, "val"), (choice.test, "test")):
        again = evaluate(run.model, problem, split=split, rays=[choice.ray])
        assert point.split == split
        assert list(point.values.values()) == pytest.approx(again.values[0].tolist(), abs=1e-6)
        for name, value in point.metrics.items():
            assert value == pytest.approx(again.metrics[name][0], abs=1e-6)
            assert point.intervals[name][0] <= value <= point.intervals[name][1]
    assert "on val" in repr(choice)
    assert json.loads(json.dumps(choice.to_dict()))["ray"] == list(choice.ray)


def test_new_rays_find_more_than_those_held(run: Run) -> None:
    losses, gaps = run.front_val.values.T
    kept = np.sort(gaps)
    bound = float((kept[5] + kept[6]) / 2)  # between two of them
    refined = run.choose(max={"tpr_gap": bound})
    held = run.front_val.choose(max={"tpr_gap": bound})
    assert refined.val["binary_cross_entropy"] <= held["binary_cross_entropy"]
    assert held["binary_cross_entropy"] == losses[gaps <= bound].min()
    fewest = run.choose(max={"tpr_gap": bound}, evaluations=2)
    assert fewest.ray == held.ray
    assert fewest.evaluations == 2
    with pytest.raises(ConfigurationError, match="`evaluations` must be at least 2"):
        run.choose(knee=True, evaluations=1)


def test_a_front_without_a_metric_is_evaluated_again(run: Run) -> None:
    """As of a run that was trained before the metric was added."""
    metrics = {k: v for k, v in run.front_val.metrics.items() if k != "demographic_parity"}
    older = dataclasses.replace(run, front_val=dataclasses.replace(run.front_val, metrics=metrics))
    bound = float(np.median(run.front_val.values[:, 1]))
    expected = run.choose(max={"tpr_gap": bound})
    choice = older.choose(max={"tpr_gap": bound})
    assert choice.ray == expected.ray
    assert choice.val["demographic_parity"] == expected.val["demographic_parity"]


def test_the_problem_is_at_hand_or_handed_on(run: Run) -> None:
    assert run.problem() is run.trained_on
    again = load_run(run.folder)
    with pytest.raises(RunError, match=r"`run\.choose\(\.\.\., problem="):
        again.choose(knee=True)
    assert again.choose(knee=True, problem=run.problem()).ray == run.choose(knee=True).ray


def test_an_unknown_name_is_told_before_data_is_loaded(run: Run) -> None:
    with pytest.raises(ConfigurationError, match="mean `tpr_gap`"):
        load_run(run.folder).choose(max={"gap": 0.1})


def test_what_cannot_be_says_how_close_one_comes(run: Run) -> None:
    with pytest.raises(InfeasibleError, match=r"`tpr_gap` at most -1.*closest"):
        run.choose(max={"tpr_gap": -1})


def test_networks_of_their_own_are_chosen_among(people: pd.DataFrame, tmp_path: Path) -> None:
    problem = TabularProblem.from_frame(people, target="rich", sensitive="sex")
    settings = {"networks": 3, "batch_size": 1000}
    run = fit(
        problem,
        preset="paper",
        method="pareto_mtl",
        epochs=2,
        settings=settings,
        out=tmp_path / "run",
    )
    with pytest.warns(
        FrontWarning, match="constant classifier: it predicts the same for everybody"
    ):
        choice = run.choose(minimize="tpr_gap", allow_constant=True)
    assert list(choice.ray) in run.front_val.rays.tolist()
    assert choice.evaluations == 2
    assert choice.val["tpr_gap"] == run.front_val.values[:, 1].min()


def test_a_chosen_ray_predicts(run: Run, people: pd.DataFrame) -> None:
    choice = run.choose(max={"tpr_gap": 0.2})
    rows = people.head(50)
    with torch.inference_mode():
        inputs = torch.from_numpy(run.table.transform(rows)) if run.table else None
        logits = run.model(inputs, torch.tensor(choice.ray))
    np.testing.assert_allclose(
        run.predict(rows, ray=choice.ray), torch.sigmoid(logits.squeeze(1)).numpy(), rtol=1e-5
    )


def test_a_bound_kept_with_confidence(run: Run) -> None:
    bound = float(run.front_val.values[:, 1].max() + 0.2)
    choice = run.choose(max={"tpr_gap": bound}, confidence=0.9)
    limit = choice.val.limits["tpr_gap"]
    assert choice.val["tpr_gap"] < limit <= bound
    assert choice.to_dict()["val"]["limits"] == {"tpr_gap": limit}
    assert not choice.test.limits
    # every ray passes, so that the best of the front is taken
    best = run.front_val.choose(minimize="binary_cross_entropy")
    assert choice.ray == best.ray
    with pytest.raises(InfeasibleError, match=r"positives in `[fm]`.*hold out more rows"):
        run.choose(max={"tpr_gap": 1e-4}, confidence=0.9)
