"""Trust: a file may name code of this package, and of packages that the caller trusts.

A name that the caller writes, in Python or on the command line, is resolved by `find` whatever it
is. A name in a file passes through `check_names` first, before anything is imported.
"""

from collections.abc import Collection, Iterable
from pathlib import Path

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError, RunError, UntrustedError, unknown

LONGEST = 200  # letters of a name


def check_trust(trust: Collection[str]) -> tuple[str, ...]:
    """Validate the names of packages and modules that a caller trusts.

    >>> check_trust(["my_package", "other.module"])
    ('my_package', 'other.module')
    """
    # a text is a collection too, and its letters are identifiers
    if isinstance(trust, str):
        raise ConfigurationError(f'`trust` must be a list of packages: write trust=["{trust}"]')
    for name in trust:
        if not (isinstance(name, str) and all(word.isidentifier() for word in name.split("."))):
            raise ConfigurationError(
                f"`trust` must name packages or modules, such as `my_package`, found {name!r}"
            )
    return tuple(trust)


def modules_of(names: Iterable[str | None]) -> tuple[str, ...]:
    """Return the modules of names such as `package.module:Thing`, which a caller trusts by naming.

    >>> modules_of(["cosmos", "my_package.nets:Net", None])
    ('my_package.nets',)
    """
    outside = (name.partition(":")[0] for name in names if name is not None and ":" in name)
    return tuple(dict.fromkeys(outside))


def check_names(
    named: Iterable[tuple[str, str]], *, file: str | Path, trust: Collection[str]
) -> None:
    """Raise if a file names foreign code that the caller does not trust.

    Args:
        named: the kinds and names of the things that the file names.
        file: its name in an error message.
        trust: packages and modules whose code may be imported.
    """
    # collected, so that the caller can allow all of them at once
    refused = []
    for kind, name in named:
        module, _, thing = name.partition(":")
        is_name = len(name) <= LONGEST and thing.isprintable()
        # it goes into a sentence, and into a command to copy
        if not (is_name and all(map(str.isidentifier, module.split(".")))):
            raise RunError(f"`{file}` is damaged: {ascii(name)[:60]} is not a valid name")
        if ":" in name:
            # with the dot: who trusts `foo` does not trust `foobar`
            is_trusted = any(f"{module}.".startswith(f"{prefix}.") for prefix in trust)
            # the long name of a registered class or function, or an adapted library; no other
            # function of this package may be named: not all are safe to call from a file
            is_registered = registry.get_adapter(kind, name) is not None
            if not (is_trusted or is_registered or name in registry.get_table(kind).values()):
                refused.append(name)
        elif name not in registry.names(kind):
            mistake = unknown(kind.removesuffix("s"), name, registry.names(kind))
            raise RunError(f"`{file}` cannot be used here: {mistake}")
    if refused:
        packages = tuple(
            dict.fromkeys(name.partition(".")[0].partition(":")[0] for name in refused)
        )
        listed = ", ".join(f'"{package}"' for package in packages)
        named_code = " and ".join(f"`{name}`" for name in dict.fromkeys(refused))
        error = UntrustedError(
            f"`{file}` names {named_code}, code outside paretocosmos that would be imported and run"
            f": if you trust it, allow it with trust=[{listed}]"
        )
        error.packages = packages
        raise error
