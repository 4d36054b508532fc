"""The paper's numbers and titles, from ``published.toml``, and how reports write settings."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from paretocosmos import registry


@cache
def get_published() -> Mapping[str, Any]:
    """Return everything in ``published.toml``, by table.

    >>> get_published()["table_1"]["problems"]["adult"]["cosmos"]["hypervolume"]
    3.34
    """
    # read once: reports ask for it number by number
    text = files("paretocosmos.paper").joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def get_paper_row(problem: str, method: str) -> Mapping[str, float] | None:
    """Return the paper's numbers for a method on a problem, `None` where it prints none.

    Hours become ``seconds``.

    >>> get_paper_row("celeba_hard", "cosmos")["seconds"]
    11880.0
    """
    for table in ("table_1", "table_celeba"):
        row = get_published()[table]["problems"].get(problem, {}).get(method)
        if row is not None:
            numbers = {key: value for key, value in row.items() if key != "hours"}
            if "hours" in row:  # the table of CelebA has hours
                # rounded, since a decimal such as 3.3 is not exact in binary
                numbers["seconds"] = round(3600.0 * row["hours"], 6)
            return numbers
    return None


def get_paper_tasks(problem: str, method: str) -> Sequence[float] | None:
    """Return the paper's misclassification of each task, `None` where it prints none.

    >>> get_paper_tasks("celeba_three", "cosmos")
    [0.0316, 0.0393, 0.0528]
    """
    for table in ("celeba_objectives", "celeba_ten"):
        rates: Sequence[float] | None = (
            get_published()[table]["problems"].get(problem, {}).get(method)
        )
        if rates is not None:
            return rates
    return None


def is_face_problem(problem: str) -> bool:
    """Return True for the problems of the paper's table of CelebA."""
    return problem in get_published()["table_celeba"]["problems"]


def method_title(name: str) -> str:
    """Return the paper's name of a method, or its own.

    >>> method_title("phn_ls"), method_title("mine:Own")
    ('PHN-LS', 'mine:Own')
    """
    return str(get_published()["titles"]["methods"].get(name, name))


def problem_title(name: str) -> str:
    """Return the paper's name of a problem, or its own.

    >>> problem_title("compas"), problem_title("mine:own")
    ('COMPAS', 'mine:own')
    """
    return str(get_published()["titles"]["problems"].get(name, name))


def device_title(name: str) -> str:
    """Return a device as it is named in a sentence.

    >>> device_title("cpu"), device_title("NVIDIA H200")
    ('a CPU', 'NVIDIA H200')
    """
    return "a CPU" if name == "cpu" else name


def format_value(value: Any, *, between: str = "/", digits: str = "") -> str:
    """Format the value of a setting.

    Args:
        value: the value.
        between: separates the entries of a list.
        digits: of a number, as ``".12"``; six if empty.

    >>> format_value(1.0), format_value([0.1, 0.5]), format_value(True)
    ('1', '0.1/0.5', 'True')
    """
    if isinstance(value, list | tuple):
        return between.join(format_value(v, between=between, digits=digits) for v in value)
    # True is an int in Python, and would become 1
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:{digits}g}" if is_number else str(value)


def format_settings(settings: Mapping[str, Any]) -> str:
    """Format settings in words.

    >>> format_settings({"penalty": 0.1, "batch_size": 256, "hidden": [60, 25]})
    'penalty 0.1, batch size 256, hidden 60/25'
    """
    return ", ".join(f"{key.replace('_', ' ')} {format_value(v)}" for key, v in settings.items())


def get_problem_defaults(problem: str) -> dict[str, Any]:
    """Return the default settings of a problem, which are the paper's where it has it.

    The protocol, which an experiment names, and the location of the data are left out.

    >>> get_problem_defaults("multi_mnist")
    {'rule': 'published', 'seed': 1}
    """
    parameters = registry.parameters(registry.find("problems", problem)).values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.default is not parameter.empty and parameter.name not in ("protocol", "data")
    }
