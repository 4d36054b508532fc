"""The checkpoint: a whole epoch in one file, enough to go on bit for bit.

One safetensors file holds the network, the optimiser, the generators, the method's state and the
best network so far; its header holds the rest as JSON, and a hash of everything. One file, written
beside and renamed, is always consistent, whenever the process is killed; the hash tells what
happens to it afterwards. Nothing is pickled.
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
# Numbers that a file may have beside those of its network.
MARGIN = 1000

# What reading a damaged file can raise.
UNREADABLE = (OSError, SafetensorError, LookupError, TypeError, ValueError, RecursionError)


@dataclass
class TrainingState:
    """How far a training has come: all that changes from epoch to epoch.

    The tensors are those in training, so that a checkpoint is loaded into the training itself.
    """

    model: nn.Module
    optimiser: Mapping[str, Tensor]
    generator: torch.Generator
    method_state: Mapping[str, Tensor]
    best: dict[str, Tensor] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)


@status("saving a checkpoint")
def save_checkpoint(path: Path, at: TrainingState) -> None:
    """Write the checkpoint, replacing the one before."""
    tensors = {f"model.{name}": value for name, value in at.model.state_dict().items()}
    tensors |= {f"optimiser.{name}": value for name, value in at.optimiser.items()}
    tensors |= {f"method.{name}": value for name, value in at.method_state.items()}
    tensors |= {f"best.{name}": value for name, value in at.best.items()}
    tensors["rng.own"] = at.generator.get_state()
    tensors["rng.torch"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["rng.cuda"] = torch.cuda.get_rng_state()
    save_tensors(path, tensors, at.numbers, hashed=True)


def load_checkpoint(path: Path, at: TrainingState) -> None:
    """Bring everything back to where the checkpoint was written; refuse that of another run.

    Args:
        path: the checkpoint.
        at: what is to go on, whose `numbers` name its run.
    """
    tensors, numbers = load_tensors(path, hashed=True)
    if numbers.get("run") != at.numbers.get("run"):
        raise RunError(
            f"`{path}` is a checkpoint of another run, with other settings, seed, data or version; "
            f"remove `{path.parent}` to train from the beginning, or choose another `out`"
        ).with_hint({"out": None})
    weights = rename_tensors(_under(tensors, "model"), at.model)
    try:
        at.model.load_state_dict(weights)
    except RuntimeError as error:
        raise RunError(
            f"`{path}` does not fit this network: {describe_misfit(at.model, weights, error)}; "
            "train again in another folder"
        ) from error
    try:
        _fill(at.optimiser, _under(tensors, "optimiser"))
        _fill(at.method_state, _under(tensors, "method"))
        at.generator.set_state(tensors["rng.own"])
        torch.set_rng_state(tensors["rng.torch"])
        if "rng.cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["rng.cuda"])
    except (KeyError, RuntimeError, ValueError) as error:
        raise RunError(
            f"`{path}` does not fit this network ({one_line(error)}); train again in another folder"
        ) from error
    best = _under(tensors, "best")
    at.best = rename_tensors(best, at.model) if best else best
    at.numbers = numbers


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any], *, hashed: bool = False
) -> None:
    """Write named tensors and JSON-able numbers into one safetensors file.

    Args:
        path: the file.
        tensors: by name, on any device.
        numbers: what goes into its header.
        hashed: whether the file is to hold a hash of all that, as a tensor of bytes: a second text
            in the header would come before or after the first, at random.
    """
    plain, said = unshare_tensors(tensors), json.dumps(numbers)
    if hashed:
        plain[HASH] = _hash(plain, said)
    # straight from the tensors' memory to the file: a network's checkpoint may be gigabytes
    with replace_file(path) as temporary:
        try:
            save_file(plain, temporary, metadata={HEADER: said})
        except SafetensorError as error:  # "Error while serializing: I/O error: File too large"
            raise OSError(one_line(error).rpartition(": ")[2]) from error


def unshare_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors on the CPU, each in memory of its own; copied only where it was not.

    Files of safetensors hold no memory twice, as tied weights would need it.
    """
    seen: set[int] = set()
    plain = {}
    for name, tensor in tensors.items():
        own = tensor.detach().cpu().contiguous()
        memory = own.untyped_storage()
        if memory.nbytes() != own.nbytes or memory.data_ptr() in seen:
            own = own.clone()
        seen.add(own.untyped_storage().data_ptr())
        plain[name] = own
    return plain


def _hash(tensors: Mapping[str, Tensor], said: str) -> Tensor:
    """The SHA-256 of tensors on the CPU, contiguous, and of the text that goes with them."""
    every = sorted(tensors.items())
    layout = [(name, str(tensor.dtype), tuple(tensor.shape)) for name, tensor in every]
    content = hashlib.sha256(f"{said}{layout}".encode())
    for _, tensor in every:
        content.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return torch.frombuffer(bytearray(content.hash_file()), dtype=torch.uint8)


def load_tensors(path: Path, *, hashed: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The inverse of `save_tensors`, on the CPU; a damaged file is one sentence.

    Args:
        path: the file.
        hashed: whether it must hold the hash of its content; else it may.
    """
    with _refusing(path):
        return _read(path, hashed=hashed)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn whatever reading a damaged file raises into one sentence."""
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
    """Refuse a file whose tensors are not as large as those of the network it is read for.

    Only its header is read: it may say that gigabytes follow, and they may be there.

    Args:
        path: the file.
        network: may be on the device `meta`, without memory.
        copies: how many such networks the file is to hold.
        partial: whether it may hold less.
    """
    wanted = copies * sum(tensor.numel() for tensor in network.state_dict().values())
    # as NumPy: torch would ask for memory to map all of it
    with _refusing(path), safe_open(path, framework="np") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    count = sum(math.prod(shape) for shape in shapes)
    # a hash of the content, rays, and what networks of earlier versions had beside
    if count > 2 * wanted + MARGIN or (count < wanted and not partial):
        raise RunError(
            f"the weights in `{path}` do not fit the network, which has {wanted:,} numbers where "
            f"there are {count:,}: restore the original files, or pass the network they are of"
        )


def _read(path: Path, *, hashed: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with safe_open(path, framework="pt") as file:
        said = file.metadata()[HEADER]
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    written = tensors.pop(HASH, None)
    if hashed and written is None:
        raise ValueError("it lacks the hash of its content")
    if written is not None and not torch.equal(written, _hash(tensors, said)):
        raise ValueError("its content was changed")
    return tensors, json.loads(said)


def read_numbers(path: Path) -> dict[str, Any] | None:
    """What a checkpoint says beside its tensors, which are not read; `None` if it cannot be."""
    try:
        with safe_open(path, framework="pt") as file:
            said: dict[str, Any] = json.loads(file.metadata()[HEADER])
    except UNREADABLE:  # it may be gone by now: the training keeps the last two
        return None
    return said


def find_flaw(path: Path, epoch: int) -> str | None:
    """What is wrong with the checkpoint of an epoch, in a few words; `None` if it is intact."""
    try:
        _, numbers = _read(path, hashed=True)
        if numbers["epoch"] != epoch:
            raise ValueError(f"it is from epoch {numbers['epoch']}")
    except UNREADABLE as error:
        return one_line(error)
    return None


def _fill(current: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> None:
    shapes = [{name: tuple(t.shape) for name, t in part.items()} for part in (saved, current)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"it holds {shapes[0]}, not {shapes[1]}")
    for name, tensor in current.items():
        tensor.detach().copy_(saved[name])


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}


def join_states(parts: Sequence[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """Named tensors of several networks under one roof; of one, as they are."""
    if len(parts) == 1:
        return parts[0]
    return {f"{k}.{name}": value for k, part in enumerate(parts) for name, value in part.items()}


NAME = re.compile(r"epoch-(\d{1,9})\.safetensors")


def checkpoint_path(folder: Path, epoch: int) -> Path:
    """Where a run folder keeps the checkpoint of an epoch."""
    return folder / "checkpoint" / f"epoch-{epoch}.safetensors"


def list_checkpoints(folder: Path) -> dict[int, Path]:
    """The checkpoints in a run folder by their epochs, newest first, intact or not."""
    found = ((NAME.fullmatch(path.name), path) for path in (folder / "checkpoint").glob("epoch-*"))
    by_epoch = {int(match[1]): path for match, path in found if match}
    return dict(sorted(by_epoch.items(), reverse=True))


def find_newest_checkpoint(folder: Path) -> Path:
    """The newest checkpoint in a run folder."""
    return next(iter(list_checkpoints(folder).values()), checkpoint_path(folder, 0))


def _held_in(folder: Path) -> tuple[list[int], list[str]]:
    """The epochs a run can go on from, and what is to be said of checkpoints that are damaged."""
    saved = list_checkpoints(folder)
    if not saved:
        return [0], []  # it has not begun
    flaws = {epoch: find_flaw(path, epoch) for epoch, path in saved.items()}
    damaged = [f"`{saved[epoch]}` is damaged ({flaw})" for epoch, flaw in flaws.items() if flaw]
    held = [epoch for epoch, flaw in flaws.items() if flaw is None]
    if not held:
        raise RunError(
            f"{'; '.join(damaged)}, and there is no other checkpoint: remove "
            f"`{folder / 'checkpoint'}` to train from the beginning"
        )
    # the beginning can be made anew, as long as it is among the last two
    return held + [0] * (0 in flaws and 0 not in held), damaged


def find_common_epoch(folders: Sequence[Path]) -> int:
    """The newest epoch that runs can all go on from; a damaged checkpoint is warned about."""
    every = [_held_in(folder) for folder in folders]
    common = set.intersection(*(set(held) for held, _ in every))
    if not common:
        named = ", ".join(f"`{folder}`" for folder in folders)
        raise RunError(
            f"{named} have no intact checkpoint of the same epoch: resume them one by one"
        )
    epoch = max(common)
    for message in (message for _, damaged in every for message in damaged):
        warnings.warn(
            f"{message}; training continues from the checkpoint of epoch {epoch}, with the same "
            "result",
            CheckpointWarning,
            stacklevel=2,
        )
    return epoch


def group_by_epoch(folders: Sequence[Path]) -> list[list[int]]:
    """Which runs go on together: those that hold the epoch most of them hold, then the others so.

    Args:
        folders: the runs'.

    Returns:
        Places in `folders`, a list for each epoch, those furthest on first.
    """
    left = {at: _held_in(folder)[0] for at, folder in enumerate(folders)}
    together: dict[int, list[int]] = {}
    while left:
        counts = Counter(epoch for held in left.values() for epoch in held)
        epoch = max(counts, key=lambda one: (counts[one], one))
        together[epoch] = [at for at, held in left.items() if epoch in held]
        left = {at: held for at, held in left.items() if epoch not in held}
    return [together[epoch] for epoch in sorted(together, reverse=True)]


def remove_other_checkpoints(folder: Path, epochs: Iterable[int]) -> None:
    """Remove the checkpoints of all other epochs."""
    kept = set(epochs)
    for epoch, path in list_checkpoints(folder).items():
        if epoch not in kept and not path.is_dir():
            path.unlink(missing_ok=True)


def clean_run_folder(folder: Path) -> None:
    """Remove what killed processes left half written in a run folder.

    And an empty folder under the name of a checkpoint, where one could not be written.
    """
    for place in (folder, folder / "checkpoint"):
        remove_leftovers(place)
    for path in list_checkpoints(folder).values():
        if path.is_dir():
            with suppress(OSError):
                path.rmdir()
