"""Run folders of a stranger: their records name what they like, under a hash that is right."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["PAYLOAD", "RECIPE", "ROLES", "change", "copy", "mark_of", "names", "seal"]

ROLES = ("problem", "method", "conditioning", "backbone")

PAYLOAD = """
from pathlib import Path

Path(__file__).with_suffix(".mark").touch()

from paretocosmos import load_problem
from paretocosmos.nn.backbones import Mlp
from paretocosmos.nn.conditioning import Concat
from paretocosmos.methods import Cosmos


def problem(*, protocol: str = "clean"):
    return load_problem("toy_convex")


class method(Cosmos):
    pass


class conditioning(Concat):
    pass


class backbone(Mlp):
    pass
"""
"""A module with something for every role, that leaves a mark beside it when it is imported."""

RECIPE = """
title = "Mine"
section = "none"
shows = "fronts"
seeds = [1]
[[grid]]
problems = ["payload:problem"]
methods = ["payload:method"]
settings.epochs = 1
"""
"""A recipe of what is in it."""


def mark_of(payload: Path) -> Path:
    """What is there once it was imported."""
    return payload.with_suffix(".mark")


def copy(run: Path, to: Path) -> Path:
    """A copy of a run folder."""
    shutil.copytree(run, to)
    return to


def seal(folder: Path, record: dict[str, Any]) -> None:
    """Write a record with the hashes that belong to it and to the files beside it."""
    rest = {key: value for key, value in record.items() if key != "sha256"}
    if isinstance(rest.get("files"), dict):
        there = [path.name for path in folder.iterdir() if path.name in rest["files"]]
        hashes = {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in there}
        rest["files"] = rest["files"] | hashes
    text = json.dumps(rest, sort_keys=True)
    sealed = rest | {"sha256": hashlib.sha256(text.encode()).hexdigest()}
    (folder / "run.json").write_text(json.dumps(sealed))


def change(folder: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """Change a folder's record in place, and seal it."""
    record = json.loads((folder / "run.json").read_text())
    edit(record)
    seal(folder, record)
    return folder


def names(**things: str) -> Callable[[dict[str, Any]], None]:
    """Name other things in a record, with the settings that were there."""

    def edit(record: dict[str, Any]) -> None:
        for role, name in things.items():
            record[role]["name"] = name

    return edit
