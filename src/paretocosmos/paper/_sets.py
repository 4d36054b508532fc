"""The set a cell is of: a problem as it is set up, under a protocol."""

from collections.abc import Mapping
from typing import Any

from paretocosmos import registry
from paretocosmos.paper._names import problem_title, settings_text

__all__ = ["Place", "defaults_of", "harder", "of_problem", "place_of", "set_title", "variation"]

One = Mapping[str, Any]  # a cell's numbers, or a row of a claim

Place = tuple[str, str, str | None]
"""A problem, what is set of it in words, and the protocol: the same for cells on the same data."""


def defaults_of(problem: str) -> dict[str, Any]:
    """How a problem is set up where nothing is said of it: the paper's are as the paper has them.

    The protocol, which a cell names, and the place of the data are no part of it.

    >>> defaults_of("multi_mnist")
    {'rule': 'published', 'seed': 1}
    """
    found = registry.parameters(registry.find("problems", problem)).values()
    given = (one for one in found if one.default is not one.empty)
    return {one.name: one.default for one in given if one.name not in ("protocol", "data")}


def of_problem(one: One) -> dict[str, Any]:
    """Of what is set, that which makes the problem another, such as the rule its images follow.

    Args:
        one: with `problem` and, if anything is set, `settings`.

    >>> of_problem({"problem": "multi_mnist", "settings": {"rule": "text", "penalty": 1.0}})
    {'rule': 'text'}
    """
    given = one.get("settings", {})
    known = registry.parameters(registry.find("problems", one["problem"])) if given else {}
    return {key: v for key, v in given.items() if key.removeprefix("problem.") in known}


def variation(one: One) -> dict[str, Any]:
    """The rest of what is set: how the method or its training is another than the paper's.

    >>> variation({"problem": "multi_mnist", "settings": {"rule": "text", "penalty": 1.0}})
    {'penalty': 1.0}
    """
    own = of_problem(one)
    return {key: value for key, value in one.get("settings", {}).items() if key not in own}


def place_of(one: One) -> Place:
    """The set, to tell it from others.

    >>> place_of({"problem": "multi_mnist", "protocol": "paper", "settings": {"rule": "text"}})
    ('multi_mnist', 'rule text', 'paper')
    """
    return one["problem"], settings_text(of_problem(one)), one["protocol"]


def set_title(one: One, *, protocol: bool = True) -> str:
    """What a set is called.

    >>> set_title({"problem": "multi_mnist", "protocol": "paper", "settings": {"rule": "text"}})
    'Multi-MNIST, rule text, paper'
    >>> set_title({"problem": "adult", "protocol": "paper"}, protocol=False)
    'Adult'
    """
    own = settings_text(of_problem(one))
    parts = [problem_title(one["problem"]), own, one["protocol"] if protocol else None]
    return ", ".join(part for part in parts if part)


def harder(one: One) -> bool:
    """Whether its images are drawn by the words of Lin et al., and so are harder than the paper's.

    >>> harder({"problem": "multi_mnist", "settings": {"rule": "text"}})
    True
    """
    return of_problem(one).get("rule") == "text"
