"""Steps that send messages, captured on a real GPU; a group of one process will do for that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.small import watch
from tests.training.engine.cuda import NEEDS_CUDA

from paretocosmos import fit
from paretocosmos.runtime import distributed
from paretocosmos.runtime.distributed import Processes

pytestmark = NEEDS_CUDA
SETTINGS: dict[str, Any] = {"copies": 1, "batch_size": 64, "rays": 3, "reference": (5.0, 5.0)}


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    """A process group of one, as torchrun would make it for many."""
    torch.distributed.init_process_group(
        "cpu:gloo,cuda:nccl", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("method", ["cosmos", "epo"])
def test_messages_are_captured(
    group: None, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"method": method, "settings": SETTINGS, "precision": "fp64"}
    sent: list[str] = []
    names = "gather_rows", "sum_over_processes"
    for name in names:
        watch(monkeypatch, distributed, name, lambda *_, name=name: sent.append(name))
    joined = fit("multi_digits", preset="paper", out=tmp_path / "joined", epochs=2, **given)
    assert set(names) == set(sent)
    assert joined.record["engine"] == "captured"
    assert joined.record["machine"]["device"] != "cpu"
    torch.distributed.destroy_process_group()
    alone = fit("multi_digits", preset="paper", out=tmp_path / "alone", epochs=2, **given)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/again", rank=0, world_size=1
    )
    np.testing.assert_allclose(joined.front.values, alone.front.values, rtol=1e-8)


def test_words_go_where_the_group_can_send_them(group: None) -> None:
    own = Processes(0, 1, joined=True)
    assert own.all_gather_bytes(b"here") == [b"here"]
    tensor = torch.arange(3.0, device="cuda")
    own.follow([tensor])
    assert torch.equal(own.total([tensor], 3)[0], tensor)
