"""Runs to export: networks made by hand, and one that was trained on a table."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from paretocosmos import fit
from paretocosmos.export import Exported, export
from paretocosmos.pareto import Front
from paretocosmos.problems.tables import Table, TabularProblem
from paretocosmos.runs import Run


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[..., Run]:
    """A run around a network, as `load_run` would give it."""

    def make(
        model: nn.Module,
        *,
        input_shape: Sequence[int] = (5,),
        objectives: int = 2,
        table: Table | None = None,
        metrics: Mapping[str, Any] | None = None,
        about: Mapping[str, Any] | None = None,
        name: str = "by_hand",
        names: Sequence[str] = ("loss", "gap", "third"),
    ) -> Run:
        draw = np.random.default_rng(0)
        rays, values = draw.dirichlet(np.ones(objectives), 9), draw.random((9, objectives))
        reference = np.full(objectives, 2.0)
        front = Front(rays, values, tuple(names[:objectives]), reference, metrics or {})
        record = {
            "problem": None,
            "name": name,
            "about": dict(about or {}),
            "protocol": "clean",
            "caveats": [],
            "method": {"name": "cosmos", "settings": {"alpha": 1.2}},
            "conditioning": None,
            "backbone": None,
            "training": {"epochs": 3},
            "epoch_selected": 2,
            "seed": 7,
            "parameters": 12,
            "precision": "tf32",
            "device": "cpu",
            "version": "0.0",
            "input_shape": list(input_shape),
        }
        return Run(tmp_path / "run", record, front, front, model.eval(), table)

    return make


def people(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Numbers, categories, truth values, and gaps in them."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": draw.integers(18, 80, rows).astype(float),
            "a|b": draw.normal(40, 9, rows).round(2),
            "work": draw.choice(["State", "Private", "<script>alert(1)</script>"], rows),
            "member": draw.random(rows) < 0.3,
            "sex": draw.choice(["f", "m"], rows),
        }
    )
    frame["income"] = np.where(frame["age"] + draw.normal(0, 9, rows) > 45, "high", "low")
    frame.loc[draw.random(rows) < 0.1, "age"] = np.nan
    frame.loc[draw.random(rows) < 0.1, "work"] = None
    return frame


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """The people a run was trained on."""
    return people()


@pytest.fixture(scope="session")
def strangers() -> pd.DataFrame:
    """People it was not trained on, with values nobody had."""
    frame = people(41, seed=1)
    frame.loc[3, "work"] = "Abroad"
    frame.loc[5, "a|b"] = np.inf
    frame.loc[6, "a|b"] = np.nan
    return frame


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, frame: pd.DataFrame) -> Run:
    """A finished run; look, do not touch but to export it."""
    problem = TabularProblem.from_frame(
        frame, target="income", positive="low", sensitive="sex", name="people"
    )
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("trained") / "run"
    return fit(
        problem, preset="paper", out=folder, epochs=2, settings={"hidden": "8"}, device="cpu"
    )


@pytest.fixture(scope="session")
def in_onnx(trained: Run) -> Exported:
    """That run as an ONNX file, in its folder."""
    return export(trained)
