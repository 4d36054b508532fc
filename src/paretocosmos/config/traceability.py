"""Declarations that code may be traced, compiled or captured: `traceable = True`.

A traced step repeats its tensor operations and nothing else, so a branch that Python took while it
was traced is taken ever after. A class that declares `traceable = True` promises that its code
decides nothing in Python from values of tensors and keeps no Python state between steps.
"""

from collections.abc import Iterator

from torch import nn

__all__ = ["find_third_party", "find_untraceable", "get_declaration", "keeps_promise"]

# Packages whose code is known to decide nothing in Python during a step.
FIRST_PARTY = ("paretocosmos", "torch")


def get_declaration(thing: object, promise: str = "traceable") -> bool | None:
    """Return the value that an object or its own class declares; `None` if neither does.

    A declaration is not inherited: a subclass has code of its own, for which nobody has promised
    anything yet.

    >>> class Declares:
    ...     traceable = True
    >>> class Subclass(Declares): ...
    >>> get_declaration(Declares()), get_declaration(Subclass())
    (True, None)
    """
    # vars() rather than getattr(), which would also look in base classes
    value = getattr(thing, "__dict__", {}).get(promise, vars(type(thing)).get(promise))
    return None if value is None else bool(value)


def keeps_promise(thing: object, promise: str = "traceable") -> bool:
    """Return the declaration of an object; without one, True for code of this package or torch.

    This package's classes are recognised by their module. They could declare it as others do, but
    so would every private layer have to, and one forgotten line would make runs slow without
    failing a test; the contract tests hold the files of a subpackage to the promise instead.
    """
    declaration = get_declaration(thing, promise)
    return _is_first_party(thing) if declaration is None else declaration


def find_untraceable(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules of a network that do not promise to be traceable, outermost first.

    A declaration speaks for all modules inside.
    """
    if not keeps_promise(module):
        yield module
    elif get_declaration(module) is None:  # torch's containers may hold modules of others
        for child in module.children():
            yield from find_untraceable(child)


def find_third_party(thing: object) -> Iterator[object]:
    """Yield the objects of third-party classes, whose promise the tracing engine has to test.

    These are the object itself, what it has `wrapped`, and the modules of a network; modules inside
    a network of this package that declares something are covered by its declaration.
    """
    inner = getattr(thing, "__dict__", {}).get("wrapped")
    if inner is not None:
        yield from find_third_party(inner)
    if not _is_first_party(thing):
        yield thing
    elif get_declaration(thing):
        return
    if isinstance(thing, nn.Module):
        for child in thing.children():
            yield from find_third_party(child)


def _is_first_party(thing: object) -> bool:
    return type(thing).__module__.partition(".")[0] in FIRST_PARTY
