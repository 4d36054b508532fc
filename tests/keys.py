"""Keys that OpenSSH and OpenSSL make, not we."""

import subprocess
from pathlib import Path

__all__ = ["openssl_pair", "ssh_pair"]


def ssh_pair(private: Path, *, kind: str = "ed25519", passphrase: str = "") -> tuple[Path, Path]:
    """A private and a public key in OpenSSH's format."""
    _run("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(private))
    return private, private.with_name(f"{private.name}.pub")


def openssl_pair(private: Path, *, passphrase: str = "") -> tuple[Path, Path]:
    """A private and a public key in the PEM format."""
    cipher = ["-aes256", "-pass", f"pass:{passphrase}"] if passphrase else []
    public = private.with_suffix(".pub")
    given = ["-passin", f"pass:{passphrase}"] if passphrase else []
    _run("openssl", "genpkey", "-algorithm", "ed25519", *cipher, "-out", str(private))
    _run("openssl", "pkey", "-in", str(private), *given, "-pubout", "-out", str(public))
    return private, public


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
