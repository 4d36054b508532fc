"""Signing a finished run with a key of one's own."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from paretocosmos.errors import RunError
from paretocosmos.io.files import replace_file, user_path
from paretocosmos.io.signatures import (
    ALGORITHM,
    FILE,
    FORMAT,
    Signed,
    fingerprint_of,
    message_of,
    read_private_key,
)
from paretocosmos.runs.record import check_files, check_hash, load_record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def sign_run(folder: str | Path, key: "str | Path | Ed25519PrivateKey") -> Signed:
    """Sign a finished run: write ``signature.json`` into its folder, replacing an older one.

    The record is signed, and with it the hashes of the model, the fronts and the preprocessing.
    A folder whose files do not have these hashes is refused. No code that the run names is
    imported. ``load_run(folder, verify="key.pub")`` checks the signature.

    Args:
        folder: the run folder.
        key: an Ed25519 private key, or its file, in the PEM or the OpenSSH format.

    Returns:
        The fingerprint of the key, and the time of signing.

    >>> import tempfile
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from paretocosmos import fit
    >>> run = fit("toy_convex", epochs=1, out=tempfile.mkdtemp() + "/run", report=False)
    >>> signed = sign_run(run.folder, Ed25519PrivateKey.generate())
    >>> signed.key[:7], (run.folder / "signature.json").exists()
    ('SHA256:', True)
    """
    folder = user_path(folder)
    private = read_private_key(key) if isinstance(key, str | Path) else key
    # nobody should put their name to files that are not those of the training
    record = load_record(folder)
    if record["status"] != "finished":
        raise RunError(
            f"the run in `{folder}` is not finished; continue it with the same call and "
            "resume=True, then sign it"
        ).with_hint({"resume": True})
    # the record first: it holds the hashes by which the files are checked
    check_hash(folder, record)
    check_files(folder, record)
    signed = Signed(
        # the time is signed, too: see `message_of`
        fingerprint_of(private.public_key()),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    signature = private.sign(message_of(record["sha256"], signed.when))
    content = {
        "format": FORMAT,
        "algorithm": ALGORITHM,
        "key": signed.key,
        "sha256": record["sha256"],
        "signed": signed.when,
        "signature": base64.b64encode(signature).decode(),
    }
    with replace_file(folder / FILE, way_out="sign where you may write the folder") as temporary:
        # indented, since people look at it
        temporary.write_text(json.dumps(content, indent=1) + "\n")
    return signed
