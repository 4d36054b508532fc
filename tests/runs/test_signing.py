"""Signatures of runs, against OpenSSH and OpenSSL, and against whoever changes a signed folder."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.keys import openssl_pair, ssh_pair
from tests.strangers import change, copy, names

import paretocosmos.runs.load
from paretocosmos import fit, load_run
from paretocosmos.errors import ConfigurationError, MissingExtraError, RunError, SignatureError
from paretocosmos.export import export
from paretocosmos.io.schema import FILES
from paretocosmos.io.signatures import (
    PASSPHRASE,
    fingerprint_of,
    message_of,
    read_private_key,
    read_public_key,
)
from paretocosmos.runs import sign_run
from paretocosmos.serving import Settings
from paretocosmos.serving.service import Service

Pair = tuple[Path, Path]

needs_openssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
pytestmark = [pytest.mark.system, needs_openssh, needs_openssl]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return openssl_pair(tmp_path_factory.mktemp("keys") / "key.pem")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return ssh_pair(tmp_path_factory.mktemp("keys") / "other")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a table, which has every file that a run can have."""
    place = tmp_path_factory.mktemp("run")
    rows = "".join(f"{n % 7},{'fm'[n % 2]},{n * n % 11 > 4}\n" for n in range(200))
    (place / "people.csv").write_text(f"age,sex,rich\n{rows}")
    columns = {"target": "rich", "sensitive": "sex"}
    return fit(
        str(place / "people.csv"), preset="paper", epochs=1, settings=columns, out=place / "run"
    ).folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path, pair: Pair) -> Path:
    """A copy of it, signed."""
    at = copy(trained, tmp_path / "run")
    sign_run(at, pair[0])
    return at


def _signature(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "signature.json").read_text())
    return content


def _edit_signature(folder: Path, **changes: Any) -> None:
    content = _signature(folder) | changes
    (folder / "signature.json").write_text(json.dumps(content))


def test_a_signed_run_is_opened(folder: Path, pair: Pair) -> None:
    run = load_run(folder, verify=pair[1])
    assert run.signed_by == _signature(folder)["key"]
    assert load_run(folder).signed_by is None
    assert load_run(folder, verify=str(pair[1])).front == run.front


def test_openssl_verifies_what_we_sign(folder: Path, pair: Pair, tmp_path: Path) -> None:
    said = _signature(folder)
    assert said["sha256"] == json.loads((folder / "run.json").read_text())["sha256"]
    message, signature = tmp_path / "message", tmp_path / "signature"
    message.write_text(f"paretocosmos run\nsha256 {said['sha256']}\nsigned {said['signed']}\n")
    signature.write_bytes(base64.b64decode(said["signature"]))
    given = ["-verify", "-pubin", "-inkey", str(pair[1]), "-rawin"]
    command = ["openssl", "pkeyutl", *given, "-in", str(message), "-sigfile", str(signature)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    message.write_text(message.read_text().replace("signed", "Signed"))
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_we_verify_what_openssl_signs(folder: Path, pair: Pair, tmp_path: Path) -> None:
    said = _signature(folder)
    when = "2020-02-03T04:05:06+00:00"
    message, signature = tmp_path / "message", tmp_path / "signature"
    message.write_bytes(message_of(said["sha256"], when))
    given = ["-sign", "-inkey", str(pair[0]), "-rawin", "-in", str(message), "-out", str(signature)]
    subprocess.run(["openssl", "pkeyutl", *given], capture_output=True, check=True)
    encoded = base64.b64encode(signature.read_bytes()).decode()
    _edit_signature(folder, signed=when, signature=encoded)
    assert load_run(folder, verify=pair[1]).signed_by == said["key"]


def test_the_fingerprint_is_that_of_openssh(other: Pair) -> None:
    listed = subprocess.run(
        ["ssh-keygen", "-l", "-f", other[1]], capture_output=True, text=True, check=True
    ).stdout
    assert listed.split()[1] == fingerprint_of(read_public_key(other[1]))


@pytest.mark.parametrize("make", [ssh_pair, openssl_pair])
def test_keys_of_both_formats_with_and_without_passphrase(
    make: Callable[..., Pair], trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy(trained, tmp_path / "run")
    for name, passphrase in (("plain", ""), ("protected", "a secret")):
        private, public = make(tmp_path / name, passphrase=passphrase)
        monkeypatch.setenv(PASSPHRASE, "another")
        if passphrase:
            with pytest.raises(ConfigurationError, match=r"passphrase in .* right"):
                sign_run(folder, private)
            monkeypatch.delenv(PASSPHRASE)
            with pytest.raises(ConfigurationError, match=f"put it into {PASSPHRASE}"):
                sign_run(folder, private)
            monkeypatch.setenv(PASSPHRASE, passphrase)
        signed = sign_run(folder, private)
        assert load_run(folder, verify=public).signed_by == signed.key


def test_another_key_is_refused(folder: Path, pair: Pair, other: Pair) -> None:
    with pytest.raises(SignatureError) as caught:
        load_run(folder, verify=other[1])
    theirs, asked = (fingerprint_of(read_public_key(one[1])) for one in (pair, other))
    assert str(caught.value) == (
        f"`{folder}` was signed with another key ({theirs}) than the one to verify with ({asked}): "
        "if you meant that key, get its public part from its owner"
    )


def test_a_stranger_who_signs_is_not_taken_for_another(
    folder: Path, pair: Pair, other: Pair
) -> None:
    """Who signs with a key of their own and writes down the fingerprint of somebody else's."""
    known = _signature(folder)["key"]
    sign_run(folder, other[0])
    _edit_signature(folder, key=known)
    with pytest.raises(SignatureError, match="not made with the key"):
        load_run(folder, verify=pair[1])


def test_a_run_without_a_signature_is_refused(folder: Path, pair: Pair) -> None:
    (folder / "signature.json").unlink()
    with pytest.raises(SignatureError) as caught:
        load_run(folder, verify=pair[1])
    assert str(caught.value) == (
        f"`{folder}` is not signed (it has no `signature.json`): ask whoever trained it to sign it"
    )
    assert load_run(folder).front


def test_a_record_with_a_hash_that_is_right_is_refused(folder: Path, pair: Pair) -> None:
    change(folder, lambda record: record.update(label="Another"))
    assert load_run(folder).record["label"] == "Another"  # whose hash was made anew
    with pytest.raises(SignatureError) as caught:
        load_run(folder, verify=pair[1])
    assert str(caught.value) == (
        f"`{folder / 'run.json'}` was changed after it was signed: restore the signed version"
    )


def test_a_record_under_its_old_hash_is_refused(folder: Path, pair: Pair) -> None:
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"label": "Another"}))
    with pytest.raises(SignatureError, match=r"run\.json` was changed"):
        load_run(folder, verify=pair[1])


@pytest.mark.parametrize("key", ["sha256", "seed", "names", "files", "problem", "training"])
def test_nothing_of_a_record_can_be_left_out(folder: Path, pair: Pair, key: str) -> None:
    record = json.loads((folder / "run.json").read_text())
    del record[key]
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(SignatureError, match=r"changed after .*signed"):
        load_run(folder, verify=pair[1])


def test_the_layout_of_a_record_does_not_matter(folder: Path, pair: Pair) -> None:
    record = json.loads((folder / "run.json").read_text())
    turned = dict(reversed(record.items()))
    (folder / "run.json").write_text(json.dumps(turned, indent=4))
    assert load_run(folder, verify=pair[1]).signed_by


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("where", [0, 0.5, 0.999])
def test_a_bit_of_any_file_is_noticed(folder: Path, pair: Pair, name: str, where: float) -> None:
    content = bytearray((folder / name).read_bytes())
    content[int(where * len(content))] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(RunError, match=f"{name}` is damaged"):
        load_run(folder, verify=pair[1])


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_gone_is_noticed(folder: Path, pair: Pair, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(RunError, match="folder is incomplete"):
        load_run(folder, verify=pair[1])


def test_a_file_and_its_hashes_are_noticed(folder: Path, pair: Pair) -> None:
    """The case that hashes alone do not cover."""
    path = folder / "front.json"
    path.write_text(path.read_text().replace("0.5", "0.4", 1))
    change(folder, lambda _: None)
    load_run(folder)
    with pytest.raises(SignatureError, match=r"changed after .*signed"):
        load_run(folder, verify=pair[1])


def test_a_table_that_was_added_is_not_used(trained: Path, tmp_path: Path, pair: Pair) -> None:
    toy = fit("toy_convex", preset="paper", epochs=1, out=tmp_path / "toy", engine="eager").folder
    sign_run(toy, pair[0])
    shutil.copy(trained / "table.json", toy)
    assert load_run(toy, verify=pair[1]).table is None
    assert load_run(toy).table is None


CHANGES: dict[str, dict[str, Any]] = {
    "other sha256": {"sha256": "0" * 64},
    "other time": {"signed": "2020-01-01T00:00:00+00:00"},
    "other signature": {"signature": "A" * 86 + "=="},
    "no signature": {"signature": None},
    "short signature": {"signature": "AAAA"},
    "a list": {"signature": ["A" * 86 + "=="]},
    "algorithm": {"algorithm": "none"},
    "key": {"key": "SHA256:\x1b[2J"},
    "lines": {"signed": "2020-01-01T00:00:00+00:00\n"},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=list(CHANGES))
def test_a_signature_that_was_changed_is_one_sentence(
    folder: Path, pair: Pair, changes: dict[str, Any]
) -> None:
    _edit_signature(folder, **changes)
    with pytest.raises(SignatureError, match=r"is not valid|is damaged") as caught:
        load_run(folder, verify=pair[1])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "{" * 5000, '{"format": 2}'])
def test_what_is_no_signature_is_one_sentence(folder: Path, pair: Pair, text: str) -> None:
    (folder / "signature.json").write_text(text)
    with pytest.raises(SignatureError):
        load_run(folder, verify=pair[1])


def test_every_bit_of_the_signature_counts(folder: Path, pair: Pair) -> None:
    right = base64.b64decode(_signature(folder)["signature"])
    for at in range(0, 512, 37):
        wrong = bytearray(right)
        wrong[at // 8] ^= 1 << at % 8
        _edit_signature(folder, signature=base64.b64encode(wrong).decode())
        with pytest.raises(SignatureError, match="is not valid"):
            load_run(folder, verify=pair[1])


def test_nothing_is_used_before_the_signature_holds(
    folder: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even what the record names or how it is built is looked at."""
    change(folder, names(backbone="payload:backbone"))
    for used in ("load_tensors", "build_model", "check_files"):
        monkeypatch.setattr(paretocosmos.runs.load, used, pytest.fail)
    monkeypatch.setattr("paretocosmos.runs.record.check_names", pytest.fail)
    monkeypatch.setattr("paretocosmos.runs.schema.check_record", pytest.fail)
    with pytest.raises(SignatureError):
        load_run(folder, verify=pair[1])


def test_a_signature_gives_no_trust(trained: Path, tmp_path: Path, pair: Pair) -> None:
    folder = change(copy(trained, tmp_path / "run"), names(backbone="payload:backbone"))
    sign_run(folder, pair[0])
    with pytest.raises(RunError, match="`payload:backbone`"):
        load_run(folder, verify=pair[1])


def test_a_damaged_or_unfinished_run_is_not_signed(
    trained: Path, tmp_path: Path, pair: Pair
) -> None:
    folder = copy(trained, tmp_path / "run")
    (folder / "front.json").write_text("{}")
    with pytest.raises(RunError, match=r"front\.json` is damaged"):
        sign_run(folder, pair[0])
    change(folder, lambda record: record.update(status="training"))
    with pytest.raises(RunError, match="is not finished"):
        sign_run(folder, pair[0])
    assert not (folder / "signature.json").exists()
    with pytest.raises(RunError, match="is not a folder"):
        sign_run(tmp_path / "none", pair[0])


def test_keys_of_the_wrong_kind_are_one_sentence(folder: Path, pair: Pair, tmp_path: Path) -> None:
    rsa = ssh_pair(tmp_path / "rsa", kind="rsa")
    (tmp_path / "text").write_text("no key\nat all")
    (tmp_path / "pem").write_text("-----BEGIN PRIVATE KEY-----\n\n-----END PRIVATE KEY-----\n")
    (tmp_path / "large").write_bytes(b"PRIVATE KEY" * 10_000)
    for wrong in (rsa[0], pair[1], tmp_path / "text", tmp_path / "pem", tmp_path / "none"):
        with pytest.raises(ConfigurationError, match="ssh-keygen -t ed25519"):
            sign_run(folder, wrong)
    with pytest.raises(ConfigurationError, match="too large"):
        read_private_key(tmp_path / "large")
    for wrong in (rsa[1], pair[0], tmp_path / "text", tmp_path, tmp_path / "pem"):
        with pytest.raises(ConfigurationError, match="Ed25519 public key"):
            load_run(folder, verify=wrong)


def test_a_missing_package_gives_the_command(
    folder: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for use in (lambda: sign_run(folder, pair[0]), lambda: load_run(folder, verify=pair[1])):
        with pytest.raises(MissingExtraError, match=r'pip install "paretocosmos\[sign\]"'):
            use()


def test_a_card_says_who_signed(folder: Path, pair: Pair) -> None:
    run = load_run(folder, verify=pair[1])
    assert f"key {run.signed_by}, verified" in export(run, format="torch").card.read_text()
    assert "signed with" not in export(load_run(folder), format="torch").card.read_text()


def test_a_server_verifies(folder: Path, pair: Pair, other: Pair) -> None:
    Service(Settings(folder=folder, verify=pair[1]))
    with pytest.raises(SignatureError):
        Service(Settings(folder=folder, verify=other[1]))
    with pytest.raises(ConfigurationError, match="`onnx` or `verify`"):
        Settings(folder=folder, verify=pair[1], onnx=folder / "export" / "model.onnx")


def test_a_signature_is_no_file_of_the_record(folder: Path, pair: Pair) -> None:
    assert "signature.json" not in FILES
    before = (folder / "run.json").read_bytes()
    sign_run(folder, pair[0])  # again
    assert (folder / "run.json").read_bytes() == before
    assert load_run(folder, verify=pair[1]).signed_by


def test_a_key_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key")
    for read in (read_private_key, read_public_key):
        with pytest.raises(ConfigurationError, match=r"key .*is a pipe"):
            read(tmp_path / "key")
