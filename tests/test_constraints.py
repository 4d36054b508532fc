"""Whatever `make` installs is pinned, and its files have hashes."""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "constraints.txt").read_text()
PIN = re.compile(r"([a-z0-9][a-z0-9-]*)==(\S+)((?: +--hash=sha256:[0-9a-f]{64})+)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# what `make` installs first of all
GIVEN = ["pip", "hatchling", "editables", "paretocosmos[all]", *PROJECT["dependency-groups"]["dev"]]


def _pins() -> dict[str, str]:
    lines = [one for one in TEXT.replace("\\\n", " ").splitlines() if not one.startswith("#")]
    found = [PIN.fullmatch(line) for line in lines]
    wrong = [line[:80] for line, match in zip(lines, found, strict=True) if match is None]
    assert not wrong, f"not NAME==VERSION with hashes: {wrong}; run `make constraints`"
    return {match[1]: match[2] for match in found if match is not None}


def _installed(asked: list[str]) -> Iterator[metadata.Distribution]:
    """What is installed of some requirements and of theirs, whatever else there is."""
    waiting, seen = [Requirement(one) for one in asked], set[tuple[str, str]]()
    while waiting:
        one = waiting.pop()
        for extra in ("", *one.extras):
            key = (canonicalize_name(one.name), extra)
            try:
                found = metadata.distribution(one.name)
            except metadata.PackageNotFoundError:
                continue
            if key in seen:
                continue
            seen.add(key)
            yield found
            needed = map(Requirement, found.requires or ())
            here = {"extra": extra}
            waiting += [n for n in needed if n.marker is None or n.marker.evaluate(here)]


def test_every_pin_has_a_hash() -> None:
    pins = _pins()
    assert len(pins) == TEXT.count("==")
    assert {"torch", "pip", "hatchling", "cryptography", "pip-audit"} <= pins.keys()


def test_every_requirement_is_pinned() -> None:
    extras, groups = PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]
    every = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
    every += [one for named in (extras, groups) for some in named.values() for one in some]
    names = {canonicalize_name(Requirement(one).name) for one in every}
    assert not names - _pins().keys() - {"paretocosmos"}, "run `make constraints`"


def test_what_is_installed_is_what_is_pinned() -> None:
    pins = _pins()
    there = {str(canonicalize_name(one.name)): one.version for one in _installed(GIVEN)}
    assert len(there) > 50
    del there["paretocosmos"]
    # 2.13.0+cpu is a build of 2.13.0
    builds = {name: Version(version).public for name, version in there.items()}
    other = {n: v for n, v in builds.items() if n not in pins or Version(pins[n]).public != v}
    assert not other, f"not as pinned: {other}; run `make constraints`, or install them again"


def test_constraints_name_no_index() -> None:
    assert "://" not in TEXT
    assert "-index" not in TEXT
