"""`check` as a person meets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, true_positive_rate

from paretocosmos import load_run
from paretocosmos.errors import ConfigurationError
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.problems.tables import read_embedded

Call = Callable[..., Any]
ROWS = read_embedded("compas").tail(1500)
RAY = ("--ray", "0.9,0.1")


@pytest.fixture
def rows(tmp_path: Path) -> str:
    """Labelled rows in a file."""
    ROWS.to_csv(tmp_path / "new.csv", index=False)
    return str(tmp_path / "new.csv")


def test_the_exit_code_says_whether_a_bound_is_kept(cli: Call, finished: Path, rows: str) -> None:
    run = load_run(finished)
    truth = ROWS["two_year_recid"].to_numpy()
    decided = run.predict(ROWS, ray=[0.9, 0.1]) > 0.5
    gap = MetricFrame(
        metrics=true_positive_rate, y_true=truth, y_pred=decided, sensitive_features=ROWS["sex"]
    ).difference()
    for bound, code in ((gap + 0.001, 0), (gap - 0.001, 1)):
        done = cli("check", str(finished), rows, *RAY, "--max", f"tpr_gap={bound}", "--json")
        assert done.code == code, done.err
        found = json.loads(done.out)
        assert found["kept"] is (code == 0)
        (check,) = found["bounds"]
        assert check["value"] == pytest.approx(gap, abs=1e-6)
        assert check["rows"] == len(ROWS)
        low, high = found["point"]["intervals"]["tpr_gap"]
        assert low <= gap <= high
        assert 0 < check["chance"] < 1


def test_it_prints_the_words_of_choose(cli: Call, finished: Path, rows: str) -> None:
    done = cli("check", str(finished), rows, *RAY, "--min", "accuracy=0.99")
    assert done.code == 1
    assert "`accuracy`: asked at least 99.0 of 100; new.csv " in done.out
    assert "not kept. By the 1,500 rows of new.csv, the true number is below 0.99" in done.out
    assert "at the ray (0.9, 0.1)" in done.out


def test_without_a_ray_it_checks_what_choose_finds(cli: Call, finished: Path, rows: str) -> None:
    bound = ("--max", "tpr_gap=0.1")
    done = cli("check", str(finished), rows, *bound, "--json")
    choice = json.loads(cli("choose", str(finished), *bound, "--json").out)
    found = json.loads(done.out)
    assert found["point"]["ray"] == pytest.approx(choice["ray"])
    assert found["threshold"] == choice["threshold"]


def test_a_confidence_asks_for_more_than_the_estimate(finished: Path) -> None:
    run = load_run(finished)
    value = run.check(ROWS, ray=[0.9, 0.1], max={"tpr_gap": 1}).point["tpr_gap"]
    bounds = {"tpr_gap": value + 0.001}
    assert run.check(ROWS, ray=[0.9, 0.1], max=bounds).kept
    assert not run.check(ROWS, ray=[0.9, 0.1], max=bounds, confidence=0.9).kept
    wide = run.check(ROWS, ray=[0.9, 0.1], max={"tpr_gap": value + 0.3}, confidence=0.9)
    assert wide.kept
    assert "are kept with a confidence of 0.9" in str(wide)


@pytest.mark.parametrize(
    "arguments", [[], ["--max", "tpr_gap=5"], ["--max", "tpr=0.1"], ["--maximize", "accuracy"]]
)
def test_wrong_usage_is_code_2(cli: Call, finished: Path, rows: str, arguments: list[str]) -> None:
    assert cli("check", str(finished), rows, *RAY, *arguments).code == 2


def test_an_estimator_is_checked_at_its_own_preference() -> None:
    rows = read_embedded("compas")
    X = rows[["age", "priors_count", "length_of_stay"]]  # noqa: N806
    settings: dict[str, Any] = {"epochs": 5, "hidden": (8,), "random_state": 0, "progress": False}
    fitted = ParetoClassifier(**settings).fit(X, rows["two_year_recid"], sensitive=rows["sex"])
    chosen = fitted.choose(maximize="accuracy", threshold=0.4)
    new = pd.DataFrame({**X, "two_year_recid": rows["two_year_recid"], "sex": rows["sex"]})
    check = chosen.to_run().check(new, min={"accuracy": 0.5})
    assert check.threshold == 0.4
    expected = (chosen.predict(X) == rows["two_year_recid"]).mean()
    assert check.point["accuracy"] == pytest.approx(expected)


def test_a_run_without_a_preference_needs_one(finished: Path) -> None:
    with pytest.raises(ConfigurationError, match="`ray`"):
        load_run(finished).check(ROWS, max={"tpr_gap": 0.1})
