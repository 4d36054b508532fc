"""What the paper prints, read from ``published.toml``: one source for reports and docs."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["authors_code", "claim", "is_face", "paper_row", "paper_tasks", "published", "titles"]


@cache
def published() -> Mapping[str, Any]:
    """All of it, by table.

    >>> published()["table_1"]["problems"]["adult"]["cosmos"]["hypervolume"]
    3.34
    """
    text = files("paretocosmos.paper").joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def paper_row(problem: str, method: str) -> Mapping[str, float] | None:
    """The paper's numbers for a method on a problem, `None` where it prints none.

    Hours become ``seconds``.

    >>> paper_row("celeba_hard", "cosmos")["seconds"]
    11880.0
    """
    for table in ("table_1", "table_celeba"):
        row = published()[table]["problems"].get(problem, {}).get(method)
        if row is not None:
            hours = row.get("hours")
            kept = {key: value for key, value in row.items() if key != "hours"}
            return kept | ({} if hours is None else {"seconds": round(3600.0 * hours, 6)})
    return None


def paper_tasks(problem: str, method: str) -> Sequence[float] | None:
    """The paper's misclassification of each task, `None` where it prints none.

    >>> paper_tasks("celeba_three", "cosmos")
    [0.0316, 0.0393, 0.0528]
    """
    for table in ("celeba_objectives", "celeba_ten"):
        found: Sequence[float] | None = published()[table]["problems"].get(problem, {}).get(method)
        if found is not None:
            return found
    return None


def authors_code(problem: str) -> float | None:
    """The hypervolume of COSMOS when its authors' code was run again, `None` where it was not.

    On pairs of images it is that of the rule ``"text"``, with seed 1.

    >>> authors_code("multi_mnist")
    2.8125
    """
    found: float | None = published()["authors_code"]["cosmos"].get(problem)
    return found


def claim(name: str) -> str:
    """What the paper says.

    >>> claim("alpha")
    'Alpha changes the quality of the front, not its width.'
    """
    return str(published()["claims"][name])


def titles(of: str) -> Mapping[str, str]:
    """The titles of ``"methods"`` or ``"problems"`` by their names, in the order of the paper.

    >>> titles("methods")["phn_ls"]
    'PHN-LS'
    """
    found: Mapping[str, str] = published()["titles"][of]
    return found


def is_face(problem: str) -> bool:
    """Whether it is in the paper's table of CelebA."""
    return problem in published()["table_celeba"]["problems"]
