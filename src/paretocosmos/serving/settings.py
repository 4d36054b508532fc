"""What a server is configured with."""

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

from paretocosmos.errors import ConfigurationError
from paretocosmos.io.schema import MOST_WORKERS

# Letters of a token: fewer can be guessed.
MIN_LETTERS = 16
# The form of a page's origin in CORS.
ORIGIN = r"https?://([\w.\-]+|\[[0-9a-fA-F:]+\])(:\d+)?"
# Limits of numbers; seconds for `timeout`.
LIMITS = {
    "workers": (1, MOST_WORKERS),
    "max_rows": (1, 10**9),
    "max_bytes": (1, 10**12),
    "port": (0, 65535),
    "timeout": (0.1, 3600),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Run, address and limits of a server.

    Attributes:
        folder: the run folder.
        host: the address to listen on; any other than loopback needs a `token`.
        port: the port; 0 for any that is free.
        token: what a client must send as ``Authorization: Bearer ...``.
        workers: how many processes, each with the whole run.
        data: where the data of the problem is now, if it has moved; ``/choose`` needs it.
        device: where the network goes.
        trust: packages whose code the run may name, as for `load_run`.
        max_rows: the most rows of a request.
        max_bytes: the most bytes of a request's body.
        timeout: how many seconds a request may take, and a connection may be silent.
        origins: web pages whose scripts may ask, as ``https://example.org``; none by default.

    >>> Settings(folder=Path("runs/demo"), port=0).max_rows
    10000
    >>> try:
    ...     Settings(folder=Path("runs/demo"), host="0.0.0.0")
    ... except ConfigurationError as error:
    ...     print(str(error).partition(":")[0])
    `0.0.0.0` can be reached from other machines, so clients need a token
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = field(default=None, repr=False)
    workers: int = 1
    data: str | None = None
    device: str = "cpu"
    trust: tuple[str, ...] = ()
    max_rows: int = 10_000
    max_bytes: int = 4 * 1024 * 1024
    timeout: float = 30.0
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, (lower, upper) in LIMITS.items():
            if not lower <= (value := getattr(self, name)) <= upper:
                rule = f"`{name}` must be from {lower:g} to {upper:.10g}"
                raise ConfigurationError(f"{rule}, found {value:.10g}")
        for origin in self.origins:
            if not re.fullmatch(ORIGIN, origin):
                raise ConfigurationError(
                    "an origin must be a scheme and a host, such as https://example.org:8443, "
                    f"without a path or *, found `{origin}`"
                )
        if self.token is not None and not re.fullmatch(rf"[!-~]{{{MIN_LETTERS},}}", self.token):
            raise ConfigurationError(
                f"a token needs at least {MIN_LETTERS} characters and no space: take one "
                'from python -c "import secrets; print(secrets.token_urlsafe())"'
            )
        if self.token is None and not is_loopback(self.host):
            raise ConfigurationError(
                f"`{self.host}` can be reached from other machines, so clients need a token: set "
                "PARETOCOSMOS_TOKEN or `token`, or listen on 127.0.0.1"
            )


def is_loopback(host: str) -> bool:
    """Return True if an address belongs to this machine alone.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
