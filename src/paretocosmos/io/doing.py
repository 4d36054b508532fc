"""What is under way, in a few words: said where it is done, shown wherever somebody looks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["Doing", "doing", "under_way"]


class Doing(NamedTuple):
    """Something that is done, and when it began on the monotonic clock."""

    what: str
    since: float


_all: list[Doing] = []


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say what the body does, in a few words such as "loading adult".

    >>> with doing("training"), doing("validating"):
    ...     under_way().what
    'validating'
    >>> under_way() is None
    True
    """
    own = Doing(what, time.monotonic())
    _all.append(own)
    try:
        yield
    finally:
        _all.remove(own)


def under_way() -> Doing | None:
    """What was begun last and is not done."""
    return _all[-1] if _all else None
