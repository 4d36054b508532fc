"""The checkpoint: the state after an epoch in one file, enough to continue bit for bit.

One safetensors file holds the network, the optimiser, the generators, the method's state and the
best network so far; its header holds the rest as JSON, and a tensor a hash of everything. A file
that is written under another name and renamed is consistent whenever the process is killed; the
hash detects what happens to it afterwards. Nothing is pickled.
"""

import hashlib
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from paretocosmos.errors import CheckpointWarning, RunError
from paretocosmos.io.files import one_line, remove_leftovers, replace_file
from paretocosmos.io.progress import status
from paretocosmos.runs.stored_names import rename_tensors
from paretocosmos.runtime.weights import describe_misfit

HEADER, HASH = "paretocosmos", "sha256"
# Numbers that a file may hold beside those of its network.
MARGIN = 1000

# Errors that reading a damaged file can raise.
UNREADABLE = (OSError, SafetensorError, LookupError, TypeError, ValueError, RecursionError)


@dataclass
class TrainingState:
    """State of a training: all that changes from epoch to epoch.

    The tensors are those of the training itself, so that a checkpoint is loaded in place: traced
    steps and CUDA graphs hold their addresses.
    """

    model: nn.Module
    optimiser: Mapping[str, Tensor]
    generator: torch.Generator
    method_state: Mapping[str, Tensor]
    best: dict[str, Tensor] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)


@status("saving a checkpoint")
def save_checkpoint(path: Path, state: TrainingState) -> None:
    """Write a checkpoint, replacing an older one of that name."""
    tensors = {f"model.{name}": value for name, value in state.model.state_dict().items()}
    tensors |= {f"optimiser.{name}": value for name, value in state.optimiser.items()}
    tensors |= {f"method.{name}": value for name, value in state.method_state.items()}
    tensors |= {f"best.{name}": value for name, value in state.best.items()}
    tensors["rng.own"] = state.generator.get_state()
    tensors["rng.torch"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["rng.cuda"] = torch.cuda.get_rng_state()
    save_tensors(path, tensors, state.numbers, hashed=True)


def load_checkpoint(path: Path, state: TrainingState) -> None:
    """Restore the state in which a checkpoint was written; raise if it is of another run.

    Args:
        path: the checkpoint.
        state: the state to be overwritten, whose `numbers` name its run.
    """
    tensors, numbers = load_tensors(path, hashed=True)
    if numbers.get("run") != state.numbers.get("run"):
        raise RunError(
            f"`{path}` is a checkpoint of another run, with other settings, seed, data or version; "
            f"remove `{path.parent}` to train from the beginning, or choose another `out`"
        )
    # the network first: if it does not fit, nothing else was changed
    weights = rename_tensors(_select_prefix(tensors, "model"), state.model)
    try:
        state.model.load_state_dict(weights)
    except RuntimeError as error:
        raise RunError(
            f"`{path}` does not fit this network: {describe_misfit(state.model, weights, error)}; "
            "train again in another folder"
        ) from error
    try:
        _copy_tensors(state.optimiser, _select_prefix(tensors, "optimiser"))
        _copy_tensors(state.method_state, _select_prefix(tensors, "method"))
        state.generator.set_state(tensors["rng.own"])
        # dropout draws from the global generators
        torch.set_rng_state(tensors["rng.torch"])
        if "rng.cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["rng.cuda"])
    except (KeyError, RuntimeError, ValueError) as error:
        raise RunError(
            f"`{path}` does not fit this network ({one_line(error)}); train again in another folder"
        ) from error
    best = _select_prefix(tensors, "best")
    state.best = rename_tensors(best, state.model) if best else best
    state.numbers = numbers


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any], *, hashed: bool = False
) -> None:
    """Write named tensors and JSON-able numbers into one safetensors file.

    Args:
        path: the file.
        tensors: by name, on any device.
        numbers: content of the header.
        hashed: whether to add a hash of all that, as a tensor of bytes: safetensors writes the
            texts of a header in random order, and equal states must give equal files.
    """
    unshared, header = unshare_tensors(tensors), json.dumps(numbers)
    if hashed:
        unshared[HASH] = _compute_hash(unshared, header)
    # straight from the tensors' memory to the file: a network's checkpoint may be gigabytes
    with replace_file(path) as temporary:
        try:
            save_file(unshared, temporary, metadata={HEADER: header})
        except SafetensorError as error:  # "Error while serializing: I/O error: File too large"
            raise OSError(one_line(error).rpartition(": ")[2]) from error


def unshare_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors on the CPU, each in memory of its own; copied only where needed.

    safetensors refuses tensors that share memory, such as tied weights.
    """
    addresses: set[int] = set()
    unshared = {}
    for name, tensor in tensors.items():
        contiguous = tensor.detach().cpu().contiguous()
        memory = contiguous.untyped_storage()
        # a view into larger memory would be refused as well
        if memory.nbytes() != contiguous.nbytes or memory.data_ptr() in addresses:
            contiguous = contiguous.clone()
        addresses.add(contiguous.untyped_storage().data_ptr())
        unshared[name] = contiguous
    return unshared


def _compute_hash(tensors: Mapping[str, Tensor], header: str) -> Tensor:
    """Return the SHA-256 of contiguous tensors on the CPU, and of the header beside them."""
    by_name = sorted(tensors.items())
    layout = [(name, str(tensor.dtype), tuple(tensor.shape)) for name, tensor in by_name]
    content = hashlib.sha256(f"{header}{layout}".encode())
    for _, tensor in by_name:
        # the bytes themselves, without a copy; NumPy has no bfloat16, but it has bytes
        content.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return torch.frombuffer(bytearray(content.digest()), dtype=torch.uint8)


def load_tensors(path: Path, *, hashed: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file of `save_tensors`, onto the CPU; a damaged file gives one sentence.

    Args:
        path: the file.
        hashed: whether it must hold the hash of its content, which is checked if it is there.
    """
    with _translate_errors(path):
        return _read_tensors(path, hashed=hashed)


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Raise one sentence for any error that reading a damaged file causes."""
    if not path.is_file():
        raise RunError(f"`{path}` does not exist; the run folder is incomplete: train again")
    try:
        yield
    except (*UNREADABLE, RuntimeError) as error:  # torch's, where there is too little memory
        raise RunError(
            f"`{path}` is damaged or was not written by paretocosmos ({one_line(error)}); train "
            "again in another folder"
        ) from error


def check_count(path: Path, network: nn.Module, *, copies: int = 1, partial: bool = False) -> None:
    """Raise if a file has more or fewer numbers than the network it is read for.

    Only its header is read: gigabytes may follow.

    Args:
        path: the file.
        network: it may be on the device `meta`, without memory.
        copies: how many such networks the file is to hold.
        partial: whether it may hold fewer numbers.
    """
    expected = copies * sum(tensor.numel() for tensor in network.state_dict().values())
    # through NumPy, since torch would map the whole file into memory
    with _translate_errors(path), safe_open(path, framework="np") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    count = sum(math.prod(shape) for shape in shapes)
    # the hash, rays, and buffers that networks of earlier versions had
    if count > 2 * expected + MARGIN or (count < expected and not partial):
        raise RunError(
            f"the weights in `{path}` do not fit the network, which has {expected:,} numbers where "
            f"there are {count:,}: restore the original files, or pass the network they are of"
        )


def _read_tensors(path: Path, *, hashed: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        # the Trainer of `transformers` writes the format alone
        header = "{}" if metadata == {"format": "pt"} else metadata[HEADER]
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    written = tensors.pop(HASH, None)
    if hashed and written is None:
        raise ValueError("it lacks the hash of its content")
    if written is not None and not torch.equal(written, _compute_hash(tensors, header)):
        raise ValueError("its content was changed")
    return tensors, json.loads(header)


def find_flaw(path: Path, epoch: int) -> str | None:
    """Describe what is wrong with the checkpoint of an epoch; `None` if it is intact."""
    try:
        _, numbers = _read_tensors(path, hashed=True)
        if numbers["epoch"] != epoch:
            raise ValueError(f"it is from epoch {numbers['epoch']}")
    except UNREADABLE as error:
        return one_line(error)
    return None


def _copy_tensors(current: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> None:
    """Copy saved tensors into those of a training, in place."""
    shapes, expected = (
        {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        for tensors in (saved, current)
    )
    if shapes != expected:
        raise ValueError(f"it holds {shapes}, not {expected}")
    for name, tensor in current.items():
        tensor.detach().copy_(saved[name])


def _select_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}


def join_states(states: Sequence[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """Join the named tensors of several networks, with their index; those of one are kept."""
    if len(states) == 1:
        return states[0]
    return {f"{k}.{name}": v for k, state in enumerate(states) for name, v in state.items()}


CHECKPOINT = re.compile(r"epoch-(\d{1,9})\.safetensors")


def checkpoint_path(folder: Path, epoch: int) -> Path:
    """Return the path of an epoch's checkpoint in a run folder."""
    return folder / "checkpoint" / f"epoch-{epoch}.safetensors"


def list_checkpoints(folder: Path) -> dict[int, Path]:
    """Return the checkpoints in a run folder by epoch, newest first, intact or not."""
    matches = (
        (CHECKPOINT.fullmatch(path.name), path) for path in (folder / "checkpoint").glob("epoch-*")
    )
    by_epoch = {int(match[1]): path for match, path in matches if match}
    return dict(sorted(by_epoch.items(), reverse=True))


def find_newest_checkpoint(folder: Path) -> Path:
    """Return the newest checkpoint in a run folder."""
    return next(iter(list_checkpoints(folder).values()), checkpoint_path(folder, 0))


def _find_intact_epochs(folder: Path) -> tuple[list[int], list[str]]:
    """Return the epochs a run can continue from, and messages about damaged checkpoints."""
    saved = list_checkpoints(folder)
    if not saved:
        return [0], []  # it has not begun
    flaws = {epoch: find_flaw(path, epoch) for epoch, path in saved.items()}
    damaged = [f"`{saved[epoch]}` is damaged ({flaw})" for epoch, flaw in flaws.items() if flaw]
    intact = [epoch for epoch, flaw in flaws.items() if flaw is None]
    if not intact:
        raise RunError(
            f"{'; '.join(damaged)}, and there is no other checkpoint: remove "
            f"`{folder / 'checkpoint'}` to train from the beginning"
        )
    # the state before the first epoch follows from the seed; it counts while it is among the two
    # newest, since no run is to lose more than an epoch
    return intact + [0] * (0 in flaws and 0 not in intact), damaged


def find_common_epoch(folders: Sequence[Path]) -> int:
    """Return the newest epoch that all runs can continue from; warn of damaged checkpoints."""
    intact = [_find_intact_epochs(folder) for folder in folders]
    common = set.intersection(*(set(epochs) for epochs, _ in intact))
    if not common:
        named = ", ".join(f"`{folder}`" for folder in folders)
        raise RunError(
            f"{named} have no intact checkpoint of the same epoch: resume them one by one"
        )
    epoch = max(common)
    for message in (message for _, damaged in intact for message in damaged):
        warnings.warn(
            f"{message}; training continues from the checkpoint of epoch {epoch}, with the same "
            "result",
            CheckpointWarning,
            stacklevel=2,
        )
    return epoch


def group_by_epoch(folders: Sequence[Path]) -> list[list[int]]:
    """Group runs that continue from the same epoch: the one most of them hold, then the next.

    Args:
        folders: the runs'.

    Returns:
        Indices of `folders`, a list for each epoch, the most advanced first.
    """
    remaining = {index: _find_intact_epochs(folder)[0] for index, folder in enumerate(folders)}
    groups: dict[int, list[int]] = {}
    while remaining:
        counts = Counter(epoch for epochs in remaining.values() for epoch in epochs)
        epoch = max(counts, key=lambda epoch: (counts[epoch], epoch))
        groups[epoch] = [index for index, epochs in remaining.items() if epoch in epochs]
        remaining = {index: e for index, e in remaining.items() if index not in groups[epoch]}
    return [groups[epoch] for epoch in sorted(groups, reverse=True)]


def remove_other_checkpoints(folder: Path, epochs: Iterable[int]) -> None:
    """Remove the checkpoints of all other epochs."""
    wanted = set(epochs)
    for epoch, path in list_checkpoints(folder).items():
        if epoch not in wanted and not path.is_dir():
            path.unlink(missing_ok=True)


def clean_run_folder(folder: Path) -> None:
    """Remove what killed processes left half written in a run folder.

    An empty folder under the name of a checkpoint, which could not be written, goes as well.
    """
    for path in (folder, folder / "checkpoint"):
        remove_leftovers(path)
    for path in list_checkpoints(folder).values():
        if path.is_dir():
            with suppress(OSError):
                path.rmdir()
