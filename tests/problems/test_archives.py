"""Pictures in folders, zips and tars."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paretocosmos.errors import DataError
from paretocosmos.problems.faces import open_pictures, parse_number

if TYPE_CHECKING:
    from tests.problems.conftest import SmallCeleba

KINDS = ["img_align_celeba", "img.zip", "img.tar", "img.tar.gz", "img.tgz"]


def lay(small: "SmallCeleba", path: Path, inner: str = "deep/er/") -> Path:
    if path.suffix == ".zip":
        small.zip(path, inner)
    elif path.suffix:
        small.tar(path, inner)
    else:
        small.folder(path)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_contents(kind: str, small: "SmallCeleba", tmp_path: Path) -> None:
    pictures = open_pictures(lay(small, tmp_path / kind))
    if ".t" in kind:
        assert pictures.numbers is None
    else:
        assert pictures.numbers == frozenset(small.pictures)
    every = list(pictures.contents(small.numbers))
    assert {number: read() for number, read in every} == small.pictures
    # some, and one that is not there
    assert {n: read() for n, read in pictures.contents([77, 4, 2])} == {
        n: small.pictures[n] for n in (2, 77)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_fingerprint_changes_with_the_pictures(
    kind: str, small: "SmallCeleba", tmp_path: Path
) -> None:
    path = lay(small, tmp_path / "one" / kind)
    first = open_pictures(path).fingerprint
    assert open_pictures(path).fingerprint == first
    moved = path.rename(tmp_path / kind)
    assert open_pictures(moved).fingerprint == first
    small.pictures[3] += b"\0"
    assert open_pictures(lay(small, tmp_path / "two" / kind)).fingerprint != first


def test_names() -> None:
    assert parse_number("a/b/000017.JPG") == 17
    assert parse_number("202599.png") == 202_599
    for name in ("000001.txt", "._000001.jpg", "a000001.jpg", "000001.jpg.part", "12/", ".jpg"):
        assert parse_number(name) is None


@pytest.mark.parametrize("kind", ["img.zip", "img.tar", "img.tar.gz"])
def test_what_is_no_archive(kind: str, tmp_path: Path) -> None:
    (tmp_path / kind).write_bytes(b"<html>Quota exceeded</html>" * 99)
    with pytest.raises(DataError, match=f"{kind}` cannot be read .*web page") as said:
        list(open_pictures(tmp_path / kind).contents([1]))
    assert "\n" not in str(said.value)


@pytest.mark.parametrize("kind", ["img.zip", "img.tar", "img.tar.gz"])
def test_an_archive_that_breaks_off(kind: str, small: "SmallCeleba", tmp_path: Path) -> None:
    path = lay(small, tmp_path / kind)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match=f"{kind}` cannot be read"):
        list(open_pictures(path).contents(small.numbers))


def test_a_damaged_member_is_that_picture_alone(small: "SmallCeleba", tmp_path: Path) -> None:
    path = lay(small, tmp_path / "img.zip")
    at = path.read_bytes().index(small.pictures[77]) + 300
    with path.open("r+b") as stream:
        stream.seek(at)
        stream.write(b"broken")
    found = {n: read() for n, read in open_pictures(path).contents(small.numbers)}
    assert found == small.pictures | {77: b""}


def test_a_file_that_cannot_be_read(small: "SmallCeleba", tmp_path: Path) -> None:
    path = lay(small, tmp_path / "pictures")
    pictures = open_pictures(path)
    (path / "000077.jpg").unlink()
    with pytest.raises(DataError, match=r"000077\.jpg` .*No such file"):
        [read() for _, read in pictures.contents(small.numbers)]
