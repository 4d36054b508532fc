"""A small CelebA: made-up pictures in the published layouts."""

import gzip
import io
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from paretocosmos.problems.faces import ATTRIBUTES

# By the official partition six for train, three for val, four for test.
NUMBERS = (1, 2, 3, 10, 77, 162_770, 162_771, 170_000, 182_637, 182_638, 190_000, 200_000, 202_599)


def jpeg(pixels: npt.NDArray[np.uint8], **options: object) -> bytes:
    stream = io.BytesIO()
    settings: dict[str, object] = {"format": "JPEG", "quality": 95, "subsampling": 0}
    Image.fromarray(pixels).save(stream, **(settings | options))  # type: ignore[arg-type]
    return stream.getvalue()


@dataclass
class SmallCeleba:
    """Pictures by number, each with a grey of its own and some waves, and their attributes."""

    numbers: tuple[int, ...] = NUMBERS
    height: int = 55
    width: int = 45
    pictures: dict[int, bytes] = field(init=False)
    labels: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        draw = np.random.default_rng(7)
        y, x = np.mgrid[: self.height, : self.width]
        self.pictures = {}
        for place, number in enumerate(self.numbers):
            waves = [10 * np.sin(x / (3 + c) + place) + 10 * np.cos(y / (4 + c)) for c in range(3)]
            grey = 30 + 15 * place
            self.pictures[number] = jpeg((np.stack(waves, axis=2) + grey).astype(np.uint8))
        self.labels = draw.integers(0, 2, (len(self.numbers), 40))
        # both classes in every part, for every attribute
        for first in (0, 6, 9):
            self.labels[first : first + 1] = 0
            self.labels[first + 1 : first + 2] = 1

    def name(self, number: int) -> str:
        return f"{number:06d}.jpg"

    def folder(self, path: Path) -> None:
        path.mkdir(parents=True)
        for number, content in self.pictures.items():
            (path / self.name(number)).write_bytes(content)

    def zip(self, path: Path, inner: str = "img_align_celeba/") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"__MACOSX/{inner}._000001.jpg", b"a Mac's")
            for number in reversed(self.numbers):
                if number in self.pictures:
                    archive.writestr(inner + self.name(number), self.pictures[number])

    def tar(self, path: Path, inner: str = "img_align_celeba/") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = "w:gz" if path.name.endswith("gz") else "w"
        with tarfile.open(path, packed) as archive:  # type: ignore[call-overload]
            head = tarfile.TarInfo(inner or "nothing/")
            head.type = tarfile.DIRTYPE
            archive.addfile(head)
            for number in reversed(self.numbers):
                if number in self.pictures:
                    member = tarfile.TarInfo(inner + self.name(number))
                    member.size = len(self.pictures[number])
                    archive.addfile(member, io.BytesIO(self.pictures[number]))

    def attributes(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        signs = [[str(2 * value - 1) for value in row] for row in self.labels]
        rows = list(zip(map(self.name, self.numbers), signs, strict=True))
        if ".csv" in path.name:
            lines = [",".join(["image_id", *ATTRIBUTES])]
            lines += [",".join([name, *row]) for name, row in rows]
        else:  # padded and with a blank at the end of the names, as published
            lines = [str(len(rows)), " ".join(ATTRIBUTES) + " "]
            lines += [name + "".join(f" {sign:>2}" for sign in row) for name, row in rows]
        self._write(path, lines)

    def partition(self, path: Path, parts: dict[int, int] | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        chosen = {n: int(n > 162_770) + int(n > 182_637) for n in self.numbers}
        rows = [(self.name(n), str(part)) for n, part in (parts or chosen).items()]
        csv = ".csv" in path.name
        lines = ["image_id,partition"] if csv else []
        self._write(path, lines + [("," if csv else " ").join(row) for row in rows])

    def meta(self, path: Path, local: list[int]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        order = np.arange(len(self.numbers))[::-1]  # in no order anybody may rely on
        numbers = np.array(self.numbers, dtype=np.int32)[order]
        np.savez(
            path,
            image_id=numbers,
            attributes=self.labels[order].astype(np.int8),
            attribute_names=np.array(ATTRIBUTES),
            split=((numbers > 162_770) * 1 + (numbers > 182_637)).astype(np.int8),
            split_local=np.array(local, dtype=np.int8)[order],
        )

    def official(self, home: Path) -> Path:
        """The published layout below a folder; the folder."""
        self.folder(home / "Img" / "img_align_celeba")
        self.attributes(home / "Anno" / "list_attr_celeba.txt")
        self.partition(home / "Eval" / "list_eval_partition.txt")
        return home

    @staticmethod
    def _write(path: Path, lines: list[str]) -> None:
        text = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallCeleba:
    """Pictures to lay down, and a cache that goes away."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PARETOCOSMOS_DATA", raising=False)
    return SmallCeleba()
