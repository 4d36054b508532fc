"""Checks of what a training loop of another library is given, before it begins."""

import copy
import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from paretocosmos import registry
from paretocosmos.conditioning import Conditioning
from paretocosmos.config.build import build_checked
from paretocosmos.config.presets import check_preset, loop_settings, preset_method
from paretocosmos.config.settings import distribute, pair_of, spec_name
from paretocosmos.config.training import Training
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Method
from paretocosmos.objectives import Objective
from paretocosmos.registry import Spec


def checked_objectives(objectives: Sequence[Objective]) -> tuple[Objective, ...]:
    """At least two objectives with names of their own."""
    given = tuple(objectives)
    for one in given:
        if not isinstance(one, Objective):
            raise ConfigurationError(
                f"`objectives` must be a list of `Objective`, found {one!r}: derive a class from "
                "`Objective`, "
                "whose `loss(outputs, targets)` is one number"
            )
    if len(given) < 2:
        raise ConfigurationError(
            f"`objectives` must be at least two, found {len(given)}: with one there is no front"
        )
    names = [one.name for one in given]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ConfigurationError(
            f"`objectives` need different names, found `{twice[0]}` twice: pass `name`"
        )
    return given


def checked_reference(reference: Sequence[float], objectives: int) -> tuple[float, ...]:
    """A finite number per objective."""
    point = tuple(float(value) for value in reference)
    if len(point) != objectives or not all(math.isfinite(value) for value in point):
        raise ConfigurationError(
            f"`reference` must be a finite number per objective, here {objectives}; found "
            f"{reference}"
        )
    return point


def method_of(
    method: str | Method | None,
    settings: Mapping[str, Any] | None,
    objectives: Sequence[Objective],
    preset: str,
) -> Method:
    """The method, the one of that name or the preset's, if it serves one network for all rays."""
    if method is None:
        method = preset_method(check_preset(preset), settings or {})
    if isinstance(method, str):
        pair = pair_of(method)
        if pair is not None:
            raise ConfigurationError(
                f"`{method}` is the method `{pair[0]}` with the conditioning `{pair[1]}`, not a "
                f'method: pass "{pair[0]}", and a network made by condition(..., '
                f'how="{pair[1]}")'
            )
        owner = {"method": registry.find("methods", method)}
        usual = distribute(loop_settings(preset, objectives), owner, lenient=True)["method"]
        own = distribute(settings or {}, owner)["method"]
        built: Method = build_checked(Method, Spec(method, usual | own), "methods")
    elif not isinstance(method, Method):
        raise ConfigurationError(f"`method` must be a Method or the name of one, found {method!r}")
    elif settings:
        raise ConfigurationError(
            f"`settings` need a method given by name, found them with {method!r}: build it "
            "with them"
        )
    else:
        built = method
    if built.fixed_rays(len(objectives)) is not None:
        raise ConfigurationError(
            f"`{spec_name('methods', type(built))}` trains a network per ray, which does not work "
            "with a conditioned network: use `fit`, or a method that draws rays, such as `linear`"
        )
    built.sample(len(objectives), 1, torch.Generator())  # its settings may not fit the objectives
    return built


def training_of(preset: str, objectives: Sequence[Objective]) -> Training:
    """How a preset trains a network of one's own; a loop takes of it what it can do."""
    usual = loop_settings(preset, objectives)
    return Training(**distribute(usual, {"training": Training}, lenient=True)["training"])


def checked_model(model: nn.Module, objectives: int) -> nn.Module:
    """A network that is called as ``forward(inputs, ray)``."""
    if not isinstance(model, nn.Module):
        raise ConfigurationError(
            f"`model` must be a network (nn.Module), found {model!r}: build it first"
        )
    if isinstance(model, Conditioning):
        if model.objectives != objectives:
            raise ConfigurationError(
                f"`model` takes rays of {model.objectives} entries, found {objectives} objectives: "
                f"condition it with objectives={objectives}"
            )
    elif not _takes_ray(model):
        raise ConfigurationError(
            f"`model` must be called as `forward(inputs, ray)`, found {type(model).__name__} with "
            f"`forward({_arguments(model)})`: make it take a ray with `condition(model, "
            f"objectives={objectives})`"
        )
    return model


def _takes_ray(model: nn.Module) -> bool:
    """Whether a second argument is asked for; an optional one must be called `ray`.

    Or else a network that takes an attention mask would pass.
    """
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):  # wrapped by something that does not say
        return True
    try:
        bound = signature.bind(None, None)
    except TypeError:
        return False
    second = [signature.parameters[name] for name in bound.arguments][1:]
    return all(one.default is one.empty or one.name == "ray" for one in second)


def _arguments(model: nn.Module) -> str:
    names = list(inspect.signature(model.forward).parameters)
    return ", ".join(names[:2]) + ", ..." * (len(names) > 2)


def trainer_arguments(model: nn.Module, args: Any) -> Any:
    """Return a copy of a Trainer's arguments as a front needs them."""
    if args.n_gpu > 1:
        raise ConfigurationError(
            f"a process can use only one GPU, because the ray cannot be split, found {args.n_gpu}: "
            "start one process per GPU with `torchrun`, or show it one GPU with "
            "CUDA_VISIBLE_DEVICES"
        )
    if args.label_smoothing_factor:
        raise ConfigurationError(
            "`label_smoothing_factor` belongs to the Trainer's own loss, which the objectives "
            f"replace, found {args.label_smoothing_factor}: smooth in the objective, with "
            f"`CrossEntropy(label_smoothing={args.label_smoothing_factor})`"
        )
    own = copy.copy(args)
    own.remove_unused_columns = False
    if args.gradient_checkpointing and not hasattr(model, "gradient_checkpointing_enable"):
        own.gradient_checkpointing = False  # the Trainer would ask the network around it
        _checkpoint(model, args.gradient_checkpointing_kwargs)
    return own


def _checkpoint(model: nn.Module, settings: Mapping[str, Any] | None) -> None:
    """Let the network inside compute its activations again in the backward pass."""
    enable = getattr(getattr(model, "backbone", None), "gradient_checkpointing_enable", None)
    if enable is None:
        raise ConfigurationError(
            "`gradient_checkpointing` needs support by the network, found none in "
            f"{type(getattr(model, 'backbone', model)).__name__}: wrap its blocks in "
            "torch.utils.checkpoint.checkpoint instead"
        )
    enable(gradient_checkpointing_kwargs={"use_reentrant": False, **(settings or {})})
