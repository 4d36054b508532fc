"""Write constraints.txt: a version of all that `make` may install, with the hashes of its files.

    python scripts/write_constraints.py                     what is new is pinned, the rest stays
    python scripts/write_constraints.py --upgrade NAME      take the newest version of a package
    python scripts/write_constraints.py --file torch-….whl  accept this build, too

`uv` asks the index that it is set up with. All files of a version count, whatever they are built
for. Hashes that a version has already are kept: an index replaces no file, and a build that was
accepted by hand stays so.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

__all__ = ["Pins", "read_pins", "requirements", "written"]

ROOT = Path(__file__).parents[1]
FILE = ROOT / "constraints.txt"

HEADER = """\
# What `make` may install, pinned; pyproject.toml holds the ranges that a user may have.
# Written by `python scripts/write_constraints.py`. pip refuses a file with another hash.
# torch is pinned because a looser requirement may fetch gigabytes of CUDA libraries.
"""
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")

# Where the project is installed: on other machines a pin may be missing, which pip says.
PLACES = [
    {"sys_platform": system, "platform_machine": machine, "python_full_version": f"{version}.0"}
    | {"python_version": version, "platform_python_implementation": "CPython"}
    | {"implementation_name": "cpython", "os_name": "nt" if system == "win32" else "posix"}
    for system in ("linux", "darwin", "win32")
    for machine in ("x86_64", "aarch64", "arm64")
    for version in ("3.11", "3.12", "3.13", "3.14")
]

Pins = dict[str, tuple[str, set[str]]]
"""By name, as an index has it: the version and the SHA-256 of its files."""


def requirements() -> list[str]:
    """What pyproject.toml asks for: to build, to run, with every extra and in every group."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())
    own = said["project"]
    several = (own["optional-dependencies"], said["dependency-groups"])
    asked = [*said["build-system"]["requires"], "editables", "pip", *own["dependencies"]]
    asked += [one for named in several for every in named.values() for one in every]
    return [one for one in asked if Requirement(one).name != own["name"]]


def read_pins(text: str) -> Pins:
    r"""The pins of a constraints file, or of what `uv pip compile` writes.

    >>> read_pins("Six==1.16.0 \\\n    --hash=sha256:" + "0" * 64)["six"][0]
    '1.16.0'
    """
    pins: Pins = {}
    for line in _lines(text):
        requirement = Requirement(line.partition("--hash")[0].strip())
        marker: Marker | None = requirement.marker
        if marker is not None and not any(marker.evaluate(place) for place in PLACES):
            continue
        (pin,) = requirement.specifier
        name = canonicalize_name(requirement.name)
        if pin.operator != "==" or pins.get(name, (pin.version,))[0] != pin.version:
            raise SystemExit(f"`{name}` has no version that serves all: {line[:80]}")
        pins.setdefault(name, (pin.version, set()))[1].update(HASH.findall(line))
    return pins


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def written(pins: Pins) -> str:
    """A constraints file."""
    parts = []
    for name, (version, hashes) in sorted(pins.items()):
        if not hashes:
            raise SystemExit(f"the index gives no sha256 for `{name}` {version}")
        each = (f"    --hash=sha256:{one}" for one in sorted(hashes))
        parts.append(" \\\n".join([f"{name}=={version}", *each]) + "\n")
    return HEADER + "".join(parts)


def _resolved(before: Pins, upgraded: Iterable[str]) -> Pins:
    """What the index has for all that is asked, with the versions that were there before."""
    free = {canonicalize_name(name) for name in upgraded}
    with tempfile.TemporaryDirectory() as folder:
        asked, kept, result = (Path(folder) / name for name in ("asked", "kept", "result"))
        asked.write_text("\n".join(requirements()))
        kept.write_text("\n".join(f"{n}=={v}" for n, (v, _) in before.items() if n not in free))
        command = ["uv", "pip", "compile", "--universal", "--generate-hashes", "--no-header"]
        command += ["--no-annotate", "--python-version", "3.11", "--upgrade", "--quiet"]
        command += ["--constraints", str(kept), str(asked), "--output-file", str(result)]
        subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)
        return read_pins(result.read_text())


def main() -> None:
    """Write the file anew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--upgrade", action="append", default=[], metavar="NAME")
    parser.add_argument("--file", action="append", default=[], metavar="WHEEL", type=Path)
    asked = parser.parse_args()
    before = read_pins(FILE.read_text())
    pins = _resolved(before, asked.upgrade)
    for name, (version, hashes) in pins.items():
        if name in before and before[name][0] == version:
            hashes |= before[name][1]
    for wheel in asked.file:
        name, made = parse_wheel_filename(wheel.name)[:2]
        if pins[name][0] != made.public:
            raise SystemExit(f"`{wheel.name}` is not of the pinned version, {pins[name][0]}")
        with wheel.open("rb") as stream:
            pins[name][1].add(hashlib.file_digest(stream, "sha256").hexdigest())
    FILE.write_text(written(pins))
    print(f"{len(pins)} packages, {sum(len(hashes) for _, hashes in pins.values())} files")


if __name__ == "__main__":
    main()
