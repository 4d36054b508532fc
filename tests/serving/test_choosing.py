"""`/choose` is answered beside predictions, and disturbs none of them."""

import threading
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from paretocosmos.serving import Settings
from paretocosmos.serving.service import Service


def test_choosing_and_predicting_share_no_module(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, used = threading.Event(), list[nn.Module]()

    def evaluated(model: nn.Module, *rest: Any, **named: Any) -> None:
        used.append(model)
        asked.set()

    monkeypatch.setattr("paretocosmos.serving.service.evaluate_shares", evaluated)
    service = Service(Settings(folder=folder, port=0))
    assert asked.wait(30)
    shared = {id(part) for part in service.run.model.modules()}
    assert not shared & {id(part) for part in used[0].modules()}
    for one, other in zip(service.run.model.parameters(), used[0].parameters(), strict=True):
        assert one.equal(other)
