"""Signatures of runs: the keys, what is signed, and whether a signature holds.

A run's record holds the hashes of its files and one of itself. Whoever can write the folder can
write those, too. An Ed25519 signature of the record's hash says who did: it lies beside `run.json`
in `signature.json`, which no hash covers.
"""

import base64
import errno
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos.errors import ConfigurationError, RunError, SignatureError, require_extra
from paretocosmos.io.files import hash_json, one_line, read_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

FILE = "signature.json"
FORMAT = 1
ALGORITHM = "ed25519"
PASSPHRASE = "PARETOCOSMOS_PASSPHRASE"
"""The environment variable that holds what a private key is protected with."""

LARGEST = 2**16  # bytes of a key's file
MAKE = "make a pair with `ssh-keygen -t ed25519 -f run_key`, and sign with `run_key`"
GIVE = "give the signer's Ed25519 public key, in the PEM or OpenSSH format, such as `run_key.pub`"
# Checked letter by letter, since messages print them before anything is verified.
FIELDS = {
    "algorithm": ALGORITHM,
    "key": r"SHA256:[A-Za-z0-9+/]{43}",
    "sha256": "[0-9a-f]{64}",
    "signed": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00",
    "signature": "[A-Za-z0-9+/]{86}==",
}


@dataclass(frozen=True)
class Signed:
    """Who signed a run, and when, once that is known to be true.

    Attributes:
        key: the key's fingerprint, as ``ssh-keygen -l`` prints it.
        when: the time that the signer wrote, in UTC.
    """

    key: str
    when: str


def message_of(sha256: str, when: str) -> bytes:
    r"""Return the signed message: the hash of a run's record and the time, under a heading.

    The heading keeps a key that signs other things from being led to sign a run.

    >>> message_of("0a1b", "2026-01-01T00:00:00+00:00")
    b'paretocosmos run\nsha256 0a1b\nsigned 2026-01-01T00:00:00+00:00\n'
    """
    return f"paretocosmos run\nsha256 {sha256}\nsigned {when}\n".encode()


def fingerprint_of(key: "Ed25519PublicKey") -> str:
    """Return the fingerprint of a public key, as OpenSSH prints it."""
    # OpenSSH hashes the key in its wire format (RFC 4253): each field after its length
    fields = (b"ssh-ed25519", key.public_bytes_raw())
    blob = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    hashed = base64.b64encode(hashlib.sha256(blob).digest()).decode()
    return f"SHA256:{hashed.rstrip('=')}"


def read_private_key(path: str | Path) -> "Ed25519PrivateKey":
    """Read the Ed25519 key that signs, from a file in the PEM or the OpenSSH format.

    Args:
        path: the file; the passphrase of one that has one is in `PARETOCOSMOS_PASSPHRASE`.
    """
    require_extra("cryptography", "sign", "signing a run")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    text = _read_key_file(path, MAKE)
    if b"PRIVATE KEY" not in text:
        raise ConfigurationError(f"`{path}` is not a private key, which signing needs: {MAKE}")
    # the two formats have a parser each, which refuses the other
    load = (
        serialization.load_ssh_private_key
        if b"OPENSSH PRIVATE KEY" in text
        else serialization.load_pem_private_key
    )
    try:
        key = _parse_key(path, lambda: load(text, None), MAKE)
    except TypeError as error:  # it is encrypted
        passphrase = os.environ.get(PASSPHRASE)
        if not passphrase:
            raise ConfigurationError(
                f"`{path}` is protected by a passphrase: put it into {PASSPHRASE}, or use a key "
                "without one"
            ) from error
        way_out = f"is the passphrase in {PASSPHRASE} the right one?"
        key = _parse_key(path, lambda: load(text, passphrase.encode()), way_out)
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigurationError(f"`{path}` is not an Ed25519 key: {MAKE}")
    return key


def read_public_key(path: str | Path) -> "Ed25519PublicKey":
    """Read the Ed25519 key that verifies a signature, in the PEM or the OpenSSH format."""
    require_extra("cryptography", "sign", "verifying a signature")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    text = _read_key_file(path, GIVE).strip()
    if b"PRIVATE KEY" in text:
        raise ConfigurationError(f"`{path}` is a private key, which its owner keeps secret: {GIVE}")
    pem = text.startswith(b"-----BEGIN")
    # a file like `authorized_keys` has a key in every line, and none is singled out
    if not pem and len(text.splitlines()) != 1:
        raise ConfigurationError(f"`{path}` does not contain exactly one public key: {GIVE}")
    load = serialization.load_pem_public_key if pem else serialization.load_ssh_public_key
    key = _parse_key(path, lambda: load(text), GIVE)
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigurationError(f"`{path}` is not an Ed25519 key: {GIVE}")
    return key


def check_signature(folder: Path, record: Mapping[str, Any], key: "Ed25519PublicKey") -> Signed:
    """Return who signed a record; raise if it was not the owner of a key.

    Args:
        folder: the run's.
        record: what its `run.json` holds, of which nothing need be true.
        key: whose signature it is to have.
    """
    from cryptography.exceptions import InvalidSignature

    signature, expected = _read_signature(folder), fingerprint_of(key)
    if signature["key"] != expected:
        raise SignatureError(
            f"`{folder}` was signed with another key ({signature['key']}) than the one to verify "
            f"with ({expected}): if you meant that key, get its public part from its owner"
        )
    try:
        # with the time, or anybody could change that
        message = message_of(signature["sha256"], signature["signed"])
        key.verify(base64.b64decode(signature["signature"]), message)
    except InvalidSignature:
        raise SignatureError(
            f"the signature of `{folder}` is not valid: `{folder / FILE}` was not made with the "
            f"key {expected}, or was changed: restore the signed version"
        ) from None
    # the hash of a record covers all of it but the hash itself
    rest = {name: value for name, value in record.items() if name != "sha256"}
    # recomputed: the signed hash must be that of the record as it is, not as it says
    if not record.get("sha256") == signature["sha256"] == hash_json(rest):
        raise SignatureError(
            f"`{folder / 'run.json'}` was changed after it was signed: restore the signed version"
        )
    return Signed(expected, signature["signed"])


def _read_signature(folder: Path) -> dict[str, str]:
    path = folder / FILE
    if not path.is_file():
        raise SignatureError(
            f"`{folder}` is not signed (it has no `{FILE}`): ask whoever trained it to sign it"
        )
    try:
        content = read_json(path)
    except RunError as error:
        raise SignatureError(f"{error}, or restore the signature") from error
    # before the fields, which a newer format may have changed
    if isinstance(content.get("format"), int) and content["format"] != FORMAT:
        raise SignatureError(
            f"`{path}` was written by a newer version: upgrade with: pip install --upgrade "
            "paretocosmos"
        )
    for name, pattern in FIELDS.items():
        value = content.get(name)
        if not isinstance(value, str) or re.fullmatch(pattern, value) is None:
            raise SignatureError(
                f"`{path}` is damaged, its `{name}` is invalid: restore the signed version"
            )
    return {name: str(content[name]) for name in FIELDS}


def _read_key_file(path: str | Path, way_out: str) -> bytes:
    try:
        key_path = Path(path).expanduser()
        if key_path.is_fifo():  # which would be waited for
            raise OSError(errno.EINVAL, "it is a pipe")
        with key_path.open("rb") as stream:
            # a byte more than allowed, to notice that there is more
            text = stream.read(LARGEST + 1)
    except (OSError, RuntimeError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or one_line(error)
        raise ConfigurationError(f"cannot read the key `{path}` ({why}): {way_out}") from error
    if len(text) > LARGEST:
        raise ConfigurationError(f"`{path}` is too large for a key: {way_out}")
    return text


def _parse_key(path: str | Path, load: Callable[[], object], way_out: str) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(
            f"`{path}` cannot be read as a key ({one_line(error)[:100]}): {way_out}"
        ) from error
