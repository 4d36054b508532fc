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
def gather_rows(rows: Tensor, samples: int, rank: int, count: int) -> Tensor:
    """Gather every process's rows, in order: ``[samples, ...]``."""
    sizes = [
        count_before(samples, count, r + 1) - count_before(samples, count, r) for r in range(count)
    ]
    # only tensors of one shape can be gathered: shorter shares are padded
    padded = rows.new_zeros(max(sizes), *rows.shape[1:])
    padded[: len(rows)] = rows
    shares = gather_equal(padded, count)
    return torch.cat([share[:size] for share, size in zip(shares, sizes, strict=True)])


# a fake version tells the shape, so that tracing sends no message
@gather_rows.register_fake
def _(rows: Tensor, samples: int, rank: int, count: int) -> Tensor:
    return rows.new_empty(samples, *rows.shape[1:])


@torch.library.custom_op("paretocosmos::sum_over_processes", mutates_args=())
def sum_over_processes(tensor: Tensor) -> Tensor:
    """Sum a tensor over all processes."""
    total = tensor.clone()  # `all_reduce` works in place; an operator must not change its input
    send_and_receive(dist.all_reduce, total)
    return total


@sum_over_processes.register_fake
def _(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor)


def gather_equal(tensor: Tensor, count: int) -> list[Tensor]:
    """Gather every process's tensor, all of one shape, by rank."""
    gathered = [torch.empty_like(tensor) for _ in range(count)]
    send_and_receive(partial(dist.all_gather, gathered), tensor)
    return gathered


def send_and_receive(operation: Callable[..., dist.Work], tensor: Tensor) -> None:
    """Send and receive; raise one sentence if a process was lost.

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
        raise  # a `RuntimeError` too, but of this process
    except RuntimeError as error:  # all of torch.distributed's are
        # the first sentence of the backend's message, without its line in the source
        message = re.sub(r"^\[\S+:\d+\]\s*", "", one_line(error))
        cause = re.split(r"\. |; ", message, maxsplit=1)[0]
        raise LostProcessError(f"another process of this training was lost ({cause})") from error


def wait_for(act: Callable[[], object]) -> None:
    """Run in a thread what waits in C++ for other processes, so that a signal ends the wait."""
    ended = threading.Event()
    failures: list[Exception] = []

    def run() -> None:
        try:
            act()
        except Exception as error:
            failures.append(error)
        finally:
            ended.set()

    threading.Thread(target=run, daemon=True).start()
    ended.wait()
    if failures:
        raise failures[0]


def count_before(samples: int, count: int, rank: int) -> int:
    """Count the samples of the processes before `rank`; the first processes have one more."""
    least, remainder = divmod(samples, count)
    return rank * least + min(rank, remainder)
