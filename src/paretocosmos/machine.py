"""The machine a training runs on: seeds, switches and threads, put back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from paretocosmos.errors import ConfigurationError

__all__ = ["device_of", "seeded", "threads_for"]

# Multiply-adds of a forward pass below which a step runs on one thread. At 2 million (Adult) one is
# as fast as two on an idle machine and far faster on a busy one, where threads wait for each other;
# at 5 million two are faster.
SMALL_STEP = 3_000_000


@contextmanager
def threads_for(work: int | None) -> Iterator[None]:
    """One thread for steps too small to share: handing them around costs more than it saves.

    Args:
        work: multiply-adds of a forward pass; `None` leaves the threads alone.
    """
    before = torch.get_num_threads()
    if work is not None and work < SMALL_STEP:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def seeded(seed: int, device: torch.device, *, deterministic: bool) -> Iterator[None]:
    """Seed torch for a run and leave the caller's generators and switches as they were."""
    devices = [device] if device.type == "cuda" else []
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        if deterministic:
            torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before, warn_only=warn_only)


def device_of(name: str) -> torch.device:
    """The device of that name, or a refusal."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigurationError(
            f"unknown device `{name}`; known: auto, cpu, cuda, cuda:0, ..."
        ) from error
    if device.type not in ("cpu", "cuda"):
        raise ConfigurationError(f"`device` is cpu or cuda, found `{name}`")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigurationError(
            f"`{name}` is not there: torch sees {torch.cuda.device_count()} CUDA devices; use "
            "--device cpu"
        )
    return device
