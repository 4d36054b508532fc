"""What a server refuses: a status and one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

__all__ = ["RefusedError", "refuse", "shown"]

# Of what a client sent, in a sentence that answers it.
LONGEST = 60


class RefusedError(Exception):
    """A request that is not answered, and why.

    Args:
        status: of HTTP.
        message: one sentence: the rule, what was found, the way out.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def refuse(message: str, *, status: int = 422) -> NoReturn:
    """Refuse a request; by default because of what its JSON says."""
    raise RefusedError(status, message)


def shown(value: object) -> str:
    """A value of a client's JSON in few letters, however large it is."""
    kinds: dict[type, str] = {dict: "an object", list: "a list", type(None): "null"}
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str) and len(value) > 8:
        return f"{kinds.get(type(value), 'a list')} of {len(value)}"
    text = _text(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) > 10**18:
        return "a very large whole number"
    return repr(value)
