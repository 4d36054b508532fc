"""Registered files that exist for the length of a test."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paretocosmos import registry

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@contextmanager
def registered_in(kind: str, name: str, example: str, thing: str, folder: Path) -> Iterator[Any]:
    """Put an example into a subpackage and register it.

    Args:
        kind: such as ``"methods"``.
        name: the name to register.
        example: the example's file, without its ending.
        thing: the class or function in it.
        folder: an empty one to write to.
    """
    path = f"paretocosmos.{registry.PACKAGES.get(kind, kind)}"
    package = importlib.import_module(path)
    source = (EXAMPLES / f"{example}.py").read_text(encoding="utf-8")
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    package.__path__.append(str(folder))
    package.REGISTRY[name] = f"{path}.{name}:{thing}"
    importlib.invalidate_caches()
    try:
        yield registry.find(kind, name)
    finally:
        del package.REGISTRY[name]
        package.__path__.remove(str(folder))
        sys.modules.pop(f"{path}.{name}", None)
        vars(package).pop(name, None)
