"""Several processes that train one run.

All processes draw the same batches and rays and hold the same weights. Each runs the network on its
share of a batch; the outputs are gathered, so that every process has the losses of the whole batch
and weighs them alike, whatever the objective; then the gradients, each process's through its own
share, are summed. So a run does not depend on how many processes there are, but for rounding.
"""

# ruff: noqa: ARG001 (a fake version takes what its operator takes)

import atexit
import json
import math
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from paretocosmos.errors import ConfigurationError, LostProcessError, ParetoCosmosError
from paretocosmos.io.files import one_line
from paretocosmos.runtime.launch import COUNT, LOCAL_RANK, is_launched
from paretocosmos.types import Outputs, list_tensors, map_tensors


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


T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """This process among those that train together; alone, it has nothing to send or wait for.

    Attributes:
        rank: its number, from 0; the first one writes and prints.
        count: how many there are.
        joined: whether there is a process group, which may be of one.
    """

    rank: int = 0
    count: int = 1
    joined: bool = False

    @property
    def first(self) -> bool:
        """True for the process that writes files and speaks to the user."""
        return self.rank == 0

    def share(self, samples: int) -> slice:
        """Return this process's slice of so many samples; all if there are too few to share."""
        if samples < self.count:
            return slice(0, samples)
        bounds = (self.rank, self.rank + 1)
        return slice(*(count_before(samples, self.count, rank) for rank in bounds))

    def share_of_index(self, index: Tensor, *, parts: int = 1) -> Tensor:
        """Return this process's share of indices ``[B]``, taken from each of equal parts."""
        if self.count == 1:
            return index
        # by micro-batch, so that each of them is shared by all processes
        chunks = index.chunk(parts)
        return torch.cat([chunk[self.share(len(chunk))] for chunk in chunks])

    def share_of_rays(self, rays: Tensor) -> Tensor:
        """Return the rays ``[G, J]`` of this process's share: one for all, or its groups' rays."""
        return rays if len(rays) == 1 else rays[self.share(len(rays))]

    def gather(self, outputs: Outputs, samples: int, *, axis: int = 0) -> Outputs:
        """Gather all outputs in the order of the samples; gradients reach this process's only.

        Args:
            outputs: of this process's share, packed as a network gives them.
            samples: in all.
            axis: that of the samples.
        """
        if not self.joined or samples < self.count:
            return outputs
        share = [output.movedim(axis, 0) for output in list_tensors(outputs)]
        # side by side, for one message instead of one for each head
        flat = torch.cat([head.reshape(len(head), -1) for head in share], dim=1)
        sizes = [math.prod(head.shape[1:]) for head in share]
        rows = self.share(samples)
        gathered = gather_rows(flat.detach(), samples, self.rank, self.count)
        # its own rows once more, with their graph: the message has none
        gathered = torch.cat([gathered[: rows.start], flat, gathered[rows.stop :]])
        heads = iter(
            columns.reshape(samples, *head.shape[1:]).movedim(0, axis)
            for head, columns in zip(share, gathered.split(sizes, dim=1), strict=True)
        )
        all_outputs: Outputs = map_tensors(lambda _: next(heads), outputs)
        return all_outputs

    def total(self, tensors: Sequence[Tensor], samples: int) -> list[Tensor]:
        """Sum tensors over all processes, each computed from its share of so many samples."""
        if not self.joined:
            return list(tensors)
        # one message for all parameters: many small ones would wait for the network each
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        if samples < self.count:  # every process had all of them
            flat = flat / self.count
        sums = sum_over_processes(flat).split([tensor.numel() for tensor in tensors])
        return [total.view(tensor.shape) for total, tensor in zip(sums, tensors, strict=True)]

    def follow(self, tensors: Sequence[Tensor]) -> None:
        """Take the first process's numbers, in place."""
        for tensor in tensors if self.joined else ():
            message = tensor.detach().contiguous()  # backends send one block of memory
            send_and_receive(partial(dist.broadcast, src=0), message)
            if not self.first:
                tensor.detach().copy_(message)

    def broadcast_bytes(self, message: bytes) -> bytes:
        """Return the first process's message; those of the others are ignored."""
        return self.all_gather_bytes(message)[0]

    def all_gather_bytes(self, message: bytes) -> list[bytes]:
        """Return the message of every process, by rank."""
        if not self.joined:
            return [message]
        # a device whose tensors the process group can send: the CPU if it can
        backends = dist.get_backend_config()
        only_gpu = backends.endswith("nccl") and "gloo" not in backends
        device = torch.device("cuda", torch.cuda.current_device()) if only_gpu else "cpu"
        # the lengths first, since only tensors of one shape can be gathered
        sizes = gather_equal(torch.tensor([len(message)], device=device), self.count)
        longest = int(max(sizes))
        if not longest:
            return [b""] * self.count
        padded = torch.frombuffer(bytearray(message.ljust(longest, b"\0")), dtype=torch.uint8)
        gathered = gather_equal(padded.to(device), self.count)
        messages = [tensor.cpu().numpy().tobytes() for tensor in gathered]
        return [m[: int(size)] for m, size in zip(messages, sizes, strict=True)]

    def together(self, act: Callable[[], T]) -> T:
        """Do something in every process, the first before the others; one that fails fails all.

        The others find what the first has left in a cache.
        """
        if not self.joined:
            return act()
        results: list[T] = []
        failure: ParetoCosmosError | None = None
        for turn in (True, False):
            if self.first is turn:
                try:
                    results.append(act())
                except ParetoCosmosError as error:
                    failure = error
            # after each turn: the others must not begin what the first could not do
            # never empty: no message means no error
            told = "" if failure is None else str(failure) or type(failure).__name__
            answers = [answer.decode() for answer in self.all_gather_bytes(told.encode())]
            if any(answers):
                raise self._refusal(failure, answers)
        return results[0]

    def agree(self, facts: Mapping[str, str]) -> None:
        """Refuse processes that do not have the same settings and data, fact by fact."""
        if not self.joined:
            return
        messages = self.all_gather_bytes(json.dumps(dict(facts)).encode())
        by_rank = [json.loads(message) for message in messages]
        for rank, rank_facts in enumerate(by_rank):
            for fact in dict.fromkeys([*by_rank[0], *rank_facts]):
                expected, value = by_rank[0].get(fact), rank_facts.get(fact)
                if expected != value:
                    raise _mark_shared(
                        ConfigurationError(
                            f"all processes of a training must have the same {fact}, found "
                            f"{expected} in the first and {value} in process {rank}: start them "
                            "with the same command, version and files"
                        )
                    )

    def _refusal(self, failure: ParetoCosmosError | None, answers: list[str]) -> ParetoCosmosError:
        # its own error, if it is the one that all tell, keeps its type
        if failure is not None and answers[0] == str(failure):
            return _mark_shared(failure)
        rank = next(rank for rank, answer in enumerate(answers) if answer)
        prefix = f"process {rank} of {self.count}: " if rank else ""
        return _mark_shared(ConfigurationError(f"{prefix}{answers[rank]}"))


ALONE = Processes()
"""One process that trains by itself."""


def join_processes(device: str) -> tuple[Processes, str]:
    """Return the processes that train together, and the device of this one.

    An existing process group is used; if torchrun started several processes, a group is made.

    Args:
        device: as the user named it; of several GPUs every process on a machine gets its own.
    """
    if not dist.is_available():
        return ALONE, device
    if not dist.is_initialized() and is_launched():
        _init_process_group(device)
    if not dist.is_initialized():
        return ALONE, device
    # the local rank counts on this machine; the rank counts over all of them
    if device in ("auto", "cuda") and torch.cuda.is_available():
        device = f"cuda:{int(os.environ.get(LOCAL_RANK, '0')) % torch.cuda.device_count()}"
        torch.cuda.set_device(device)
    return Processes(dist.get_rank(), dist.get_world_size(), joined=True), device


def _init_process_group(device: str) -> None:
    on_gpu = device != "cpu" and torch.cuda.is_available()
    try:
        # a backend for each kind of tensor: words go by gloo also where gradients go by NCCL
        wait_for(partial(dist.init_process_group, "cpu:gloo,cuda:nccl" if on_gpu else "gloo"))
    except (RuntimeError, ValueError) as error:
        raise LostProcessError(
            f"the {os.environ[COUNT]} processes of this training did not find each other "
            f"({one_line(error)}): start them all with torchrun, with the same --rdzv-endpoint"
        ) from error
    # only a group made here is ended here; torch warns of one that is left open
    atexit.register(lambda: dist.is_initialized() and dist.destroy_process_group())


def _mark_shared(error: ParetoCosmosError) -> ParetoCosmosError:
    """Mark an error as one that every process raises, so that only the first prints it."""
    error.shared = True
    return error
