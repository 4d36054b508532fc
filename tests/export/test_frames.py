"""Predictions for data frames by an exported file, as a cluster's processes compute them."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paretocosmos import fit
from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.export import Exported, FramePredictor, export
from paretocosmos.runs import Run

pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
RAY = [0.3, 0.7]


def test_a_copy_without_the_file_predicts_as_the_run(
    trained: Run, in_onnx: Exported, frame: pd.DataFrame, tmp_path: Path
) -> None:
    moved = tmp_path / "moved.onnx"
    moved.write_bytes(in_onnx.path.read_bytes())
    predictor = FramePredictor(moved, RAY)
    moved.unlink()
    copy = pickle.loads(pickle.dumps(predictor))
    parts = [frame.iloc[:7], frame.iloc[7:]]
    for mapped in (pd.concat(copy.map_frames(iter(parts))), predictor(frame)):
        np.testing.assert_allclose(
            mapped["probability"], trained.predict(frame, ray=RAY), atol=1e-5
        )
        classes = np.where(mapped["probability"] > 0.5, *reversed(_classes(trained)))
        assert mapped["prediction"].tolist() == classes.tolist()
        pd.testing.assert_frame_equal(mapped[frame.columns], frame)


def _classes(run: Run) -> tuple[str, str]:
    about = run.record["about"]
    return about["negative"], about["positive"]


@pytest.mark.parametrize("task", ["classes", "number"])
@pytest.mark.filterwarnings("ignore:no `sensitive` column")
def test_other_tasks(tmp_path: Path, task: str) -> None:
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"a": draw.normal(size=300), "b": draw.choice(["x", "y"], 300)})
    rows["target"] = np.digitize(rows["a"], [-0.5, 0.5]) if task == "classes" else 2 * rows["a"]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    settings = {"data": str(tmp_path / "rows.csv"), "target": "target", "task": task}
    run = fit("table", epochs=1, settings=settings, out=tmp_path / "run", report=False)
    objectives = run.front.objectives
    mapped = FramePredictor(export(run).path, [1 / objectives] * objectives)(rows)
    expected = run.predict(rows, ray=[1 / objectives] * objectives)
    if task == "number":
        np.testing.assert_allclose(mapped["prediction"], expected, atol=1e-5)
    else:
        names = [f"probability_{name}" for name in (0, 1, 2)]
        np.testing.assert_allclose(mapped[names], expected, atol=1e-5)
        assert mapped["prediction"].astype(int).tolist() == expected.argmax(axis=1).tolist()


def test_refusals(in_onnx: Exported, frame: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="`preference` must be given"):
        FramePredictor(in_onnx)
    with pytest.raises(DataError, match="already has a column `prediction`"):
        FramePredictor(in_onnx, RAY)(frame.assign(prediction=1))
    other = export(fit("toy_convex", epochs=1, out=tmp_path / "run", report=False))
    with pytest.raises(ConfigurationError, match="`file` must be an ONNX file"):
        FramePredictor(other, RAY)
