"""A small CelebA: made-up pictures in the published layout."""

import io
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from paretocosmos.problems.images.celeba_files import ATTRIBUTES

# By the official partition six for train, three for val, four for test.
NUMBERS = (1, 2, 3, 10, 77, 162_770, 162_771, 170_000, 182_637, 182_638, 190_000, 200_000, 202_599)


@dataclass
class SmallCeleba:
    """Pictures by number, each with a grey of its own and some waves, and their attributes."""

    pictures: dict[int, bytes] = field(default_factory=dict)
    labels: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        y, x = np.mgrid[:55, :45]
        for index, number in enumerate(NUMBERS):
            waves = [10 * np.sin(x / (3 + c) + index) + 10 * np.cos(y / (4 + c)) for c in range(3)]
            stream = io.BytesIO()
            pixels = (np.stack(waves, axis=2) + 30 + 15 * index).astype(np.uint8)
            Image.fromarray(pixels).save(stream, format="JPEG", quality=95, subsampling=0)
            self.pictures[number] = stream.getvalue()
        self.labels = np.random.default_rng(7).integers(0, 2, (len(NUMBERS), 40))
        # both classes in every part, for every attribute
        for first in (0, 6, 9):
            self.labels[first], self.labels[first + 1] = 0, 1

    def write_pictures(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for number, content in self.pictures.items():
            (folder / f"{number:06d}.jpg").write_bytes(content)

    def write_labels(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # padded and with a blank at the end of the names, as published
        lines = [str(len(NUMBERS)), " ".join(ATTRIBUTES) + " "]
        for number, row in zip(NUMBERS, self.labels, strict=True):
            lines.append(f"{number:06d}.jpg" + "".join(f" {2 * value - 1:>2}" for value in row))
        path.write_text("\n".join(lines) + "\n")

    def write_partition(self, path: Path, parts: dict[int, int] | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        chosen = parts or {n: int(n > 162_770) + int(n > 182_637) for n in NUMBERS}
        path.write_text("".join(f"{number:06d}.jpg {part}\n" for number, part in chosen.items()))

    def write_published(self, folder: Path) -> Path:
        """Write the published layout below a folder; return the folder."""
        self.write_pictures(folder / "Img" / "img_align_celeba")
        self.write_labels(folder / "Anno" / "list_attr_celeba.txt")
        self.write_partition(folder / "Eval" / "list_eval_partition.txt")
        return folder


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallCeleba:
    """Pictures to write, and a cache that goes away."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PARETOCOSMOS_DATA", raising=False)
    return SmallCeleba()
