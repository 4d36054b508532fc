"""Flat settings, `Training`, the paper's settings, and the resolved configuration of a run.

Settings are flat: `penalty`, `hidden`, `epochs`. Each belongs to the component whose constructor
takes it: the problem, the method, the conditioning, the backbone, or the training. The paper's
settings for a problem and a method are in `config/paper.toml`; the caller's override them.
"""

import dataclasses
import inspect
import math
import operator
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import torch
from annotated_types import Ge, Gt, Interval

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.files import to_json_value
from paretocosmos.io.schema import MOST
from paretocosmos.registry import Spec, modules_of

# Keys of the paper's settings that name a component of the network instead of setting a number.
NETWORK = ("backbone", "conditioning")


Positive = Annotated[int, Ge(1)]
Fraction = Annotated[float, Interval(ge=0, lt=1)]
"""A fraction of a training's steps."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The settings of the optimiser and of evaluation; the defaults are the paper's for tables.

    Attributes:
        epochs: passes over the training data.
        batch_size: samples per step; the last short batch is kept.
        optimizer: ``"adam"``, ``"adamw"`` or ``"sgd"``.
        learning_rate: the largest that is reached.
        weight_decay: added to the gradients by `adam`; decoupled in the others, and there only for
            matrices and kernels that do not read the ray.
        schedule: ``"steps"``: by `milestones`; ``"cosine"``: half a cosine from the learning rate
            down to 0, over all steps.
        warmup: the fraction of the steps in which the rate grows from 0, under ``"cosine"``.
        milestones: after these epochs the learning rate is multiplied by `decay`.
        decay: see `milestones`.
        average: the fraction of the steps over which weights are averaged (an exponential moving
            average); averaged weights are evaluated and saved. 0: no averaging.
        clip: the largest norm of a step's gradients; 0: any.
        scale_losses: divide every loss by how strongly it pulls on a fresh network's outputs, so
            that a preference means the same for losses of any size.
        calibrate: at the end, move the ends of the simplex to where more weight on an objective
            stops paying off on validation; fronts then go from end to end.
        patience: stop after so many validations without an improvement; 0: never.
        rays_per_batch: rays per batch, each for an equal share of it; the paper draws one.
        accumulate: micro-batches per batch, one after the other, to save memory; it must divide
            `rays_per_batch`, since each has rays of its own. The step is the same as without.
        evaluate_every: epochs between validations, by which the best epoch is selected.
        rays: even rays of a front, where one network serves all.
        reference: the reference point of the hypervolume; `None` for the problem's own.
    """

    epochs: Annotated[int, Interval(ge=1, le=MOST)] = 50
    batch_size: Positive = 256
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: Annotated[float, Gt(0)] = 1e-3
    weight_decay: Annotated[float, Ge(0)] = 0.0
    schedule: Literal["steps", "cosine"] = "steps"
    warmup: Fraction = 0.0
    milestones: tuple[int, ...] = ()
    decay: Annotated[float, Gt(0)] = 0.1
    average: Fraction = 0.0
    clip: Annotated[float, Ge(0)] = 0.0
    scale_losses: bool = False
    calibrate: bool = False
    patience: Annotated[int, Ge(0)] = 0
    rays_per_batch: Positive = 1
    accumulate: Positive = 1
    evaluate_every: Positive = 5
    rays: Annotated[int, Interval(ge=1, le=MOST)] = 25
    reference: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        mistakes = list(find_out_of_bounds(self))  # all of them are reported at once
        if self.milestones and self.schedule != "steps":
            mistakes.append("`milestones` go with schedule `steps`: leave one of them out")
        if not all(math.isfinite(value) for value in self.reference or ()):
            mistakes.append(f"`reference` must be finite, found {self.reference}")
        # max(..., 1): a 0 is reported as out of bounds above, and must not raise ZeroDivisionError
        if self.batch_size % max(self.rays_per_batch, 1):
            mistakes.append(
                f"`rays_per_batch` must divide `batch_size`, found {self.rays_per_batch} and "
                f"{self.batch_size}"
            )
        if self.rays_per_batch % max(self.accumulate, 1):
            mistakes.append(
                "`accumulate` must divide `rays_per_batch`, as a micro-batch has rays of its own, "
                f"found {self.accumulate} and {self.rays_per_batch}: set "
                f"rays_per_batch={self.accumulate} too"
            )
        if mistakes:
            raise ConfigurationError("; ".join(mistakes))

    def compute_learning_rates(self, epoch: int, samples: int) -> list[float]:
        """Compute the learning rates of an epoch's steps; one if all are the same.

        Args:
            epoch: counted from 0.
            samples: samples in an epoch.
        """
        if self.schedule == "steps":
            return [self.learning_rate * self.decay ** sum(epoch >= m for m in self.milestones)]
        steps = -(-samples // self.batch_size)  # rounded up for the last short batch
        indices = range(epoch * steps, (epoch + 1) * steps)
        total = steps * self.epochs
        return [self.learning_rate * self.compute_cosine(step, total) for step in indices]

    def compute_cosine(self, step: int, steps: int) -> float:
        """Compute the fraction of the learning rate that a step has under ``"cosine"``.

        Args:
            step: counted from 0.
            steps: steps of the whole training.

        >>> Training(warmup=0.5).compute_cosine(0, 2), Training().compute_cosine(1, 2)
        (0.5, 0.5)
        """
        warmup = self.warmup * steps
        if step < warmup:
            return (step + 1) / (warmup + 1)  # not 0 in the first step, which would be lost
        return (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


# What this package's optimisers share with torch's of the same names; other values are refused.
_SHARED: dict[str, dict[str, Any]] = {
    "adam": {"betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False, "maximize": False},
    "adamw": {"betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False, "maximize": False},
    "sgd": {"momentum": 0.9, "dampening": 0, "nesterov": True, "maximize": False},
}


def read_optimizer(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are given, and those that an optimiser of torch stands for.

    >>> read_optimizer({"optimizer": torch.optim.Adam([torch.zeros(1)], lr=0.01)})
    {'learning_rate': 0.01, 'weight_decay': 0.0, 'optimizer': 'adam'}
    """
    settings = {name: value for name, value in settings.items() if value is not None}
    optimizer = settings.get("optimizer")
    if not isinstance(optimizer, torch.optim.Optimizer):
        return settings
    name = type(optimizer).__name__.lower()
    shared = _SHARED.get(name)
    way_out = "condition the network and train it in your own loop with `condition`"
    if shared is None:
        raise ConfigurationError(
            f"`optimizer` must be Adam, AdamW or SGD, found {type(optimizer).__name__}: {way_out}"
        )
    rest = [key for key in optimizer.defaults if key not in ("lr", "weight_decay")]
    for group in optimizer.param_groups:
        changed = [key for key in rest if key in shared and group[key] != shared[key]]
        changed += [k for k in ("lr", "weight_decay") if group[k] != optimizer.defaults[k]]
        # torch's decay of SGD goes through the momentum, ours does not
        if name == "sgd" and group["weight_decay"]:
            changed.append("weight_decay")
        if changed:
            key = changed[0]
            wanted = shared.get(key, 0 if name == "sgd" else optimizer.defaults[key])
            raise ConfigurationError(
                f"`optimizer` must have {key}={wanted} in all groups, found {group[key]}: set it "
                f"so, or {way_out}"
            )
    defaults = optimizer.defaults
    return {
        "learning_rate": float(defaults["lr"]),
        "weight_decay": float(defaults["weight_decay"]),
        **settings,
        "optimizer": name,
    }


BOUNDS = {
    "ge": ("at least", operator.ge),
    "gt": ("above", operator.gt),
    "lt": ("below", operator.lt),
    "le": ("at most", operator.le),
}


def find_out_of_bounds(settings: object) -> Iterator[str]:
    """Yield a sentence for each field of a dataclass outside the bounds that its type declares."""
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        value: Any = getattr(settings, name)
        if get_origin(hint) is Literal and value not in get_args(hint):
            yield f"`{name}` is one of {', '.join(get_args(hint))}, found `{value}`"
        if get_origin(hint) is not Annotated:
            continue
        if not math.isfinite(value):
            yield f"`{name}` must be finite, found {value}"
            continue
        for key, (words, keeps) in BOUNDS.items():
            # `Ge`, `Gt` or `Interval`, which have some of the four
            bound = getattr(hint.__metadata__[0], key, None)
            if bound is not None and not keeps(value, bound):
                yield f"`{name}` must be {words} {bound:,}, found {value}"


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
            hints = get_type_hints(function)
            try:
                converted = registry.convert(name, value, hints.get(name, object))
                settings_by_role[roles[0]][name] = converted
            except ConfigurationError as error:
                mistakes.append(str(error))
        elif not lenient:
            takers = [
                method
                for method in (registry.names("methods") if "method" in owners else ())
                if name in registry.parameters(registry.find("methods", method))
            ]
            if takers and prefix in ("", "method"):
                mistakes.append(
                    f"unknown setting `{key}`: it belongs to {', '.join(takers)}, so set "
                    f'method="{takers[0]}" too, or write `{takers[0]}.{name}` to compare methods'
                )
                continue
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
