"""What 0.2 wrote is read, predicts what it predicted, and is continued."""

import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import load_file
from tests.compatibility.cases import (
    BEGUN,
    EXPORTED,
    FOLDER,
    RAYS,
    RUNS,
    course_of,
    draw_people,
    load,
    outputs_at,
    problem_of,
    train,
)
from torch import Tensor

from paretocosmos import evaluate, load_run

pytestmark = pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")

NEAR = 1e-5


def expected(name: str) -> dict[str, Tensor]:
    """Return what the version that wrote the fixtures computed."""
    return dict(load_file(FOLDER / "expected" / f"{name}.safetensors"))


@pytest.mark.parametrize("name", RUNS)
def test_a_network_gives_the_same_outputs(name: str) -> None:
    stored = expected(name)
    found = outputs_at(load(name).model, stored.pop("inputs"))
    torch.testing.assert_close(found, stored, rtol=NEAR, atol=NEAR)
    for outputs in found.values():  # else a weight that reads the ray could be lost unseen
        assert name == "mgda" or not torch.allclose(outputs[0], outputs[-1], atol=10 * NEAR)


@pytest.mark.parametrize("name", RUNS)
def test_a_front_is_evaluated_again(name: str) -> None:
    run, problem = load(name), problem_of(RUNS[name])
    for front, split in ((run.front, "test"), (run.front_val, "val")):
        again = evaluate(run.model, problem, split=split, rays=torch.from_numpy(front.rays.copy()))
        np.testing.assert_allclose(again.values, front.values, rtol=NEAR, atol=NEAR)
        assert again.metrics.keys() >= front.metrics.keys()  # a later version may report more
        for metric, values in front.metrics.items():
            np.testing.assert_allclose(again.metrics[metric], values, rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("name", ["film", "paper-images", "paper-table"])
def test_a_record_names_its_problem(name: str) -> None:
    assert load(name).problem().name == RUNS[name]["problem"]


@pytest.mark.parametrize("name", BEGUN)
def test_a_training_goes_on(name: str, tmp_path: Path) -> None:
    out = tmp_path / name
    shutil.copytree(FOLDER / "begun" / name, out)
    epochs: list[int] = []
    runs = train(
        BEGUN[name], out, epochs=4, resume=True, progress=lambda at: epochs.append(at.epoch)
    )
    assert epochs == [3, 4]
    # the front alone may be that of an epoch before
    torch.testing.assert_close(course_of(runs), expected(f"begun-{name}"), rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("name", EXPORTED)
def test_a_file_gives_the_outputs_of_its_run(name: str) -> None:
    stored, run, people = expected(name), load(name), draw_people(20, seed=1)
    session = onnxruntime.InferenceSession(str(FOLDER / "onnx" / f"{name}.onnx"))
    assert "paretocosmos" in session.get_modelmeta().custom_metadata_map
    x = stored["inputs"].numpy() if run.table is None else run.table.encode(people)
    heads = [output.name for output in session.get_outputs()]
    for place, ray in enumerate(RAYS):
        outputs = session.run(heads, {"x": x, "preference": ray.unsqueeze(0).numpy()})
        found = dict(zip(heads, outputs, strict=True))
        if run.table is None:
            wanted = {head: stored[head][place].numpy() for head in heads}
        else:
            probability = run.predict(people, ray=ray)
            wanted = {"probability": probability, "decision": probability > 0.5}
        assert found.keys() == wanted.keys()
        for head, values in wanted.items():
            np.testing.assert_allclose(found[head], values, rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_an_estimators_folder_predicts_the_same(name: str) -> None:
    run = load_run(FOLDER / "estimators" / name)
    found = run.predict(draw_people(20, seed=1), ray=run.record["predicts_at"]["ray"])
    np.testing.assert_allclose(
        found, expected(f"estimator-{name}")["predicted"], rtol=NEAR, atol=NEAR
    )
