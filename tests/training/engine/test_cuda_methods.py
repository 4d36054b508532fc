"""Every method captured on a real GPU against its eager self; skipped where there is none."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.small import few_digits
from tests.training.engine.cuda import NEEDS_CUDA, near

from paretocosmos import Problem, fit
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.problems import Split
from paretocosmos.types import Batch

pytestmark = NEEDS_CUDA

METHODS = ("cosmos", "phn_ls", "phn_epo", "pareto_mtl", "mgda", "single_task", "uniform", "epo")
OWN: dict[str, Any] = {"batch_size": 32, "rays": 5, "evaluate_every": 1}


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets(Problem):
    """As many targets as objectives, which pull apart."""

    data: Batch

    def split(self, name: Split) -> Batch:
        return self.data


def _targets(objectives: int) -> Targets:
    draw = torch.Generator().manual_seed(1)
    inputs = torch.randn(310, 8, generator=draw)
    names = [f"task_{j}" for j in range(objectives)]
    wanted = {n: inputs[:, j : j + 1] + 1.5 * j for j, n in enumerate(names)}
    return Targets(
        name="targets",
        objectives=tuple(MeanSquaredError(name=n, target=n) for n in names),
        reference=(400.0,) * objectives,
        input_shape=(8,),
        outputs=1,
        data=Batch(inputs, wanted),
    )


def _digits() -> Problem:
    return few_digits(train=310)  # nine batches of 32 and one of 22, twice


def _given(problem: Problem) -> dict[str, Any]:
    settings = OWN | {"reference": (400.0,) * len(problem.objectives)}
    return {"epochs": 2, "settings": settings, "device": "cuda"}


CASES = [(m, which) for m in METHODS for which in ("digits", "three")]
CASES += [(m, "seven") for m in ("mgda", "pareto_mtl", "epo")]  # beyond the small solvers


@pytest.mark.parametrize(("method", "which"), CASES)
def test_captured_in_double_is_eager_after_twenty_steps(
    method: str, which: str, tmp_path: Path
) -> None:
    problem = _digits() if which == "digits" else _targets({"three": 3, "seven": 7}[which])
    eager, captured = (
        fit(
            problem,
            preset="paper",
            method=method,
            out=tmp_path / e,
            engine=e,
            precision="fp64",
            **_given(problem),
        )
        for e in ("eager", "captured")
    )
    assert (eager.record["engine"], captured.record["engine"]) == ("eager", "captured")
    near(captured, eager, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("method", ["pareto_mtl", "phn_epo"])
def test_seeds_of_networks_are_each_alone(method: str, tmp_path: Path) -> None:
    problem = _digits()
    given = _given(problem) | {"method": method, "engine": "captured", "precision": "fp64"}
    together = fit(problem, preset="paper", seeds=(1, 2), out=tmp_path / "both", **given)
    alone = fit(problem, preset="paper", seed=2, out=tmp_path / "alone", **given)
    assert together[1].record["seeds_together"] == 2
    near(together[1], alone, rtol=1e-6, atol=1e-7)
