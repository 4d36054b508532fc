"""Several processes that train one run.

All processes draw the same batches and rays and hold the same weights. Each runs the network on its
share of a batch; the outputs are gathered, so that every process has the losses of the whole batch
and weighs them alike, whatever the objective; then the gradients, each process's through its own
share, are summed. So a run does not depend on how many processes there are, but for rounding.
"""

import atexit
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from paretocosmos.errors import ConfigurationError, LostProcessError, ParetoCosmosError
from paretocosmos.io.files import one_line
from paretocosmos.runtime.distributed.messages import (
    choose_bytes_device,
    count_before,
    gather_equal,
    gather_rows,
    send_and_receive,
    sum_over_processes,
    wait_for,
)
from paretocosmos.runtime.launch import COUNT, LOCAL_RANK, is_launched
from paretocosmos.types import Outputs, map_tensors

Made = TypeVar("Made")


@dataclass(frozen=True)
class Processes:
    """This process among those that train together; alone, every verb does nothing.

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
        """Whether this is the process that writes files and speaks to the user."""
        return self.rank == 0

    def share(self, samples: int) -> slice:
        """Which of so many samples are this process's; all where there are too few to share."""
        if samples < self.count:
            return slice(0, samples)
        return slice(*(count_before(samples, self.count, at) for at in (self.rank, self.rank + 1)))

    def share_of_index(self, index: Tensor, *, parts: int = 1) -> Tensor:
        """Of a batch's indices ``[B]`` this process's share, of each of so many equal parts."""
        if self.count == 1:
            return index
        return torch.cat([part[self.share(len(part))] for part in index.chunk(parts)])

    def share_of_rays(self, rays: Tensor) -> Tensor:
        """The rays ``[G, J]`` of this process's share of a batch: one for all, or its groups'."""
        return rays if len(rays) == 1 else rays[self.share(len(rays))]

    def gather(self, outputs: Outputs, samples: int, *, axis: int = 0) -> Outputs:
        """Every process's outputs, in the order of the samples; gradients reach one's own only.

        Args:
            outputs: of this process's share, packed as a network gives them.
            samples: in all.
            axis: that of the samples.
        """
        if not self.joined or samples < self.count:
            return outputs
        own: list[Tensor] = []

        def note(part: Tensor) -> Tensor:
            own.append(part.movedim(axis, 0))
            return part

        map_tensors(note, outputs)
        # side by side, for one message instead of one for each head
        flat = torch.cat([part.reshape(len(part), -1) for part in own], dim=1)
        sizes = [math.prod(part.shape[1:]) for part in own]
        mine = self.share(samples)
        every = gather_rows(flat.detach(), samples, self.rank, self.count)
        every = torch.cat([every[: mine.start], flat, every[mine.stop :]])
        wholes = iter(
            whole.reshape(samples, *part.shape[1:]).movedim(0, axis)
            for part, whole in zip(own, every.split(sizes, dim=1), strict=True)
        )
        joined: Outputs = map_tensors(lambda _: next(wholes), outputs)
        return joined

    def total(self, parts: Sequence[Tensor], samples: int) -> list[Tensor]:
        """The sums over all processes of tensors that came from their shares of so many samples."""
        if not self.joined:
            return list(parts)
        flat = torch.cat([part.reshape(-1) for part in parts])
        if samples < self.count:  # every process had all of them
            flat = flat / self.count
        pieces = sum_over_processes(flat).split([part.numel() for part in parts])
        return [piece.view(part.shape) for piece, part in zip(pieces, parts, strict=True)]

    def follow(self, tensors: Sequence[Tensor]) -> None:
        """Take the first process's numbers, in place."""
        for tensor in tensors if self.joined else ():
            sent = tensor.detach().contiguous()
            send_and_receive(partial(dist.broadcast, src=0), sent)
            if not self.first:
                tensor.detach().copy_(sent)

    def broadcast_bytes(self, said: bytes) -> bytes:
        """What the first process says, whatever this one does."""
        return self.all_gather_bytes(said)[0]

    def all_gather_bytes(self, said: bytes) -> list[bytes]:
        """What every process says, by rank."""
        if not self.joined:
            return [said]
        where = choose_bytes_device()
        sizes = gather_equal(torch.tensor([len(said)], device=where), self.count)
        longest = int(max(sizes))
        if not longest:
            return [b""] * self.count
        padded = torch.frombuffer(bytearray(said.ljust(longest, b"\0")), dtype=torch.uint8)
        every = [
            part.cpu().numpy().tobytes() for part in gather_equal(padded.to(where), self.count)
        ]
        return [part[: int(size)] for part, size in zip(every, sizes, strict=True)]

    def together(self, act: Callable[[], Made]) -> Made:
        """Do something in every process, the first before the others; one that fails fails all.

        The others find what the first has left in a cache.
        """
        if not self.joined:
            return act()
        made: list[Made] = []
        failed: ParetoCosmosError | None = None
        for turn in (True, False):
            if self.first is turn:
                try:
                    made.append(act())
                except ParetoCosmosError as error:
                    failed = error
            answers = [
                one.decode()
                for one in self.all_gather_bytes(b"" if failed is None else _encode_error(failed))
            ]
            if any(answers):
                raise self._refusal(failed, answers)
        return made[0]

    def agree(self, facts: Mapping[str, str]) -> None:
        """Refuse processes that do not have the same settings and data, fact by fact."""
        if not self.joined:
            return
        every = [json.loads(one) for one in self.all_gather_bytes(json.dumps(dict(facts)).encode())]
        for rank, own in enumerate(every):
            for fact in dict.fromkeys([*every[0], *own]):
                here, there = every[0].get(fact), own.get(fact)
                if here != there:
                    raise _mark_shared(
                        ConfigurationError(
                            f"all processes of a training must have the same {fact}, found {here} "
                            f"in the first and {there} in process {rank}: start them with the same "
                            "command, version and files"
                        )
                    )

    def _refusal(self, own: ParetoCosmosError | None, answers: list[str]) -> ParetoCosmosError:
        if own is not None and answers[0] == str(own):
            return _mark_shared(own)
        who = next(rank for rank, answer in enumerate(answers) if answer)
        named = f"process {who} of {self.count}: " if who else ""
        return _mark_shared(ConfigurationError(f"{named}{answers[who]}"))


ALONE = Processes()
"""One process that trains by itself."""


def join_processes(device: str) -> tuple[Processes, str]:
    """The processes that train together, and the device of this one.

    A process group that is there is taken; where torchrun started several processes, one is made.

    Args:
        device: as the user named it; of several GPUs every process on a machine gets its own.
    """
    if not dist.is_available():
        return ALONE, device
    if not dist.is_initialized() and is_launched():
        _init_process_group(device)
    if not dist.is_initialized():
        return ALONE, device
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
    atexit.register(_destroy_process_group)


def _destroy_process_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def _encode_error(error: ParetoCosmosError) -> bytes:
    return (str(error) or type(error).__name__).encode()


def _mark_shared(error: ParetoCosmosError) -> ParetoCosmosError:
    """An error that every process has, and only the first need tell."""
    error.shared = True
    return error
