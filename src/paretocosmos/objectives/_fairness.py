"""Which objectives compare groups of people."""

from typing import Literal

from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.objectives._groups import GroupObjective
from paretocosmos.registry import find, names

__all__ = ["fairness_objective", "fairness_objectives"]


def fairness_objectives(of: Literal["classes", "numbers"]) -> dict[str, type[GroupObjective]]:
    """The objectives of this room that compare groups, by name.

    Args:
        of: what they compare: predicted classes, or predicted numbers.

    >>> list(fairness_objectives("numbers"))
    ['error_gap', 'prediction_gap']
    """
    every = {name: find("objectives", name) for name in names("objectives")}
    return {
        name: kind
        for name, kind in every.items()
        if isinstance(kind, type) and issubclass(kind, GroupObjective) and kind.fairness == of
    }


def fairness_objective(
    given: str | type[GroupObjective], of: Literal["classes", "numbers"], *, what: str
) -> type[GroupObjective]:
    """The objective that compares groups: by its name in this room, or a class of one's own.

    A name of code elsewhere is not looked up: it may stand in a file, which must not import any.

    Args:
        given: the name or the class.
        of: what is predicted.
        what: the setting is called in a refusal.
    """
    if isinstance(given, str):
        known = fairness_objectives(of)
        if given not in known:
            raise unknown(what, given, known)
        return known[given]
    if isinstance(given, type) and issubclass(given, GroupObjective) and given.fairness == of:
        return given
    raise ConfigurationError(
        f'{what} is a name or a class of objectives that declares `fairness = "{of}"`, found '
        f"{given!r}"
    )
