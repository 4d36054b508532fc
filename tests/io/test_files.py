import json
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretocosmos.errors import RunError
from paretocosmos.io.files import (
    make_folder,
    path_exists,
    read_json,
    remove_leftovers,
    replace_file,
    write_bytes,
    write_json,
)

_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


def _without_infinity(value: object) -> bool:
    return not (isinstance(value, float) and value in (float("inf"), float("-inf")))


@given(content=st.dictionaries(st.text(), _scalars.filter(_without_infinity)))
def test_json_comes_back_bit_for_bit(
    content: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("json") / "a.json"
    write_json(path, content)
    assert repr(read_json(path)) == repr(content)  # repr: 1 is not 1.0, and -0.0 is not 0.0


def test_writing_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_bytes(path, b"old and longer")
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_files_take_the_permissions_any_new_file_would(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_bytes(tmp_path / "ours", b"")
        (tmp_path / "plain").touch()
        assert os.umask(mask) == mask  # and it is left as it was
    finally:
        os.umask(before)
    ours, plain = (stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("ours", "plain"))
    assert ours == plain == 0o666 & ~mask


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failed_write_keeps_the_old_file_and_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / "a.bin"
    write_bytes(path, b"good")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(RunError, match="No space left on device") as caught:
        write_bytes(path, b"half")
    assert str(path) in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]
    assert path.read_bytes() == b"good"


def test_temporary_names_cannot_be_known_and_links_at_them_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set()
    for _ in range(20):
        with replace_file(tmp_path / "a.bin") as temporary:
            names.add(temporary.name)
            assert temporary.parent == tmp_path  # on the same disk, so that renaming is one step
    assert len(names) == 20
    # even one who knew it would gain nothing
    precious = tmp_path / "precious"
    precious.write_text("mine")
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    (tmp_path / f".a.bin.{'0' * 12}.tmp").symlink_to(precious)
    with pytest.raises(RunError, match="File exists"):
        write_bytes(tmp_path / "a.bin", b"theirs")
    assert precious.read_text() == "mine"
    assert (tmp_path / "a.bin").read_bytes() == b""


def test_leftovers_are_swept_and_nothing_else(tmp_path: Path) -> None:
    ours = (".run.json.0a1b2c3d4e5f.tmp", ".epoch-3.safetensors.ffffffffffff.tmp", ".tmpq7Zx0a")
    others = ("run.json", ".lock", "a.tmp", ".hidden", ".tmp", "notes.0a.tmp")
    for name in (*ours, *others):
        (tmp_path / name).touch()
    (tmp_path / ".link.0a.tmp").symlink_to(tmp_path / "run.json")  # the link goes, the file stays
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)
    remove_leftovers(tmp_path / "absent")
    (tmp_path / ".a.json.0123456789ab.tmp").touch()
    remove_leftovers(tmp_path, of="b.json")
    assert (tmp_path / ".a.json.0123456789ab.tmp").exists()
    remove_leftovers(tmp_path, of="a.json")
    assert not (tmp_path / ".a.json.0123456789ab.tmp").exists()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_has_not_are_refused_and_not_written(
    tmp_path: Path, value: float
) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "a.json", {"a": value})
    assert list(tmp_path.iterdir()) == []


def _missing(path: Path) -> None:
    path.unlink(missing_ok=True)


def _half(path: Path) -> None:
    path.write_text('{"a": [1, 2')


def _binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


def _list(path: Path) -> None:
    path.write_text(json.dumps([1, 2]))


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_missing, "does not exist"),
        (_half, "damaged"),
        (_binary, "damaged"),
        (_list, "not hold a JSON object"),
        (_folder, "cannot be read"),
    ],
)
def test_unreadable_json_is_one_sentence(
    tmp_path: Path, damage: Callable[[Path], None], says: str
) -> None:
    path = tmp_path / "run.json"
    damage(path)
    with pytest.raises(RunError, match=says) as caught:
        read_json(path)
    assert f"`{path}`" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    {
        "deep": ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "."),
        "rather deep": ('{"a":' + "[" * 40 + "]" * 40 + "}", "nested more than 32 deep"),
        "digits": ('{"a":' + "7" * 5000 + "}", "4300 digits"),
        "exponent": ('{"a":1e999}', "1e999, which is too large or not JSON"),
        "nan": ('{"a":NaN}', "NaN, which is too large or not JSON"),
        "infinite": ('{"a":-Infinity}', "-Infinity, which is too large or not JSON"),
        "half a character": ('{"a":"\\uD800"}', "surrogates not allowed"),
        "a list": ("[]", "not hold a JSON object"),
        "a number": ("7", "not hold a JSON object"),
        "empty": ("", "Expecting value"),
    }.values(),
)
def test_hostile_json_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(RunError, match=says) as caught:
        read_json(path)
    assert str(caught.value).startswith(f"`{path}` ")
    assert "\n" not in str(caught.value)


def test_files_are_read_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with path.open("wb") as stream:
        stream.truncate(2**40)  # takes no room
    with pytest.raises(RunError, match="1099511627776 bytes"):
        read_json(path)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "run.json"
    os.mkfifo(pipe)
    with pytest.raises(RunError, match="not a regular file"):
        read_json(pipe)
    pipe.unlink()
    pipe.symlink_to("/dev/zero")
    with pytest.raises(RunError, match="not a regular file"):
        read_json(pipe)


def test_a_place_that_the_system_refuses_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(RunError, match=r"cannot use `.*inner`: .*; choose another `out`"),
        make_folder(tmp_path / "file" / "inner"),
    ):
        pass
    with pytest.raises(RunError, match=r"cannot use `.*nnn`: .*; choose another `out`"):
        path_exists(tmp_path / ("n" * 300))
    assert path_exists(tmp_path / "file")
    assert not path_exists(tmp_path / "other")
