"""A trained table in a file: what it says of itself, and that it gives what `predict` gives."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch

import onnx
import paretocosmos
from paretocosmos.errors import ConfigurationError, MissingExtraError, RunError
from paretocosmos.export import Exported, export
from paretocosmos.nn.conditioning import Concat
from paretocosmos.problems.tables import Table
from paretocosmos.runs import Run, load_run


def probability(path: Path, x: np.ndarray[Any, Any], preference: Any) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(str(path))
    given = {"x": x, "preference": np.array(preference, dtype=np.float32)}
    (found,) = session.run(["probability"], given)
    return np.asarray(found)


@pytest.mark.filterwarnings("ignore:the column")
def test_predict_from_a_file(trained: Run, in_onnx: Exported, strangers: pd.DataFrame) -> None:
    x = trained.table.encode(strangers)
    assert x.shape == (41, 4)
    rays = np.random.default_rng(0).dirichlet((1, 1), 41)
    each = probability(in_onnx.path, x, rays)
    for at, ray in enumerate(rays):
        one = strangers.iloc[[at]]
        np.testing.assert_allclose(each[at], trained.predict(one, ray=ray)[0], atol=1e-5)
    for ray in ([0.2, 0.8], [1.0, 0.0]):
        for rows in (1, 41):
            wanted = trained.predict(strangers[:rows], ray=ray)
            found = probability(in_onnx.path, x[:rows], [ray])
            assert found.shape == (rows,)
            np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_large_numbers_with_a_small_spread(run_of: Any) -> None:
    # whole numbers that float32 holds, whose mean it does not
    frame = pd.DataFrame({"a": 16_000_000.0 + np.arange(10)})
    table = Table.fit(frame)
    run = run_of(Concat(torch.nn.Linear(1, 1), 2), table=table, about={"positive": "1"})
    found = probability(export(run).path, table.encode(frame), [[0.5, 0.5]])
    np.testing.assert_allclose(found, run.predict(frame, ray=[0.5, 0.5]), atol=1e-6)


def test_the_file_says_what_it_is(in_onnx: Exported) -> None:
    session = onnxruntime.InferenceSession(str(in_onnx.path))
    shapes = {node.name: node.shape for node in session.get_inputs()}
    assert shapes == {"x": ["rows", 4], "preference": ["preferences", 2]}
    given = {node.name: (node.type, node.shape) for node in session.get_outputs()}
    assert given == {
        "probability": ("tensor(float)", ["rows"]),
        "decision": ("tensor(int64)", ["rows"]),
    }
    about = json.loads(session.get_modelmeta().custom_metadata_map["paretocosmos"])
    assert about["version"] == paretocosmos.__version__
    assert about["objectives"] == ["binary_cross_entropy", "tpr_gap"]
    assert (about["target"], about["positive"]) == ("income", "low")
    assert (about["threshold"], about["classes"]) == (0.5, ["high", "low"])
    assert about["columns"] == [
        {"name": "age", "categories": None},
        {"name": "a|b", "categories": None},
        {
            "name": "work",
            "categories": ["<script>alert(1)</script>", "Private", "State", "(missing)"],
        },
        {"name": "member", "categories": ["False", "True"]},
    ]
    model = onnx.load(in_onnx)
    onnx.checker.check_model(model, full_check=True)
    assert not any(tensor.external_data for tensor in model.graph.initializer)


def test_decisions_are_made_at_the_threshold(
    trained: Run, frame: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "strict.onnx"
    written = export(trained, out=path, threshold=0.7)
    session = onnxruntime.InferenceSession(str(path))
    meta = session.get_modelmeta().custom_metadata_map
    assert json.loads(meta["paretocosmos"])["threshold"] == 0.7
    x, preference = trained.table.encode(frame), np.array([[0.5, 0.5]], dtype=np.float32)
    found, decision = session.run(None, {"x": x, "preference": preference})
    assert ((found > 0.5) & (found <= 0.7)).any()
    np.testing.assert_array_equal(decision, found > 0.7)
    card = written.card.read_text()
    assert "A decision is positive above the probability 0.7, for everybody." in card
    assert "measured at 0.5: evaluate at 0.7" in card
    with pytest.raises(ConfigurationError, match="`threshold` must be a probability"):
        export(trained, out=tmp_path / "none.onnx", threshold=7)


def test_the_same_run_gives_the_same_file_without_paths(
    trained: Run, in_onnx: Exported, tmp_path: Path
) -> None:
    assert in_onnx.path == trained.folder / "export" / "model.onnx"
    before = in_onnx.path.read_bytes()
    other = export(load_run(trained.folder), out=tmp_path / "other.onnx")
    assert other.path.read_bytes() == before
    assert (other.difference, other.preference) == (in_onnx.difference, in_onnx.preference)
    assert export(trained) == in_onnx  # its own is written anew
    assert str(Path(paretocosmos.__file__).parent).encode() not in before
    assert b"site-packages" not in before


def test_places_that_are_refused(trained: Run, tmp_path: Path) -> None:
    made = export(trained, out=tmp_path / "new" / "a.onnx")  # folders are made
    with pytest.raises(RunError, match=r"a\.onnx` exists.*`out`"):
        export(trained, out=made.path)
    (tmp_path / "other.onnx.md").write_text("mine")
    with pytest.raises(RunError, match=r"other\.onnx\.md` exists"):
        export(trained, out=tmp_path / "other.onnx")
    with pytest.raises(RunError, match=r"`out`.*\.onnx, found"):
        export(trained, out=tmp_path / "README")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot use"):
        export(trained, out=tmp_path / "file" / "a.onnx")
    with pytest.raises(RunError, match="cannot use"):
        export(trained, out=tmp_path / ("a" * 300 + ".onnx"))


def test_too_large_for_one_file(
    trained: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paretocosmos.export.formats.MOST_WEIGHT_BYTES", 100)
    with pytest.raises(RunError, match="at most 2 GB"):
        export(trained, out=tmp_path / "a.onnx")


def test_a_missing_extra_gives_the_command(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match=r"`onnxruntime`, .* \"paretocosmos\[onnx\]\""):
        export(trained)


@pytest.mark.system
def test_nothing_is_said_on_the_terminal(trained: Run, tmp_path: Path) -> None:
    code = (
        "from paretocosmos.export import export\nfrom paretocosmos.runs.load import load_run\n"
        f"run = load_run({str(trained.folder)!r})\n"
        f"export(run, out={str(tmp_path / 'a.onnx')!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_no_folder_is_left_where_nothing_was_exported(
    trained: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_given: object) -> None:
        raise RunError("no")

    monkeypatch.setattr("paretocosmos.export.compare_file", refused)
    with pytest.raises(RunError, match="no"):
        export(trained, out=tmp_path / "new" / "deeper" / "model.onnx")
    assert not list(tmp_path.iterdir())
