"""`TabularProblem`: splits, labels, groups, metrics, and what it refuses."""

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fairlearn.metrics import MetricFrame, selection_rate
from sklearn.model_selection import train_test_split
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, MissingExtraError
from paretocosmos.objectives import fairness_objectives
from paretocosmos.problems import SPLITS, Split
from paretocosmos.problems.tables import TabularProblem


def people(rows: int = 400, groups: int = 2, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": draw.integers(17, 90, rows),
            "work": draw.choice(["State", "Private"], rows),
            "sex": draw.choice(list("abcdefgh")[:groups], rows),
        }
    )
    return frame.assign(
        rich=np.where(frame["age"] + draw.normal(0, 20, rows) > 50, ">50K", "<=50K")
    )


def build(frame: pd.DataFrame | None = None, **changes: Any) -> TabularProblem:
    options: dict[str, Any] = {"target": "rich", "sensitive": "sex", "positive": ">50K"} | changes
    return TabularProblem.from_frame(people() if frame is None else frame, **options)


def inputs(problem: TabularProblem, split: Split) -> Tensor:
    found = problem.split(split).inputs
    assert isinstance(found, Tensor)
    return found


class TestContents:
    def test_splits_are_scikit_learns(self) -> None:
        frame = people()
        frame.index = pd.Index(range(1000, 1400))  # rows count by position, not by index
        problem = build(frame, seed=5)
        rest, test = train_test_split(frame, test_size=0.2, random_state=5)
        train, val = train_test_split(rest, test_size=0.125, random_state=5)
        for name, rows in zip(SPLITS, (train, val, test), strict=True):
            batch = problem.split(name)
            assert batch.targets["label"].tolist() == (rows["rich"] == ">50K").tolist()
            assert batch.targets["sensitive"].tolist() == (rows["sex"] == "b").tolist()
            np.testing.assert_array_equal(inputs(problem, name), problem.inputs_for(rows))
        assert [len(problem.split(name)) for name in SPLITS] == [280, 40, 80]

    def test_clean_fits_on_train_rows_and_paper_on_all(self) -> None:
        clean, paper = build(), build(protocol="paper")
        np.testing.assert_allclose(inputs(clean, "train").mean(dim=0), 0, atol=1e-5)
        both = torch.cat([inputs(paper, name) for name in SPLITS])
        np.testing.assert_allclose(both.mean(dim=0), 0, atol=1e-5)
        assert inputs(paper, "train").mean(dim=0).abs().max() > 1e-3
        assert (clean.score_batch, paper.score_batch) == (None, 256)

    def test_a_category_outside_the_train_rows_is_warned_about(self) -> None:
        frame = people()
        _, test = train_test_split(np.arange(400), test_size=0.2, random_state=1)
        frame.loc[test[0], "work"] = "Never"
        with pytest.warns(UserWarning, match="the column `work` .* `Never`"):
            assert build(frame).input_shape == (3,)
        assert build(frame, protocol="paper").input_shape == (4,)

    def test_drop_and_categorical(self) -> None:
        problem = build(drop=["work", "rich"], categorical=["age", "work"])
        assert all(feature.startswith("age=") for feature in problem.table.features)


class TestTarget:
    @pytest.mark.parametrize(
        ("values", "positive"),
        [
            ([False, True], "True"),
            ([0, 1], "1"),
            ([0.0, 1.0], "1"),
            ([-1, 1], "1"),
            (["no", "yes"], "yes"),
            (["N", "Y"], "Y"),
            (["FALSE", "TRUE"], "TRUE"),
        ],
    )
    def test_classes_that_say_which_is_positive(self, values: list[object], positive: str) -> None:
        frame = people()
        frame["rich"] = pd.Series([values[text == ">50K"] for text in frame["rich"]])
        problem = build(frame, positive=None)
        assert problem.positive == positive
        label = problem.split("test").targets["label"]
        assert torch.equal(label, build().split("test").targets["label"])

    @pytest.mark.parametrize("values", [["high", "low"], [2, 10], ["yes", "maybe"], [">50K", "0"]])
    def test_any_other_two_are_asked_about(self, values: list[object]) -> None:
        frame = people()
        frame["rich"] = pd.Series([values[text == ">50K"] for text in frame["rich"]])
        with pytest.raises(ConfigurationError, match="`positive`") as refused:
            build(frame, positive=None)
        assert all(f"`{value}`" in str(refused.value) for value in values)

    @pytest.mark.parametrize("positive", [0, 0.0, "0"])
    def test_positive_by_value_or_by_text(self, positive: object) -> None:
        frame = people().assign(rich=lambda f: (f["rich"] == ">50K").astype(int))
        label = build(frame, positive=positive).split("test").targets["label"]
        assert torch.equal(label, 1 - build().split("test").targets["label"])

    def test_one_class_against_the_rest(self) -> None:
        frame = people().assign(rich=lambda f: f["age"] // 30)
        problem = build(frame, positive=1)
        assert 0.2 < float(problem.split("train").targets["label"].mean()) < 0.7

    def test_pandas_categories_keep_their_order(self) -> None:
        frame = people()
        frame["rich"] = pd.Categorical(frame["rich"], [">50K", "other", "<=50K"], ordered=True)
        frame["sex"] = pd.Categorical(frame["sex"], ["b", "a"])
        problem = build(frame, positive=None)
        assert (problem.positive, problem.groups) == ("<=50K", ("b", "a"))


class TestObjectivesAndMetrics:
    @pytest.mark.parametrize("fairness", fairness_objectives("classes"))
    def test_names(self, fairness: str) -> None:
        problem = build(fairness=fairness)
        assert problem.names == ("binary_cross_entropy", fairness)
        gaps = [name for name in ("tpr_gap", "demographic_parity") if name != fairness]
        shares = ["positive_rate", *(f"selection_rate_{group}" for group in problem.groups)]
        mistakes = ["balanced_accuracy", "false_positives", "false_negatives"]
        assert list(problem.metrics) == [
            *("accuracy", "misclassification", *mistakes, *gaps, "lowest_tpr", *shares),
            "calibration_error",
        ]

    def test_the_shares_of_the_groups_are_fairlearns(self) -> None:
        problem = build(people(1500, 3))
        targets = problem.split("train").targets
        logits = torch.randn(
            len(problem.split("train")), 1, generator=torch.Generator().manual_seed(0)
        )
        for weight in (None, torch.rand(len(logits))):
            expected = MetricFrame(
                metrics=selection_rate,
                y_true=targets["label"].int().numpy(),
                y_pred=(logits[:, 0] > 0).int().numpy(),
                sensitive_features=targets["sensitive"].numpy(),
                sample_params={} if weight is None else {"sample_weight": weight.numpy()},
            ).by_group
            given = targets if weight is None else {**targets, "weight": weight}
            found = [problem.metrics[f"selection_rate_{g}"](logits, given) for g in problem.groups]
            assert [float(one) for one in found] == pytest.approx(expected.tolist(), abs=1e-6)


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"target": "rihc"}, "target column `rihc`.*`rich`"),
            ({"sensitive": "sx"}, "sensitive column `sx`.*`sex`"),
            ({"categorical": ["aeg"]}, "categorical column `aeg`.*`age`"),
            ({"drop": ["wrk"]}, "to drop `wrk`.*`work`"),
            ({"drop": "work"}, r"`drop`.*found 'work': \['work'\]"),
            ({"sensitive": "rich"}, "found `rich` for both"),
            ({"fairness": "deoo"}, "`deoo`.*`deo`"),
            ({"protocol": "papre"}, "`papre`.*`paper`"),
            ({"positive": "rich"}, "class of `rich` `rich`; .*<=50K, >50K"),
            ({"seed": -1}, "seed of a split"),
        ],
    )
    def test_settings(self, changes: dict[str, Any], sentence: str) -> None:
        with pytest.raises(ConfigurationError, match=sentence):
            build(**changes)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"rich": "no"}, "`rich`.*found only `no`"),
            ({"rich": range(400)}, r"400 values \(`0`, `1`, `2`, `3`, ...\): name"),
            ({"rich": list("abca") * 100}, r"3 values \(`a`, `b`, `c`\): name"),
            ({"rich": [None, "a", "b", "b"] * 100}, "`rich` .*100 missing of 400"),
            ({"sex": "f"}, "`sex` .*two groups, .*only `f`"),
            ({"sex": [None, "a", "b", "b"] * 100}, "`sex` .*100 missing.*leave"),
            ({"sex": np.linspace(0, 1, 400)}, "50 groups, found 400: .*`sex:4`.*`sex:30/60`"),
        ],
    )
    def test_data(self, change: dict[str, Any], sentence: str) -> None:
        with pytest.raises(DataError, match=sentence):
            build(people().assign(**change), positive=None if "rich" in change else ">50K")

    @pytest.mark.parametrize(("others", "pooling"), [("a", False), ("c", True)])
    def test_a_group_without_positives(self, others: str, pooling: bool) -> None:
        frame = people().assign(sex=["a"] * 200 + [others] * 199 + ["b"])
        with (
            pytest.warns(DataWarning, match="groups are small.*`b` .*without positives"),
            pytest.raises(DataError, match=r"`tpr_gap` .*positive rows .*none of `b`") as refused,
        ):
            build(frame)
        # of two groups there is nothing to pool
        assert ('small_groups="pool"' in str(refused.value)) is pooling

    def test_ten_rows_are_split(self) -> None:
        with pytest.warns(DataWarning) as told:
            problem = build(people(10), fairness="deo")
        assert "table of 10 rows leaves only a few" in str(told[0].message)
        assert [len(problem.split(name)) for name in SPLITS] == [7, 1, 2]

    def test_no_feature_left(self) -> None:
        with pytest.raises(DataError, match="none left: drop fewer"):
            build(drop=["age", "work"])

    def test_a_group_without_positives_is_no_matter_to_counts(self) -> None:
        frame = people().assign(sex=["a"] * 399 + ["b"])
        with pytest.warns(DataWarning, match=r"groups are small.*`b` \(\d rows\)"):
            assert build(frame, fairness="deo").groups == ("a", "b")

    @pytest.mark.parametrize("package", ["pandas", "sklearn"])
    def test_without_the_extra(self, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
        frame = people()
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtraError, match=r"paretocosmos\[tabular\]"):
            build(frame)
