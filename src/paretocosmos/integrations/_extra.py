"""Classes of packages that may be missing."""

import importlib
from typing import Any

from paretocosmos.errors import MissingExtraError


def base(package: str, name: str, purpose: str) -> Any:
    """A class to derive from; without its package, one that cannot be built.

    So the file that derives can be imported, read and tested everywhere.

    Args:
        package: the package, which is also the name of its extra.
        name: the class in it.
        purpose: what needs it, for the message.
    """
    try:
        return getattr(importlib.import_module(package), name)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, and something else is missing
            raise

    class Missing:
        def __new__(cls, *_given: object, **_named: object) -> Any:
            raise MissingExtraError(package, package, purpose)

    return Missing
