"""What fits on a device, and how much a training took."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from paretocosmos.runtime.device import fits_on_device, get_peak_memory
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


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.float32, 10_000), (torch.float64, 13_200), (torch.float16, 8_400)]
)
def test_floats_count_as_what_they_become(gpu: GPU, dtype: torch.dtype, size: int) -> None:
    gpu(size * 5 // 2)
    assert fits_on_device(_batch(), CUDA, dtype)
    gpu(size * 5 // 2 - 1)
    assert not fits_on_device(_batch(), CUDA, dtype)


def test_on_a_cpu_everything_stays_where_it_is(gpu: GPU) -> None:
    gpu(0)
    assert fits_on_device(_batch(), CPU)


@pytest.mark.skipif(not STATUS.exists(), reason="needs Linux, which keeps a second account")
def test_a_process_knows_its_peak() -> None:
    peak = get_peak_memory(CPU)
    assert peak is not None
    (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM")]
    # what started this process may have been larger
    assert peak >= 0.95 * int(line.split()[1]) * 1024 > 50 * 2**20


def test_a_gpu_knows_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 12_345)
    assert get_peak_memory(CUDA) == 12_345
