"""How problems, methods and settings are called in tables and pictures."""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "METHODS",
    "PROBLEMS",
    "device_title",
    "method_title",
    "problem_title",
    "settings_text",
    "value_text",
]

# The paper's names, in the order of its Table 1.
METHODS = {
    "single_task": "Single Task",
    "phn_epo": "PHN-EPO",
    "phn_ls": "PHN-LS",
    "pareto_mtl": "ParetoMTL",
    "cosmos": "COSMOS",
    "linear": "Weighted sum",
    "mgda": "MGDA",
    "epo": "EPO",
    "uniform": "Uniform",
}
PROBLEMS = {
    "adult": "Adult",
    "compas": "COMPAS",
    "default_credit": "Default",
    "multi_mnist": "Multi-MNIST",
    "multi_fashion": "Multi-Fashion",
    "fashion_and_mnist": "Fashion+MNIST",
    "multi_digits": "Multi-Digits",
    "celeba_easy": "CelebA, easy",
    "celeba_hard": "CelebA, hard",
    "celeba_three": "CelebA, 3 tasks",
    "celeba_four": "CelebA, 4 tasks",
    "celeba_ten": "CelebA, 10 tasks",
    "toy_convex": "Convex toy",
    "toy_concave": "Concave toy",
}


def method_title(name: str) -> str:
    """The paper's name of a method, or its own.

    >>> method_title("phn_ls"), method_title("mine:Own")
    ('PHN-LS', 'mine:Own')
    """
    return METHODS.get(name, name)


def problem_title(name: str) -> str:
    """The paper's name of a problem, or its own.

    >>> problem_title("compas"), problem_title("mine:own")
    ('COMPAS', 'mine:own')
    """
    return PROBLEMS.get(name, name)


def value_text(value: Any) -> str:
    """A setting's value.

    >>> value_text(1.0), value_text([0.1, 0.5]), value_text(True)
    ('1', '0.1/0.5', 'True')
    """
    if isinstance(value, list | tuple):
        return "/".join(value_text(part) for part in value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if number else str(value)


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
