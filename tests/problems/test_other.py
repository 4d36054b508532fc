"""Tables that predict a number or several classes, or compare no groups; scikit-learn says."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fairlearn.metrics import MetricFrame
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    recall_score,
)
from sklearn.utils.class_weight import compute_sample_weight

from paretocosmos.errors import ConfigurationError, DataError, DataWarning
from paretocosmos.problems.tables import Answer, TabularProblem, table


def people(rows: int = 400) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "skill": draw.normal(size=rows),
            "city": draw.choice(["x", "y"], rows),
            "sex": draw.choice(["f", "m"], rows),
            "race": draw.choice(["a", "b"], rows),
        }
    )
    pay = 3000 + 500 * frame["skill"] + draw.normal(0, 100, rows)
    kind = draw.choice(["high", "low", "middle"], rows, p=[0.1, 0.6, 0.3])
    return frame.assign(pay=pay, kind=kind, rich=draw.random(rows) < 0.1)


@pytest.fixture
def file(tmp_path: Path) -> str:
    people().to_csv(tmp_path / "people.csv", index=False)
    return str(tmp_path / "people.csv")


def build(file: str, target: str, task: Any, **given: Any) -> TabularProblem:
    others = [name for name in ("pay", "kind", "rich") if name != target]
    return table(data=file, target=target, task=task, drop=tuple(others), **given)


def random(problem: TabularProblem) -> tuple[torch.Tensor, Any]:
    targets = problem.split("train").targets
    width = problem.outputs
    assert isinstance(width, int)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(len(targets["label"]), width, generator=generator), targets


class TestNumbers:
    def test_errors_and_gaps_in_the_targets_unit(self, file: str) -> None:
        problem = build(file, "pay", "number", sensitive=("sex",))
        assert problem.names == ("mean_squared_error", "error_gap")
        outputs, targets = random(problem)
        truth = targets["label"].double().numpy() * problem.answer.scale + problem.answer.mean
        found = problem.answer.read(outputs).double().numpy()
        metrics = {name: float(one(outputs, targets)) for name, one in problem.metrics.items()}
        assert metrics["rmse"] == pytest.approx(np.sqrt(mean_squared_error(truth, found)), rel=1e-5)
        assert metrics["mae"] == pytest.approx(mean_absolute_error(truth, found), rel=1e-5)
        oracle = MetricFrame(
            metrics=mean_squared_error,
            y_true=truth,
            y_pred=found,
            sensitive_features=targets["sensitive"].numpy(),
        )
        assert metrics["error_gap_in_units"] == pytest.approx(oracle.difference(), rel=1e-4)

    def test_labels_are_standardised_by_the_rows_to_train_on(self, file: str) -> None:
        problem = build(file, "pay", "number", sensitive=("sex",))
        label = problem.split("train").targets["label"].double()
        assert float(label.mean()) == pytest.approx(0, abs=1e-5)
        assert float(label.std(correction=0)) == pytest.approx(1, abs=1e-5)

    def test_without_groups_too_high_against_too_low(self, file: str) -> None:
        with pytest.warns(DataWarning, match="`over_prediction` against `under_prediction`"):
            problem = build(file, "pay", "number")
        assert problem.names == ("over_prediction", "under_prediction")
        assert "sensitive" not in problem.split("val").targets

    @pytest.mark.parametrize(
        ("change", "given", "sentence"),
        [
            ({"pay": 7}, {}, "7 in every row: there is nothing to learn"),
            ({"pay": "much"}, {}, "found the text 'much'"),
            ({}, {"class_weight": "balanced"}, "is for classes, found a number"),
            ({}, {"fairness": "tpr_gap", "sensitive": ("sex",)}, "`tpr_gap`; .*error_gap"),
            ({}, {"protocol": "paper"}, "must be clean without two classes"),
        ],
    )
    def test_refusals(self, change: Any, given: Any, sentence: str, tmp_path: Path) -> None:
        people().assign(**change).to_csv(tmp_path / "a.csv", index=False)
        given = {"sensitive": ("sex",)} | given
        with pytest.raises((DataError, ConfigurationError), match=sentence):
            build(str(tmp_path / "a.csv"), "pay", "number", **given)


class TestClasses:
    def test_loss_and_gap_of_several(self, file: str) -> None:
        problem = build(file, "kind", "classes", sensitive=("sex", "race"))
        assert problem.names == ("cross_entropy", "tpr_gap")
        assert problem.answer.classes == ("high", "low", "middle")
        outputs, targets = random(problem)
        truth, chance = targets["label"].numpy(), problem.answer.read(outputs).numpy()
        loss = float(problem.objectives[0].score(outputs, targets))
        assert loss == pytest.approx(log_loss(truth, chance), rel=1e-5)
        said = chance.argmax(axis=1)
        metrics = {name: float(one(outputs, targets)) for name, one in problem.metrics.items()}
        assert metrics["accuracy"] == pytest.approx(accuracy_score(truth, said))
        recalls = recall_score(truth, said, average=None)
        for at, name in enumerate(problem.answer.classes):
            assert metrics[f"recall_{name}"] == pytest.approx(recalls[at])
        assert {"tpr_gap_sex", "tpr_gap_race"} <= metrics.keys()

    def test_without_groups_the_loss_of_each(self, file: str) -> None:
        with pytest.warns(DataWarning, match="`loss_high` against `loss_low` against"):
            problem = build(file, "kind", "classes")
        outputs, targets = random(problem)
        truth, chance = targets["label"].numpy(), problem.answer.read(outputs).numpy()
        for at, objective in enumerate(problem.objectives):
            own = truth == at
            expected = log_loss(truth[own], chance[own], labels=range(3))
            assert float(objective.score(outputs, targets)) == pytest.approx(expected, rel=1e-5)

    def test_two_classes_without_groups(self, file: str) -> None:
        with pytest.warns(DataWarning, match="`loss_False` against `loss_True`"):
            problem = build(file, "rich", "binary")
        assert problem.about["positive"] == "True"
        assert problem.outputs == 1
        outputs, targets = random(problem)
        rate = float(problem.metrics["positive_rate"](outputs, targets))
        assert rate == pytest.approx(float((outputs > 0).double().mean()))

    def test_too_many(self, file: str) -> None:
        with pytest.raises(DataError, match="2 to 100 classes, found 280"):
            build(file, "pay", "classes")


class TestWeights:
    @pytest.mark.parametrize(("target", "task"), [("rich", "binary"), ("kind", "classes")])
    def test_balanced_as_scikit_learn_does_it(self, file: str, target: str, task: Any) -> None:
        drop = tuple({"pay", "kind", "rich"} - {target})
        problem = table(
            data=file,
            target=target,
            task=task,
            sensitive=("sex",),
            fairness="demographic_parity",
            drop=drop,
            class_weight="balanced",
        )
        targets = problem.split("train").targets
        expected = compute_sample_weight("balanced", targets["label"].numpy())
        np.testing.assert_allclose(targets["weight"], expected, rtol=1e-6)
        assert "weight" not in problem.split("val").targets
        assert "weight" not in problem.split("test").targets


@pytest.mark.parametrize("row", range(0, 400, 80))
@pytest.mark.parametrize("number", [np.inf, -np.inf])
def test_a_target_must_be_finite_in_every_split(tmp_path: Path, row: int, number: float) -> None:
    frame = people()
    frame.loc[row, "pay"] = number
    frame.to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(DataError, match=r"`pay` must be a finite number .*found 1 missing or inf"):
        build(str(tmp_path / "people.csv"), "pay", "number", sensitive="sex")


def test_a_target_too_large_to_average_is_not_called_missing() -> None:
    with pytest.raises(DataError, match=r"`pay` .*averaged.*1e\+308"):
        Answer.fit_number(pd.Series([1e308, 1e308, 5.0], name="pay"))


def test_a_column_without_a_value_is_named(tmp_path: Path) -> None:
    people().assign(empty=np.nan, blank=None).to_csv(tmp_path / "people.csv", index=False)
    with pytest.warns(DataWarning, match=r"`empty`, `blank` must have a value .*`drop`"):
        build(str(tmp_path / "people.csv"), "pay", "number", sensitive="sex")
