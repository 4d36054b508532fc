"""Files put into this package for the length of a test."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paretocosmos import registry

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@contextmanager
def in_room(room: str, name: str, source: str, folder: Path) -> Iterator[Any]:
    """A file of that name in a room; its thing.

    Args:
        room: such as ``"methods"``.
        name: the file's, without its ending.
        source: what it holds, with the thing's name as its `__all__`.
        folder: an empty one to write to.
    """
    package = importlib.import_module(f"paretocosmos.{room}")
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    package.__path__.append(str(folder))
    importlib.invalidate_caches()
    try:
        yield registry.find(room, name)
    finally:
        package.__path__.remove(str(folder))
        sys.modules.pop(f"paretocosmos.{room}.{name}", None)
        vars(package).pop(name, None)


def example(name: str, thing: str) -> str:
    """The source of an example as a file of a room has it."""
    return f'{(EXAMPLES / f"{name}.py").read_text(encoding="utf-8")}\n\n__all__ = ["{thing}"]\n'
