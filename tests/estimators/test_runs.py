"""Estimators as runs: exported, explored, saved, served; the oracle is what they predict."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.estimators.conftest import People, draw_people
from typer.testing import CliRunner

from paretocosmos import evaluate, load_run
from paretocosmos.cli import app
from paretocosmos.errors import ConfigurationError, DataWarning, RunError
from paretocosmos.estimators import ParetoClassifier, ParetoRegressor
from paretocosmos.explorer import build_page_model, explore
from paretocosmos.export import Exported, describe_fairness, export, plan_export
from paretocosmos.runs import predicts_at, problem_from_rows, to_run
from paretocosmos.serving import Settings
from paretocosmos.serving.service import Service

few: dict[str, Any] = {"epochs": 2, "random_state": 0}
THRESHOLD = 0.37


@pytest.fixture(scope="module")
def chosen(fair: ParetoClassifier) -> ParetoClassifier:
    return fair.choose(weights=[0.8, 0.2], threshold=THRESHOLD)


@pytest.fixture(scope="module")
def some() -> People:
    """Enough to fit something on."""
    return draw_people(150)


@pytest.fixture(scope="module")
def strangers() -> People:
    """People it was not fitted on, and values nobody had."""
    new = draw_people(400, seed=7)
    new.x.loc[3, "work"] = "abroad"
    return new


@pytest.fixture(scope="module")
def saved(chosen: ParetoClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chosen.save(tmp_path_factory.mktemp("estimators") / "deep" / "saved").folder


@pytest.fixture(scope="module")
def file(chosen: ParetoClassifier, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return export(chosen, out=tmp_path_factory.mktemp("estimators") / "people.onnx")


@pytest.mark.system
@pytest.mark.filterwarnings("ignore:the column")
def test_a_file_gives_what_the_estimator_predicts(
    chosen: ParetoClassifier, strangers: People, file: Exported
) -> None:
    session = onnxruntime.InferenceSession(str(file.path))
    about = json.loads(session.get_modelmeta().custom_metadata_map["paretocosmos"])
    preference = np.array([about["predicts_at"]], dtype=np.float32)
    given = {"x": chosen.encode(strangers.x), "preference": preference}
    probability, decision = session.run(None, given)
    np.testing.assert_allclose(probability, chosen.predict_proba(strangers.x)[:, 1], atol=1e-5)
    np.testing.assert_array_equal(np.array(about["classes"])[decision], chosen.predict(strangers.x))
    between = (probability > THRESHOLD) & (probability < 0.5)
    assert between.any()
    assert decision[between].all()
    assert (about["threshold"], about["target"], about["positive"]) == (THRESHOLD, "rich", "yes")
    assert [one["name"] for one in about["columns"]] == ["age", "skill", "work", "size"]


def test_its_card_speaks_of_the_choice(chosen: ParetoClassifier, file: Exported) -> None:
    card = file.card.read_text()
    ray = chosen.choice_.ray
    assert f"The estimator predicts at {ray[0]:.4g}, {ray[1]:.4g}." in card
    assert "It gives the probability that rich is yes." in card
    assert "`decision`, int64 [N]: 0 is no, 1 is yes." in card
    assert "positive above the probability 0.37" in card
    assert "The groups of sex are compared: f, m." in card
    assert "estimates from the other columns how likely somebody belongs to each group" in card
    assert "On the val split" in card
    assert "knots" not in card


@pytest.mark.parametrize("given", ["a column", "its values", "an array"])
def test_its_card_says_which_input_is_the_group(given: str, some: People) -> None:
    sexes = (some.sex == "m").astype(float)
    x = pd.DataFrame({"age": some.x["age"].fillna(40.0), "sex": sexes})
    rows: Any = x.to_numpy() if given == "an array" else x
    sex: Any = x["sex"] if given == "a column" else x["sex"].to_numpy()
    fitted = ParetoClassifier(epochs=1, random_state=0).fit(rows, some.rich, sensitive=sex)
    said = " ".join(describe_fairness(to_run(fitted)))  # an export takes long and writes the same
    name = "x1" if given == "an array" else "sex"
    assert f"The groups of {name} are compared: 0, 1. Its input {name} tells" in said
    assert "estimates from its inputs" in said
    assert "not an input" not in said
    apart = ParetoClassifier(epochs=1, random_state=0).fit(x[["age"]], some.rich, sensitive=sex)
    said = " ".join(describe_fairness(to_run(apart)))
    assert "That column is not an input" in said
    assert "estimates from the other columns" in said


def test_a_file_goes_here_and_replaces_nothing(
    chosen: ParetoClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_text("mine")
    with pytest.raises(RunError, match=r"`model\.onnx` exists"):
        export(chosen)


@pytest.mark.filterwarnings("ignore:the column")
def test_a_saved_one_predicts_the_same(
    chosen: ParetoClassifier, strangers: People, saved: Path
) -> None:
    run = load_run(saved)
    found = run.predict(strangers.x, ray=chosen.preference)
    np.testing.assert_array_equal(found, chosen.predict_proba(strangers.x)[:, 1])
    assert predicts_at(run)[:2] == (chosen.choice_.ray, THRESHOLD)
    assert run.front == run.front_val == chosen.front_
    assert sorted(path.name for path in saved.iterdir()) == [
        "front.json",
        "front_val.json",
        "model.safetensors",
        "run.json",
        "table.json",
    ]
    with pytest.raises(RunError, match="exists; choose another folder"):
        chosen.save(saved)
    with pytest.raises(RunError, match="neither a folder nor a pickle"):
        run.choose(knee=True)


@pytest.mark.filterwarnings("ignore:the column")
def test_a_saved_one_is_evaluated_on_rows_with_answers(
    chosen: ParetoClassifier, strangers: People, saved: Path
) -> None:
    run = load_run(saved)
    frame = strangers.x.assign(rich=strangers.rich, sex=strangers.sex)
    front = evaluate(run.model, problem_from_rows(run, frame), rays=[list(chosen.choice_.ray)])
    said = chosen.predict_proba(strangers.x)[:, 1] > 0.5
    assert front.metrics["accuracy"][0] == accuracy_score(strangers.rich == "yes", said)


def test_the_command_line_predicts_at_its_choice(
    chosen: ParetoClassifier, people: People, saved: Path, tmp_path: Path
) -> None:
    people.x.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "answers.csv"
    asked = ["predict", str(saved), str(tmp_path / "rows.csv"), "--out", str(out)]
    answer = CliRunner().invoke(app, asked)
    assert answer.exit_code == 0, answer.output
    found = pd.read_csv(out, keep_default_na=False)["prediction"]
    assert found.tolist() == chosen.predict(people.x).tolist()


def test_a_server_decides_at_its_threshold(chosen: ParetoClassifier, saved: Path) -> None:
    service = Service(Settings(folder=saved))
    body = {"inputs": service.rows.example, "preference": list(chosen.choice_.ray)}
    assert service.parse_question(json.dumps(body).encode())[-1] == THRESHOLD
    assert service.parse_question(json.dumps(body | {"threshold": 0.6}).encode())[-1] == 0.6


def test_a_page_counts_the_rows_held_out(chosen: ParetoClassifier, tmp_path: Path) -> None:
    view = build_page_model([to_run(chosen)], samples=True)
    (look,) = view.runs
    assert view.groups == ("f", "m")
    assert [front.split for front in look.fronts] == ["val"]
    ((counted,),) = (look.answers.confusion.values(),)
    rows = chosen._problem.split("val")
    ray = torch.tensor(chosen.front_.rays[7].tolist()).double()
    with torch.inference_mode():
        logits = chosen.model_(torch.as_tensor(rows.inputs).double(), ray)[:, 0]
    said = logits.sigmoid() > chosen.threshold_
    np.testing.assert_array_equal(counted[0][7, 0], confusion_matrix(rows.targets["label"], said))
    assert view.samples.columns == ("sex", "age", "skill", "work", "size")
    page = explore(chosen, out=tmp_path / "page.html", show=False).path
    assert b"predicts_at" in page.read_bytes()
    with pytest.warns(DataWarning, match="no counted answers"):
        explore(pickle.loads(pickle.dumps(chosen)), out=tmp_path / "bare.html", show=False)


def test_numbers_and_several_classes(people: People, some: People, sided: ParetoRegressor) -> None:
    """What is exported, before it is written: PyTorch's side of the file."""
    even = torch.full((1, 2), 0.5)
    found = plan_export(to_run(sided), 0.5)
    assert found.outputs == ("prediction",)
    (number,) = found.network(torch.from_numpy(sided.encode(people.x)), even)
    np.testing.assert_allclose(number, sided.predict(people.x), rtol=1e-4)
    several = ParetoClassifier(**few).fit(some.x, some.kind)
    network = plan_export(to_run(several), 0.5).network
    x, third = torch.from_numpy(several.encode(people.x)), torch.full((1, 3), 1 / 3)
    chance, decision = network(x, third)
    np.testing.assert_allclose(chance, several.predict_proba(people.x), atol=1e-5)
    np.testing.assert_array_equal(several.classes_[decision], several.predict(people.x))
    samples = build_page_model([to_run(several)], samples=True).samples
    assert samples.columns == ("age", "skill", "work", "size")


def test_a_base_is_a_column_of_its_own(some: People) -> None:
    encode = make_column_transformer((OneHotEncoder(), ["work", "size"]))
    base = make_pipeline(encode, LogisticRegression())
    fitted = ParetoClassifier(base=base, **few).fit(some.x, some.rich)
    with pytest.warns(DataWarning, match="`base` is not part of it.*`score of base`.*encode"):
        run = to_run(fitted)
    x = fitted.encode(some.x)
    at = run.table.columns.index("score of base")
    own = fitted._scores.model.decision_function(some.x)
    np.testing.assert_allclose(x[:, at], own, atol=1e-4)
    chance, _ = plan_export(run, 0.5).network(torch.from_numpy(x), torch.full((1, 2), 0.5))
    np.testing.assert_allclose(chance, fitted.predict_proba(some.x)[:, 1], atol=1e-5)


def test_of_a_pipeline_the_last_step_is_taken(fair: ParetoClassifier) -> None:
    whole = make_pipeline(StandardScaler(), fair)
    with pytest.warns(DataWarning, match="the steps before `paretoclassifier` are not included"):
        run = to_run(whole)
    assert run.model is fair.model_
    with pytest.raises(ConfigurationError, match="found LogisticRegression"):
        to_run(make_pipeline(StandardScaler(), LogisticRegression()))


def test_several_targets_are_no_run(some: People) -> None:
    both = np.stack([some.income, some.income**2], axis=1)
    fitted = ParetoRegressor(**few).fit(some.x, both)
    with pytest.raises(ConfigurationError, match="one target, found 2"):
        fitted.save("nowhere")


def test_progress_and_the_epoch_that_was_kept(some: People) -> None:
    seen: list[Any] = []
    fitted = ParetoClassifier(epochs=3, random_state=0, progress=seen.append)
    fitted.fit(some.x, some.rich)
    assert [(one.epoch, one.epochs) for one in seen] == [(1, 3), (2, 3), (3, 3)]
    volumes = {e["epoch"]: e["hypervolume_val"] for e in fitted._record["evaluations"]}
    assert fitted.best_epoch_ == max(volumes, key=lambda epoch: volumes[epoch])


def test_nullable_targets_keep_their_type_and_name(some: People) -> None:
    label = pd.Series(some.rich == "yes", name="rich")
    nullables: list[tuple[Any, Any]] = [(np.int64, "Int64"), (np.bool_, "boolean")]
    for dtype, nullable in nullables:
        target = label.astype(nullable)
        fitted = ParetoClassifier(**few).fit(some.x, target)
        assert fitted.classes_.dtype == dtype
        assert to_run(fitted).problem().about["target"] == "rich"
        both = ParetoClassifier(**few).fit(some.x, target.to_frame().assign(other=target))
        assert [classes.dtype for classes in both.classes_] == [dtype, dtype]
        assert both.front_.names == ("rich", "other")
