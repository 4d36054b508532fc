"""Look up methods, objectives, conditionings, backbones and problems by name, where it is trusted.

Each of these subpackages lists its names in `REGISTRY`, a table from a name to
`package.module:Name`. What lies outside this package is named in the same way.

A name that the caller writes, in Python or on the command line, is resolved by `find` whatever it
is. A file may name code of this package, and of packages that the caller trusts: such a name passes
through `check_names` first, before anything is imported.
"""

import importlib
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paretocosmos.errors import ConfigurationError, RunError, UntrustedError, unknown

Thing = Callable[..., typing.Any]


@dataclass(frozen=True)
class Spec:
    """A thing by name with the settings that build it: what a run folder records."""

    name: str
    settings: Mapping[str, typing.Any] = field(default_factory=dict)


# The subpackages of kinds that are not called as their subpackage is.
PACKAGES = {"backbones": "nn.backbones", "conditioning": "nn.conditioning"}


def names(kind: str) -> list[str]:
    """Return the names that a subpackage registers, sorted; none of them is imported.

    >>> "cosmos" in names("methods")
    True
    """
    return sorted(get_table(kind))


def get_table(kind: str) -> Mapping[str, str]:
    """Return the table of a subpackage: names to `package.module:Name`."""
    table: Mapping[str, str] = _import_package(kind).REGISTRY
    return table


def _import_package(kind: str) -> types.ModuleType:
    # on demand: at the top of this module it would be a circular import
    return importlib.import_module(f"paretocosmos.{PACKAGES.get(kind, kind)}")


def find(kind: str, name: str) -> Thing:
    """Import what a subpackage registers as `name`, or what is at `package.module:Name`.

    A subpackage may also adapt classes of another library, as methods do with `torchjd:UPGrad`.
    """
    if ":" in name:  # no registered name has a colon
        adapt = get_adapter(kind, name)
        return _import_object(name) if adapt is None else adapt(name.partition(":")[2])
    if name not in get_table(kind):
        raise unknown(kind.removesuffix("s"), name, names(kind))
    return _import_object(get_table(kind)[name])


def name_of(kind: str, cls: type) -> str | None:
    """Return the name under which a class is registered, or `None`.

    >>> from paretocosmos import Cosmos
    >>> name_of("methods", Cosmos)
    'cosmos'
    """
    address = f"{cls.__module__}:{cls.__qualname__}"
    return next((name for name, value in get_table(kind).items() if value == address), None)


def get_adapter(kind: str, name: str) -> Callable[[str], Thing] | None:
    """Return the function that adapts another library's classes, if `name` is of such a library."""
    adapters: Mapping[str, str] = getattr(_import_package(kind), "ADAPTERS", {})
    library = name.partition(":")[0]
    return _import_object(adapters[library]) if library in adapters else None


def build(kind: str, spec: Spec, **fixed: typing.Any) -> typing.Any:
    """Build a thing from its spec; `fixed` are the arguments its kind hands over."""
    try:
        return find(kind, spec.name)(**fixed, **spec.settings)
    except TypeError as error:  # as for a setting that a class from outside does not take
        raise ConfigurationError(
            f"`{spec.name}` cannot be built ({error}); its settings are keyword-only arguments"
        ) from error


def summary(kind: str, name: str) -> str:
    """Return the first line of a thing's docstring."""
    return (inspect.getdoc(find(kind, name)) or "").partition("\n")[0]


def parameters(thing: Thing) -> dict[str, inspect.Parameter]:
    """Return the keyword-only arguments of a thing, which are those a user may set.

    Positional ones, such as the input's shape, are filled in by the plan.
    """
    try:
        signature = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{thing!r} cannot be built; name a class or a function"
        ) from error
    return {p.name: p for p in signature if p.kind is inspect.Parameter.KEYWORD_ONLY}


def convert(key: str, value: object, annotation: object) -> typing.Any:
    """Bring a value, from Python, JSON or a command line, to the annotated type.

    >>> convert("hidden", "60,25", tuple[int, ...])
    (60, 25)
    >>> convert("alpha", "0.5", float | tuple[float, ...])
    0.5
    """
    # of a union, the first type that accepts the value
    for option in _list_options(annotation):
        try:
            return _convert_to(value, option)
        except (TypeError, ValueError, OverflowError):
            continue
    # without `None`, which only stands for leaving the setting out
    named = (option for option in _list_options(annotation) if option is not type(None))
    wanted = " or ".join(_format_option(option) for option in named)
    raise ConfigurationError(f"`{key}` takes {wanted}, found {value!r}")


def _format_option(option: object) -> str:
    if typing.get_origin(option) is typing.Literal:
        return " or ".join(f"`{choice}`" for choice in typing.get_args(option))
    return str(getattr(option, "__name__", option))


def _list_options(annotation: object) -> tuple[object, ...]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        # None first: the text "none" would do for str as well
        return tuple(
            sorted(typing.get_args(annotation), key=lambda option: option is not type(None))
        )
    return (annotation,)


def _convert_to(value: object, option: object) -> object:
    origin = typing.get_origin(option)
    if origin is tuple:
        if isinstance(value, str):
            value = [item for item in value.split(",") if item.strip()]
        if not isinstance(value, list | tuple):
            raise TypeError
        inner = typing.get_args(option)[0]
        return tuple(_convert_to(item, inner) for item in value)
    if origin is typing.Literal:
        if value in typing.get_args(option):
            return value
        raise ValueError
    if option in (None, type(None)):
        if value is None or value == "none":
            return None
        raise ValueError
    if option is bool:
        # not `bool(value)`, under which the text "false" is true
        truth = {"true": True, "false": False, True: True, False: False}
        if not isinstance(value, str | bool) or value not in truth:
            raise ValueError
        return truth[value]
    if option is int:
        # `int` takes True and cuts fractions off: both are more likely mistakes
        if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
            raise ValueError
        return int(typing.cast(str, value))
    if option is float:
        if isinstance(value, bool):
            raise ValueError
        return float(typing.cast(str, value))
    if option is str and isinstance(value, str):
        return value
    if option in (typing.Any, object):
        return value
    raise TypeError


def _import_object(name: str) -> Thing:
    module_name, _, attribute = name.partition(":")
    try:
        return typing.cast(Thing, getattr(importlib.import_module(module_name), attribute))
    # `ValueError`: no module has an empty name; other errors are of the imported code itself
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"`{name}` cannot be imported ({error}); write it as `package.module:Name` and check "
            "that the package is installed or on PYTHONPATH"
        ) from error


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
            is_registered = get_adapter(kind, name) is not None
            if not (is_trusted or is_registered or name in get_table(kind).values()):
                refused.append(name)
        elif name not in names(kind):
            mistake = unknown(kind.removesuffix("s"), name, names(kind))
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
