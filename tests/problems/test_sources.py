"""Where the raw files are looked for, and the download, from a server on this machine."""

import gzip
import hashlib
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from paretocosmos.errors import DataError
from paretocosmos.io.files import get_cache_folder, list_data_folders
from paretocosmos.problems.images.pairs import (
    FASHION_MNIST,
    FILES,
    MNIST,
    Source,
    download_source,
    find_files,
    read_unpacked,
)

RAW = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PARETOCOSMOS_DATA", raising=False)
    return tmp_path / "cache" / "paretocosmos"


class Server(ThreadingHTTPServer):
    """Serves `files`; each request is noted; a file in `cut` ends too early."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.cut: set[str] = set()
        self.url = f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.removeprefix("/")
        self.server.asked.append(name)
        content = self.server.files.get(name)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:-5] if name in self.server.cut else content)

    def log_request(self, *_: object) -> None:
        """Silence."""

    def log_error(self, format: str, *args: object) -> None:  # noqa: A002
        """Silence."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture
def source(server: Server) -> Source:
    contents = [struct.pack(">HBBI", 0, 8, 1, 9) + bytes([at] * 9) for at in range(4)]
    server.files = {
        f"{file}.gz": gzip.compress(part) for file, part in zip(FILES, contents, strict=True)
    }
    sums = tuple(hashlib.sha256(part).hexdigest() for part in contents)
    return replace(MNIST, url=server.url, sha256=sums)


class TestFolders:
    def test_the_cache(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        assert get_cache_folder() == tmp_path / "cache" / "paretocosmos"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setattr(sys, "platform", "linux")
        assert get_cache_folder() == tmp_path / ".cache" / "paretocosmos"
        monkeypatch.setattr(sys, "platform", "darwin")
        assert get_cache_folder() == tmp_path / "Library" / "Caches" / "paretocosmos"
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
        assert get_cache_folder() == tmp_path / "local" / "paretocosmos" / "Cache"

    def test_nobody_s_home(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def nobody() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.delenv("LOCALAPPDATA", raising=False)
        monkeypatch.setattr(Path, "home", nobody)
        assert not get_cache_folder().exists()

    def test_order(self, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert list_data_folders(None) == [cache]
        monkeypatch.setenv("PARETOCOSMOS_DATA", str(tmp_path / "mine"))
        assert list_data_folders(None) == [tmp_path / "mine", cache]
        monkeypatch.setenv("HOME", str(tmp_path))
        assert list_data_folders("~/named") == [tmp_path / "named"]

    @pytest.mark.parametrize("end", ["", ".gz"])
    def test_layouts(self, end: str, tmp_path: Path) -> None:
        places = [tmp_path / name for name in FASHION_MNIST.below]
        assert find_files(places) == ({}, list(FILES))
        places[1].mkdir(parents=True)
        for file in FILES:
            (places[1] / f"{file}{end}").touch()
        assert find_files(places) == ({file: places[1] / f"{file}{end}" for file in FILES}, [])

    def test_the_first_full_place(self, tmp_path: Path) -> None:
        for name, count in (("a", 3), ("b", 4), ("c", 4)):
            (tmp_path / name).mkdir()
            for file in FILES[:count]:
                (tmp_path / name / file).touch()
        where = [tmp_path / name for name in "abc"]
        assert find_files(where)[0] == {file: tmp_path / "b" / file for file in FILES}
        assert find_files(where[:1])[1] == [FILES[3]]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken, so that nobody else can, and on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        number: int = taken.getsockname()[1]
        yield number


@pytest.mark.system
class TestDownload:
    def test_what_is_missing(self, source: Source, server: Server, cache: Path) -> None:
        (cache / "mnist").mkdir(parents=True)
        (cache / "mnist" / FILES[2]).write_bytes(b"here")
        files = download_source(source)
        assert server.asked == [f"{file}.gz" for file in FILES if file != FILES[2]]
        assert files[FILES[2]] == cache / "mnist" / FILES[2]
        assert files[FILES[0]].read_bytes() == server.files[f"{FILES[0]}.gz"]
        server.asked.clear()
        assert download_source(source) == files
        assert server.asked == []

    def test_another_wrapper_will_do(self, source: Source, server: Server) -> None:
        name = f"{FILES[0]}.gz"
        server.files[name] = gzip.compress(gzip.decompress(server.files[name]), 0, mtime=1)
        assert download_source(source)[FILES[0]].is_file()

    @pytest.mark.parametrize("wrong", ["sum", "no gzip", "torn gzip", "cut", "absent", "nobody"])
    def test_failures(
        self, wrong: str, source: Source, server: Server, cache: Path, closed_port: int
    ) -> None:
        name = f"{FILES[1]}.gz"
        if wrong == "absent":
            del server.files[name]
        elif wrong == "cut":
            server.cut.add(name)
        elif wrong == "nobody":
            source = replace(source, url=f"http://127.0.0.1:{closed_port}/")
        else:
            torn = server.files[name][:-9]
            bad = {"sum": gzip.compress(b"other"), "no gzip": b"<html>", "torn gzip": torn}
            server.files[name] = bad[wrong]
        reason = {
            "sum": "should have the sha256 .*, found",
            "no gzip": "should have the sha256 .*, found",
            "torn gzip": "end-of-stream",
            "cut": "end-of-stream",
            "absent": "HTTP Error 404",
            "nobody": "refused",
        }[wrong]
        with pytest.raises(DataError, match=reason) as refused:
            download_source(source)
        said = str(refused.value)
        for part in ("$PARETOCOSMOS_DATA (not set)", str(cache / "mnist"), source.url, "`data`"):
            assert part in said
        assert "\n" not in said
        # neither the bad file nor a temporary one is left
        left = [file.name for file in cache.rglob("*") if file.is_file()]
        assert left == ([] if wrong == "nobody" else [f"{FILES[0]}.gz"])

    def test_an_endless_answer(
        self, source: Source, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("paretocosmos.problems.images.pairs.LARGEST", 10)
        with pytest.raises(DataError, match="more than 10 bytes"):
            download_source(source)
        assert not [file for file in cache.rglob("*") if file.is_file()]

    def test_a_cache_that_cannot_be_written(
        self, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        monkeypatch.setenv("PARETOCOSMOS_DATA", "/mine")
        with pytest.raises(DataError, match=r"\$PARETOCOSMOS_DATA \(`/mine`\).*Not a directory"):
            download_source(source)


@pytest.mark.skipif(not RAW.is_dir(), reason="the raw files are not here")
@pytest.mark.parametrize("source", [MNIST, FASHION_MNIST])
def test_checksums_of_the_real_files(source: Source) -> None:
    files, absent = find_files([RAW / name for name in source.below])
    assert not absent
    contents = [read_unpacked(files[file]) for file in FILES]
    assert source.sha256 == tuple(hashlib.sha256(content).hexdigest() for content in contents)
