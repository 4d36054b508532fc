"""Small trainings of every conditioning and kind of problem, whose folders must stay readable.

All data are whole numbers or constants, so that every machine has the same.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from paretocosmos import DataProblem, Problem, Run, TabularProblem, fit, load_problem, load_run
from paretocosmos.objectives import CrossEntropy

__all__ = [
    "BEGUN",
    "EXPORTED",
    "FEATURES",
    "FOLDER",
    "RAYS",
    "RUNS",
    "course_of",
    "draw_people",
    "few_inputs",
    "load",
    "outputs_at",
    "problem_of",
    "train",
]

FOLDER = Path(__file__).parent
FEATURES = ["age", "work"]
HEADS = ("left", "right")
RAYS = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])


class Reader(nn.Module):
    """A network that reads token ids, with a head for each objective."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.gru = nn.Embedding(9, 4), nn.GRU(4, 4, batch_first=True)
        self.left, self.right = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, ids: Tensor) -> dict[str, Tensor]:
        states = self.gru(self.words(ids))[0]
        return {"left": self.left(states[:, -1]), "right": self.right(states[:, -1])}


class Joined(nn.Module):
    """A whole network of somebody else's for the toys, which takes the ray itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2))

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return self.layers(torch.cat([inputs, ray.expand(len(inputs), -1)], dim=1))


def draw_people(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Return people of two groups: whole numbers, categories, and gaps in both."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": draw.integers(18, 80, rows).astype(float)})
    frame["sex"] = draw.choice(["f", "m"], rows)
    state = draw.integers(0, 10, rows) < np.where(frame["sex"] == "m", 2, 7)
    frame["work"] = pd.Series(np.where(state, "state", "private"), dtype=object)
    income = frame["age"] + 20 * (frame["sex"] == "m") + draw.integers(0, 40, rows)
    frame["rich"] = np.where(income > 80, "yes", "no")
    frame.loc[draw.random(rows) < 0.1, "age"] = np.nan
    frame.loc[draw.random(rows) < 0.1, "work"] = None
    return frame


def problem_of(case: Mapping[str, Any]) -> Problem:
    """Return the problem of a case."""
    name = case["problem"]
    if name == "people":
        return TabularProblem.from_frame(
            draw_people(), target="rich", positive="yes", sensitive="sex", name=name
        )
    if name in ("images", "texts"):
        return DataProblem(
            name=name,
            objectives=tuple(CrossEntropy(name=head, output=head, target=head) for head in HEADS),
            reference=(2.0, 2.0),
            outputs=dict.fromkeys(HEADS, 2),
            **{split: _labelled(name, seed) for seed, split in enumerate(("train", "val", "test"))},
        )
    return load_problem(name, settings={"copies": 1} if name == "multi_digits" else {})


def _labelled(name: str, seed: int) -> Any:
    """Return few images as bytes, or few texts as ids to read one by one, with two labels each."""
    draw = np.random.default_rng(seed)
    images = torch.from_numpy(draw.integers(0, 256, (24, 1, 14, 14), dtype=np.uint8))
    texts = torch.from_numpy(draw.integers(0, 9, (24, 5)))
    labels = torch.from_numpy(draw.integers(0, 2, (2, 24)))
    if name == "images":
        return TensorDataset(images, *labels)
    return list(zip(texts, *labels, strict=True))


# The default method of 0.2, which wrote the folders.
LINEAR: dict[str, Any] = {"method": "linear"}
MLP: dict[str, Any] = {"backbone": "mlp", "settings": {"hidden": (4,)}}
LENET: dict[str, Any] = {"backbone": "lenet", "settings": {"kernel": 3, "batch_size": 8}}

RUNS: dict[str, dict[str, Any]] = {
    "concat": {"problem": "toy_convex", "conditioning": "concat", **LINEAR, **MLP},
    "film": {"problem": "toy_concave", "conditioning": "film", **LINEAR, **MLP},
    "film-rank": {
        "problem": "toy_convex",
        "method": "linear",
        "conditioning": "film",
        "backbone": "mlp",
        "settings": {"hidden": (4,), "rank": 1, "width": 4},
    },
    "lora": {"problem": "toy_convex", "conditioning": "lora", **LINEAR, **MLP},
    "hypernet": {
        "problem": "toy_convex",
        "method": "linear",
        "conditioning": "hypernet",
        "backbone": "mlp",
        "settings": {"hidden": (3,), "width": 4},
    },
    "transposed_conv": {"problem": "images", "conditioning": "transposed_conv", **LINEAR, **LENET},
    "token": {"problem": "texts", "conditioning": "token", "backbone": Reader, **LINEAR},
    "tilt": {"problem": "people", "settings": {"hidden": (4,), "batch_size": 32}, "epochs": 9},
    "table": {
        "problem": "people",
        "method": "cosmos",
        "settings": {"hidden": (4,), "embedding": 4, "members": 2},
    },
    "paper-table": {"problem": "compas", "preset": "paper", "settings": {"hidden": (4,)}},
    "paper-images": {
        "problem": "multi_digits",
        "preset": "paper",
        "conditioning": "film",
        "backbone": "mlp",
        "settings": {"hidden": (2,)},
    },
    "own-network": {"problem": "toy_convex", "model": Joined, **LINEAR},
    "separate": {
        "problem": "toy_convex",
        "method": "separate",
        "backbone": "mlp",
        "settings": {"hidden": (4,), "networks": 3, "evaluate_every": 1},
    },
    "mgda": {"problem": "toy_concave", "method": "mgda", "preset": "paper", **MLP},
}
"""What `fit` was called with for each folder in `runs/`; networks as classes."""

EXPORTED = ("film", "tilt", "transposed_conv")
"""The runs of which there is an ONNX file."""

BEGUN: dict[str, dict[str, Any]] = {
    "cosmos": RUNS["film"],
    "epo": {
        "problem": "toy_convex",
        "method": "epo",
        "preset": "paper",
        "backbone": "mlp",
        # 0.2 drew the first layer for the input alone
        "settings": {"hidden": (4,), "joined": False},
    },
    "seeds": {**RUNS["concat"], "seeds": (1, 2)},
    "texts": RUNS["token"],
    "tilt": {
        "problem": "people",
        "settings": {"hidden": (4,), "batch_size": 32, "evaluate_every": 1},
    },
}
"""What `fit` was called with for each folder in `begun/`, where it stopped after two of four
epochs."""


def train(case: Mapping[str, Any], out: Path, **changes: Any) -> list[Run]:
    """Train a case of `RUNS` or `BEGUN`, and return the run of each seed."""
    torch.manual_seed(0)  # for networks that are built here
    given = {key: value() if isinstance(value, type) else value for key, value in case.items()}
    given["problem"] = problem_of(case)
    given["settings"] = {"learning_rate": 0.05} | case.get("settings", {})
    usual: dict[str, Any] = {"epochs": 2, "engine": "eager", "device": "cpu"}
    quiet: dict[str, Any] = {"progress": False, "report": False}
    trained = fit(**usual | quiet | given | changes, out=out)
    return trained if isinstance(trained, list) else [trained]


def load(name: str) -> Run:
    """Return the run in a folder of `runs/`, with the network that the folder cannot rebuild."""
    given = {key: RUNS[name].get(key) for key in ("model", "backbone")}
    networks = {key: value() for key, value in given.items() if isinstance(value, type)}
    return load_run(FOLDER / "runs" / name, **networks)


def few_inputs(problem: Problem) -> Tensor:
    """Return three samples that a network of the problem takes, all numbers different."""
    if problem.name == "texts":
        return torch.arange(3).unsqueeze(1) + torch.arange(5)
    return torch.randn(3, *problem.input_shape, generator=torch.Generator().manual_seed(0))


def course_of(runs: list[Run]) -> dict[str, Tensor]:
    """Return the front of every seed, and all validation fronts of its training."""
    evaluations = [[one["values"] for one in run.record["evaluations"]] for run in runs]
    fronts = [run.front.values.tolist() for run in runs]
    return {"fronts": torch.tensor(fronts), "evaluations": torch.tensor(evaluations)}


def outputs_at(model: nn.Module, inputs: Tensor) -> dict[str, Tensor]:
    """Return what a network gives for the inputs at each of three rays, by output."""
    with torch.inference_mode():
        found = [model(inputs, ray) for ray in RAYS]
    named = [one if isinstance(one, dict) else {"logits": one} for one in found]
    return {name: torch.stack([one[name] for one in named]) for name in named[0]}
