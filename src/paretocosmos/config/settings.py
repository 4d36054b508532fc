"""From names and flat settings to one resolved configuration; every mistake reported at once.

Settings are flat: `penalty`, `hidden`, `epochs`. Each belongs to the thing whose constructor takes
it: the problem, the method, the conditioning, the backbone, or the training. Where a problem is
known by name, the paper's settings for it and its method (`config/paper.toml`) come first and
what the caller gives comes on top.
"""

import dataclasses
import inspect
import tomllib
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from paretocosmos import registry
from paretocosmos.config.training import Training
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.files import to_json_value
from paretocosmos.io.trust import modules_of
from paretocosmos.registry import Spec

__all__ = [
    "Configuration",
    "about_pair",
    "distribute",
    "label_of",
    "pair_of",
    "pairs",
    "paper_network",
    "paper_settings",
    "spec_name",
    "spec_of",
]


# What the paper's settings may name besides numbers: parts of the network, where it has its own.
NETWORK = ("backbone", "conditioning")


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Everything that decides a run's result; what `run.json` records and a resume compares."""

    preset: str
    problem: Spec | None
    method: Spec
    conditioning: Spec | None
    backbone: Spec | None
    training: Training
    seed: int
    device: str
    deterministic: bool
    precision: str

    @property
    def label(self) -> str:
        """What is trained, in a word: `phn_ls` for `linear` with `hypernet`, or the method."""
        conditioning = None if self.conditioning is None else self.conditioning.name
        return label_of(self.method.name, conditioning)

    @property
    def modules(self) -> tuple[str, ...]:
        """Where the things are from that are not of this package."""
        things = (self.problem, self.method, self.conditioning, self.backbone)
        return modules_of(thing.name for thing in things if thing is not None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        # what JSON cannot say is recorded, and compared, as text
        plain: dict[str, Any] = to_json_value(dataclasses.asdict(self), repr)
        return plain


def paper_settings(problem: str, label: str) -> dict[str, Any]:
    """The paper's settings for a problem and what is trained on it.

    Those of the latter alone for a problem it does not have.

    >>> paper_settings("adult", "cosmos")["penalty"]
    0.01
    """
    tables = _tables(problem)
    pair = _paper()["pairs"].get(label, {}).get("settings", {})
    general = {k: v for table in tables for k, v in table.items() if not isinstance(v, dict)}
    own = {k: v for table in tables for k, v in table.get(label, {}).items()}
    every = general | pair | own
    return {key: value for key, value in every.items() if key not in ("like", *NETWORK)}


def paper_network(problem: str) -> dict[str, str]:
    """The backbone and the conditioning the paper has for a problem, where it names them."""
    named = {key: value for table in _tables(problem) for key, value in table.items()}
    return {part: named[part] for part in NETWORK if part in named}


def pairs() -> dict[str, tuple[str, str]]:
    """The paper's names for a method with a certain conditioning.

    >>> pairs()["phn_ls"]
    ('linear', 'hypernet')
    """
    return {name: (p["method"], p["conditioning"]) for name, p in _paper()["pairs"].items()}


def about_pair(name: str) -> dict[str, str]:
    """What there is to say of one of `pairs`: summary, cost, when to use it and when not, paper."""
    pair: dict[str, Any] = _paper()["pairs"][name]
    return {key: value for key, value in pair.items() if key != "settings"}


def pair_of(name: str) -> tuple[str, str] | None:
    """The method and the conditioning a name stands for, if it is one of `pairs`."""
    return pairs().get(name)


def label_of(method: str, conditioning: str | None) -> str:
    """What a method with a conditioning is called: a name of `pairs`, or the method's own.

    >>> label_of("epo", "hypernet"), label_of("epo", "concat")
    ('phn_epo', 'epo')
    """
    names = [name for name, pair in pairs().items() if pair == (method, conditioning)]
    return names[0] if names else method


def distribute(
    settings: Mapping[str, Any],
    owners: Mapping[str, Callable[..., Any]],
    *,
    lenient: bool = False,
) -> dict[str, dict[str, Any]]:
    """Give every setting to the thing that takes it, converted to the type it asks for.

    Args:
        settings: flat, by the constructor argument's name, or `owner.name`.
        owners: the things, by role.
        lenient: leave out what nobody takes instead of refusing it.

    >>> distribute({"epochs": "3"}, {"training": Training})
    {'training': {'epochs': 3}}
    """
    known = {role: registry.parameters(thing) for role, thing in owners.items()}
    given: dict[str, dict[str, Any]] = {role: {} for role in owners}
    mistakes: list[str] = []
    for key, value in settings.items():
        prefix, _, name = key.rpartition(".")
        takers = [role for role in known if name in known[role] and prefix in ("", role)]
        if not takers:
            if not lenient:
                every = {name for names in known.values() for name in names}
                mistakes.append(str(unknown("setting", key, every)))
            continue
        if len(takers) > 1:
            choices = " or ".join(f"`{role}.{name}`" for role in takers)
            mistakes.append(f"`{key}` is a setting of several things: write {choices}")
            continue
        (role,) = takers
        hints = typing.get_type_hints(_constructor(owners[role]))
        try:
            given[role][name] = registry.convert(name, value, hints.get(name, object))
        except ConfigurationError as error:
            mistakes.append(str(error))
    if mistakes:
        raise ConfigurationError("; ".join(mistakes))
    return given


def spec_of(kind: str, thing: object) -> Spec:
    """The name and settings of a thing that was built by hand.

    The constructor's arguments that the thing keeps under their names: keywords, and fields of a
    dataclass.
    """
    kept, keys = getattr(thing, "__dict__", {}), set(registry.parameters(type(thing)))
    if dataclasses.is_dataclass(thing):
        keys |= {field.name for field in dataclasses.fields(thing)}
    taken = inspect.signature(type(thing)).parameters
    settings = {key: kept[key] for key in taken if key in keys and key in kept}
    return Spec(spec_name(kind, type(thing)), settings)


def spec_name(kind: str, cls: type) -> str:
    """Return the registered name of a class, or ``package.module:Class``."""
    return registry.name_of(kind, cls) or f"{cls.__module__}:{cls.__qualname__}"


def _constructor(thing: Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(thing, type):
        return thing
    return typing.cast(Callable[..., Any], getattr(thing, "__init__", thing))


def _tables(problem: str) -> list[dict[str, Any]]:
    """A problem's table, after those of the problems it is like."""
    tables: list[dict[str, Any]] = [_paper().get(problem, {})]
    while "like" in tables[0]:
        tables.insert(0, _paper()[tables[0]["like"]])
    return tables


@cache
def _paper() -> dict[str, Any]:
    text = (resources.files("paretocosmos") / "config" / "paper.toml").read_text("utf-8")
    return tomllib.loads(text)
