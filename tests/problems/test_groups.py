"""Groups of several columns, of cut numbers, and those with few rows; fairlearn and pandas say."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fairlearn.metrics import MetricFrame, true_positive_rate
from sklearn.metrics import recall_score

from paretocosmos.errors import DataError, DataWarning
from paretocosmos.problems.tables import Grouping, TabularProblem


def people(rows: int = 3000) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "skill": draw.normal(size=rows),
            "age": draw.integers(18, 90, rows),
            "sex": draw.choice(["f", "m"], rows),
            "race": draw.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "rich": draw.choice([False, True], rows),
        }
    )


def build(frame: pd.DataFrame | None = None, **given: Any) -> TabularProblem:
    options: dict[str, Any] = {"target": "rich", "sensitive": ["sex", "race"]} | given
    return TabularProblem.from_frame(people() if frame is None else frame, **options)


class TestSeveralColumns:
    def test_gaps_are_fairlearns_together_and_alone(self) -> None:
        frame = people()
        problem = build(frame)
        assert problem.sensitive == "sex & race"
        assert problem.groups == ("f & a", "f & b", "f & c", "m & a", "m & b", "m & c")
        assert problem.table.columns == ("skill", "age")
        targets = problem.split("train").targets
        count = len(targets["label"])
        logits = torch.randn(count, 1, generator=torch.Generator().manual_seed(0))
        given = {
            "y_true": targets["label"].int().numpy(),
            "y_pred": (logits[:, 0] > 0).int().numpy(),
        }
        sensitive = pd.DataFrame(
            {"sex": targets["sensitive_sex"].numpy(), "race": targets["sensitive_race"].numpy()}
        )
        found = {
            "tpr_gap": float(problem.objectives[1].score(logits, targets)),
            **{
                name: float(problem.metrics[name](logits, targets))
                for name in ("tpr_gap_sex", "tpr_gap_race")
            },
        }
        for name, columns in (
            ("tpr_gap", ["sex", "race"]),
            ("tpr_gap_sex", ["sex"]),
            ("tpr_gap_race", ["race"]),
        ):
            oracle = MetricFrame(
                metrics=true_positive_rate, sensitive_features=sensitive[columns], **given
            )
            assert found[name] == pytest.approx(oracle.difference(), abs=1e-6)

    def test_codes_are_those_of_the_rows(self) -> None:
        frame = people()
        codes = Grouping.fit(frame, ["sex", "race"]).codes(frame)
        expected = frame["sex"].map({"f": 0, "m": 3}) + frame["race"].map({"a": 0, "b": 1, "c": 2})
        np.testing.assert_array_equal(codes, expected)

    def test_combinations_that_nobody_has_are_no_groups(self) -> None:
        frame = people().assign(race=lambda f: np.where(f["sex"] == "f", "a", f["race"]))
        assert build(frame).groups == ("f & a", "m & a", "m & b", "m & c")

    def test_too_many_together(self) -> None:
        with pytest.raises(DataError, match="at most 50 groups together, found"):
            build(sensitive=["race", "sex", "age:20"])

    def test_there_and_back(self) -> None:
        frame = people()
        grouping = Grouping.fit(frame, ["sex", "age:3"])
        again = Grouping.from_dict(json.loads(json.dumps(grouping.to_dict())))
        assert again == grouping
        new = frame.assign(sex=np.where(frame.index % 7 == 0, "x", frame["sex"]))
        assert ((again.codes(new) < 0) == (new.index % 7 == 0)).all()


class TestCut:
    def test_equal_shares_are_those_of_qcut(self) -> None:
        frame = people()
        grouping = Grouping.fit(frame, ["skill:4"])
        oracle = pd.qcut(frame["skill"], 4, labels=False)
        assert (grouping.codes(frame) != oracle).mean() < 0.002  # the edges themselves
        assert len(grouping.names) == 4

    def test_values_of_ones_own(self) -> None:
        frame = people()
        grouping = Grouping.fit(frame, ["age:30/60"])
        assert grouping.names == ("< 30", "30 to < 60", ">= 60")
        oracle = pd.cut(frame["age"], [0, 30, 60, 100], right=False, labels=False)
        np.testing.assert_array_equal(grouping.codes(frame), oracle)

    def test_many_ties_make_fewer_groups(self) -> None:
        frame = pd.DataFrame({"n": [0] * 80 + [1] * 10 + [2] * 10})
        assert Grouping.fit(frame, ["n:5"]).names == ("< 1", ">= 1")

    @pytest.mark.parametrize("cut", ["51", "200000000", "1e300", "/".join(map(str, range(60)))])
    def test_too_many_groups(self, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """They are counted before anything of that size is made."""
        monkeypatch.setattr(np, "arange", lambda *_: pytest.fail("so many shares were made"))
        with pytest.raises(DataError, match="must have 2 to 50 groups") as refused:
            Grouping.fit(people(), [f"age:{cut}"])
        assert len(str(refused.value)) < 200

    def test_a_column_with_a_colon(self) -> None:
        frame = people().rename(columns={"sex": "sex:2"})
        assert build(frame, sensitive="sex:2").groups == ("f", "m")


class TestSmall:
    @staticmethod
    def frame() -> pd.DataFrame:
        frame = people(1000)
        frame["race"] = np.where(frame.index < 12, "d", frame["race"])
        return frame.assign(race=np.where(frame.index < 5, "e", frame["race"]))

    def test_kept_and_said(self) -> None:
        frame = people(1000)
        frame["race"] = np.where(frame.index < 36, "d", frame["race"])
        with pytest.warns(DataWarning, match=r"groups? (is|are) small.*`d` \(2\d rows\)"):
            problem = build(frame, sensitive="race", fairness="demographic_parity")
        assert problem.groups == ("a", "b", "c", "d")

    def test_refused(self) -> None:
        with pytest.raises(DataError, match=r'30 training rows.*`d`.*`e`.*small_groups="pool"'):
            build(self.frame(), sensitive="race", small_groups="refuse")

    def test_pooled_until_large_enough(self) -> None:
        frame = self.frame()
        with pytest.warns(DataWarning, match=r"pooled as `other`: `c` .*, `d` .*, `e`"):
            problem = build(frame, sensitive="race", small_groups="pool")
        assert problem.groups == ("a", "b", "other")
        codes = problem.grouping.codes(frame)
        oracle = frame["race"].map({"a": 0, "b": 1}).fillna(2)
        np.testing.assert_array_equal(codes, oracle)

    def test_each_column_alone_is_not_pooled(self) -> None:
        with pytest.warns(DataWarning, match="pooled as `other`"):
            problem = build(self.frame(), small_groups="pool")
        targets = problem.split("train").targets
        assert int(targets["sensitive_race"].max()) == 4
        logits = torch.ones(len(targets["label"]), 1)
        expected = recall_score(targets["label"], np.ones(len(logits)))
        assert expected == 1
        assert float(problem.metrics["tpr_gap_sex"](logits, targets)) == 0

    def test_nothing_left_to_compare(self) -> None:
        frame = people(200).assign(sex=lambda f: np.where(f.index < 5, "f", "m"))
        with pytest.raises(DataError, match="too small to compare even when pooled"):
            build(frame, sensitive="sex", small_groups="pool")


@pytest.mark.filterwarnings("ignore:a table of 90 rows", "ignore:groups are small")
@pytest.mark.parametrize("found", [2, 3, 6])
def test_few_positives_of_a_group_are_drawn_into_every_split(found: int) -> None:
    frame = people(90)
    women = np.flatnonzero(frame["sex"] == "f")
    frame["rich"] = (frame["sex"] == "m") & (frame["skill"] > 0)
    frame.loc[women[:found], "rich"] = True
    if found < 3:
        with pytest.raises(DataError, match=r"needs positive rows in every group and split.*`f`"):
            build(frame, sensitive="sex", fairness="tpr_gap")
        return
    for seed in range(5):
        problem = build(frame, sensitive="sex", fairness="tpr_gap", seed=seed)
        rows = [problem.split(name) for name in ("train", "val", "test")]
        rich = [split.targets["label"] * (split.targets["sensitive"] == 0) for split in rows]
        assert all(int(women.sum()) > 0 for women in rich)
        assert sum(int(women.sum()) for women in rich) == found
        assert sum(len(split) for split in rows) == 90
