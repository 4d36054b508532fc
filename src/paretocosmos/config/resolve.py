"""From what a caller asked to a plan; every mistake reported at once."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from torch import nn

from paretocosmos import registry
from paretocosmos.config.build import as_built, build_checked, check_pair, fitted, for_single_rays
from paretocosmos.config.plan import Plan, check_seed, networks_for
from paretocosmos.config.presets import preset_for, preset_method, preset_network, preset_settings
from paretocosmos.config.settings import (
    Configuration,
    distribute,
    label_of,
    pair_of,
    pairs,
    paper_settings,
    spec_of,
)
from paretocosmos.config.training import Training
from paretocosmos.errors import ConfigurationError, joined, unknown
from paretocosmos.io.progress import status
from paretocosmos.methods import Method
from paretocosmos.problems import Problem, load_problem, problem_name, samples_in
from paretocosmos.registry import Spec
from paretocosmos.runtime.device import check_precision, device_of

__all__ = ["PlanOptions", "make_plan"]


class PlanOptions(TypedDict, total=False):
    """What decides a plan beside the problem and the seed; `fit` documents each."""

    preset: str | None
    method: str | Method | None
    model: nn.Module | None
    conditioning: str | None
    backbone: str | nn.Module | None
    protocol: str | None
    settings: Mapping[str, Any] | None
    device: str
    precision: str
    deterministic: bool


@dataclass(frozen=True)
class _Parts:
    """What a training is made of, each thing itself or a name, and what takes settings by role."""

    problem: Problem
    preset: str
    method: str | Method
    model: nn.Module | None
    conditioning: str | None
    backbone: str | nn.Module | None
    owners: Mapping[str, Callable[..., Any]]


@status("planning")
def make_plan(problem: str | Problem, *, seed: int, **options: Unpack[PlanOptions]) -> Plan:
    """Resolve names, distribute settings, load the problem and build the network."""
    given = dict(options["settings"] or {})
    parts = _parts(problem, given, options)
    resolved = _resolved(parts, given)
    method = parts.method
    how = _spec(method, "method", parts, resolved) or spec_of("methods", method)
    training, chosen, _, where, exact = _all_mistakes(
        lambda: Training(**resolved["training"]),
        lambda: build_checked(Method, how, "methods") if isinstance(method, str) else method,
        lambda: check_seed(seed),
        lambda: device_of(options["device"]),
        lambda: check_precision(options["precision"]),
    )
    _check_together(parts, how, chosen, training)
    if {"batch_size", "training.batch_size"} & given.keys():
        _check_batch_size(training.batch_size, parts.problem)
    configuration = Configuration(
        preset=parts.preset,
        problem=parts.problem.spec,
        method=how,
        conditioning=_spec(parts.conditioning, "conditioning", parts, resolved),
        backbone=fitted(_spec(parts.backbone, "backbone", parts, resolved), parts.problem),
        training=training,
        seed=seed,
        device=str(where),
        deterministic=options["deterministic"],
        precision=exact,
    )
    ready = _with_reference(parts.problem, training)
    network_or_backbone = parts.backbone if parts.model is None else parts.model
    network = networks_for(ready, chosen, configuration, network_or_backbone)
    _check_trainable(network)
    recorded = as_built(configuration.backbone, network)
    configuration = dataclasses.replace(configuration, backbone=recorded)
    return Plan(ready, chosen, network, configuration, where, network_or_backbone)


def _parts(problem: str | Problem, settings: Mapping[str, Any], options: PlanOptions) -> _Parts:
    """The problem, the method and the network that were asked for, or the usual ones."""
    model, backbone = options["model"], options["backbone"]
    _check_kinds(problem=(problem, Problem))
    if options["method"] is not None:
        _check_kinds(method=(options["method"], Method))
    if model is not None and not isinstance(model, nn.Module):
        raise ConfigurationError(
            f"`model` must be a network (nn.Module), found {model!r}: build it first"
        )
    if backbone is not None:
        _check_kinds(backbone=(backbone, nn.Module))
    owners: dict[str, Callable[..., Any]] = {"training": Training}
    if options["method"] is not None:
        _check_method(options["method"])
    if isinstance(problem, str):
        owners["problem"] = registry.find("problems", problem_name(problem))
    usual = paper_settings(str(problem), "") if options["preset"] == "paper" else {}
    loaded = _problem(problem, owners.get("problem"), usual | dict(settings), options["protocol"])
    preset = preset_for(options["preset"], loaded)
    asked = options["method"]
    if asked is None:
        asked = preset_method(preset, settings)
    method, conditioning = _pair(asked, model, options["conditioning"])
    if isinstance(method, str):
        owners["method"] = registry.find("methods", method)
    if model is not None and (backbone is not None or conditioning is not None):
        raise ConfigurationError(
            "`model` is a complete network: pass it without `backbone` and `conditioning`"
        )
    if model is None:
        if conditioning is None and _for_single_rays(method, settings):
            conditioning = "none"
        if backbone is None or conditioning is None:
            usual = preset_network(preset, loaded, method, backbone)
            backbone = usual["backbone"] if backbone is None else backbone
            conditioning = usual["conditioning"] if conditioning is None else conditioning
        owners["conditioning"] = registry.find("conditioning", conditioning)
        if isinstance(backbone, str):
            owners["backbone"] = registry.find("backbones", backbone)
    return _Parts(loaded, preset, method, model, conditioning, backbone, owners)


def _check_method(method: str | Method) -> None:
    """Refuse the name of no method, before a problem is loaded."""
    known = [*registry.names("methods"), *pairs()]
    if isinstance(method, str) and ":" not in method and method not in known:
        raise unknown("method", method, known)


def _pair(
    method: str | Method, model: nn.Module | None, conditioning: str | None
) -> tuple[str | Method, str | None]:
    """The method and the conditioning; a name of the paper stands for both."""
    pair = pair_of(method) if isinstance(method, str) else None
    if pair is None:
        return method, conditioning
    if model is not None or conditioning not in (None, pair[1]):
        raise ConfigurationError(
            f"`{method}` is the method `{pair[0]}` with the conditioning `{pair[1]}`: leave "
            f"`{'model' if model is not None else 'conditioning'}` out, or name another method"
        )
    return pair


def _problem(
    problem: str | Problem,
    owner: Callable[..., Any] | None,
    settings: Mapping[str, Any],
    protocol: str | None,
) -> Problem:
    """The problem itself, loaded under the protocol where it is a name."""
    if isinstance(problem, str):
        assert owner is not None
        mine = _mine(settings, "problem", owner)
        return load_problem(problem, protocol=protocol, data=mine.pop("data", None), settings=mine)
    if protocol not in (None, problem.protocol):
        raise ConfigurationError(
            f"this problem was loaded under protocol `{problem.protocol}`; load it again under "
            f"`{protocol}` instead of passing `protocol`"
        )
    return problem


def _resolved(parts: _Parts, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Every role's settings: the preset's, and what was given on top."""
    method = parts.method
    name = method if isinstance(method, str) else spec_of("methods", method).name
    label = label_of(name, None if parts.model is not None else str(parts.conditioning))
    known = preset_settings(
        parts.preset,
        parts.problem,
        label,
        single=_for_single_rays(method, given),
        backbone=parts.backbone if isinstance(parts.backbone, str) else None,
        conditioning=parts.conditioning,
        given=given,
    )
    if not isinstance(parts.backbone, str):  # one's own may be trained: it is not scaled
        known = {key: value for key, value in known.items() if key != "joined"}
    resolved = distribute(known, parts.owners, lenient=True)
    for role, own in distribute(given, parts.owners).items():
        resolved[role] |= own
    return resolved


def _spec(
    named: object, role: str, parts: _Parts, resolved: Mapping[str, dict[str, Any]]
) -> Spec | None:
    """A thing by its name, with all its settings; `None` where it was handed over itself."""
    if not isinstance(named, str):
        return None
    return Spec(named, _defaults(parts.owners[role]) | resolved[role])


def _check_together(parts: _Parts, how: Spec, method: Method, training: Training) -> None:
    """Refuse a method that does not fit the network or the number of rays in a batch."""
    single = method.fixed_rays(len(parts.problem.objectives)) is not None
    check_pair(how.name, parts.conditioning if parts.model is None else parts.model, single=single)
    if single and training.groups != training.accumulate:
        raise ConfigurationError(
            f"`groups` sets several rays per batch, found {training.groups}, but `{how.name}` has "
            "one ray for each network: leave it out, or set it to `accumulate`, "
            f"{training.accumulate}"
        )


def _check_trainable(network: nn.Module) -> None:
    if not any(p.requires_grad for p in network.parameters()):
        raise ConfigurationError(
            f"the network {type(network).__name__} has no trainable parameters: call its "
            "`requires_grad_(True)`"
        )


def _for_single_rays(method: str | Method, settings: Mapping[str, Any]) -> bool:
    """Whether a method trains one network per ray, which then needs no conditioning."""
    kind: Any = registry.find("methods", method) if isinstance(method, str) else type(method)
    if not isinstance(kind, type):  # a function of one's own that makes one
        own = distribute(_mine(settings, "method", kind), {"method": kind})["method"]
        kind = type(registry.build("methods", Spec(str(method), own)))
    return for_single_rays(kind)


def _all_mistakes(*attempts: Callable[[], Any]) -> list[Any]:
    """What several attempts give, or all they refuse in one message."""
    made, mistakes = [], []
    for attempt in attempts:
        try:
            made.append(attempt())
        except ConfigurationError as error:
            mistakes.append(error)
    if mistakes:
        raise joined(mistakes)
    return made


def _check_kinds(**given: tuple[object, type]) -> None:
    for role, (thing, kind) in given.items():
        if not isinstance(thing, str | kind):
            found = f"the class {thing.__name__}" if isinstance(thing, type) else repr(thing)
            raise ConfigurationError(
                f"`{role}` must be a {kind.__name__} or the name of one, found {found}"
            )


def _with_reference(problem: Problem, training: Training) -> Problem:
    if training.reference is None:
        return problem
    if len(training.reference) != len(problem.objectives):
        raise ConfigurationError(
            f"`reference` needs one number per objective, here {len(problem.objectives)}; found "
            f"{len(training.reference)}"
        )
    return dataclasses.replace(problem, reference=training.reference)


def _mine(settings: Mapping[str, Any], role: str, thing: Callable[..., Any]) -> dict[str, Any]:
    """The settings among all that belong to one thing."""
    known = registry.parameters(thing)
    plain = {key.removeprefix(f"{role}."): value for key, value in settings.items()}
    return {key: value for key, value in plain.items() if key in known}


def _check_batch_size(size: int, problem: Problem) -> None:
    samples, own = samples_in(problem, "train"), problem.batch_size
    if own not in (None, size):
        rule = f"`batch_size` is that of the loader of `{problem.name}`, {own}, found {size}"
        raise ConfigurationError(f"{rule}: leave it out, or set it on the loader")
    if size > samples:
        raise ConfigurationError(
            f"`batch_size` must be at most the {samples} training samples of `{problem.name}`, "
            f"found {size}: lower it"
        ).with_hint({"batch_size": max(1, samples // 4)})


def _defaults(thing: Callable[..., Any]) -> dict[str, Any]:
    every = registry.parameters(thing).values()
    return {p.name: p.default for p in every if p.default is not p.empty}
