"""What several processes train in the tests, and one process beside them."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.streams import Heads, Pictures, Sample, Stream, problem_of
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler

from paretocosmos import fit
from paretocosmos.evaluation import samples
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.runs import Run

# 211 training rows in batches of 30: seven full ones, and one of a single row, too few to share.
ROWS = 303
SETTINGS: dict[str, Any] = {"batch_size": 30, "evaluate_every": 1, "rays": 5, "hidden": (8,)}
DIGITS = {"copies": 1, "batch_size": 301, "rays": 3, "reference": (5.0, 5.0)}


class Dropped(nn.Module):
    """A network of one's own that draws random numbers as it goes, and counts its calls."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1))
        self.register_buffer("calls", torch.zeros(()))
        self.kept: list[float] = []

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        self.calls += self.training
        if self.training:
            self.kept = self.layers[1](torch.ones(64)).tolist()  # what dropout drew
        return self.layers(torch.cat([inputs, ray.expand(len(inputs), -1)], dim=1))


def normed(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """A backbone with batch statistics, by `package.module:function`."""
    return nn.Sequential(
        nn.Linear(input_shape[0], 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, outputs)
    )


def table(*, rows: int = ROWS, seed: int = 0) -> TabularProblem:
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame({name: draw.normal(size=rows) for name in "abc"})
    frame["sex"] = draw.choice(["f", "m"], rows)
    frame["paid"] = frame["a"] + draw.normal(size=rows) > 0
    return TabularProblem.from_frame(frame, target="paid", sensitive="sex", fairness="deo")


CASES: dict[str, dict[str, Any]] = {
    "cosmos": {},  # a DEO is no mean over samples: shares of it do not add up
    "eager": {"engine": "eager"},
    "rays_per_batch": {"settings": {"rays_per_batch": 6}},  # rays differ between processes
    "accumulate": {"settings": {"rays_per_batch": 6, "accumulate": 3}},
    "one ray each": {"settings": {"rays_per_batch": 2, "batch_size": 2}},
    "epo": {"method": "epo"},  # asks for gradients
    "mgda": {"method": "mgda"},
    "several networks": {"method": "single_task"},
}


def train(case: str, out: Path, problem: Problem | None = None, **changes: Any) -> Run:
    own = dict(CASES[case])
    settings = SETTINGS | own.pop("settings", {})
    given: dict[str, Any] = {"epochs": 2, "precision": "fp64", "device": "cpu"} | own | changes
    return fit(problem or table(), preset="paper", settings=settings, out=out, **given)


def loaded(out: Path, *, rank: int = 0, count: int = 1) -> Run:
    """A training from a loader of each process, which is judged on splits that are read.

    37 pictures in batches of 8 for all processes: the last has 5, and one is left out of its two
    groups. 13 to validate on, in batches of 4: the last has one, too few to share.
    """
    rows = Pictures(37)
    sampler: DistributedSampler[Sample] = DistributedSampler(
        rows, num_replicas=count, rank=rank, shuffle=True
    )
    loader = DataLoader(rows, batch_size=8 // count, sampler=sampler)
    problem = problem_of(
        loader, val=DataLoader(Pictures(13, 2), batch_size=4), test=Stream(130), workers=0
    )
    settings = {"rays_per_batch": 2, "rays": 3, "calibrate": False, "evaluate_every": 1}
    torch.manual_seed(1)
    return fit(
        problem,
        backbone=Heads(),
        conditioning="film",
        settings=settings,
        epochs=2,
        precision="fp64",
        device="cpu",
        progress=False,
        report=False,
        out=out,
    )


def main(folder: Path) -> None:
    """Train every case, then some runs that are only good for several processes."""
    torch.set_num_threads(1)
    for case in CASES:
        train(case, folder / case)
    digits = fit(
        "multi_digits",
        preset="paper",
        settings=DIGITS,
        epochs=1,
        precision="fp64",
        engine="traced",
        device="cpu",
        out=folder / "digits",
    )
    assert digits.record["engine"] == "traced"
    both = fit(
        table(),
        preset="paper",
        seeds=(1, 2),
        settings=SETTINGS,
        epochs=1,
        precision="fp64",
        device="cpu",
        out=folder / "seeds",
    )
    assert [run.record["seed"] for run in both] == [1, 2]
    resumed = train("cosmos", folder / "begun", resume=True)
    assert resumed.folder == folder / "begun"
    own = fit(
        table(),
        preset="paper",
        model=Dropped(),
        settings={"batch_size": 30},
        epochs=1,
        device="cpu",
        out=folder / "dropped",
    )
    assert isinstance(own.model, Dropped)
    rank = torch.distributed.get_rank()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(samples, "HELD", 0)
        loaded(folder / "loaded", rank=rank, count=2)
    told = [[p.tolist() for p in own.model.parameters()], own.model.kept]
    (folder / f"told-{rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
