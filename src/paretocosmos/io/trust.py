"""Whose code a file may name: this package's own things, and what the caller trusts.

A name that the caller writes, in Python or on the command line, is resolved by `find` whatever it
is. A name in a file passes through `check_names` first, before anything is imported.
"""

from collections.abc import Collection, Iterable
from pathlib import Path

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError, RunError, UntrustedError, unknown

__all__ = ["check_names", "check_trust", "modules_of"]

LONGEST = 200  # letters of a name


def check_trust(trust: Collection[str]) -> tuple[str, ...]:
    """The packages and modules a caller trusts, if they are names of such.

    >>> check_trust(["my_package", "other.module"])
    ('my_package', 'other.module')
    """
    if isinstance(trust, str):
        raise ConfigurationError(f'`trust` must be a list of packages: write trust=["{trust}"]')
    for name in trust:
        if not (isinstance(name, str) and all(part.isidentifier() for part in name.split("."))):
            raise ConfigurationError(
                f"`trust` must name packages or modules, such as `my_package`, found {name!r}"
            )
    return tuple(trust)


def modules_of(names: Iterable[str | None]) -> tuple[str, ...]:
    """The modules of things outside this package, by `package.module:Thing`: none for its own.

    What a caller names himself is trusted so.

    >>> modules_of(["cosmos", "my_package.nets:Net", None])
    ('my_package.nets',)
    """
    outside = (name.partition(":")[0] for name in names if name is not None and ":" in name)
    return tuple(dict.fromkeys(outside))


def check_names(
    named: Iterable[tuple[str, str]], *, file: str | Path, trust: Collection[str]
) -> None:
    """Refuse a file that names code of others which the caller does not trust.

    Args:
        named: kinds, and the names of things in them that are in the file.
        file: what it is called in a refusal.
        trust: packages and modules whose code may be imported.
    """
    refused = []
    for kind, name in named:
        if not _is_name(name):  # which goes into a sentence, and into a command to copy
            raise RunError(f"`{file}` is damaged: {ascii(name)[:60]} is not a valid name")
        if ":" in name:
            if not _trusted(name, trust) and not _is_registered(kind, name):
                refused.append(name)
        elif name not in registry.names(kind):
            known = unknown(kind.removesuffix("s"), name, registry.names(kind))
            raise RunError(f"`{file}` cannot be used here: {known}")
    if refused:
        packages = tuple(
            dict.fromkeys(name.partition(".")[0].partition(":")[0] for name in refused)
        )
        each = ", ".join(f'"{package}"' for package in packages)
        called = " and ".join(f"`{name}`" for name in dict.fromkeys(refused))
        error = UntrustedError(
            f"`{file}` names {called}, code outside paretocosmos that would be imported and run: "
            f"if you trust it, allow it with trust=[{each}]"
        )
        error.packages = packages
        raise error


def _is_name(name: str) -> bool:
    module, _, thing = name.partition(":")
    parts = module.split(".")
    return len(name) <= LONGEST and thing.isprintable() and all(p.isidentifier() for p in parts)


def _trusted(name: str, trust: Collection[str]) -> bool:
    module = name.partition(":")[0]
    return any(module == one or module.startswith(f"{one}.") for one in trust)


def _is_registered(kind: str, name: str) -> bool:
    """Return True for the long name of a registered class or function, and for adapted libraries.

    No other function of this package may be named: not all of them are safe to call from a file.
    """
    return registry.adapter(kind, name) is not None or name in registry.registered(kind).values()
