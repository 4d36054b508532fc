"""What a page is told of real runs, against `evaluate`, the networks and the data themselves."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from PIL import Image
from sklearn.metrics import zero_one_loss

from paretocosmos import Problem, evaluate, fit, load_run
from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation import compute_intervals
from paretocosmos.explorer import PageModel, build_page_model, build_words, write_report
from paretocosmos.explorer.predictions import build_outcomes
from paretocosmos.objectives import AccuracyGap, FprGap, TprGap
from paretocosmos.problems.tables import TabularProblem, split_rows
from paretocosmos.runs import Run

pytestmark = pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """People of two groups, with holes, large numbers and small ones."""
    draw = np.random.default_rng(0)
    count = 1500
    age = draw.integers(18, 80, count).astype(float)
    age[draw.random(count) < 0.05] = np.nan
    people = pd.DataFrame(
        {
            "age": age,
            "weight": draw.integers(10_000, 900_000, count),
            "rate": draw.integers(0, 1000, count) / 1000,
            "work": draw.choice(["<b>State</b>", "Private", "None"], count),
            "sex": draw.choice(["f", "m"], count),
        }
    )
    score = np.nan_to_num(age, nan=40) / 40 + people["rate"] + (people["sex"] == "m")
    return people.assign(rich=score + draw.normal(size=count) > 2.3)


@pytest.fixture(scope="module")
def problem(frame: pd.DataFrame) -> TabularProblem:
    return TabularProblem.from_frame(frame, target="rich", sensitive="sex")


@pytest.fixture(scope="module")
def run(problem: TabularProblem, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("run") / "run"
    return fit(problem, preset="paper", epochs=8, settings={"hidden": "8"}, out=out, device="cpu")


@pytest.fixture(scope="module")
def view(run: Run) -> PageModel:
    return build_page_model([run], samples=True)


def test_counted_answers_are_those_of_evaluate(view: PageModel, run: Run, problem: Problem) -> None:
    (answers,) = (run_view.answers for run_view in view.runs)
    assert answers.ray_indices.tolist() == list(range(25))
    assert view.groups == ("f", "m")
    for split in ("val", "test"):
        front = evaluate(run.model, problem, split=split, rays=run.front.rays.tolist())
        (counts,) = answers.confusion[split]
        assert counts.shape == (25, 3, 2, 2)
        everybody = counts[:, 0]
        assert (everybody.sum(axis=(1, 2)) == len(problem.split(split))).all()
        np.testing.assert_array_equal(everybody, counts[:, 1:].sum(axis=1))
        right = everybody[:, 0, 0] + everybody[:, 1, 1]
        accuracy = right / everybody.sum(axis=(1, 2))
        np.testing.assert_allclose(accuracy, front.metrics["accuracy"], atol=1e-6)
        positive = everybody[:, :, 1].sum(axis=1) / everybody.sum(axis=(1, 2))
        np.testing.assert_allclose(positive, front.metrics["positive_rate"], atol=1e-6)
        rates = counts[:, 1:, 1, 1] / counts[:, 1:, 1].sum(axis=2)
        gap = front.values[:, 1]  # the objective is the gap of these
        np.testing.assert_allclose(abs(rates[:, 0] - rates[:, 1]), gap, atol=1e-6)


def compute_logits(run: Run, inputs: Any, place: int) -> torch.Tensor:
    with torch.inference_mode():
        outputs = run.model(inputs, torch.tensor(run.front.rays[place]).float())
    return outputs.flatten()


@pytest.mark.parametrize("split", ["val", "test"])
def test_shares_are_fairlearns_rates_and_gaps_have_the_intervals_of_objectives(
    view: PageModel, run: Run, problem: TabularProblem, split: Any
) -> None:
    answers, batch = view.runs[0].answers, problem.split(split)
    rates = {
        "demographic_parity": selection_rate,
        "tpr_gap": true_positive_rate,
        "fpr_gap": false_positive_rate,
        "accuracy_gap": zero_one_loss,
    }
    every = {"tpr_gap": TprGap(), "fpr_gap": FprGap(), "accuracy_gap": AccuracyGap()}
    scores = {name: one.score for name, one in every.items()}
    assert view.words.outcomes[0].gap == "tpr_gap"  # what is traded comes first
    for place in (0, 12, 24):
        logits = compute_logits(run, batch.inputs, place)
        first = 0
        for outcome in view.words.outcomes:
            frame = MetricFrame(
                metrics=rates[outcome.gap],
                y_true=batch.targets["label"].numpy(),
                y_pred=(logits > 0).int().numpy(),
                sensitive_features=batch.targets["sensitive"].numpy(),
            )
            wanted = [frame.overall] * (len(outcome.cells) == 3) + list(frame.by_group)
            shares = answers.shares[split][first : first + len(outcome.cells), place]
            np.testing.assert_allclose(shares[:, 0], wanted)
            assert (shares[:, 1] <= shares[:, 0]).all()
            assert (shares[:, 0] <= shares[:, 2]).all()
            first += len(outcome.cells)
        ends = compute_intervals(scores, logits, batch.targets, chosen=split == "val")
        for name, pair in ends.items():
            assert answers.gaps[split][name][place] == pytest.approx(pair)


def test_samples_are_rows_of_the_test_data_as_they_were(
    view: PageModel, frame: pd.DataFrame
) -> None:
    samples = view.samples
    assert len(samples.rows) == len(set(samples.rows)) == 12
    assert samples.columns == ("sex", "age", "weight", "rate", "work")
    rows = frame.iloc[split_rows({"train": len(frame)}, 1)["test"]].iloc[list(samples.rows)]
    for (_, row), cells, truth in zip(
        rows.iterrows(), samples.texts, samples.truth[0], strict=True
    ):
        age = "(missing)" if np.isnan(row["age"]) else f"{row['age']:g}"
        wanted = (row["sex"], age, str(row["weight"]), f"{row['rate']:g}", row["work"])
        assert cells == wanted
        assert truth == row["rich"]
    assert {texts[0] for texts in samples.texts[:2]} == {"f", "m"}  # in turn


def test_chances_are_what_predict_says(view: PageModel, run: Run, frame: pd.DataFrame) -> None:
    samples, answers = view.samples, view.runs[0].answers
    rows = frame.iloc[split_rows({"train": len(frame)}, 1)["test"]].iloc[list(samples.rows)]
    for at in (0, 7, 24):
        wanted = run.predict(rows, ray=run.front.rays[at].tolist())
        np.testing.assert_allclose(answers.probabilities[0][:, at], wanted, atol=1e-6)
        np.testing.assert_array_equal(answers.classes[0][:, at], wanted > 0.5)


def test_samples_can_be_left_out(run: Run, tmp_path: Path) -> None:
    view = build_page_model([run], network=False)  # which knows the categories
    assert view.samples is None
    answers = view.runs[0].answers
    assert answers.probabilities == answers.classes == ()
    assert answers.confusion["test"][0].sum() > 0
    write_report(tmp_path / "page.html", view)
    assert "Private" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_run_read_back_shows_the_same_with_its_problem(run: Run, view: PageModel) -> None:
    bare = build_page_model([load_run(run.folder)])
    assert bare.samples is None
    assert bare.runs[0].answers is None
    assert "no counted answers" in bare.samples_note
    assert "built in Python" in bare.reason
    assert "built in Python" not in bare.samples_note  # which others read
    assert [front.split for front in bare.runs[0].fronts] == ["val", "test"]
    assert bare.runs[0].fronts[1] == run.front


def test_images_and_their_classes(tmp_path: Path) -> None:
    run = fit(
        "multi_digits",
        preset="paper",
        epochs=1,
        settings={"copies": "1", "reference": "9,9"},
        out=tmp_path / "run",
    )
    view = build_page_model([load_run(run.folder)], samples=True)
    samples, answers = view.samples, view.runs[0].answers
    batch = run.problem().split("test")
    for row, file in zip(samples.rows, samples.images, strict=True):
        with Image.open(io.BytesIO(file)) as image:
            np.testing.assert_array_equal(np.asarray(image), batch.inputs[row, 0].numpy())
    inputs = run.problem().prepare(batch.inputs[list(samples.rows)], torch.float32)
    with torch.inference_mode():
        outputs: Any = run.model(inputs, torch.tensor(run.front.rays[3]).float())
    for at, head in enumerate(("top_left", "bottom_right")):
        assert view.heads[at].name == head
        chance, answer = outputs[head].softmax(dim=-1).max(dim=-1)
        np.testing.assert_array_equal(answers.classes[at][:, 3], answer)
        np.testing.assert_allclose(answers.probabilities[at][:, 3], chance, atol=1e-5)
        np.testing.assert_array_equal(samples.truth[at], batch.targets[head][list(samples.rows)])
        right = np.trace(answers.confusion["test"][at][:, 0], axis1=1, axis2=2)
        wanted = run.front.metrics[f"accuracy_{head}"]
        np.testing.assert_allclose(right / len(batch), wanted, atol=1e-6)


def test_answers_that_are_no_classes_are_said_so(tmp_path: Path) -> None:
    view = build_page_model(
        [fit("toy_convex", preset="paper", epochs=2, out=tmp_path / "run", engine="eager")]
    )
    assert view.samples is None
    assert "does not predict classes" in view.reason
    write_report(tmp_path / "page.html", view)


def test_networks_of_their_own(problem: TabularProblem, run: Run, tmp_path: Path) -> None:
    kinds: dict[str, Any] = {"epochs": 2, "settings": {"hidden": "8"}, "device": "cpu"}
    several = fit(problem, preset="paper", method="pareto_mtl", out=tmp_path / "several", **kinds)
    view = build_page_model([run, several], samples=True)
    found = view.runs[1].answers
    assert found.probabilities[0].shape == (12, len(several.front))


def test_runs_of_different_problems_are_refused(run: Run, tmp_path: Path) -> None:
    other = fit("toy_convex", preset="paper", epochs=2, out=tmp_path / "other", engine="eager")
    with pytest.raises(ConfigurationError, match=r"`table`.*`toy_convex`"):
        build_page_model([run, other])


def test_answers_are_counted_at_a_threshold(run: Run, problem: TabularProblem) -> None:
    """By hand: a yes is a probability above 0.7."""
    view = build_page_model([run], threshold=0.7)
    assert view.words.threshold == 0.7
    batch = problem.split("test")
    group = batch.targets["sensitive"] == 0
    answers = view.runs[0].answers
    for place in (0, len(run.front) - 1):
        with torch.inference_mode():
            ray = torch.tensor(run.front.rays[place]).float()
            yes = torch.sigmoid(run.model(batch.inputs, ray)).flatten() > 0.7
        counted = answers.confusion["test"][0][place]
        assert counted[0, :, 1].sum() == int(yes.sum())
        assert counted[1, :, 1].sum() == int((yes & group).sum())
        right = (yes == (batch.targets["label"].flatten() > 0.5)).double().mean()
        front = view.runs[0].fronts[1]
        assert front.metrics["accuracy"][place] == pytest.approx(float(right))
    with pytest.raises(ConfigurationError, match="`threshold` must be a probability"):
        build_page_model([run], threshold=1.0)
    assert build_page_model([run]).words.threshold == 0.5


@pytest.mark.parametrize(
    ("values", "column", "titles"),
    [
        (["no", "yes"], "black", ("black: no", "black: yes")),
        ([20, 50], "age:40/", ("age: < 40", "age: >= 40")),
        (["f", "m"], "sex", ("f", "m")),
    ],
)
def test_a_group_that_says_little_is_named_with_its_column(
    values: list[Any], column: str, titles: tuple[str, ...]
) -> None:
    rows = pd.DataFrame(
        {"x": [k % 7 for k in range(200)], "denied": ["no", "no", "yes", "yes"] * 50}
    )
    rows[column.partition(":")[0]] = values * 100
    problem = TabularProblem.from_frame(rows, target="denied", sensitive=column)
    words = build_words(problem, list(problem.metrics))
    assert words.groups == titles
    labels = [measure.label for measure in words.measures.values()]
    assert f"predicted “yes” in “{titles[0]}”" in labels


def test_words_are_the_problems_or_those_of_its_columns(problem: TabularProblem) -> None:
    words = build_words(problem, [*problem.names, *problem.metrics], "loans")
    assert words.title == "Is rich “True”?"
    assert words.groups == ("f", "m")
    assert words.instead == {"binary_cross_entropy": "misclassification"}
    assert words.measures["selection_rate_f"].label == "predicted “True” in “f”"
    assert build_words(None, ["own_thing"]).measures["own_thing"].label == "own thing"


@pytest.mark.parametrize(
    ("target", "named"), [("rich", "rich "), ("a very long name of a column", "")]
)
def test_long_names_of_columns_are_left_out_of_sentences(target: str, named: str) -> None:
    rows = pd.DataFrame(
        {
            "x": [k % 7 for k in range(200)],
            "sex": ["f", "m"] * 100,
            target: ["no", "no", "yes"] * 66 + ["no"] * 2,
        }
    )
    problem = TabularProblem.from_frame(rows, target=target, positive="yes", sensitive="sex")
    outcomes = {outcome.gap: outcome for outcome in build_outcomes(problem, (), ("f", "m"))}
    sentence = outcomes["tpr_gap"].cells[0].sentence
    assert sentence == f"of 100 in “f” with {named}“yes”, # are found"
