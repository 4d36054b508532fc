"""What fits on a device, and how much a training took."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from paretocosmos.runtime.device import fits_on_device
from paretocosmos.types import Batch

CUDA, CPU = torch.device("cuda"), torch.device("cpu")
GPU = Callable[..., None]
STATUS = Path("/proc/self/status")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> GPU:
    """A GPU that says so much of its memory."""

    def say(free: int, reserved: int = 0, allocated: int = 0) -> None:
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 10**12))
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: reserved)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: allocated)

    return say


def _batch() -> Batch:
    """A hundred bytes a sample as it is kept, 10,000 in all."""
    images = {"x": torch.zeros(100, 60, dtype=torch.uint8), "y": torch.zeros(100, 6)}
    return Batch(images, {"label": torch.zeros(100, dtype=torch.int64), "far": torch.zeros(100, 2)})


@pytest.mark.parametrize(("free", "fit"), [(25_000, True), (24_999, False)])
def test_a_split_may_take_two_fifths_of_what_is_free(gpu: GPU, free: int, fit: bool) -> None:
    gpu(free)
    assert fits_on_device(_batch(), CUDA) == fit
    gpu(free - 3_000, reserved=7_000, allocated=4_000)  # what torch keeps for itself is free
    assert fits_on_device(_batch(), CUDA) == fit
