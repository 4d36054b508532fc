"""The networks that come with the package: what is stored is what they do."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from paretocosmos import Run, evaluate, load
from paretocosmos.errors import BenchmarkWarning, ConfigurationError
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import read_embedded
from paretocosmos.runs import FOLDER, MODELS


@pytest.fixture(scope="module", params=MODELS)
def run(request: pytest.FixtureRequest) -> Run:
    """One of them."""
    return load(request.param)


@pytest.fixture(scope="module")
def problem(run: Run) -> Problem:
    """The table it was trained on, which comes with the package, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BenchmarkWarning)
        return run.problem()


@pytest.mark.parametrize("split", ["test", "val"])
def test_the_stored_front_is_that_of_the_network(run: Run, problem: Problem, split: str) -> None:
    stored = run.front if split == "test" else run.front_val
    fresh = evaluate(run.model, problem, split=split, rays=stored.rays.tolist())
    # a row whose probability is nearly 0.5 may be decided otherwise on another machine
    np.testing.assert_allclose(fresh.values, stored.values, atol=2e-3)
    for name, values in stored.metrics.items():
        np.testing.assert_allclose(fresh.metrics[name], values, atol=2e-3, err_msg=name)


def test_more_weight_gives_less_of_the_loss(run: Run) -> None:
    order = run.record["by_objective"]["test"]["monotonicity"]
    assert min(order.values()) > 0.9


@pytest.mark.parametrize("ray", [(1.0, 0.0), (0.5, 0.5), (0.0, 1.0)])
def test_the_exported_file_is_the_network(run: Run, ray: tuple[float, float]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    table, draw = run.table, np.random.default_rng(0)
    rows = read_embedded(run.record["name"]).head(200)[list(table.numeric)]
    categories = {name: draw.choice(known, 200) for name, known in table.categorical.items()}
    rows = rows.assign(**categories)
    session = onnxruntime.InferenceSession(run.folder / "export" / "model.onnx")
    inputs = {"x": table.encode(rows), "preference": np.array([ray], dtype=np.float32)}
    found = session.run(["probability"], inputs)[0]
    np.testing.assert_allclose(found, run.predict(rows, ray=ray), atol=1e-5)


def test_one_is_chosen_from_and_explored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = sorted(FOLDER.rglob("*"))
    run = load("compas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BenchmarkWarning)
        bound = float(run.front_val.values[:, 1].mean())
        choice = run.choose(max={"demographic_parity": bound})
        page = run.explore()
    assert choice.val["demographic_parity"] <= bound
    assert tmp_path in page.path.parents
    assert sorted(FOLDER.rglob("*")) == before  # the package stays as it was installed


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="`adult`"):
        load("adlut")
    with pytest.raises(ConfigurationError, match="`load_run`"):
        load(str(tmp_path))
