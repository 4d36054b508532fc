"""Rows that bounds are judged on, and what is said of bounds: against fairlearn and by hand."""

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fairlearn.metrics import demographic_parity_difference, equal_opportunity_difference
from scipy.stats import binom

from paretocosmos import Run, TabularProblem, evaluate, fit
from paretocosmos.errors import FrontWarning, InfeasibleError
from paretocosmos.evaluation import BoundCheck, BoundRows, check_bound, warn_of_constant
from paretocosmos.nn.conditioning import Conditioning
from paretocosmos.pareto import Criteria, Point
from paretocosmos.types import first

BOUND = Criteria(max={"tpr_gap": 0.1})
ORACLES = {
    "tpr_gap": equal_opportunity_difference,
    "demographic_parity": demographic_parity_difference,
}


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    draw, rows = np.random.default_rng(5), 4000
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


def _decide_without(run: Run, ray: Any) -> torch.Tensor:
    """Logits of training rows, each adjusted by what was fitted to the four other fifths."""
    problem, model = run.problem(), copy.deepcopy(run.model).double()
    assert isinstance(model, Conditioning)
    task, train = model.training_task(problem.objectives), problem.split("train")
    assert task.fit is not None
    inputs, ray = first(train.inputs).double(), torch.tensor(ray).double()
    fold = torch.randperm(len(train), generator=torch.Generator().manual_seed(0)) % 5
    logits = torch.empty(len(train), 1, dtype=torch.float64)
    with torch.no_grad():
        for one in range(5):
            known = {name: target[fold != one] for name, target in train.targets.items()}
            task.fit(task.network(inputs[fold != one], ray), known)
            logits[fold == one] = model(inputs[fold == one], ray)
    return logits


def _counted(run: Run, ray: Any, splits: tuple[str, ...], name: str) -> float:
    """What fairlearn counts."""
    problem = run.problem()
    parts = [problem.split(split) for split in splits]  # type: ignore[arg-type]
    with torch.no_grad():
        logits = [
            _decide_without(run, ray)
            if split == "train"
            else run.model(part.inputs, torch.tensor(ray).float())
            for split, part in zip(splits, parts, strict=True)
        ]
    yes = torch.cat(logits).squeeze(-1) > 0
    label, group = (torch.cat([p.targets[t] for p in parts]) for t in ("label", "sensitive"))
    return float(ORACLES[name](label, yes, sensitive_features=group))


@pytest.mark.parametrize("name", ORACLES)
def test_gaps_of_a_front_are_the_larger_of_val_and_both_splits(run: Run, name: str) -> None:
    rows = BoundRows(run.model, run.problem(), BOUND)
    rays = [[0.9, 0.1], [0.4, 0.6]]
    val = evaluate(run.model, run.problem(), split="val", rays=rays)
    found = rows.judge(val)
    column = found.values[:, 1] if name in found.names else found.metrics[name]
    parts: list[tuple[str, ...]] = [("train", "val"), ("val",)]
    expected = [max(_counted(run, ray, some, name) for some in parts) for ray in rays]
    assert column == pytest.approx(expected, abs=1e-3)
    assert found.metrics["accuracy"] == pytest.approx(val.metrics["accuracy"])
    assert found.values[:, 0] == pytest.approx(val.values[:, 0])


def test_a_bound_is_kept_on_both_and_val_is_told_as_it_is(run: Run) -> None:
    bound = 0.05
    choice = run.choose(max={"demographic_parity": bound}, maximize="accuracy")
    (check,) = choice.bounds
    assert check.pooled is not None
    assert max(check.pooled, check.value) <= bound
    assert check.value == choice.val["demographic_parity"]
    for splits, told in (
        (("train", "val"), check.pooled),
        (("val",), choice.val["demographic_parity"]),
        (("test",), choice.test["demographic_parity"]),
    ):
        counted = _counted(run, choice.ray, splits, "demographic_parity")
        assert told == pytest.approx(counted, abs=1e-3)
    low, high = choice.val.intervals["demographic_parity"]
    assert low <= choice.val["demographic_parity"] <= high
    assert choice.threshold == 0.5
    reached = (
        f"asked at most 5.0 points; training and validation {100 * check.pooled:.1f}, kept; test"
    )
    for shown in (repr(choice), choice._repr_html_()):
        assert reached in shown
        assert f"with a chance of {check.chance:.0%}" in shown
    assert f"{check.value:.4g} on val ({check.pooled:.4g} on train and val" in str(check)
    assert choice.to_dict()["bounds"][0]["pooled"] == check.pooled


def test_confidence_counts_on_held_out_rows_alone(run: Run) -> None:
    choice = run.choose(max={"demographic_parity": 0.5}, confidence=0.9)
    (check,) = choice.bounds
    assert check.pooled is None
    assert check.limit == choice.val.limits["demographic_parity"]
    assert check.chance <= 0.1
    with pytest.raises(InfeasibleError, match="demographic_parity"):
        run.choose(max={"demographic_parity": 1e-3}, confidence=0.9)


@pytest.mark.parametrize(
    ("check", "test", "told"),
    [
        (
            BoundCheck("tpr_gap", 0.02, 1, 0.01, 900, "val", 0.4, pooled=0.017),
            0.0204,
            "`tpr_gap`: asked at most 2.0 points; training and validation 1.7, kept; "
            "test 2.04, not kept.",
        ),
        (
            BoundCheck("accuracy", 0.855, -1, 0.86, 900, "val", 0.4),
            float("nan"),
            "`accuracy`: asked at least 85.5 of 100; validation 86.0, kept; test not known.",
        ),
        (
            BoundCheck("rmse", 3, 1, 2.5, 900, "val", 0.4),
            3.25,
            "`rmse`: asked at most 3; validation 2.5, kept; test 3.25, not kept.",
        ),
    ],
)
def test_what_was_asked_is_told_with_what_was_reached(
    check: BoundCheck, test: float, told: str
) -> None:
    assert check.describe_reached(test) == told


def test_without_a_bound_nothing_is_checked(run: Run) -> None:
    assert run.choose(maximize="accuracy").bounds == ()


def test_other_networks_are_judged_on_val(people: pd.DataFrame, tmp_path: Path) -> None:
    problem = TabularProblem.from_frame(people, target="rich", sensitive="sex")
    other = fit(problem, preset="paper", epochs=1, out=tmp_path / "run", report=False)
    assert not BoundRows(other.model, problem, BOUND).pooled


def _decide(hits: tuple[int, int], positives: tuple[int, int]) -> tuple[torch.Tensor, Any]:
    """Logits and targets of two groups with so many positives, of which so many are found."""
    logits, groups = [], []
    for group, (found, size) in enumerate(zip(hits, positives, strict=True)):
        logits += [1.0] * found + [-1.0] * (size - found)
        groups += [group] * size
    label = torch.ones(len(logits))
    return torch.tensor(logits)[:, None], {"label": label, "sensitive": torch.tensor(groups)}


@pytest.mark.parametrize(
    ("hits", "positives", "bound", "chance"),
    [
        ((500, 500), (1000, 1000), 0.0, 0.5),  # no gap, and none allowed: as likely as not
        ((550, 500), (1000, 1000), 0.05, 0.5),  # on the bound
        ((500, 500), (1000, 1000), 0.0224 * 2, 0.0228),  # two standard errors of .0224 below it
        ((600, 500), (1000, 1000), 0.1 - 0.0222, 0.841),  # one above it
    ],
)
def test_the_chance_that_the_true_gap_is_larger(
    run: Run, hits: tuple[int, int], positives: tuple[int, int], bound: float, chance: float
) -> None:
    told = check_bound(run.problem(), *_decide(hits, positives), ("tpr_gap", bound, 1), "val")
    assert told.chance == pytest.approx(chance, abs=0.003)
    assert told.value == pytest.approx(abs(hits[0] - hits[1]) / 1000)
    assert told.kept == (told.value <= bound)
    assert f"with a chance of {told.chance:.0%}" in str(told)


def test_the_chance_of_a_share_is_that_of_a_binomial(run: Run) -> None:
    outputs, targets = _decide((40, 50), (50, 50))
    told = check_bound(run.problem(), outputs, targets, ("accuracy", 0.85, -1), "val")
    assert told.value == pytest.approx(0.9)
    assert told.chance == pytest.approx(binom(100, 0.9).cdf(84), abs=0.03)


def test_few_rows_are_told_with_the_bound_that_they_support(run: Run) -> None:
    outputs, targets = _decide((2, 50), (4, 100))
    told = check_bound(run.problem(), outputs, targets, ("tpr_gap", 0.05, 1), "val")
    assert told.is_vague
    # halves of 4 and of 100 differ by 1.28 standard errors of about 0.25
    assert told.smallest == pytest.approx(0.3, abs=0.05)
    assert "With 4 positives in `f`, no bound below about 0.28 can be shown" in str(told)
    many = check_bound(
        run.problem(), *_decide((2000, 2000), (4000, 4000)), ("tpr_gap", 0.05, 1), "val"
    )
    assert not many.is_vague
    assert "no bound below" not in str(many)


def test_a_choice_that_finds_nobody_is_told() -> None:
    def warn(found: float) -> None:
        shares = {"positive_rate": 0.01 + found, "false_positives": 0.01, "false_negatives": 0.02}
        warn_of_constant(Point((1.0, 0.0), {"tpr_gap": 0.0}, shares, "val"))

    with pytest.warns(FrontWarning, match="finds no positive row of val in any group"):
        warn(0.0)
    with warnings.catch_warnings(action="error"):
        warn(0.001)
