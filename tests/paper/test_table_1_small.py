"""Table 1 without any download, one epoch, one seed: every method on every kind of problem."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from paretocosmos.paper.reproduction import reproduce
from paretocosmos.runs import load_run


@pytest.mark.system
def test_a_rehearsal_of_the_table_runs(tmp_path: Path) -> None:
    """As `paretocosmos reproduce table_1_small --epochs 1 --seeds 1 --only paper`."""
    done = reproduce(
        "table_1_small", out=tmp_path, epochs=1, seeds=[1], only=["paper"], device="cpu"
    )
    assert done.failures == {}
    problems = ("adult", "compas", "default_credit", "multi_digits")
    methods = ("single_task", "phn_epo", "phn_ls", "pareto_mtl", "cosmos")
    finished = {(one.experiment.problem, one.experiment.method) for one in done.select("done")}
    assert finished == set(itertools.product(problems, methods))
    for one in done.select("done"):
        run = load_run(one.experiment.runs(tmp_path)[1])
        assert (run.record["label"], run.record["protocol"]) == (one.experiment.method, "paper")
        assert run.record["training"]["epochs"] == 1
        assert np.isfinite(run.front.values).all()
        assert len(run.front) == {"single_task": 2, "pareto_mtl": 5}.get(one.experiment.method, 25)
    saved = json.loads((tmp_path / "rehearsal-1" / "table_1_small.json").read_text())
    assert saved["rehearsal"] == 1
