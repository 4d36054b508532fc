"""The image problems from files to tensors."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems import SPLITS, Protocol, load_problem
from paretocosmos.problems.images import problem as pairs
from paretocosmos.problems.images.pairs import FILES, Files, RuleName, Source, find_files
from paretocosmos.problems.images.problem import (
    HEADS,
    ImageProblem,
    fashion_and_mnist,
    multi_digits,
    multi_fashion,
    multi_mnist,
)

RAW = Path(__file__).parents[3] / "shared" / "data"
Load = Callable[..., ImageProblem]
TRAIN, TEST = 120, 30


def write(folder: Path, seed: int, flat: int | None = None) -> None:
    """Four small idx files; a flat image is all its label plus `flat`."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(seed)
    for part, count in (("train", TRAIN), ("t10k", TEST)):
        images = draw.integers(0, 100, (count, 28, 28), dtype=np.uint8)
        labels = draw.integers(0, 10, count, dtype=np.uint8)
        if flat is not None:
            images[:] = labels[:, None, None] + flat
        head = struct.pack(">HBBIII", 0, 8, 3, *images.shape)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + images.tobytes())
        packed = gzip.compress(struct.pack(">HBBI", 0, 8, 1, count) + labels.tobytes())
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(packed)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PARETOCOSMOS_DATA", raising=False)
    monkeypatch.setattr(pairs, "download_source", lambda source: pytest.fail("went to the network"))
    write(tmp_path / "data" / "mnist", 1)
    write(tmp_path / "data" / "FashionMNIST" / "raw", 2)
    return tmp_path / "data"


def inputs(problem: ImageProblem, split: str = "train") -> Tensor:
    (found,) = [problem.split(name).inputs for name in SPLITS if name == split]
    assert isinstance(found, Tensor)
    return found


@pytest.mark.parametrize("load", [multi_mnist, multi_fashion, fashion_and_mnist])
def test_from_idx_files(load: Load, data: Path) -> None:
    problem = load(data=str(data))
    assert problem.input_shape == (1, 36, 36)
    assert problem.names == HEADS == ("top_left", "bottom_right")
    assert problem.outputs == {"top_left": 10, "bottom_right": 10}
    assert list(problem.metrics) == ["accuracy_top_left", "accuracy_bottom_right"]
    assert problem.reference == (2.0, 2.0)
    assert [len(problem.split(name)) for name in SPLITS] == [216, 24, 60]
    same = 0
    for name in SPLITS:
        batch = problem.split(name)
        assert inputs(problem, name).dtype == torch.uint8
        assert all(batch.targets[head].dtype == torch.int64 for head in HEADS)
        same += int((batch.targets["top_left"] == batch.targets["bottom_right"]).sum())
    assert (same > 0) is (load is fashion_and_mnist)
    assert "the same kind of images, not the same bytes" in problem.caveats[0]


@pytest.mark.parametrize("load", [multi_mnist, multi_fashion, fashion_and_mnist])
def test_the_rules(load: Load, data: Path) -> None:
    usual, text = load(data=str(data)), load(data=str(data), rule="text")
    assert usual.sha256 == load(data=str(data), rule="published").sha256 != text.sha256
    assert usual.sha256 == load(data=str(data), protocol="paper").sha256  # others only in scale
    assert usual.images.endswith("composed by the rule `published` with seed 1")
    assert text.images.endswith("composed by the rule `text` with seed 1")
    assert "compare hypervolumes with runs on the same images" in text.caveats[0]
    with pytest.raises(ConfigurationError, match=r"`texts`.*`text`"):
        load(data=str(data), rule="texts")


def test_labels_belong_to_their_images(data: Path) -> None:
    """Flat images: the faintest pixel is the digit alone, the brightest both together."""
    write(data / "flat" / "mnist", 1, flat=1)
    write(data / "flat" / "fashion_mnist", 2, flat=100)
    problem = fashion_and_mnist(data=str(data / "flat"))
    for name in SPLITS:
        pixels, targets = inputs(problem, name).flatten(1).int(), problem.split(name).targets
        faint = pixels.masked_fill(pixels == 0, 255).min(1).values
        alone = faint < 100
        assert alone.double().mean() > 0.9
        assert torch.equal(faint[alone] - 1, targets["top_left"][alone].int())
        both = targets["top_left"] + 1 + targets["bottom_right"] + 100
        assert torch.equal(pixels.max(1).values, both.int())


@pytest.mark.parametrize("rule", ["published", "text"])
@pytest.mark.parametrize("protocol", ["clean", "paper"])
def test_pixels(protocol: Protocol, rule: RuleName, data: Path) -> None:
    """The published code hands bytes to its network; bf16 and tf32 hold each of them exactly."""
    problem = multi_mnist(data=str(data), protocol=protocol, rule=rule)
    raw = (protocol, rule) == ("paper", "published")
    assert problem.about["pixels"] == ("0..255" if raw else "0..1")
    kept = inputs(problem, "val")
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        ready = problem.prepare(kept, dtype)
        assert ready.dtype == dtype
        if raw:
            assert torch.equal(ready.double(), kept.double())
        else:
            assert float(ready.max()) <= 1


class TestSearch:
    def test_the_variable_then_the_cache(
        self, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = fashion_and_mnist(data=str(data)).sha256
        monkeypatch.setenv("PARETOCOSMOS_DATA", str(data))
        assert fashion_and_mnist().sha256 == named
        # a source each from another place
        (tmp_path / "cache" / "paretocosmos").mkdir(parents=True, exist_ok=True)
        (data / "mnist").rename(tmp_path / "cache" / "paretocosmos" / "mnist")
        assert fashion_and_mnist().sha256 == named

    def test_download_comes_last(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fetched = []

        def download(source: Source) -> Files:
            fetched.append(source.name)
            return find_files([data / "mnist"])[0]

        monkeypatch.setattr(pairs, "download_source", download)
        found = multi_mnist()
        assert fetched[:1] == ["MNIST"]
        assert found.sha256 == multi_mnist(data=str(data)).sha256

    def test_a_named_folder_without_them(self, data: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        sentence = r"empty/mnist` or `.*empty/MNIST/raw`, found none of them: name"
        with pytest.raises(DataError, match=sentence) as refused:
            multi_mnist(data=str(tmp_path / "empty"))
        for way in ("$PARETOCOSMOS_DATA", str(tmp_path / "cache"), "download", *FILES):
            assert way in str(refused.value)
        with pytest.raises(DataError, match="nowhere` is no folder"):
            multi_mnist(data=str(tmp_path / "nowhere"))
        (data / "mnist" / FILES[2]).unlink()
        with pytest.raises(DataError, match=f"found no {FILES[2]}: "):
            multi_mnist(data=str(data))


class TestDigits:
    def test_no_digit_is_in_train_and_in_test(self) -> None:
        from sklearn.datasets import load_digits

        from paretocosmos.problems.images.problem import _load_digits

        train, test = _load_digits()
        found = np.concatenate([train[0], test[0]])[:, ::2, ::2]
        original = load_digits()
        assert len(found) == len(original.images)
        rows = sorted(image.tobytes() for image in found)
        scaled = np.floor(original.images / 16 * 255 + 0.5).astype(np.uint8)
        assert rows == sorted(image.tobytes() for image in scaled)

    def test_copies_and_seed(self) -> None:
        small = multi_digits(copies=1)
        assert [len(small.split(name)) for name in SPLITS] == [1_293, 144, 360]
        assert multi_digits(copies=1).sha256 == small.sha256
        assert multi_digits(copies=1, seed=2).sha256 != small.sha256
        with pytest.raises(ConfigurationError, match="`copies`"):
            load_problem("multi_digits", settings={"copies": "0"})


@pytest.mark.skipif(not RAW.is_dir(), reason="the raw files are not here")
def test_the_real_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = multi_mnist(data=str(RAW))
    assert [len(problem.split(name)) for name in SPLITS] == [108_000, 12_000, 20_000]
    # each image twice at the top left: MNIST's test digits, counted by their publishers
    counts = torch.bincount(problem.split("test").targets["top_left"])
    assert (counts // 2).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
