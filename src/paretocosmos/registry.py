"""Finding things by name: a room is a package, a file in it is a thing, its name is public.

Every file of a room that does not start with an underscore holds one thing, the single name of its
``__all__``: a class or a function. `package.module:Thing` names one outside this package.
"""

import importlib
import importlib.util
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from paretocosmos.errors import ConfigurationError, unknown

__all__ = ["Spec", "adapter", "build", "convert", "find", "names", "parameters", "summary"]

Thing = Callable[..., typing.Any]


@dataclass(frozen=True)
class Spec:
    """A thing by name with the settings that build it: what a run folder records."""

    name: str
    settings: Mapping[str, typing.Any] = field(default_factory=dict)


def names(room: str) -> list[str]:
    """Return the names of a room's things.

    >>> "cosmos" in names("methods")
    True
    """
    package = importlib.import_module(f"paretocosmos.{room}")
    return list(_modules_in(tuple(package.__path__)))


@cache
def _modules_in(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Return the public modules of a package, sorted: reading a recipe asks a thousand times."""
    modules = (module.name for module in pkgutil.iter_modules(folders) if not module.ispkg)
    return tuple(sorted(name for name in modules if not name.startswith("_")))


def find(room: str, name: str) -> Thing:
    """The thing called `name` in a room, or at `package.module:Thing`.

    A room may adapt things of a library, as `torchjd:UPGrad` among methods.
    """
    if ":" in name:
        adapt = adapter(room, name)
        return _outside(name) if adapt is None else adapt(name.partition(":")[2])
    if name not in names(room):
        raise unknown(room.removesuffix("s"), name, names(room))
    module = importlib.import_module(f"paretocosmos.{room}.{name}")
    (thing,) = module.__all__
    return typing.cast(Thing, getattr(module, thing))


def adapter(room: str, name: str) -> Callable[[str], Thing] | None:
    """What makes a thing of a room from one of a library; `None` where the room has nothing for it.

    It is `adapted` in the room's file of the library's name, with an underscore before it.
    """
    library = name.partition(":")[0]
    if not library.isidentifier():
        return None
    file = f"paretocosmos.{room}._{library}"
    if importlib.util.find_spec(file) is None:
        return None
    found: Callable[[str], Thing] | None = getattr(importlib.import_module(file), "adapted", None)
    return found


def build(room: str, spec: Spec, **fixed: typing.Any) -> typing.Any:
    """Build a thing from its spec; `fixed` are the arguments its room hands over."""
    try:
        return find(room, spec.name)(**fixed, **spec.settings)
    except TypeError as error:
        raise ConfigurationError(
            f"`{spec.name}` cannot be built ({error}); its settings are keyword-only arguments"
        ) from error


def summary(room: str, name: str) -> str:
    """The first line of a thing's docstring."""
    return (inspect.getdoc(find(room, name)) or "").partition("\n")[0]


def parameters(thing: Thing) -> dict[str, inspect.Parameter]:
    """The keyword-only arguments of a thing: those a user may set."""
    try:
        every = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{thing!r} cannot be built; name a class or a function"
        ) from error
    return {p.name: p for p in every if p.kind is inspect.Parameter.KEYWORD_ONLY}


def convert(key: str, value: object, annotation: object) -> typing.Any:
    """Bring a value, from Python, JSON or a command line, to the annotated type.

    >>> convert("hidden", "60,25", tuple[int, ...])
    (60, 25)
    >>> convert("alpha", "0.5", float | tuple[float, ...])
    0.5
    """
    for option in _options(annotation):
        try:
            return _to(value, option)
        except (TypeError, ValueError, OverflowError):
            continue
    named = (option for option in _options(annotation) if option is not type(None))
    wanted = " or ".join(_called(option) for option in named)
    raise ConfigurationError(f"`{key}` takes {wanted}, found {value!r}")


def _called(option: object) -> str:
    if typing.get_origin(option) is typing.Literal:
        return " or ".join(f"`{choice}`" for choice in typing.get_args(option))
    return str(getattr(option, "__name__", option))


def _options(annotation: object) -> tuple[object, ...]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        # None first: the text "none" would do for str as well
        return tuple(
            sorted(typing.get_args(annotation), key=lambda option: option is not type(None))
        )
    return (annotation,)


def _to(value: object, option: object) -> object:
    origin = typing.get_origin(option)
    if origin is tuple:
        if isinstance(value, str):
            value = [part for part in value.split(",") if part.strip()]
        if not isinstance(value, list | tuple):
            raise TypeError
        inner = typing.get_args(option)[0]
        return tuple(_to(part, inner) for part in value)
    if origin is typing.Literal:
        if value in typing.get_args(option):
            return value
        raise ValueError
    if option in (None, type(None)):
        if value is None or value == "none":
            return None
        raise ValueError
    if option is bool:
        truth = {"true": True, "false": False, True: True, False: False}
        if not isinstance(value, str | bool) or value not in truth:
            raise ValueError
        return truth[value]
    if option is int:
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


def _outside(name: str) -> Thing:
    module_name, _, attribute = name.partition(":")
    try:
        return typing.cast(Thing, getattr(importlib.import_module(module_name), attribute))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"`{name}` cannot be imported ({error}); write it as `package.module:Name` and check "
            "that the package is installed or on PYTHONPATH"
        ) from error
