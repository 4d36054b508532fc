"""Where runs go, and which may be continued."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tests.small import plan_of

from paretocosmos import fit
from paretocosmos.config.plan import Plan
from paretocosmos.errors import RunError
from paretocosmos.runs import begin_record, choose_folder, refuse_other


@pytest.fixture
def plan() -> Plan:
    return plan_of()


def _on(plan: Plan, device: str) -> Plan:
    configuration = dataclasses.replace(plan.configuration, device=device)
    return dataclasses.replace(plan, configuration=configuration)


def test_a_run_goes_on_on_another_gpu(plan: Plan) -> None:
    record = begin_record(_on(plan, "cuda:0"), None, "training")
    refuse_other(Path("run"), record, _on(plan, "cuda"))
    with pytest.raises(RunError, match=r"device: 'cuda' .*'cpu'"):
        refuse_other(Path("run"), record, plan)


def test_every_difference_is_named_by_its_dotted_name(plan: Plan) -> None:
    record = begin_record(plan, None, "training")
    record["method"]["settings"]["penalty"] = 5.0
    record["backbone"] = None
    with pytest.raises(RunError) as refused:
        refuse_other(Path("run"), record, plan)
    assert "method.settings.penalty: 5.0 there, 0.01 now" in str(refused.value)
    assert "backbone.name: None there, 'mlp' now" in str(refused.value)


def test_a_free_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_folder(None, "a b", resume=False) == Path("runs/a-b")
    Path("runs/a-b").mkdir(parents=True)
    assert choose_folder(None, "a b", resume=False) == Path("runs/a-b-2")


def test_micro_batches_serve_methods_with_one_ray_for_each_network(tmp_path: Path) -> None:
    settings = {"batch_size": 60, "rays": 3}
    small = settings | {"rays_per_batch": 4, "accumulate": 4}
    whole, parts = (
        fit(
            "toy_convex",
            preset="paper",
            method="uniform",
            settings=given,
            epochs=2,
            precision="fp64",
            out=tmp_path / str(at),
        )
        for at, given in enumerate((settings, small))
    )
    np.testing.assert_allclose(parts.front.values, whole.front.values, rtol=1e-9)
