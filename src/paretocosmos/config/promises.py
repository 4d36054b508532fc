"""What code promises of itself: whether a step that calls it can be recorded, and so run fast.

A recorded step repeats its tensor operations and nothing else, so whatever Python decides on the
way is frozen. A class that declares `traceable = True` promises that its code decides nothing in
Python from values of tensors and keeps no Python state between steps.
"""

from collections.abc import Iterator

from torch import nn

__all__ = ["declared", "from_outside", "promised", "undeclared_modules"]

KNOWN = ("paretocosmos", "torch")


def declared(thing: object, what: str = "traceable") -> bool | None:
    """What a thing, or its own class, declares; `None` where neither says anything.

    A declaration is not inherited: a subclass has code of its own, for which nobody has promised
    anything yet.

    >>> class Mine:
    ...     traceable = True
    >>> class Heir(Mine): ...
    >>> declared(Mine()), declared(Heir())
    (True, None)
    """
    said = getattr(thing, "__dict__", {}).get(what, vars(type(thing)).get(what))
    return None if said is None else bool(said)


def promised(thing: object, what: str = "traceable") -> bool:
    """Whether a thing's code keeps a promise: it declares so, or it is this package's or torch's.

    This package's classes are known by where they are from. They could declare it as others do, but
    so would every private layer have to, and one forgotten line would make runs slow without
    failing a test; the contract tests hold the files of a subpackage to the promise instead.
    """
    said = declared(thing, what)
    return _known(thing) if said is None else said


def undeclared_modules(module: nn.Module) -> Iterator[nn.Module]:
    """The modules of a network whose code promises nothing, outermost first.

    A module that declares something speaks for all that is inside of it.
    """
    if not promised(module):
        yield module
    elif declared(module) is None:
        for child in module.children():
            yield from undeclared_modules(child)


def from_outside(thing: object) -> Iterator[object]:
    """What of a thing is neither this package's nor torch's, so that its promise is to be checked.

    The thing itself, what it has `wrapped`, and the modules inside of a network; not those of a
    network of this package that speaks for them.
    """
    inner = getattr(thing, "__dict__", {}).get("wrapped")
    if inner is not None:
        yield from from_outside(inner)
    if not _known(thing):
        yield thing
    elif declared(thing):
        return
    if isinstance(thing, nn.Module):
        for child in thing.children():
            yield from from_outside(child)


def _known(thing: object) -> bool:
    return type(thing).__module__.partition(".")[0] in KNOWN
