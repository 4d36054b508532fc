"""The cache of decoded pictures: whole or not at all."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from tests.small import files_at_most, seen

from paretocosmos.problems.faces import DecodedPictures, load_pictures, open_pictures
from paretocosmos.problems.faces import decoding as faces
from paretocosmos.problems.faces.problem import celeba_easy, celeba_hard
from paretocosmos.problems.images.files import Bytes

if TYPE_CHECKING:
    from tests.problems.conftest import SmallCeleba

pytestmark = pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")

SIZE = 16


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry per picture that is decoded."""
    made: list[int] = []
    real = faces.decode_picture

    def counted(content: bytes, size: int) -> Bytes:
        made.append(size)
        return real(content, size)

    monkeypatch.setattr(faces, "decode_picture", counted)
    return made


@pytest.fixture
def folder(small: "SmallCeleba", tmp_path: Path) -> Path:
    small.folder(tmp_path / "pictures")
    return tmp_path / "pictures"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "paretocosmos" / "celeba"


@pytest.fixture
def load(small: "SmallCeleba", folder: Path) -> Callable[[], DecodedPictures]:
    return lambda: load_pictures(open_pictures(folder), small.numbers, SIZE)


def test_decoded_once(small: "SmallCeleba", tmp_path: Path, calls: list[int]) -> None:
    data = str(small.official(tmp_path / "data"))
    first = celeba_easy(data=data, size=SIZE)
    assert len(calls) == len(small.numbers)
    second, other = celeba_easy(data=data, size=SIZE), celeba_hard(data=data, size=SIZE)
    assert len(calls) == len(small.numbers)
    pixels = [torch.as_tensor(p.split("train").inputs) for p in (first, second, other)]
    assert torch.equal(pixels[0], pixels[1])
    assert torch.equal(pixels[0], pixels[2])
    assert first.sha256 == second.sha256 != other.sha256
    celeba_easy(data=data, size=SIZE + 1)
    assert len(calls) == 2 * len(small.numbers)


def test_what_is_written(
    load: Callable[[], DecodedPictures], small: "SmallCeleba", folder: Path, cache: Path
) -> None:
    found = load()
    assert isinstance(found.pixels, np.memmap)
    (pixels, record) = sorted(cache.iterdir(), key=lambda path: path.suffix, reverse=True)
    assert (pixels.suffix, record.suffix) == (".npy", ".json")
    kept = np.load(pixels)
    assert kept.shape == (len(small.numbers), 3, SIZE, SIZE)
    told = json.loads(record.read_text())
    assert told["sha256"] == hashlib.sha256(kept.tobytes()).hexdigest()
    sums = [hashlib.sha256(small.pictures[number]).digest() for number in small.numbers]
    assert told["files_sha256"] == found.sha256 == hashlib.sha256(b"".join(sums)).hexdigest()
    assert told["numbers"] == found.numbers.tolist() == list(small.numbers)
    assert told["source"] == str(folder)


def test_rows_come_in_the_order_asked_for(small: "SmallCeleba", tmp_path: Path) -> None:
    del small.pictures[77]
    small.pictures[2] = b"damaged"
    small.tar(tmp_path / "a.tar")
    pictures = open_pictures(tmp_path / "a.tar")
    order = [202_599, 77, 1, 2, 162_770, 3]
    alone = {n: load_pictures(pictures, [n], SIZE).pixels[0] for n in (202_599, 1, 162_770, 3)}
    found = load_pictures(pictures, order, SIZE)
    assert found.numbers.tolist() == [202_599, 1, 162_770, 3]
    for pixels, number in zip(found.pixels, found.numbers, strict=True):
        np.testing.assert_array_equal(pixels, alone[number])
    assert found.damaged == {2: "no picture"}


@pytest.mark.parametrize("change", ["content", "added", "touched"])
def test_a_changed_source_is_decoded_anew(
    change: str,
    load: Callable[[], DecodedPictures],
    folder: Path,
    cache: Path,
    calls: list[int],
    small: "SmallCeleba",
) -> None:
    load()
    before = {path.name for path in cache.iterdir()}
    path = folder / "000077.jpg"
    if change == "content":
        path.write_bytes(small.pictures[1] + b"\0")
    elif change == "added":
        (folder / "000078.jpg").write_bytes(small.pictures[1])
    else:
        os.utime(path, ns=(1, 1))
    found = load()
    assert len(calls) == 2 * len(small.numbers)
    if change == "content":
        np.testing.assert_array_equal(found.pixels[4], found.pixels[0])
    # what it was before is of no use to anybody, and large
    after = {path.name for path in cache.iterdir()}
    assert len(after) == 2
    assert not after & before


def test_other_sources_stay(
    load: Callable[[], DecodedPictures], small: "SmallCeleba", cache: Path
) -> None:
    load()
    small.zip(cache.parent / "a.zip")
    load_pictures(open_pictures(cache.parent / "a.zip"), small.numbers, SIZE)
    assert len(list(cache.glob("*.npy"))) == 2


@pytest.mark.parametrize("damage", ["cut", "longer", "no record", "torn record", "other rows"])
def test_a_damaged_cache_is_made_anew(
    damage: str, load: Callable[[], DecodedPictures], cache: Path, calls: list[int]
) -> None:
    before = np.array(load().pixels)
    (pixels,), (record,) = cache.glob("*.npy"), cache.glob("*.json")
    if damage == "cut":
        pixels.write_bytes(pixels.read_bytes()[:-1])
    elif damage == "longer":
        pixels.write_bytes(pixels.read_bytes() + b"\0")
    elif damage == "no record":
        record.unlink()
    elif damage == "torn record":
        record.write_bytes(record.read_bytes()[:-5])
    else:
        np.save(pixels, before[1:])
    made = len(calls)
    np.testing.assert_array_equal(load().pixels, before)
    assert len(calls) == 2 * made
    load()
    assert len(calls) == 2 * made


KILLED = """
import sys, time
from pathlib import Path
from paretocosmos.problems.faces import decoding as faces
from paretocosmos.problems.faces import open_pictures
from paretocosmos.problems.faces import load_pictures

real = faces.decode_picture
def slow(content, size):
    if Path("stop").exists():
        time.sleep(600)
    Path("stop").touch()
    return real(content, size)
faces.decode_picture = slow
faces.GROUP = 1
load_pictures(open_pictures(Path(sys.argv[1])), [int(n) for n in sys.argv[3:]], int(sys.argv[2]))
"""


@pytest.mark.system
def test_a_kill_in_the_middle(
    load: Callable[[], DecodedPictures],
    small: "SmallCeleba",
    folder: Path,
    cache: Path,
    tmp_path: Path,
    calls: list[int],
) -> None:
    numbers = [str(number) for number in small.numbers]
    command = [sys.executable, "-c", KILLED, str(folder), str(SIZE), *numbers]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        until = time.monotonic() + 600
        while not (tmp_path / "stop").exists() and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    (left,) = cache.iterdir()
    assert left.suffix == ".tmp"
    found = load()
    assert len(calls) == len(small.numbers) == len(found.pixels)
    assert left.exists()  # it may be somebody's who is still at it
    os.utime(left, (0, 0))
    (folder / "000001.jpg").touch()
    load()
    assert sorted(path.suffix for path in cache.iterdir()) == [".json", ".npy"]


def test_an_interrupt_leaves_nothing(
    load: Callable[[], DecodedPictures], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(content: bytes, size: int) -> Bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(faces, "decode_picture", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load()
    assert list(cache.iterdir()) == []


class TestWithoutACache:
    def test_a_folder_that_cannot_be_written(
        self,
        small: "SmallCeleba",
        tmp_path: Path,
        calls: list[int],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        data = str(small.official(tmp_path / "data"))
        kept = celeba_easy(data=data, size=SIZE)
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        with pytest.warns(UserWarning, match="Not a directory.*XDG_CACHE_H"):
            held = celeba_easy(data=data, size=SIZE)
        assert len(calls) == 2 * len(small.numbers)
        assert held.sha256 == kept.sha256
        for name in ("train", "val", "test"):
            one, two = (torch.as_tensor(p.splits[name].inputs) for p in (kept, held))
            assert torch.equal(one, two)

    @pytest.mark.system
    def test_a_full_disk(
        self, small: "SmallCeleba", load: Callable[[], DecodedPictures], cache: Path, folder: Path
    ) -> None:
        """No file may grow over a few pictures: the same error a full disk gives."""
        (folder / "000077.jpg").write_bytes(b"damaged")
        too_large = pytest.warns(UserWarning, match="stored in .*File too large")
        with files_at_most(4 * 3 * SIZE * SIZE), too_large:
            found = load()
        assert list(cache.iterdir()) == []
        assert not isinstance(found.pixels, np.memmap)
        again = load()
        np.testing.assert_array_equal(found.pixels, again.pixels)
        np.testing.assert_array_equal(found.numbers, again.numbers)
        assert 77 not in found.numbers
        assert (found.damaged, found.sha256) == (again.damaged, again.sha256)


def test_the_bar_is_on_stderr_and_for_people(
    load: Callable[[], DecodedPictures],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    cache: Path,
) -> None:
    load()
    line = f"decoding 13 pictures to {SIZE} x {SIZE} into `{cache}`, this once\n"
    assert capsys.readouterr() == ("", line)  # for a log, in one piece
    load()
    assert capsys.readouterr() == ("", "")  # it was once
    for path in cache.iterdir():
        path.unlink()
    seen(monkeypatch)
    load()
    out, err = capsys.readouterr()
    assert out == ""
    assert "13/13" in err
    assert line.strip() not in err


def test_many_more_pictures_than_are_read_ahead(
    small: "SmallCeleba", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    many = type(small)(numbers=tuple(range(1, 301)), height=8, width=8)
    many.tar(tmp_path / "a.tar.gz")
    found = load_pictures(open_pictures(tmp_path / "a.tar.gz"), many.numbers, 8)
    for number, pixels in zip(many.numbers, found.pixels, strict=True):
        np.testing.assert_array_equal(pixels, faces.decode_picture(many.pictures[number], 8))
