"""Settings for several methods at once: which are for whom, and what is refused."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paretocosmos import registry
from paretocosmos.config.plan import Plan
from paretocosmos.config.settings import (
    pairs,
)
from paretocosmos.config.training import Training
from paretocosmos.errors import ConfigurationError, joined, unknown

__all__ = ["all_planned", "check_methods", "share_out"]


def check_methods(methods: Sequence[str]) -> list[str]:
    """The names, if there are some and none twice."""
    wanted = [methods] if isinstance(methods, str) else list(methods)
    if not all(isinstance(name, str) for name in wanted):
        raise ConfigurationError(
            f"`methods` must be names, found {wanted}: write your own as `package.module:Name`"
        )
    twice = [name for name in dict.fromkeys(wanted) if wanted.count(name) > 1]
    if twice:
        raise ConfigurationError(f"`methods` names {_listed(twice)} twice: name it once")
    if not wanted:
        raise ConfigurationError("`methods` needs at least one name, found none: try cosmos,linear")
    return wanted


def share_out(
    settings: Mapping[str, Any], plans: Mapping[str, Plan], of_problem: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Each method's settings: those for all, and over them its own, ``METHOD.KEY``.

    Every mistake is reported at once.

    Args:
        settings: all but those of the problem.
        plans: what each method trains, before any of them.
        of_problem: the names of the problem's, to suggest.
    """
    known = {method: _known(plan) for method, plan in plans.items()}
    for_all: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {method: {} for method in plans}
    mistakes: list[ConfigurationError] = []
    for key, value in settings.items():
        method = next((name for name in plans if key.startswith(f"{name}.")), None)
        if method is not None:
            name = key.removeprefix(f"{method}.")
            mistakes += _refused_for_one(method, name, value, known[method])
            own[method][name] = value
        else:
            mistakes += _refused_for_all(key, value, known, of_problem)
            for_all[key] = value
    if mistakes:
        raise joined(mistakes)
    return {method: for_all | mine for method, mine in own.items()}


def all_planned(own: Mapping[str, Mapping[str, Any]], plan: Callable[..., Plan]) -> dict[str, Plan]:
    """What each method trains; a mistake that all of them have is told once."""
    plans: dict[str, Plan] = {}
    mistakes: dict[str, list[str]] = {}
    for method, settings in own.items():
        try:
            plans[method] = plan(method, settings)
        except ConfigurationError as error:
            mistakes.setdefault(str(error), []).append(method)
    if mistakes:
        raise ConfigurationError(
            "; ".join(
                why if len(who) == len(own) else f"{', '.join(who)}: {why}"
                for why, who in mistakes.items()
            )
        )
    return plans


def _refused_for_one(
    method: str, name: str, value: Any, known: Sequence[str]
) -> list[ConfigurationError]:
    if name.removeprefix("training.") == "reference":
        refusal = ConfigurationError(
            "`reference` must be the same for all methods, so that hypervolumes can be compared, "
            f"found `{method}.{name}`: set `reference` to {value}"
        )
        return [refusal.by({"reference": value})]
    if name not in known:
        names = [f"{method}.{one}" for one in known if "." not in one and one != "reference"]
        return [unknown("setting", f"{method}.{name}", names)]
    return []


def _refused_for_all(
    key: str, value: Any, known: Mapping[str, Sequence[str]], of_problem: Sequence[str]
) -> list[ConfigurationError]:
    takers = [method for method, names in known.items() if key in names]
    others = [method for method in known if method not in takers]
    if not others:
        return []
    if takers:
        own = {f"{method}.{key}": value for method in takers}
        refusal = ConfigurationError(
            f"`{key}` is not a setting of {_listed(others)}: set {_listed(list(own))} instead"
        )
        return [refusal.by(own)]
    owner = key.partition(".")[0]
    if owner in (*registry.names("methods"), *pairs()):
        return [
            ConfigurationError(
                f"`{key}` is for `{owner}`, which is not among the methods: add it to `methods`"
            )
        ]
    every = {name for names in known.values() for name in names if "." not in name}
    return [unknown("setting", key, {*every, *of_problem})]


def _known(plan: Plan) -> list[str]:
    """What can be set, as ``penalty`` and as ``method.penalty``."""
    made = plan.configuration
    things = {"training": Training, "method": registry.find("methods", made.method.name)}
    if made.conditioning is not None:
        things["conditioning"] = registry.find("conditioning", made.conditioning.name)
    if made.backbone is not None:
        things["backbone"] = registry.find("backbones", made.backbone.name)
    names = [(role, name) for role, thing in things.items() for name in registry.parameters(thing)]
    return [form for role, name in names for form in (name, f"{role}.{name}")]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
