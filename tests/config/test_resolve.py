"""Backbones with open settings: resolved once, recorded, and rebuilt without looking again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
import torch
from tests.small import plan_of
from torch import nn

from paretocosmos import fit
from paretocosmos.config.plan import Plan
from paretocosmos.errors import RunError
from paretocosmos.nn.backbones import Mlp
from paretocosmos.nn.conditioning import list_networks
from paretocosmos.registry import Spec
from paretocosmos.runs import Run, load_run

LOOKED: list[str] = []  # where weights were looked for
THERE: list[str] = []  # where they are


class Open(Mlp):
    """A backbone that takes weights from wherever they are."""

    traceable: ClassVar[bool] = True
    blank: ClassVar[Mapping[str, Any]] = MappingProxyType({"weights": "random"})

    def __init__(
        self,
        input_shape: Sequence[int],
        outputs: int | Mapping[str, int],
        *,
        weights: str = "auto",
        scale: float | None = None,
    ) -> None:
        super().__init__(input_shape, outputs, hidden=(5,))
        if weights != "random":
            LOOKED.append(weights)
            weights = THERE[0] if weights == "auto" and THERE else "random"
        if weights != "random":
            for parameter in self.parameters():
                nn.init.constant_(parameter, 0.1 / len(weights))
        self.resolved = {"weights": weights, "scale": 2.0 if scale is None else scale}


class Closed(Open):
    """The same, which inherits no promise."""


@pytest.fixture(autouse=True)
def _nowhere() -> Iterator[None]:
    yield
    LOOKED.clear()
    THERE.clear()


NAME = f"{__name__}:Open"


def _plan(method: str = "cosmos", **changes: Any) -> Plan:
    return plan_of(method=method, **{"backbone": NAME} | changes)


def _go(out: Path, **changes: Any) -> Run:
    given: dict[str, Any] = {"epochs": 2, "engine": "eager", "device": "cpu", "backbone": NAME}
    return fit("toy_convex", preset="paper", out=out, **given | changes)


def test_what_open_settings_came_to_is_written_down() -> None:
    assert _plan().configuration.backbone == Spec(NAME, {"weights": "random", "scale": 2.0})
    THERE.append("here")
    found = _plan(settings={"scale": "3"}).configuration.backbone
    assert found == Spec(NAME, {"weights": "here", "scale": 3.0})


def test_a_backbone_without_open_settings_is_written_down_as_it_was_asked_for() -> None:
    backbone = _plan(backbone="mlp", settings={"hidden": "4"}).configuration.backbone
    assert backbone == Spec("mlp", {"hidden": (4,)})


@pytest.mark.parametrize("method", ["cosmos", "single_task", "pareto_mtl"])
def test_it_is_looked_for_once_however_many_networks_and_seeds(method: str) -> None:
    plan = _plan(method)
    others = [plan.for_seed(seed) for seed in (2, 3)]
    assert LOOKED == ["auto"]
    assert all(other.configuration.backbone == plan.configuration.backbone for other in others)
    first = [next(network.parameters()) for network in list_networks(plan.model)]
    assert all(not torch.equal(first[0], other) for other in first[1:])  # fresh weights each


@pytest.mark.parametrize("method", ["cosmos", "single_task"])
def test_a_run_folder_is_read_without_looking_for_weights(method: str, tmp_path: Path) -> None:
    THERE.append("here")
    run = _go(tmp_path / "run", method=method)
    record = json.loads((run.folder / "run.json").read_text())
    assert record["backbone"]["settings"] == {"weights": "here", "scale": 2.0}
    assert LOOKED[0] == "auto"
    LOOKED.clear()
    again = load_run(run.folder, trust=[__name__])
    assert LOOKED == []
    inputs, ray = torch.randn(6, 4), torch.tensor([0.3, 0.7])
    assert torch.equal(again.model(inputs, ray), run.model(inputs, ray))


def test_a_run_is_not_continued_with_other_weights(tmp_path: Path) -> None:
    run = _go(tmp_path / "run")
    assert _go(tmp_path / "run", resume=True).record == run.record
    THERE.append("here")
    with pytest.raises(RunError, match=r"backbone\.settings\.weights: 'random'.*'here'"):
        _go(tmp_path / "run", resume=True)


def test_what_a_backbone_says_it_is_made_of_may_be_recorded() -> None:
    assert _plan().traceable
    assert not _plan(backbone=f"{__name__}:Closed").traceable
    assert _plan(method="single_task").traceable
