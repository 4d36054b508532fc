"""The machine a training runs on: seeds, switches and threads, put back afterwards."""

import hashlib
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Batch, list_tensors

PRECISIONS = ("tf32", "fp32", "bf16", "fp64")

# The share of a device's free memory that a split may take: networks and batches need the rest.
SHARE = 0.4

# Multiply-adds of a forward pass below which networks train faster as a stack, on a CPU too: most
# of the time goes into asking for operations.
SMALL_STEP = 3_000_000
# And below which a step runs on one thread. At 2 million (Adult by the paper's recipe) one is as
# fast as two on an idle machine, at 27 million (by default) two take 0.75 of the time; on a busy
# one, where threads wait for each other, they take many times as long as one.
ONE_THREAD = 40_000_000


@contextmanager
def limit_threads(work: int | None) -> Iterator[None]:
    """Use one thread for steps too small to share: handing them out costs more than it saves.

    Args:
        work: multiply-adds of a forward pass; `None` leaves the threads alone.
    """
    before = torch.get_num_threads()  # a setting of the process, so of the caller too
    if work is not None and work < ONE_THREAD:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def retain_freed_memory(device: torch.device) -> None:
    """Let glibc keep what a step frees, instead of handing it back and asking for it again.

    It returns freed memory to the system as soon as there is more than twice the largest block it
    ever freed (at most 32 MB), and the next step pays for every page anew: a third of the time of
    a LeNet's step. So one block of that size is freed here. Elsewhere this does nothing.
    """
    if device.type == "cpu":
        # below 32 MB, glibc's DEFAULT_MMAP_THRESHOLD_MAX: a larger block would change nothing
        torch.empty(31 * 2**20, dtype=torch.uint8)


@contextmanager
def seed_torch(seed: int, device: torch.device, *, deterministic: bool) -> Iterator[None]:
    """Seed torch for a run and leave the caller's generators and switches as they were."""
    devices = [device] if device.type == "cuda" else []
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    search = torch.backends.cudnn.benchmark
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        if deterministic:
            torch.use_deterministic_algorithms(True)
        # batches have two sizes, so a search for the fastest convolutions pays at once
        torch.backends.cudnn.benchmark = not deterministic
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before, warn_only=warn_only)
            torch.backends.cudnn.benchmark = search


@contextmanager
def set_precision(precision: str) -> Iterator[None]:
    """Let a GPU's tensor cores round float32 products to tf32, or not."""
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    products.allow_tf32 = convolutions.allow_tf32 = precision in ("tf32", "bf16")
    try:
        yield
    finally:
        products.allow_tf32, convolutions.allow_tf32 = before


@contextmanager
def convert_sigterm() -> Iterator[None]:
    """Let SIGTERM end the process as Ctrl-C does, so that it can say what is saved."""
    # Python lets only the main thread set handlers
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@cache
def _get_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # the same for every training, or each would leave workspaces


@contextmanager
def on_capture_stream(device: torch.device) -> Iterator[None]:
    """Queue a GPU's work on one stream that can be captured: each stream has its own workspaces."""
    if device.type != "cuda":
        yield
        return
    outside, inside = torch.cuda.current_stream(device), _get_stream(device)
    inside.wait_stream(outside)  # tensors may still be written there, and read there afterwards
    try:
        with torch.cuda.stream(inside):
            yield
    finally:
        outside.wait_stream(inside)


def fits_on_device(
    batch: Batch, device: torch.device, dtype: torch.dtype | None = None, *, alike: bool = False
) -> bool:
    """Return True if a split may lie on a device, its floats of that type.

    On a CPU it always may, since it stays where it is.

    Args:
        batch: the split.
        device: where it is to lie.
        dtype: of its floats.
        alike: decide by a device's total memory instead of its free memory, so that processes on
            devices of a kind decide alike.
    """
    if device.type != "cuda":
        return True
    size = sum(
        t.numel() * (dtype if dtype is not None and t.is_floating_point() else t.dtype).itemsize
        for t in list_tensors(batch.inputs, batch.targets)
    )
    free, total = torch.cuda.mem_get_info(device)
    # what torch holds in reserve is free to it
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return size <= SHARE * (total if alike else free)


def get_peak_memory(device: torch.device) -> int | None:
    """Return the most bytes torch held on a GPU since its statistics were reset.

    On a CPU, the most that the process ever held; `None` if the system does not say.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # elsewhere it is in kilobytes


def lacks_memory(error: BaseException | None) -> bool:
    """Return whether an error says that there is too little memory, of a GPU or of the computer."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    # torch has no type of its own for the computer's memory
    words = ("allocate memory", "size calculation overflowed")
    return isinstance(error, RuntimeError) and any(word in str(error) for word in words)


def to_device_layout(model: nn.Module, device: torch.device) -> nn.Module:
    """Move a model to a device, its filters laid out as that device convolves fastest.

    On a CPU, channels last in memory: a step of the paper's LeNet takes 0.6 of the time. The
    convolutions hand the layout on to whatever follows them.
    """
    model.to(device)
    if device.type == "cpu" and any(isinstance(module, nn.Conv2d) for module in model.modules()):
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model


def resolve_device(name: str) -> torch.device:
    """Return the device of that name; refuse one that does not exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigurationError(
            f"unknown device `{name}`; known: auto, cpu, cuda, cuda:0, ..."
        ) from error
    if device.type not in ("cpu", "cuda"):
        raise ConfigurationError(f"`device` must be cpu or cuda, found `{name}`")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigurationError(
            f"`{name}` does not exist: torch sees {torch.cuda.device_count()} CUDA devices; use "
            'device="cpu"'
        )
    return device


def mix_seed(seed: int, epoch: int, rank: int) -> int:
    """Return a seed of its own for every epoch of every process."""
    # a hash, since sums would meet: those of (seed 1, epoch 2) and (seed 2, epoch 1)
    digest = hashlib.blake2b(f"{seed} {epoch} {rank}".encode(), digest_size=7)
    return int.from_bytes(digest.digest())
