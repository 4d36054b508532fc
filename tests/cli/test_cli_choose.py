"""`choose` as a person meets it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.strangers import change, copy

from paretocosmos import evaluate, load_run
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.evaluation import at_threshold

Call = Callable[..., Any]


def test_it_prints_both_splits_and_code_that_runs(cli: Call, finished: Path) -> None:
    done = cli("choose", str(finished), "--max", "tpr_gap=0.05", "--maximize", "accuracy")
    assert done.code == 0
    run = load_run(finished)
    with pytest.warns(BenchmarkWarning):
        choice = run.choose(max={"tpr_gap": 0.05}, maximize="accuracy")
    low, high = choice.test.intervals["accuracy"]
    assert str(choice) in done.out
    assert f"{choice.test['accuracy']:.4f}  {low:.4f} to {high:.4f}" in done.out
    code = done.out[done.out.index("from paretocosmos") : done.out.index("\nnext  ")]
    frame = run.table
    assert frame is not None
    scope: dict[str, Any] = {"rows": _row(run)}
    exec(code, scope)
    ray = re.search(r"ray=\[(.*)\]", code)
    assert [float(part) for part in ray[1].split(",")] == pytest.approx(choice.ray, abs=1e-8)


def _row(run: Any) -> Any:
    import pandas as pd

    numbers = dict.fromkeys(run.table.numeric, 1.0)
    return pd.DataFrame([numbers | {k: v[0] for k, v in run.table.categorical.items()}])


def test_json(cli: Call, finished: Path) -> None:
    done = cli("choose", str(finished), "--knee", "--json")
    found = json.loads(done.out)
    assert found["run"] == str(finished)
    assert found["val"]["ray"] == found["test"]["ray"] == found["ray"]
    assert {"tpr_gap", "accuracy"} <= found["test"]["intervals"].keys()


@pytest.mark.parametrize("bound", ["90%", "90pt", " 90 % ", "9e1%"])
def test_a_bound_may_be_in_hundredths(cli: Call, finished: Path, bound: str) -> None:
    done = cli("choose", str(finished), "--max", f"tpr_gap={bound}", "--json")
    plain = cli("choose", str(finished), "--max", "tpr_gap=0.9", "--json")
    assert json.loads(done.out) == json.loads(plain.out)
    assert json.loads(done.out)["asked"] == {"max": {"tpr_gap": 0.9}}


def test_the_json_has_all_that_was_asked(cli: Call, finished: Path) -> None:
    options = ("--max", "tpr_gap=0.9", "--min", "accuracy=0.1", "--maximize", "accuracy")
    asked = json.loads(cli("choose", str(finished), *options, "--json").out)["asked"]
    bounds = {"max": {"tpr_gap": 0.9}, "min": {"accuracy": 0.1}}
    assert asked == bounds | {"maximize": "accuracy"}
    sure = ("--max", "tpr_gap=0.9", "--confidence", "0.9", "--allow-constant")
    asked = json.loads(cli("choose", str(finished), *sure, "--json").out)["asked"]
    assert asked == {"max": {"tpr_gap": 0.9}, "confidence": 0.9, "allow_constant": True}


def test_a_metric_that_the_front_lacks_is_measured(
    cli: Call, finished: Path, tmp_path: Path
) -> None:
    folder = copy(finished, tmp_path / "changed")
    content = json.loads((folder / "front.json").read_text())
    content["metrics"].clear()
    (folder / "front.json").write_text(json.dumps(content))
    change(folder, lambda record: None)
    done, whole = (cli("choose", str(one), "--knee", "--json") for one in (folder, finished))
    assert done.code == 0
    assert {**json.loads(done.out), "run": ""} == {**json.loads(whole.out), "run": ""}


def test_a_confidence_prints_the_limit(cli: Call, finished: Path) -> None:
    options = ("--max", "tpr_gap=0.9", "--confidence", "0.9", "--allow-constant")
    found = json.loads(cli("choose", str(finished), *options, "--json").out)
    (check,) = found["bounds"]
    assert check["limit"] == found["val"]["limits"]["tpr_gap"]
    limit = f"it is at most {check['limit']:.4g}."
    assert limit in check["text"]
    assert limit in cli("choose", str(finished), *options).out.replace("\n", " ")


def test_a_threshold_is_printed_and_in_the_code(cli: Call, finished: Path) -> None:
    options = ("--maximize", "accuracy", "--threshold", "0.4")
    found = json.loads(cli("choose", str(finished), *options, "--json").out)
    assert found["threshold"] == 0.4
    done = cli("choose", str(finished), *options)
    assert "and the threshold 0.4" in done.out
    scope: dict[str, Any] = {"rows": _row(load_run(finished))}
    code = done.out[done.out.index("from paretocosmos") : done.out.index("\nnext  ")]
    exec(code.replace("run.predict", "decided = run.predict"), scope)
    assert scope["decided"].dtype == bool
    with pytest.warns(BenchmarkWarning):
        problem = at_threshold(load_run(finished).problem(), 0.4)
    again = evaluate(load_run(finished).model, problem, split="test", rays=[found["ray"]])
    assert found["test"]["metrics"]["accuracy"] == pytest.approx(again.metrics["accuracy"][0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "what to choose by"),
        (["--knee", "--threshold", "1"], "`threshold` must be a probability above 0 and below 1"),
        (["--max", "tpr_gap"], "--max takes NAME=NUMBER"),
        (["--max", "tpr_gap=2"], "`tpr_gap` is a share, at most 1, found 2: did you mean 0.02?"),
        (["--max", "gap=0.02"], "`gap`; did you mean `tpr_gap`"),
        (["--max", "tpr_gap=1", "--max", "tpr_gap=2"], "--max has `tpr_gap` twice"),
        (["--weights", "a,b"], "numbers such as 0.3,0.7, found `a,b`"),
        (["--max", "tpr_gap=-0.5"], "at the threshold 0.5, the closest has `tpr_gap` 0."),
        (["--max", "tpr_gap=0.0001", "--confidence", "0.9", "--allow-constant"], "positives in `"),
    ],
)
def test_bad_input_is_one_sentence(
    cli: Call, finished: Path, options: list[str], says: str
) -> None:
    done = cli("choose", str(finished), *options)
    assert done.code == 2
    assert done.out == ""
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert says in errors[0]
