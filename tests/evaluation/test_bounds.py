"""Gaps that are judged on the training and validation rows together, against fairlearn."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fairlearn.metrics import demographic_parity_difference, equal_opportunity_difference

from paretocosmos import Run, TabularProblem, evaluate, fit
from paretocosmos.errors import InfeasibleError
from paretocosmos.evaluation import BoundRows
from paretocosmos.pareto import Criteria

BOUND = Criteria(max={"tpr_gap": 0.1})
ORACLES = {
    "tpr_gap": equal_opportunity_difference,
    "demographic_parity": demographic_parity_difference,
}


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    draw, rows = np.random.default_rng(5), 1200
    sex = draw.choice(["f", "m"], rows)
    skill, hobby = draw.normal(size=rows), draw.normal(size=rows) + 1.2 * (sex == "m")
    rich = draw.random(rows) < 1 / (1 + np.exp(-2 * skill - 1.5 * (sex == "m")))
    return pd.DataFrame({"skill": skill, "hobby": hobby, "sex": sex, "rich": rich})


@pytest.fixture(scope="module")
def run(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Run:
    problem = TabularProblem.from_frame(
        people, target="rich", sensitive="sex", fairness="demographic_parity"
    )
    out = tmp_path_factory.mktemp("pooled") / "run"
    return fit(problem, epochs=8, out=out, device="cpu", report=False)


def _counted(run: Run, ray: Any, splits: tuple[str, ...], name: str) -> float:
    """What fairlearn counts."""
    problem = run.problem()
    parts = [problem.split(split) for split in splits]  # type: ignore[arg-type]
    with torch.no_grad():
        logits = [run.model(part.inputs, torch.tensor(ray).float()) for part in parts]
    yes = torch.cat(logits).squeeze(-1) > 0
    label, group = (torch.cat([p.targets[t] for p in parts]) for t in ("label", "sensitive"))
    return float(ORACLES[name](label, yes, sensitive_features=group))


@pytest.mark.parametrize("name", ORACLES)
def test_gaps_of_a_front_are_those_of_both_splits(run: Run, name: str) -> None:
    rows = BoundRows(run.model, run.problem(), BOUND)
    rays = [[0.9, 0.1], [0.4, 0.6]]
    val = evaluate(run.model, run.problem(), split="val", rays=rays)
    found = rows.judge(val)
    column = found.values[:, 1] if name in found.names else found.metrics[name]
    expected = [_counted(run, ray, ("train", "val"), name) for ray in rays]
    assert column == pytest.approx(expected, abs=1e-3)
    assert found.metrics["accuracy"] == pytest.approx(val.metrics["accuracy"])
    assert found.values[:, 0] == pytest.approx(val.values[:, 0])


def test_a_bound_is_kept_on_both_and_val_is_told_as_it_is(run: Run) -> None:
    bound = 0.02
    choice = run.choose(max={"demographic_parity": bound}, maximize="accuracy")
    assert choice.val.pooled["demographic_parity"] <= bound
    for splits, told in (
        (("train", "val"), choice.val.pooled["demographic_parity"]),
        (("val",), choice.val["demographic_parity"]),
        (("test",), choice.test["demographic_parity"]),
    ):
        counted = _counted(run, choice.ray, splits, "demographic_parity")
        assert told == pytest.approx(counted, abs=1e-3)
    low, high = choice.val.intervals["demographic_parity"]
    assert low <= choice.val["demographic_parity"] <= high
    assert choice.threshold == 0.5
    assert "on train and val" in repr(choice)
    assert choice.to_dict()["val"]["pooled"] == dict(choice.val.pooled)


def test_confidence_counts_on_held_out_rows_alone(run: Run) -> None:
    choice = run.choose(max={"demographic_parity": 0.5}, confidence=0.9)
    assert not choice.val.pooled
    with pytest.raises(InfeasibleError, match="demographic_parity"):
        run.choose(max={"demographic_parity": 1e-3}, confidence=0.9)


def test_without_a_bound_nothing_is_pooled(run: Run) -> None:
    assert not run.choose(maximize="accuracy").val.pooled


def test_other_networks_are_judged_on_val(people: pd.DataFrame, tmp_path: Path) -> None:
    problem = TabularProblem.from_frame(people, target="rich", sensitive="sex")
    other = fit(problem, preset="paper", epochs=1, out=tmp_path / "run", report=False)
    assert not BoundRows(other.model, problem, BOUND).pooled
