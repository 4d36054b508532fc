"""Messages between processes: how they are sent, and the error when no process answers.

Gathering and summing are operators of our own: a recorded or captured step holds them as it holds
any other.
"""

# ruff: noqa: ARG001 (a fake version takes what its operator takes)

import re
import threading
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from paretocosmos.errors import LostProcessError
from paretocosmos.io.files import one_line


@torch.library.custom_op("paretocosmos::gather_rows", mutates_args=())
def gather_rows(own: Tensor, samples: int, rank: int, count: int) -> Tensor:
    """Every process's rows, in order: ``[samples, ...]``."""
    sizes = [
        count_before(samples, count, at + 1) - count_before(samples, count, at)
        for at in range(count)
    ]
    padded = own.new_zeros(max(sizes), *own.shape[1:])
    padded[: len(own)] = own
    every = gather_equal(padded, count)
    return torch.cat([part[:size] for part, size in zip(every, sizes, strict=True)])


@gather_rows.register_fake
def _(own: Tensor, samples: int, rank: int, count: int) -> Tensor:
    return own.new_empty(samples, *own.shape[1:])


@torch.library.custom_op("paretocosmos::sum_over_processes", mutates_args=())
def sum_over_processes(own: Tensor) -> Tensor:
    """The sum over all processes."""
    total = own.clone()
    send_and_receive(dist.all_reduce, total)
    return total


@sum_over_processes.register_fake
def _(own: Tensor) -> Tensor:
    return torch.empty_like(own)


def gather_equal(own: Tensor, count: int) -> list[Tensor]:
    """Every process's tensor of one shape."""
    every = [torch.empty_like(own) for _ in range(count)]
    send_and_receive(partial(dist.all_gather, every), own)
    return every


def send_and_receive(operation: Callable[..., dist.Work], tensor: Tensor) -> None:
    """Send and receive; a lost process is an error in one sentence.

    Args:
        operation: one of torch.distributed that takes the tensor and `async_op`.
        tensor: what it sends.
    """
    try:
        work = operation(tensor, async_op=True)
        if tensor.device.type == "cpu" and "gloo" in dist.get_backend_config():
            answered = threading.Event()
            work.get_future().add_done_callback(lambda _: answered.set())
            answered.wait()  # a signal ends it, but not the wait in C++ that follows
        work.wait()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # all of torch.distributed's are
        raise LostProcessError(
            f"another process of this training was lost ({_extract_cause(error)})"
        ) from error


def wait_for(act: Callable[[], object]) -> None:
    """Do in a thread what waits in C++ for other processes, so that a signal ends the wait."""
    ended = threading.Event()
    failures: list[Exception] = []

    def do() -> None:
        try:
            act()
        except Exception as error:
            failures.append(error)
        finally:
            ended.set()

    threading.Thread(target=do, daemon=True).start()
    ended.wait()
    if failures:
        raise failures[0]


def _extract_cause(error: RuntimeError) -> str:
    """The first sentence of what a backend says, without its place in the source."""
    said = re.sub(r"^\[\S+:\d+\]\s*", "", one_line(error))
    return re.split(r"\. |; ", said, maxsplit=1)[0]


def count_before(samples: int, count: int, rank: int) -> int:
    """How many samples go to the processes before one; the first ones have one more."""
    least, more = divmod(samples, count)
    return rank * least + min(rank, more)


def choose_bytes_device() -> torch.device:
    """Where a tensor lies that the process group can send: words need no GPU."""
    gpu_only = (
        dist.get_backend_config().endswith("nccl") and "gloo" not in dist.get_backend_config()
    )
    return torch.device("cuda", torch.cuda.current_device()) if gpu_only else torch.device("cpu")
