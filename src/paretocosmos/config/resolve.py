"""`make_plan`: from a caller's arguments to a plan."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import torch
from torch import nn

from paretocosmos import registry
from paretocosmos.config.plan import (
    Plan,
    build_checked,
    build_networks,
    check_seed,
    resolve_from_data,
    resolve_from_network,
)
from paretocosmos.config.presets import (
    CONDITIONINGS,
    choose_method,
    choose_network,
    choose_preset,
    compute_preset_settings,
)
from paretocosmos.config.settings import (
    Configuration,
    Training,
    get_label,
    get_pairs,
    get_paper_settings,
    get_spec_name,
    make_spec,
    split_settings,
)
from paretocosmos.errors import ConfigurationError, check_choice, unknown
from paretocosmos.io.progress import status
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import Conditioning, list_networks
from paretocosmos.problems import Problem, load_problem, problem_name, samples_in, shares_of
from paretocosmos.registry import Spec
from paretocosmos.runtime.device import PRECISIONS, resolve_device

# Samples from which a reference point is estimated.
REFERENCE_SAMPLES = 1024


class PlanOptions(TypedDict, total=False):
    """The options of a plan, apart from the problem and the seed; `fit` documents each."""

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
class _Components:
    """The components of a training, as objects or by name, and the owners of settings by role."""

    problem: Problem
    preset: str
    method: str | Method
    model: nn.Module | None
    conditioning: str | None
    backbone: str | nn.Module | None
    owners: Mapping[str, Callable[..., Any]]


@status("planning")
def make_plan(problem: str | Problem, *, seed: int, **options: Unpack[PlanOptions]) -> Plan:
    """Resolve names, split settings, load the problem and build the network."""
    user_settings = dict(options["settings"] or {})
    components = _choose_components(problem, user_settings, options)
    settings = _resolve_settings(components, user_settings)
    method = components.method
    # an object's settings are read from it, since the caller has built it
    method_spec = _make_spec(method, "method", components, settings) or make_spec("methods", method)
    training = Training(**settings["training"])
    built_method: Method = (
        build_checked(Method, method_spec, "methods") if isinstance(method, str) else method
    )
    check_seed(seed)
    device = resolve_device(options["device"])
    _check_together(components, method_spec, built_method, training)
    # only a size that the user chose: a preset's may exceed a small table, which is then one batch
    if {"batch_size", "training.batch_size"} & user_settings.keys():
        _check_batch_size(training.batch_size, components.problem)
    backbone = _make_spec(components.backbone, "backbone", components, settings)
    configuration = Configuration(
        preset=components.preset,
        problem=components.problem.spec,
        method=method_spec,
        conditioning=_make_spec(components.conditioning, "conditioning", components, settings),
        backbone=resolve_from_data(backbone, components.problem),
        training=training,
        seed=seed,
        device=str(device),
        deterministic=options["deterministic"],
        precision=check_choice("precision", options["precision"], PRECISIONS),
    )
    source = components.backbone if components.model is None else components.model
    network = build_networks(components.problem, built_method, configuration, source)
    if not components.problem.reference and training.reference is None:
        training = dataclasses.replace(
            training, reference=_estimate_reference(network, components.problem, seed)
        )
    # a copy: the caller's problem keeps its own reference point
    loaded = _replace_reference(components.problem, training)
    if not any(p.requires_grad for p in network.parameters()):
        raise ConfigurationError(
            f"the network {type(network).__name__} has no trainable parameters: call its "
            "`requires_grad_(True)`"
        )
    # record the settings that the network was built with, not "as it likes"
    resolved = resolve_from_network(configuration.backbone, network)
    configuration = dataclasses.replace(configuration, backbone=resolved, training=training)
    return Plan(loaded, built_method, network, configuration, device, source)


def _choose_components(
    problem: str | Problem, settings: Mapping[str, Any], options: PlanOptions
) -> _Components:
    """Load the problem; choose the method and the network: the caller's or the preset's."""
    model, backbone = options["model"], options["backbone"]
    _check_argument("problem", problem, Problem)
    method = options["method"]
    if method is not None:
        _check_argument("method", method, Method)
    if model is not None and not isinstance(model, nn.Module):
        raise ConfigurationError(
            f"`model` must be a network (nn.Module), found {model!r}: build it first"
        )
    if backbone is not None:
        _check_argument("backbone", backbone, nn.Module)
    # an unknown method is reported before a problem, which may be large, is loaded
    known = [*registry.names("methods"), *get_pairs()]
    if isinstance(method, str) and ":" not in method and method not in known:
        raise unknown("method", method, known)
    owners: dict[str, Callable[..., Any]] = {"training": Training}
    if isinstance(problem, str):
        owners["problem"] = registry.find("problems", problem_name(problem))
    paper = get_paper_settings(str(problem), "") if options["preset"] == "paper" else {}
    # before the preset is chosen, which may depend on what the data are
    loaded = _load_problem(
        problem, owners.get("problem"), paper | dict(settings), options["protocol"]
    )
    preset = choose_preset(options["preset"], loaded)  # the paper's protocol has the paper's
    if method is None:
        method = choose_method(preset, loaded.objectives)
    method, conditioning = _split_pair(method, model, options["conditioning"])
    if isinstance(method, str):
        owners["method"] = registry.find("methods", method)
    if model is not None and (backbone is not None or conditioning is not None):
        raise ConfigurationError(
            "`model` is a complete network: pass it without `backbone` and `conditioning`"
        )
    if model is None:
        if conditioning is None and _has_fixed_rays(method, settings):
            conditioning = "none"  # each network has one ray, which it need not be told
        if isinstance(backbone, nn.Module) and conditioning is None and preset == "default":
            conditioning = CONDITIONINGS[preset]
        elif backbone is None or conditioning is None:
            names = choose_network(preset, loaded, method)
            backbone = names["backbone"] if backbone is None else backbone
            conditioning = names["conditioning"] if conditioning is None else conditioning
        owners["conditioning"] = registry.find("conditioning", conditioning)
        if isinstance(backbone, str):
            owners["backbone"] = registry.find("backbones", backbone)
    return _Components(loaded, preset, method, model, conditioning, backbone, owners)


def _check_argument(role: str, value: object, base: type) -> None:
    if not isinstance(value, str | base):
        # a class is easily passed by mistake, and its repr would not tell
        shown = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
        raise ConfigurationError(
            f"`{role}` must be a {base.__name__} or the name of one, found {shown}"
        )


def _split_pair(
    method: str | Method, model: nn.Module | None, conditioning: str | None
) -> tuple[str | Method, str | None]:
    """Return the method and the conditioning; some of the paper's names stand for both."""
    pair = get_pairs().get(method) if isinstance(method, str) else None
    if pair is None:
        return method, conditioning
    if model is not None or conditioning not in (None, pair[1]):
        raise ConfigurationError(
            f"`{method}` is the method `{pair[0]}` with the conditioning `{pair[1]}`: leave "
            f"`{'model' if model is not None else 'conditioning'}` out, or name another method"
        )
    return pair


def _load_problem(
    problem: str | Problem,
    owner: Callable[..., Any] | None,
    settings: Mapping[str, Any],
    protocol: str | None,
) -> Problem:
    """Return the problem, loaded under the protocol if it is a name."""
    if isinstance(problem, str):
        assert owner is not None
        selected = _select_settings(settings, "problem", owner)
        data = selected.pop("data", None)
        return load_problem(problem, protocol=protocol, data=data, settings=selected)
    # the protocol decides how data are split, which is done by now
    if protocol not in (None, problem.protocol):
        raise ConfigurationError(
            f"this problem was loaded under protocol `{problem.protocol}`; load it again under "
            f"`{protocol}` instead of passing `protocol`"
        )
    return problem


def _resolve_settings(
    components: _Components, user_settings: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the settings of every role: the preset's, overridden by the caller's."""
    method, backbone = components.method, components.backbone
    name = method if isinstance(method, str) else make_spec("methods", method).name
    preset_settings = compute_preset_settings(
        components.preset,
        components.problem,
        get_label(name, None if components.model is not None else str(components.conditioning)),
        single=_has_fixed_rays(method, user_settings),
        backbone=backbone if components.model is None else components.model,
        conditioning=components.conditioning,
        user_settings=user_settings,
    )
    # `joined` scales the first layer's weights down; those of the caller's may be trained, and
    # those of a network that starts with `zero` are to stay as they are
    if not isinstance(backbone, str) or {"zero", "conditioning.zero"} & user_settings.keys():
        preset_settings.pop("joined", None)
    # lenient: a preset has settings for components that another choice has left out
    settings = split_settings(preset_settings, components.owners, lenient=True)
    # not lenient: a setting of the caller's that no component takes is a mistake
    for role, role_settings in split_settings(user_settings, components.owners).items():
        settings[role] |= role_settings
    return settings


def _make_spec(
    name: object, role: str, components: _Components, settings: Mapping[str, dict[str, Any]]
) -> Spec | None:
    """Return a name with all its settings, defaults included; `None` for an object."""
    if not isinstance(name, str):
        return None
    # defaults too: a run stays the same if a later release changes them
    parameters = registry.parameters(components.owners[role]).values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return Spec(name, defaults | settings[role])


def _check_together(
    components: _Components, method_spec: Spec, method: Method, training: Training
) -> None:
    """Raise if the method does not match the network or the number of rays in a batch."""
    name = method_spec.name
    single = method.fixed_rays(len(components.problem.objectives)) is not None
    model = components.model
    # the caller's own network may read its ray in a way of its own
    if model is None or isinstance(model, Conditioning):
        conditioning = (
            components.conditioning if model is None else get_spec_name("conditioning", type(model))
        )
        if single and conditioning != "none":
            raise ConfigurationError(
                f"`{name}` trains a network for each of its rays and needs no `{conditioning}`: "
                "leave `conditioning` out, or use a method that draws rays, such as `cosmos`"
            )
        if not single and conditioning == "none":
            raise ConfigurationError(
                f"`{name}` draws rays, which a network without conditioning ignores: leave "
                "`conditioning` out, or use a method for one network, such as `uniform`"
            )
    # micro-batches need a group each, all with the same ray here
    if single and training.rays_per_batch != training.accumulate:
        raise ConfigurationError(
            f"`rays_per_batch` sets several rays per batch, found {training.rays_per_batch}, but "
            f"`{name}` has one ray for each network: leave it out, or set it to `accumulate`, "
            f"{training.accumulate}"
        )


def _has_fixed_rays(method: str | Method, settings: Mapping[str, Any]) -> bool:
    """Return True if a method trains one network per ray, which then needs no conditioning."""
    method_class: Any = registry.find("methods", method) if isinstance(method, str) else None
    if method_class is None:
        method_class = type(method)
    elif not isinstance(method_class, type):  # a function that builds the method
        selected = _select_settings(settings, "method", method_class)
        converted = split_settings(selected, {"method": method_class})["method"]
        method_class = type(registry.build("methods", Spec(str(method), converted)))
    # asked of the class: the method is not built yet
    return getattr(method_class, "fixed_rays", Method.fixed_rays) is not Method.fixed_rays


def _replace_reference(problem: Problem, training: Training) -> Problem:
    if training.reference is None:
        return problem
    if len(training.reference) != len(problem.objectives):
        raise ConfigurationError(
            f"`reference` needs one number per objective, here {len(problem.objectives)}; found "
            f"{len(training.reference)}"
        )
    return dataclasses.replace(problem, reference=training.reference)


def _estimate_reference(network: nn.Module, problem: Problem, seed: int) -> tuple[float, ...]:
    """Return four times the losses of the network with fresh weights, on some training samples.

    A squared error of a fresh network, which is in the middle between the ends of a front, is a
    quarter of what either end has.
    """
    fresh = copy.deepcopy(list_networks(network)[0]).eval()
    parameter, losses = next(fresh.parameters()), list[float]()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for module in fresh.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
        for objectives, batch in shares_of(problem, REFERENCE_SAMPLES):
            inputs = problem.prepare(batch.inputs, parameter.dtype)
            ray = torch.full((len(problem.objectives),), 1 / len(problem.objectives))
            outputs = fresh(inputs, ray)
            # the mean: a loss that is not one number is refused before the first step
            losses += [float(o.loss(outputs, batch.targets).mean()) for o in objectives]
    return tuple(loss + 3 * abs(loss) for loss in losses)


def _select_settings(
    settings: Mapping[str, Any], role: str, owner: Callable[..., Any]
) -> dict[str, Any]:
    """Return the settings that belong to one component, without the prefix of its role."""
    names = registry.parameters(owner)
    plain = {key.removeprefix(f"{role}."): value for key, value in settings.items()}
    return {key: value for key, value in plain.items() if key in names}


def _check_batch_size(size: int, problem: Problem) -> None:
    # a loader makes its batches itself; no setting here could change their size
    samples, loader_size = samples_in(problem, "train"), problem.batch_size
    if loader_size not in (None, size):
        raise ConfigurationError(
            f"`batch_size` is that of the loader of `{problem.name}`, {loader_size}, found {size}: "
            "leave it out, or set it on the loader"
        )
    if size > samples:
        raise ConfigurationError(
            f"`batch_size` must be at most the {samples} training samples of `{problem.name}`, "
            f"found {size}: lower it"
        )
