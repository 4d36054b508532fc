"""`paretocosmos sign`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli.console import print_json, print_next_command, print_note
from paretocosmos.cli.options import AsJson, RunFolders
from paretocosmos.io.signatures import read_private_key
from paretocosmos.runs.signing import sign_run


def sign(
    folders: RunFolders,
    key: Annotated[
        Path, typer.Option(metavar="KEY", help="An Ed25519 private key in PEM or OpenSSH format.")
    ],
    as_json: AsJson = False,
) -> None:
    """Sign finished RUNs, so that others can open them with --verify and the public key."""
    # read before the first folder, so that a wrong key signs none of them
    private = read_private_key(key)
    signatures = {folder: sign_run(folder, private) for folder in folders}
    if as_json:
        print_json(
            [{"run": str(run), "key": s.key, "signed": s.when} for run, s in signatures.items()]
        )
        return
    for folder, signature in signatures.items():
        print_note(f"{folder} is signed with the key {signature.key}")
    # `ssh-keygen` writes the public key beside the private one, as NAME.pub.
    public = key.with_name(f"{key.name}.pub")
    print_next_command("explore", *folders, "--verify", public if public.exists() else "PUBLIC_KEY")
