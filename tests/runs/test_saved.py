"""The checkpoints in run folders: killed at every write, damaged in every region, two kept."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.resumed import results, stop_at

from paretocosmos import fit
from paretocosmos.errors import CheckpointWarning, RunError
from paretocosmos.runs import (
    Run,
    checkpoint_path,
    find_common_epoch,
    find_flaw,
    find_newest_checkpoint,
    group_by_epoch,
    list_checkpoints,
    load_tensors,
    remove_other_checkpoints,
    save_tensors,
)

SETTINGS: dict[str, Any] = {"hidden": (4,), "batch_size": 128, "rays": 3, "reference": (9.0, 9.0)}


def _go(out: Path, **changes: Any) -> Run | list[Run]:
    given: dict[str, Any] = {"epochs": 4, "settings": SETTINGS, "device": "cpu", "engine": "eager"}
    return fit("toy_convex", preset="paper", out=out, **given | changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    _go(folder)
    return folder


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, stopped after its third epoch."""
    folder = tmp_path_factory.mktemp("begun") / "run"
    with pytest.raises(InterruptedError):
        _go(folder, progress=stop_at(3))
    return folder


# ---------------------------------------------------------------- killed


# ---------------------------------------------------------------- damaged


def _flip(content: bytes, at: int, bit: int = 0) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1 << bit
    return bytes(changed)


def test_one_flipped_bit_is_noticed_wherever_it_is(begun: Path, tmp_path: Path) -> None:
    content, path = find_newest_checkpoint(begun).read_bytes(), tmp_path / "epoch-3.safetensors"
    path.write_bytes(content)
    assert find_flaw(path, 3) is None
    draw = np.random.default_rng(0)
    header = 8 + int.from_bytes(content[:8], "little")
    regions = {"length": (0, 8), "header": (8, header), "tensors": (header, len(content))}
    for name, (start, end) in regions.items():
        for at in [*draw.integers(start, end, 60).tolist(), start, end - 1]:
            path.write_bytes(_flip(content, at, int(draw.integers(8))))
            assert find_flaw(path, 3), f"{name}, byte {at}"
    for at in range(header - 120, header):  # the end of the header, padding included
        for bit in range(8):
            path.write_bytes(_flip(content, at, bit))
            assert find_flaw(path, 3), f"byte {at}, bit {bit}"
    for length in (0, 1, 7, 8, header - 1, header, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        assert find_flaw(path, 3), f"cut to {length}"
    path.write_bytes(content + b"\0")
    assert find_flaw(path, 3)
    path.write_bytes(content)
    assert find_flaw(path, 2) == "it is from epoch 3"


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a bit of the header": lambda content: _flip(content, 40),
    "a bit of a tensor": lambda content: _flip(content, len(content) // 2),
    "a bit of the tail": lambda content: _flip(content, len(content) - 1),
    "cut": lambda content: content[:-100],
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
@pytest.mark.parametrize(("damaged", "intact"), [(3, 2), (2, 3)])
def test_the_newest_intact_one_is_taken(
    begun: Path,
    whole: Path,
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
    damaged: int,
    intact: int,
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(begun, cut)
    assert list(list_checkpoints(cut)) == [3, 2]
    path = checkpoint_path(cut, damaged)
    path.write_bytes(damage(path.read_bytes()))
    seen: list[int] = []
    says = rf"`{path}` is damaged .*checkpoint of epoch {intact}"
    with pytest.warns(CheckpointWarning, match=says) as told:
        _go(cut, resume=True, progress=lambda at: seen.append(at.epoch))
    assert [one.category for one in told].count(CheckpointWarning) == 1
    assert seen == list(range(intact + 1, 5))
    assert results(cut) == results(whole)
    assert list(list_checkpoints(cut)) == [4, 3]
    assert all(find_flaw(path, epoch) is None for epoch, path in list_checkpoints(cut).items())


def test_a_stack_goes_back_together_where_one_seed_is_damaged(tmp_path: Path) -> None:
    given: dict[str, Any] = {"seeds": (1, 2, 3)}
    _go(tmp_path / "whole", **given)
    with pytest.raises(InterruptedError):
        _go(tmp_path / "cut", progress=stop_at(3), **given)
    path = checkpoint_path(tmp_path / "cut" / "seed-2", 3)
    path.write_bytes(_flip(path.read_bytes(), 5000))
    seen: list[int] = []
    with pytest.warns(CheckpointWarning, match="seed-2.*checkpoint of epoch 2"):
        runs = _go(
            tmp_path / "cut", resume=True, progress=lambda at: seen.append(at.epoch), **given
        )
    assert seen == [3, 4]
    assert isinstance(runs, list)
    for run in runs:
        assert run.record["seeds_together"] == 3
        assert results(run.folder) == results(tmp_path / "whole" / run.folder.name)


def test_the_beginning_is_made_anew_where_it_is_damaged(tmp_path: Path) -> None:
    """Killed as the second of two seeds was about to save its first epoch."""
    given: dict[str, Any] = {"seeds": (1, 2)}
    _go(tmp_path / "whole", **given)
    cut = tmp_path / "cut"
    with pytest.raises(InterruptedError):
        _go(cut, progress=stop_at(1), **given)
    checkpoint_path(cut / "seed-2", 1).unlink()
    path = checkpoint_path(cut / "seed-1", 0)
    path.write_bytes(_flip(path.read_bytes(), 3000))
    seen: list[int] = []
    with pytest.warns(CheckpointWarning, match=r"seed-1.*epoch 0"):
        _go(cut, resume=True, progress=lambda at: seen.append(at.epoch), **given)
    assert seen == [1, 2, 3, 4]
    for name in ("seed-1", "seed-2"):
        assert results(cut / name) == results(tmp_path / "whole" / name)


def test_without_any_intact_one_there_is_one_sentence_and_a_way_out(
    begun: Path, whole: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(begun, cut)
    for path in list_checkpoints(cut).values():
        path.write_bytes(_flip(path.read_bytes(), 999))
    with pytest.raises(RunError, match="no other checkpoint: remove") as told:
        _go(cut, resume=True)
    assert all(f"`{path}` is damaged" in str(told.value) for path in list_checkpoints(cut).values())
    assert "\n" not in str(told.value)
    shutil.rmtree(cut / "checkpoint")  # as it says
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)
        _go(cut, resume=True)
    assert results(cut) == results(whole)


# ---------------------------------------------------------------- which are kept, and taken


def _fake(folder: Path, *epochs: int) -> Path:
    checkpoint_path(folder, 0).parent.mkdir(parents=True, exist_ok=True)
    for epoch in epochs:
        save_tensors(
            checkpoint_path(folder, epoch), {"x": torch.ones(2)}, {"epoch": epoch}, hashed=True
        )
    return folder


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    seen: list[list[int]] = []
    _go(tmp_path / "run", progress=lambda at: seen.append(list(list_checkpoints(tmp_path / "run"))))
    assert seen == [[1, 0], [2, 1], [3, 2], [4, 3]]
    _, numbers = load_tensors(find_newest_checkpoint(tmp_path / "run"), hashed=True)
    assert numbers["epoch"] == 4


def test_other_files_are_no_checkpoints(tmp_path: Path) -> None:
    folder = _fake(tmp_path / "run", 9, 10)
    for name in ("epoch-x.safetensors", "epoch-3.safetensors.bak", "epoch-11", "notes.txt"):
        (folder / "checkpoint" / name).write_text("mine")
    assert list(list_checkpoints(folder)) == [10, 9]
    remove_other_checkpoints(folder, [10])
    assert list(list_checkpoints(folder)) == [10]
    assert len(list((folder / "checkpoint").iterdir())) == 5


@pytest.mark.parametrize("epoch", [2, 3])
def test_a_folder_under_the_name_of_a_checkpoint_is_none(
    begun: Path, whole: Path, tmp_path: Path, epoch: int
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(begun, cut)
    checkpoint_path(cut, epoch).unlink()
    checkpoint_path(cut, epoch).mkdir()
    _go(cut, resume=True)
    assert results(cut) == results(whole)


def test_a_stack_that_was_killed_as_it_finished_keeps_its_number(tmp_path: Path) -> None:
    given: dict[str, Any] = {"seeds": (1, 2, 3)}
    _go(tmp_path / "run", **given)
    path = tmp_path / "run" / "seed-3" / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"status": "training"}))
    _go(tmp_path / "run", resume=True, **given)
    again = json.loads(path.read_text())
    assert again["seeds_together"] == record["seeds_together"] == 3
    assert again["samples_per_second"] == record["samples_per_second"]


def test_seeds_go_on_from_the_newest_epoch_they_all_hold(tmp_path: Path) -> None:
    held = [(3, 2, 1), (3, 2, 1), (2, 1)]  # killed when the third was about to write
    folders = [_fake(tmp_path / str(at), *epochs) for at, epochs in enumerate(held)]
    assert find_common_epoch(folders) == 2
    path = checkpoint_path(folders[1], 2)
    path.write_bytes(_flip(path.read_bytes(), 20))
    with pytest.warns(CheckpointWarning, match="epoch 1, with the same"):
        assert find_common_epoch(folders) == 1
    assert group_by_epoch(folders) == [[0, 1, 2]]
    later = _fake(tmp_path / "later", 8, 7)
    assert group_by_epoch([*folders, later, tmp_path / "new"]) == [[3], [0, 1, 2], [4]]
    with pytest.raises(RunError, match="same epoch: resume them one by one"):
        find_common_epoch([folders[2], later])
    assert find_common_epoch([tmp_path / "new", tmp_path / "newer"]) == 0
