"""What things are called in reports: problems, methods, settings, devices, and sets.

A set is a problem as it is set up, under a protocol: what cells must share to be compared.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paretocosmos import registry
from paretocosmos.paper.published import titles

if TYPE_CHECKING:
    from paretocosmos.io.schema.collected import SetResult

__all__ = [
    "SetKey",
    "defaults_of",
    "device_title",
    "harder",
    "method_title",
    "problem_title",
    "set_key",
    "set_title",
    "settings_of_problem",
    "settings_text",
    "value_text",
    "variation",
]

SetKey = tuple[str, str, str | None]
"""A problem, what is set of it in words, and the protocol: the same for cells on the same data."""


def method_title(name: str) -> str:
    """The paper's name of a method, or its own.

    >>> method_title("phn_ls"), method_title("mine:Own")
    ('PHN-LS', 'mine:Own')
    """
    return titles("methods").get(name, name)


def problem_title(name: str) -> str:
    """The paper's name of a problem, or its own.

    >>> problem_title("compas"), problem_title("mine:own")
    ('COMPAS', 'mine:own')
    """
    return titles("problems").get(name, name)


def value_text(value: Any, *, between: str = "/", digits: str = "") -> str:
    """A setting's value.

    Args:
        value: the value.
        between: what stands between those of a list.
        digits: of a number, as ``".12"``; six if empty.

    >>> value_text(1.0), value_text([0.1, 0.5]), value_text(True)
    ('1', '0.1/0.5', 'True')
    """
    if isinstance(value, list | tuple):
        return between.join(value_text(part, between=between, digits=digits) for part in value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:{digits}g}" if number else str(value)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in words.

    >>> settings_text({"penalty": 0.1, "batch_size": 256, "hidden": [60, 25]})
    'penalty 0.1, batch size 256, hidden 60/25'
    """
    return ", ".join(f"{key.replace('_', ' ')} {value_text(v)}" for key, v in settings.items())


def device_title(name: str) -> str:
    """A device in a sentence.

    >>> device_title("cpu"), device_title("NVIDIA H200")
    ('a CPU', 'NVIDIA H200')
    """
    return "a CPU" if name == "cpu" else name


def defaults_of(problem: str) -> dict[str, Any]:
    """How a problem is set up where nothing is said of it: the paper's are as the paper has them.

    The protocol, which a cell names, and the place of the data are no part of it.

    >>> defaults_of("multi_mnist")
    {'rule': 'published', 'seed': 1}
    """
    found = registry.parameters(registry.find("problems", problem)).values()
    given = (one for one in found if one.default is not one.empty)
    return {one.name: one.default for one in given if one.name not in ("protocol", "data")}


def settings_of_problem(one: "SetResult") -> dict[str, Any]:
    """Of what is set, that which makes the problem another, such as the rule its images follow.

    >>> from paretocosmos.io.schema.collected import SetResult
    >>> given = {"rule": "text", "penalty": 1.0}
    >>> settings_of_problem(SetResult(problem="multi_mnist", settings=given, protocol=None))
    {'rule': 'text'}
    """
    given = one.settings
    known = registry.parameters(registry.find("problems", one.problem)) if given else {}
    return {key: v for key, v in given.items() if key.removeprefix("problem.") in known}


def variation(one: "SetResult") -> dict[str, Any]:
    """The rest of what is set: how the method or its training is another than the paper's.

    >>> from paretocosmos.io.schema.collected import SetResult
    >>> given = {"rule": "text", "penalty": 1.0}
    >>> variation(SetResult(problem="multi_mnist", settings=given, protocol=None))
    {'penalty': 1.0}
    """
    own = settings_of_problem(one)
    return {key: value for key, value in one.settings.items() if key not in own}


def set_key(one: "SetResult") -> SetKey:
    """The set, to tell it from others.

    >>> from paretocosmos.io.schema.collected import SetResult
    >>> set_key(SetResult(problem="multi_mnist", settings={"rule": "text"}, protocol="paper"))
    ('multi_mnist', 'rule text', 'paper')
    """
    return one.problem, settings_text(settings_of_problem(one)), one.protocol


def set_title(one: "SetResult", *, protocol: bool = True) -> str:
    """What a set is called.

    >>> from paretocosmos.io.schema.collected import SetResult
    >>> one = SetResult(problem="multi_mnist", settings={"rule": "text"}, protocol="paper")
    >>> set_title(one), set_title(one, protocol=False)
    ('Multi-MNIST, rule text, paper', 'Multi-MNIST, rule text')
    """
    problem, own, under = set_key(one)
    return ", ".join(filter(None, [problem_title(problem), own, under if protocol else None]))


def harder(one: "SetResult") -> bool:
    """Whether its images are drawn by the words of Lin et al., and so are harder than the paper's.

    >>> from paretocosmos.io.schema.collected import SetResult
    >>> harder(SetResult(problem="multi_mnist", settings={"rule": "text"}, protocol="paper"))
    True
    """
    return settings_of_problem(one).get("rule") == "text"
