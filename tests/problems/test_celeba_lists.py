"""CelebA's lists: whatever the layout, the same numbers; whatever is wrong, one sentence."""

import csv
import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems.faces import ATTRIBUTES, TOTAL, CelebaFiles, read_lists

if TYPE_CHECKING:
    from tests.problems.conftest import SmallCeleba

RAW = Path(__file__).parents[3] / "shared" / "data" / "celeba"
LOCAL = [0, 1, 2, 0, 0, 1, 1, 0, 2, 2, 2, 0, 0]


@pytest.mark.parametrize("ending", ["txt", "csv", "txt.gz", "csv.gz"])
@pytest.mark.parametrize("parts", ["txt", "csv", "csv.gz", None])
def test_every_form(ending: str, parts: str | None, small: "SmallCeleba", tmp_path: Path) -> None:
    small.attributes(tmp_path / f"list_attr_celeba.{ending}")
    partition = None if parts is None else tmp_path / f"list_eval_partition.{parts}"
    if partition is not None:
        small.partition(partition)
    files = CelebaFiles(tmp_path, tmp_path / f"list_attr_celeba.{ending}", partition)
    for asked in ("auto", "official"):
        listed = read_lists(files, asked)
        assert tuple(listed.numbers) == small.numbers
        np.testing.assert_array_equal(listed.labels, small.labels)
        assert listed.parts.tolist() == [0] * 6 + [1] * 3 + [2] * 4
        assert listed.partition == "official partition"
    with pytest.raises(ConfigurationError, match=r"`local`.*`celeba_meta\.npz`"):
        read_lists(files, "local")
    with pytest.raises(ConfigurationError, match=r"`loca`.*`local`"):
        read_lists(files, "loca")


def test_a_partition_of_ones_own(small: "SmallCeleba", tmp_path: Path) -> None:
    """Parts come first, then numbers; pictures it does not list are none."""
    small.attributes(tmp_path / "list_attr_celeba.txt")
    small.partition(tmp_path / "p.txt", {77: 1, 1: 2, 3: 0, 202_599: 0, 2: 0, 999: 1})
    files = CelebaFiles(tmp_path, tmp_path / "list_attr_celeba.txt", tmp_path / "p.txt")
    listed = read_lists(files, "auto")
    assert listed.numbers.tolist() == [2, 3, 202_599, 77, 1]
    assert listed.parts.tolist() == [0, 0, 0, 1, 2]
    rows = [small.numbers.index(number) for number in listed.numbers]
    np.testing.assert_array_equal(listed.labels, small.labels[rows])
    assert listed.partition == "partition of p.txt"


def test_meta(small: "SmallCeleba", tmp_path: Path) -> None:
    small.meta(tmp_path / "celeba_meta.npz", LOCAL)
    files = CelebaFiles(tmp_path, tmp_path / "celeba_meta.npz", None)
    for asked, expected in (("auto", LOCAL), ("local", LOCAL), ("official", [0] * 6 + [1] * 3)):
        listed = read_lists(files, asked)
        known = dict(zip(small.numbers, [*expected, 2, 2, 2, 2], strict=False))
        assert dict(zip(listed.numbers, listed.parts, strict=True)) == known
        assert (np.diff(listed.parts) >= 0).all()
        rows = [small.numbers.index(number) for number in listed.numbers]
        np.testing.assert_array_equal(listed.labels, small.labels[rows])
        assert listed.partition.startswith("official" if asked == "official" else "local")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[: len(text) // 2], "numbers in each row"),
        (lambda text: text.replace("13", "14", 1), "14 pictures.*first line"),
        (lambda text: text.replace(" -1", "  0", 1), "1 or -1"),
        (lambda text: text.replace("Goatee", "Goat", 1), "40 attributes, found no Goatee"),
        (lambda text: text.replace("000002.jpg", "000001.jpg"), "each picture once"),
        (lambda text: text.replace("000002.jpg", "two.jpg"), "names such as 000001.jpg"),
        (lambda text: "", "found 0 in 0 rows"),
        (lambda text: "<html>\n" * 9, "names such as 000001.jpg"),
    ],
    ids=["cut", "count", "zero", "name", "twice", "word", "empty", "html"],
)
def test_a_damaged_list(change: object, says: str, small: "SmallCeleba", tmp_path: Path) -> None:
    assert callable(change)
    path = tmp_path / "list_attr_celeba.txt"
    small.attributes(path)
    path.write_text(change(path.read_text()))
    with pytest.raises(DataError, match=says) as refused:
        read_lists(CelebaFiles(tmp_path, path, None), "auto")
    assert str(path) in str(refused.value)
    assert "fresh copy" in str(refused.value)


def test_other_damages(small: "SmallCeleba", tmp_path: Path) -> None:
    path = tmp_path / "list_attr_celeba.csv.gz"
    small.attributes(path)
    files = CelebaFiles(tmp_path, path, tmp_path / "p.csv")
    small.partition(tmp_path / "p.csv", {1: 0, 2: 3})
    with pytest.raises(DataError, match=r"p\.csv`.*found 0 to 3"):
        read_lists(files, "auto")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="text, plain or gzipped"):
        read_lists(files, "auto")
    meta = tmp_path / "celeba_meta.npz"
    for content in (b"no zip", b""):
        meta.write_bytes(content)
        with pytest.raises(DataError, match="arrays image_id, attribute_names"):
            read_lists(CelebaFiles(tmp_path, meta, None), "auto")
    np.savez(meta, image_id=np.array([{}]), attributes=np.array([{}]))
    with pytest.raises(DataError, match=r"arrays.*allow_pickle=False"):
        read_lists(CelebaFiles(tmp_path, meta, None), "auto")


def test_attributes() -> None:
    """The paper numbers them: A16 is Goatee, A22 Mustache, A25 Oval Face, A27 Pointy Nose."""
    assert len(set(ATTRIBUTES)) == 40
    assert list(ATTRIBUTES) == sorted(ATTRIBUTES, key=str.lower)
    named = {16: "Goatee", 22: "Mustache", 25: "Oval_Face", 27: "Pointy_Nose"}
    assert {place: ATTRIBUTES[place] for place in named} == named


@pytest.mark.skipif(not RAW.is_dir(), reason="the raw files are not here")
def test_the_real_lists() -> None:
    path = RAW / "list_attr_celeba.csv.gz"
    listed = read_lists(CelebaFiles(RAW, path, None), "auto")
    assert len(listed.numbers) == TOTAL
    assert np.bincount(listed.parts).tolist() == [162_770, 19_867, 19_962]  # the publishers'
    with gzip.open(path, "rt") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows[:: len(rows) // 50]:
        at = int(row["filename"].removesuffix(".jpg")) - 1
        assert listed.numbers[at] == at + 1
        assert [int(row[name]) > 0 for name in ATTRIBUTES] == listed.labels[at].tolist()
    meta = read_lists(CelebaFiles(RAW, RAW / "celeba_meta.npz", None), "official")
    np.testing.assert_array_equal(listed.labels[meta.numbers - 1], meta.labels)
    np.testing.assert_array_equal(listed.parts[meta.numbers - 1], meta.parts)
