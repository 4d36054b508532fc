"""`predict` for new rows, `evaluate` on labelled ones, and files of one's own for every split."""

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import equal_opportunity_difference
from sklearn.metrics import accuracy_score, log_loss

from paretocosmos import fit
from paretocosmos.cli import predict as predicting
from paretocosmos.problems import SPLITS
from paretocosmos.problems.tables import files, read_table
from paretocosmos.runs import load_run

Call = Callable[..., Any]
COLUMNS = ("--target", "income", "--positive", "high", "--sensitive", "sex")


def people(rows: int, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": draw.integers(18, 80, rows),
            "work": draw.choice(["State", "Private"], rows),
            "sex": draw.choice(["f", "m"], rows),
        }
    )
    noise = draw.normal(0, 9, rows) + 5 * (frame["sex"] == "m")
    return frame.assign(income=np.where(frame["age"] + noise > 45, "high", "low"))


def _train(place: Path, rows: int, **settings: Any) -> Path:
    people(rows).to_csv(place / "people.csv", index=False)
    given: dict[str, Any] = {"settings": settings | {"sensitive": "sex"}, "device": "cpu"}
    return fit(str(place / "people.csv"), epochs=2, out=place / "run", **given).folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _train(tmp_path_factory.mktemp("trained"), 600, target="income", positive="high")


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _train(tmp_path_factory.mktemp("ages"), 400, target="age", task="number")


def refused(ended: Any, says: str) -> None:
    assert ended.code == 2, ended
    assert ended.out == ""
    assert says in ended.err


class TestPredict:
    def test_rows_come_back_with_their_probability(self, cli: Call, trained: Path) -> None:
        new = people(50, seed=1).drop(columns=["income", "sex"])
        new.to_csv("new.csv", index=False, sep=";")
        ended = cli("predict", str(trained), "new.csv", "--ray", "0.3,0.7")
        assert ended.code == 0, ended.err
        found = pd.read_csv(io.StringIO(ended.out))
        expected = load_run(trained).predict(new, ray=[0.3, 0.7])
        np.testing.assert_allclose(found["probability"], expected, rtol=1e-12)
        answers = np.where(expected > 0.5, "high", "low")
        assert found["prediction"].tolist() == answers.tolist()
        pd.testing.assert_frame_equal(found[["age", "work"]], new)

    def test_at_a_point_that_is_chosen(self, cli: Call, trained: Path) -> None:
        people(50, seed=1).to_csv("new.csv", index=False)
        bounds = ("--max", "binary_cross_entropy=0.69", "--minimize", "tpr_gap")
        ended = cli("predict", str(trained), "new.csv", *bounds, "--out", "found.csv")
        assert (ended.code, ended.out) == (0, f"next  paretocosmos export {trained}\n")
        ray = json.loads(cli("choose", str(trained), *bounds, "--json").out)["ray"]
        expected = load_run(trained).predict(people(50, seed=1), ray=ray)
        found = pd.read_csv("found.csv")
        np.testing.assert_allclose(found["probability"], expected, rtol=1e-12)
        count = int((found["prediction"] == "high").sum())
        assert f"`found.csv`: 50 rows, {count} of them predicted `high`" in ended.err

    def test_decisions_at_another_threshold(self, cli: Call, trained: Path) -> None:
        people(50, seed=1).to_csv("new.csv", index=False)
        wishes = (("--ray", "0.3,0.7"), ("--max", "tpr_gap=1", "--minimize", "tpr_gap"))
        likely = load_run(trained).predict(people(50, seed=1), ray=[0.3, 0.7])
        middle = round(float(np.median(likely)), 3)
        for wish in wishes:
            ended = cli("predict", str(trained), "new.csv", *wish, "--threshold", str(middle))
            assert ended.code == 0, ended.err
            found = pd.read_csv(io.StringIO(ended.out))
            answers = np.where(found["probability"] > middle, "high", "low")
            assert found["prediction"].tolist() == answers.tolist()
        assert f"with the threshold {middle:g}" in ended.err
        wrong = cli("predict", str(trained), "new.csv", "--ray", "0.3,0.7", "--threshold", "80")
        refused(wrong, "above 0 and below 1, such as 0.3, found 80.0")

    def test_refusals(self, cli: Call, trained: Path) -> None:
        people(50).to_csv("new.csv", index=False)
        people(50).assign(prediction=1).to_csv("again.csv", index=False)
        people(50).drop(columns="age").to_csv("less.csv", index=False)
        run, ray = str(trained), ("--ray", "0.5,0.5")
        refused(cli("predict", run, "new.csv"), "found neither")
        refused(cli("predict", run, "new.csv", *ray, "--maximize", "accuracy"), "found both")
        refused(cli("predict", run, "new.csv", *ray, "--out", "less.csv"), "`less.csv` exists")
        refused(cli("predict", run, "again.csv", *ray), "already has a column `prediction`")
        refused(
            cli("predict", run, "less.csv", *ray), "lacks columns that it was fitted with: `age`"
        )
        refused(cli("predict", run, "absent.csv", *ray), "does not exist")
        fit("toy_convex", epochs=1, out="toy", device="cpu")
        refused(cli("predict", "toy", "new.csv", *ray), "not trained on a table")


class TestManyRows:
    """Tables that are read in chunks; chunks of 20 rows stand in for those of 65,536."""

    RAY = ("--ray", "0.5,0.5")

    @pytest.fixture(autouse=True)
    def small_chunks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "CHUNK_ROWS", 20)
        monkeypatch.setattr(predicting, "PART", 2)

    @pytest.mark.parametrize("name", ["new.csv", "new.tsv.gz", "new.parquet"])
    @pytest.mark.parametrize("out", ["out.csv.xz", "out.tsv", "out.pq"])
    def test_chunks_are_the_whole_table(
        self, cli: Call, trained: Path, name: str, out: str
    ) -> None:
        if "q" in name + out:
            pytest.importorskip("pyarrow")
        new = people(90, seed=1).assign(id=np.arange(90) + 2**60)
        write = new.to_parquet if name == "new.parquet" else partial(new.to_csv, sep="\t")
        write(name, index=False)
        ended = cli("predict", str(trained), name, *self.RAY, "--out", out)
        assert ended.code == 0, ended.err
        found = read_table(Path(out))
        expected = load_run(trained).predict(new, ray=[0.5, 0.5])
        np.testing.assert_allclose(found["probability"], expected, rtol=1e-6)
        pd.testing.assert_frame_equal(found[[*new.columns]], new)
        count = int((found["prediction"] == "high").sum())
        assert f"90 rows, {count} of them predicted `high`" in ended.err

    def test_types_of_parquet_are_kept(self, cli: Call, trained: Path) -> None:
        pyarrow, parquet = map(pytest.importorskip, ("pyarrow", "pyarrow.parquet"))
        # floats would round these numbers, and the first chunks say nothing about the notes
        columns = {"id": [None, *range(2**60, 2**60 + 59)], "note": [None] * 40 + ["x"] * 20}
        new = pyarrow.table(people(60).to_dict("list") | columns)
        parquet.write_table(new, "new.parquet")
        assert cli("predict", str(trained), "new.parquet", *self.RAY, "--out", "o.pq").code == 0
        assert parquet.read_table("o.pq").select(new.column_names).equals(new)

    def test_codes_stay_text_in_every_chunk(self, cli: Call) -> None:
        frame = people(400).assign(zone=["007", "A12"] * 200)
        frame.to_csv("people.csv", index=False)
        assert cli("train", "people.csv", *COLUMNS, "--epochs", "1", "--out", "run").code == 0
        # a chunk without a letter
        new = frame.assign(zone=["007"] * 20 + ["A12"] * 380)
        new.to_csv("new.csv", index=False)
        ended = cli("predict", "run", "new.csv", *self.RAY)
        assert "not in the training rows" not in ended.err
        found = pd.read_csv(io.StringIO(ended.out), dtype={"zone": str})
        expected = load_run("run").predict(new, ray=[0.5, 0.5])
        np.testing.assert_allclose(found["probability"], expected, rtol=1e-6)
        assert found["zone"].tolist() == new["zone"].tolist()

    def test_notes_count_the_rows_of_the_file(self, cli: Call, trained: Path) -> None:
        people(90).astype({"age": str}).replace({"age": {"20": "x"}}).to_csv("new.csv")
        row = people(90)["age"].tolist().index(20) + 1
        assert f"such as `x` in row {row}" in cli("predict", str(trained), "new.csv", *self.RAY).err

    def test_a_folder_of_parts_is_continued(self, cli: Call, trained: Path) -> None:
        new = people(90, seed=1)
        new.to_csv("new.csv", index=False)
        call = ("predict", str(trained), "new.csv", *self.RAY, "--out", "parts")
        assert cli(*call).code == 0
        parts = sorted(Path("parts").glob("part-*"))
        assert [part.name for part in parts] == [f"part-0000{n}.csv" for n in range(3)]
        whole = pd.concat(map(pd.read_csv, parts), ignore_index=True)
        pd.testing.assert_frame_equal(whole[[*new.columns]], new)
        # a part that is there is left alone, another is made again
        content = parts[1].read_text()
        parts[0].write_text("kept")
        parts[1].unlink()
        ended = cli(*call)
        assert "`parts`: 40 rows predicted, in 3 parts" in ended.err
        assert (parts[0].read_text(), parts[1].read_text()) == ("kept", content)
        refused(cli(*call[:-4], "--ray", "0.9,0.1", "--out", "parts"), "another trade-off")

    def test_no_rows(self, cli: Call, trained: Path) -> None:
        people(0).to_csv("new.csv", index=False)
        ended = cli("predict", str(trained), "new.csv", *self.RAY)
        assert (ended.code, ended.out) == (0, "age,work,sex,income,probability,prediction\n")

    def test_refusals(self, cli: Call, trained: Path) -> None:
        people(60).assign(note=[""] * 40 + ["x"] * 20).to_csv("new.csv", index=False)
        call = ("predict", str(trained), "new.csv", *self.RAY, "--out")
        refused(cli(*call, "out.txt"), "file or a folder, found `")
        pytest.importorskip("pyarrow")
        refused(cli(*call, "out.parquet"), "changes its type between two rows")
        assert not Path("out.parquet").exists()


class TestLabelledRows:
    def test_every_number_is_that_of_others(self, cli: Call, trained: Path) -> None:
        new = people(200, seed=1)
        new.to_csv("new.csv", index=False)
        ended = cli("evaluate", str(trained), "--data", "new.csv", "--ray", "0.4,0.6", "--json")
        assert ended.code == 0, ended.err
        assert "evaluating all of its 200 rows" in ended.err
        front = json.loads(ended.out)
        probability = load_run(trained).predict(new, ray=[0.4, 0.6])
        truth, said = new["income"] == "high", probability > 0.5
        assert front["values"][0][0] == pytest.approx(log_loss(truth, probability), abs=1e-5)
        gap = equal_opportunity_difference(truth, said, sensitive_features=new["sex"])
        assert front["values"][0][1] == pytest.approx(gap, abs=1e-6)
        assert front["metrics"]["accuracy"][0] == pytest.approx(accuracy_score(truth, said))

    def test_the_data_of_the_training_need_not_be_there(self, cli: Call, tmp_path: Path) -> None:
        people(300).to_csv("people.csv", index=False)
        assert cli("train", "people.csv", *COLUMNS, "--epochs", "1", "--out", "run").code == 0
        Path("people.csv").unlink()
        people(100, seed=2).to_csv("new.csv", index=False)
        ended = cli("evaluate", "run", "--data", "new.csv", "--rays", "2")
        assert ended.code == 0, ended.err
        assert "on new.csv" in ended.out

    def test_its_own_data_is_split_as_before(self, cli: Call, trained: Path) -> None:
        Path("people.csv").write_bytes((trained.parent / "people.csv").read_bytes())
        ended = cli("evaluate", str(trained), "--data", "people.csv", "--json")
        assert (ended.code, ended.err) == (0, "")
        assert json.loads(ended.out) == json.loads((trained / "front.json").read_text())

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"income": "middle"}, "must be one of low, high in every row, found `middle`"),
            ({"income": [None, "high"] * 50}, "found 50 missing"),
            ({"sex": ["x", "f"] * 50}, "found 50 that do not, such as row 1 with `x`"),
        ],
    )
    def test_rows_it_cannot_judge(
        self, cli: Call, trained: Path, change: dict[str, Any], says: str
    ) -> None:
        people(100, seed=1).assign(**change).to_csv("new.csv", index=False)
        refused(cli("evaluate", str(trained), "--data", "new.csv"), says)

    def test_without_the_column(self, cli: Call, trained: Path) -> None:
        people(100).drop(columns="sex").to_csv("new.csv", index=False)
        refused(cli("evaluate", str(trained), "--data", "new.csv"), "sensitive column `sex`")


class TestOwnFiles:
    def test_every_split_from_its_own_file(self, cli: Call) -> None:
        for name, rows, seed in (("a.csv", 300, 0), ("b.csv", 120, 1), ("c.csv", 130, 2)):
            people(rows, seed).to_csv(name, index=False)
        ended = cli(
            *("train", "a.csv", *COLUMNS, "--set", "val=b.csv", "--set", "test=c.csv"),
            *("--epochs", "1", "--out", "run"),
        )
        assert ended.code == 0, ended.err
        run = load_run("run")
        problem = run.problem()
        assert [len(problem.split(name)) for name in SPLITS] == [300, 120, 130]
        labels = problem.split("test").targets["label"].tolist()
        assert labels == (people(130, 2)["income"] == "high").tolist()
        assert run.record["problem"]["settings"]["val"] == str(Path("b.csv").absolute())

    @pytest.mark.parametrize(("given", "sizes"), [("val", [240, 50, 60]), ("test", [262, 38, 50])])
    def test_one_of_them(self, cli: Call, given: str, sizes: list[int]) -> None:
        people(300).to_csv("a.csv", index=False)
        people(50, 1).to_csv("b.csv", index=False)
        ended = cli(
            "train", "a.csv", *COLUMNS, "--set", f"{given}=b.csv", "--epochs", "1", "--out", "run"
        )
        assert ended.code == 0, ended.err
        assert [len(load_run("run").problem().split(name)) for name in SPLITS] == sizes

    def test_other_columns(self, cli: Call) -> None:
        people(300).to_csv("a.csv", index=False)
        people(50).drop(columns="work").to_csv("b.csv", index=False)
        refused(cli("train", "a.csv", *COLUMNS, "--set", "val=b.csv"), "none called `work`")


class TestOtherTables:
    def test_a_number(self, cli: Call, ages: Path) -> None:
        new = people(100, seed=1)
        new.to_csv("new.csv", index=False)
        found = pd.read_csv(io.StringIO(cli("predict", str(ages), "new.csv", "--ray", "1,0").out))
        assert found.columns.tolist() == [*new.columns.tolist(), "prediction"]
        ended = cli("evaluate", str(ages), "--data", "new.csv", "--ray", "1,0", "--json")
        mae = json.loads(ended.out)["metrics"]["mae"][0]
        assert mae == pytest.approx((found["prediction"] - new["age"]).abs().mean(), rel=1e-5)
        assert load_run(ages).record["about"]["answer"]["task"] == "number"

    def test_it_is_not_served(self, cli: Call, ages: Path) -> None:
        refused(cli("serve", str(ages)), "a server supports only two classes")

    def test_several_classes_without_groups(self, cli: Call) -> None:
        frame = people(400)
        frame["income"] = np.where(frame["age"] > 65, "pension", frame["income"])
        frame.to_csv("people.csv", index=False)
        ended = cli(
            *("train", "people.csv", "--target", "income", "--task", "classes"),
            *("--set", "class_weight=balanced", "--epochs", "2", "--out", "run"),
        )
        assert ended.code == 0, ended.err
        assert "`income`: high, low, pension" in ended.out
        assert "the objectives are `loss_high` against `loss_low` against" in ended.err
        ended = cli("predict", "run", "people.csv", "--ray", "0.2,0.2,0.6")
        found = pd.read_csv(io.StringIO(ended.out))
        chances = found[[f"probability_{name}" for name in ("high", "low", "pension")]]
        np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)
        expected = chances.idxmax(axis=1).astype(str)
        assert ("probability_" + found["prediction"] == expected).all()
