"""Flat settings, the paper's settings, and the resolved configuration of a run.

Settings are flat: `penalty`, `hidden`, `epochs`. Each belongs to the component whose constructor
takes it: the problem, the method, the conditioning, the backbone, or the training. The paper's
settings for a problem and a method are in `config/paper.toml`; the caller's override them.
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
    "describe_pair",
    "get_label",
    "get_pair",
    "get_pairs",
    "get_paper_network",
    "get_paper_settings",
    "get_spec_name",
    "make_spec",
    "split_settings",
]


# Keys of the paper's settings that name a component of the network instead of setting a number.
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
        """The paper's name for the method with its conditioning, or the method's own."""
        conditioning = None if self.conditioning is None else self.conditioning.name
        return get_label(self.method.name, conditioning)

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of components from outside this package."""
        specs = (self.problem, self.method, self.conditioning, self.backbone)
        # their code must be trusted before a run folder that names them is loaded
        return modules_of(spec.name for spec in specs if spec is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        # values without a JSON form are recorded, and compared on resuming, as their repr
        plain: dict[str, Any] = to_json_value(dataclasses.asdict(self), repr)
        return plain


def get_paper_settings(problem: str, label: str) -> dict[str, Any]:
    """Return the paper's settings for a problem and a label, see `get_label`.

    A problem that the paper does not have gets those of the label alone.

    >>> get_paper_settings("adult", "cosmos")["penalty"]
    0.01
    """
    tables = _collect_tables(problem)
    # from general to specific: the problem, the label, and the label on this problem
    settings = {k: v for table in tables for k, v in table.items() if not isinstance(v, dict)}
    settings |= _load_paper_toml()["pairs"].get(label, {}).get("settings", {})
    for table in tables:
        settings |= table.get(label, {})
    return {key: value for key, value in settings.items() if key not in ("like", *NETWORK)}


def get_paper_network(problem: str) -> dict[str, str]:
    """Return the backbone and the conditioning that the paper names for a problem, if any."""
    # later tables win: the problem's own, over those of the problems it is like
    settings = {key: value for table in _collect_tables(problem) for key, value in table.items()}
    return {role: settings[role] for role in NETWORK if role in settings}


def get_pairs() -> dict[str, tuple[str, str]]:
    """Return the paper's names for pairs of a method and a conditioning.

    >>> get_pairs()["phn_ls"]
    ('linear', 'hypernet')
    """
    pairs = _load_paper_toml()["pairs"]
    return {name: (pair["method"], pair["conditioning"]) for name, pair in pairs.items()}


def describe_pair(name: str) -> dict[str, str]:
    """Return the card of a pair: summary, cost, when to use it and when not, paper."""
    pair: dict[str, Any] = _load_paper_toml()["pairs"][name]
    return {key: value for key, value in pair.items() if key != "settings"}


def get_pair(name: str) -> tuple[str, str] | None:
    """Return the method and the conditioning that a name of `get_pairs` stands for, or `None`."""
    return get_pairs().get(name)


def get_label(method: str, conditioning: str | None) -> str:
    """Return the paper's name for a method with a conditioning, or the method's own name.

    >>> get_label("epo", "hypernet"), get_label("epo", "concat")
    ('phn_epo', 'epo')
    """
    names = [name for name, pair in get_pairs().items() if pair == (method, conditioning)]
    return names[0] if names else method


def split_settings(
    settings: Mapping[str, Any],
    owners: Mapping[str, Callable[..., Any]],
    *,
    lenient: bool = False,
) -> dict[str, dict[str, Any]]:
    """Assign every setting to the component that takes it, converted to the annotated type.

    Args:
        settings: flat, by the constructor argument's name, or `role.name`.
        owners: the constructors, by role.
        lenient: leave out settings that nobody takes instead of raising.

    >>> split_settings({"epochs": "3"}, {"training": Training})
    {'training': {'epochs': 3}}
    """
    parameters = {role: registry.parameters(owner) for role, owner in owners.items()}
    settings_by_role: dict[str, dict[str, Any]] = {role: {} for role in owners}
    mistakes: list[str] = []  # reported together, so that a user corrects them in one go
    for key, value in settings.items():
        prefix, _, name = key.rpartition(".")
        roles = [role for role in owners if name in parameters[role] and prefix in ("", role)]
        if len(roles) > 1:
            choices = " or ".join(f"`{role}.{name}`" for role in roles)
            mistakes.append(f"`{key}` is a setting of several components: write {choices}")
        elif roles:
            owner = owners[roles[0]]
            # a class's own hints are those of its attributes, so ask its __init__
            function = getattr(owner, "__init__", owner) if isinstance(owner, type) else owner
            hints = typing.get_type_hints(function)
            try:
                converted = registry.convert(name, value, hints.get(name, object))
                settings_by_role[roles[0]][name] = converted
            except ConfigurationError as error:
                mistakes.append(str(error))
        elif not lenient:
            names = {name for by_name in parameters.values() for name in by_name}
            mistakes.append(str(unknown("setting", key, names)))
    if mistakes:
        raise ConfigurationError("; ".join(mistakes))
    return settings_by_role


def make_spec(kind: str, thing: object) -> Spec:
    """Return the name and settings of an object that the caller built.

    The settings are the constructor's arguments that the object has as attributes of the same name:
    keyword-only arguments, and fields of a dataclass.
    """
    # an argument kept under another name, or not at all, is lost: it cannot be read back
    attributes, keys = getattr(thing, "__dict__", {}), set(registry.parameters(type(thing)))
    if dataclasses.is_dataclass(thing):
        keys |= {field.name for field in dataclasses.fields(thing)}
    # in the order of the signature, so that equal settings are recorded alike
    arguments = inspect.signature(type(thing)).parameters
    settings = {key: attributes[key] for key in arguments if key in keys and key in attributes}
    return Spec(get_spec_name(kind, type(thing)), settings)


def get_spec_name(kind: str, cls: type) -> str:
    """Return the registered name of a class, or ``package.module:Class``."""
    return registry.name_of(kind, cls) or f"{cls.__module__}:{cls.__qualname__}"


def _collect_tables(problem: str) -> list[dict[str, Any]]:
    """Return a problem's table in `paper.toml`, after those of the problems it is like."""
    tables: list[dict[str, Any]] = [_load_paper_toml().get(problem, {})]
    while "like" in tables[0]:
        tables.insert(0, _load_paper_toml()[tables[0]["like"]])
    return tables


# Read once: each setting of each method is looked up in it.
@cache
def _load_paper_toml() -> dict[str, Any]:
    text = (resources.files("paretocosmos") / "config" / "paper.toml").read_text("utf-8")
    return tomllib.loads(text)
