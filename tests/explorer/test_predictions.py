"""What a page counts of people, against fairlearn and the intervals of single rays."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fairlearn.metrics import (
    MetricFrame,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from sklearn.metrics import zero_one_loss

from paretocosmos.evaluation import compute_intervals, compute_share_interval
from paretocosmos.explorer import build_words
from paretocosmos.explorer.predictions import (
    build_outcomes,
    compute_gap_intervals,
    compute_outcome_gaps,
    compute_shares,
    count_answers,
    find_readers,
)
from paretocosmos.objectives import AccuracyGap, FprGap, TprGap
from paretocosmos.problems.tables import TabularProblem

ROWS = 400


@pytest.fixture(scope="module")
def problem() -> TabularProblem:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": draw.normal(size=ROWS),
            "sex": draw.choice(["f", "m"], ROWS),
            "paid": draw.choice(["no", "yes"], ROWS),
        }
    )
    return TabularProblem.from_frame(frame, target="paid", sensitive="sex", positive="yes")


def test_shares_are_fairlearns_rates(problem: TabularProblem) -> None:
    batch = problem.split("train")
    size = len(batch.targets["label"])
    outputs = torch.randn(3, size, generator=torch.Generator().manual_seed(1))
    readers = find_readers(problem, outputs, batch)
    words = build_words(problem, [*problem.names, *problem.metrics], "loans")
    outcomes = build_outcomes(problem, readers, words.groups)
    found = compute_shares(outcomes, count_answers(readers, outputs, batch.targets))
    at, truth = 0, batch.targets["label"].numpy()
    rates = {
        "demographic_parity": selection_rate,
        "tpr_gap": true_positive_rate,
        "fpr_gap": false_positive_rate,
        "accuracy_gap": zero_one_loss,
    }
    assert outcomes[0].gap == "tpr_gap"  # what is traded comes first
    for outcome in outcomes:
        for ray in range(3):
            frame = MetricFrame(
                metrics=rates[outcome.gap],
                y_true=truth,
                y_pred=(outputs[ray] > 0).int().numpy(),
                sensitive_features=batch.targets["sensitive"].numpy(),
            )
            wanted = list(frame.by_group)
            wanted = [frame.overall, *wanted] if len(outcome.cells) == 3 else wanted
            got = found[at : at + len(outcome.cells), ray]
            np.testing.assert_allclose(got[:, 0], wanted)
            assert (got[:, 1] <= got[:, 0]).all()
            assert (got[:, 0] <= got[:, 2]).all()
        at += len(outcome.cells)
    low, high = compute_share_interval(found[-1, :, 0], np.array(float(size)))
    assert (found[-1, :, 1] <= low + 1e-9).all()  # a group knows less than everybody would
    assert (found[-1, :, 2] >= high - 1e-9).all()


def test_ends_of_gaps_are_those_of_one_ray(problem: TabularProblem) -> None:
    targets = problem.split("val").targets
    outputs = torch.randn(2, len(targets["label"]), generator=torch.Generator().manual_seed(2))
    for chosen in (False, True):
        found = compute_gap_intervals(problem, outputs, targets, chosen=chosen)
        assert {"tpr_gap", "demographic_parity"} <= found.keys()
        gaps = {"tpr_gap": problem.objectives[1].score}
        for ray in range(2):
            wanted = compute_intervals(gaps, outputs[ray], targets, chosen=chosen)["tpr_gap"]
            assert found["tpr_gap"][ray] == pytest.approx(wanted)


def test_ends_of_counted_gaps_are_those_of_the_objectives(problem: TabularProblem) -> None:
    batch = problem.split("train")
    size = len(batch.targets["label"])
    outputs = torch.randn(2, size, generator=torch.Generator().manual_seed(3))
    readers = find_readers(problem, outputs, batch)
    outcomes = build_outcomes(problem, readers, ("f", "m"))
    found = compute_outcome_gaps(
        outcomes, count_answers(readers, outputs, batch.targets), chosen=False
    )
    every = {"tpr_gap": TprGap(), "fpr_gap": FprGap(), "accuracy_gap": AccuracyGap()}
    gaps = {name: one.score for name, one in every.items()}
    for ray in range(2):
        wanted = compute_intervals(gaps, outputs[ray], batch.targets)
        for name, ends in wanted.items():
            assert found[name][ray] == pytest.approx(ends)


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
    assert words.title == "Is paid “yes”?"
    assert words.groups == ("f", "m")
    assert words.instead == {"binary_cross_entropy": "misclassification"}
    assert words.measures["selection_rate_f"].label == "predicted “yes” in “f”"
    assert build_words(None, ["own_thing"]).measures["own_thing"].label == "own thing"
