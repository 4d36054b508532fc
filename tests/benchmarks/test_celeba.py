"""The benchmark on faces, on generated ones: its numbers against scikit-learn, and its cells."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from benchmarks import celeba
from paretocosmos import load_run
from paretocosmos.paper.recipe import Experiment

TASKS = ("left", "right", "dark")
FACES = """
    from functools import partial

    import torch

    from paretocosmos.objectives import BinaryCrossEntropy, accuracy, roc_auc
    from paretocosmos.problems.images.problem import ImageProblem
    from paretocosmos.types import Batch

    TASKS = ("left", "right", "dark")


    def faces(*, data: str | None = None) -> ImageProblem:
        draw = torch.Generator().manual_seed(1)

        def batch(count: int) -> Batch:
            images = torch.randint(0, 256, (count, 3, 16, 16), generator=draw, dtype=torch.uint8)
            means = [images[..., :8], images[..., 8:], 255 - images[:, :1]]
            labels = [(m.float().mean((1, 2, 3)) > 128.5).float() for m in means]
            return Batch(images, dict(zip(TASKS, labels, strict=True)))

        return ImageProblem(
            name="faces",
            objectives=tuple(BinaryCrossEntropy(name=t, output=t, target=t) for t in TASKS),
            reference=(2.0, 2.0, 2.0),
            input_shape=(3, 16, 16),
            outputs=dict.fromkeys(TASKS, 1),
            metrics={
                f"{metric.__name__}_{t}": partial(metric, output=t, target=t)
                for metric in (accuracy, roc_auc)
                for t in TASKS
            },
            caveats=("120 of all faces",),
            splits={"train": batch(120), "val": batch(40), "test": batch(60)},
            images="noise",
            sha256="abc",
            pixels="-1..1",
        )
"""


def _go(folder: Path, *options: str) -> dict[str, Any]:
    (folder / "generated_faces.py").write_text(textwrap.dedent(FACES))
    out = folder / "out.json"
    command = ["celeba", "--out", str(out), "--only", "generated_faces:faces"]
    command += ["--backbone", "lenet", "--epochs", "2", "--batch-size", "40"]
    command += ["--set", "rays=4", "--set", "learning_rate=1e-3", *options]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", command)
        patch.syspath_prepend(folder)
        celeba.main()
    return json.loads(out.read_text())


def _place(folder: Path, method: str) -> Path:
    """Where `paretocosmos reproduce` would lay the run."""
    settings = {"batch_size": 40, "rays": 4, "learning_rate": 1e-3, "epochs": 2}
    return Experiment("faces", method, settings=settings).runs(folder / "runs")[1]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Both methods, and the folder with their runs."""
    folder = tmp_path_factory.mktemp("celeba")
    return _go(folder, "--runs", str(folder / "runs")), folder


def test_every_task_is_judged_where_it_should_be(
    found: tuple[dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results, folder = found
    monkeypatch.syspath_prepend(str(folder))
    assert [cell["method"] for cell in results["cells"]] == ["cosmos", "single_task"]
    for cell in results["cells"]:
        run = load_run(_place(folder, cell["method"]), trust=["generated_faces"])
        problem = run.problem()
        batch = problem.split("test")
        inputs = problem.prepare(batch.inputs, torch.float32)
        for at, name in enumerate(TASKS):
            alone = cell["method"] == "single_task"
            ray = torch.eye(3)[at] if alone else torch.full((3,), 1 / 3)
            logits = run.model(inputs, ray)[name].detach().double().flatten().numpy()
            truth = batch.targets[name].numpy()
            told = cell["tasks"]["each"][name]
            probabilities = 1 / (1 + np.exp(-logits))
            assert told["binary_cross_entropy"] == pytest.approx(
                log_loss(truth, probabilities), rel=1e-4
            )
            wrong = 1 - accuracy_score(truth, logits > 0)
            assert told["misclassification"] == pytest.approx(wrong, abs=1e-6)
            assert told["roc_auc"] == pytest.approx(roc_auc_score(truth, logits), rel=1e-5)
        for key, value in cell["tasks"]["mean"].items():
            every = [cell["tasks"]["each"][name][key] for name in TASKS]
            assert value == pytest.approx(np.mean(every))


def test_a_constant_is_the_rate_of_the_training_samples(
    found: tuple[dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results, folder = found
    monkeypatch.syspath_prepend(str(folder))
    problem = load_run(_place(folder, "cosmos"), trust=["generated_faces"]).problem()
    for name in TASKS:
        train, test = (problem.split(s).targets[name].numpy() for s in ("train", "test"))
        constant = np.full(len(test), train.mean(dtype=np.float64))
        for cell in results["cells"]:
            told = cell["tasks"]["constant"][name]
            assert told["binary_cross_entropy"] == pytest.approx(log_loss(test, constant))
            wrong = 1 - accuracy_score(test, constant > 0.5)
            assert told["misclassification"] == pytest.approx(wrong)
