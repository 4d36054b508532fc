"""`python scripts/try_versions.py [--torch 2.15.0] [--python python3.14] [--out FILE]`: which versions work.

The core tests run with each torch on each Python, in a virtual environment of its own in a temporary
folder. By default these are the lowest torch that pyproject.toml allows and the newest on the index,
on each Python of pyproject.toml that is on this machine. A build for CUDA takes several gigabytes.
"""

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TESTS = (ROOT / "tests" / "core.txt").read_text(encoding="utf-8").split()
NEWEST = "newest"


def main() -> None:
    """Try every pair, print, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--torch", nargs="+", default=[find_lowest_torch(), NEWEST], metavar="VERSION"
    )
    parser.add_argument("--python", nargs="+", default=find_pythons(), metavar="COMMAND")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="test files; by default the core")
    parser.add_argument("--out", type=Path, help="add the outcomes to this JSON file")
    arguments = parser.parse_args()
    trials = []
    for python in arguments.python:
        for torch in arguments.torch:
            with tempfile.TemporaryDirectory(prefix="versions-") as folder:
                trials.append(try_versions(python, torch, Path(folder), arguments.tests))
            print(json.dumps(trials[-1]), flush=True)
    if arguments.out is not None:
        write_trials(arguments.out, trials)
    raise SystemExit(any(trial["outcome"] != "passed" for trial in trials))


def find_lowest_torch() -> str:
    """Return the lowest torch that pyproject.toml allows."""
    requirements: list[str] = PROJECT["dependencies"]
    return next(t.removeprefix("torch>=") for t in requirements if t.startswith("torch>="))


def find_pythons() -> list[str]:
    """Return the interpreters of this machine, of those that pyproject.toml names."""
    minors = [m[1] for text in PROJECT["classifiers"] if (m := re.search(r":: (3\.\d+)$", text))]
    return [f"python{minor}" for minor in minors if shutil.which(f"python{minor}")]


def try_versions(python: str, torch: str, folder: Path, tests: list[str]) -> dict[str, Any]:
    """Install one torch on one Python, and run tests with them."""
    trial = {"python": python, "torch": torch, "written": datetime.now(UTC).date().isoformat()}
    requirement = "torch" if torch == NEWEST else f"torch=={torch}"
    inside = str(folder / "bin" / "python")
    install = [inside, "-m", "pip", "install", "--quiet"]
    extras = PROJECT["optional-dependencies"]
    others = [text for text in PROJECT["dependencies"] if not text.startswith("torch>=")]
    needed = [requirement, *others, *extras["tabular"], *extras["plot"]]
    steps = [
        [python, "-m", "venv", str(folder)],
        [*install, "--upgrade", "pip"],
        # without the package's own requirement, which an older torch would contradict
        [*install, *needed, "--group", f"{ROOT / 'pyproject.toml'}:dev"],
        [*install, "--no-deps", str(ROOT)],
    ]
    for step in steps:
        ended = subprocess.run(step, capture_output=True, text=True, check=False)
        if ended.returncode:
            last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
            return trial | {"outcome": "not installed", "why": last[:300]}
    asked = "import platform, torch; print(platform.python_version(), torch.__version__)"
    found = subprocess.run([inside, "-c", asked], capture_output=True, text=True, check=False)
    if found.returncode:
        last = found.stderr.strip().splitlines()[-1]
        return trial | {"outcome": "cannot be imported", "why": last[:300]}
    trial["python"], trial["torch"] = found.stdout.split()
    ended = subprocess.run(
        [inside, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, flags=re.MULTILINE)
    summary = (ended.stdout.strip().splitlines() or ["no output"])[-1]
    passed = re.search(r"(\d+) passed", summary)
    return trial | {
        "outcome": "failed" if ended.returncode else "passed",
        "passed": int(passed[1]) if passed else 0,
        "failed": failed,
    }


def write_trials(path: Path, trials: list[dict[str, Any]]) -> None:
    """Add trials to a file, in place of older ones of the same versions."""
    known = json.loads(path.read_text()) if path.exists() else []
    kept = {(trial["python"], trial["torch"]): trial for trial in [*known, *trials]}
    path.write_text(json.dumps([kept[key] for key in sorted(kept)], indent=1) + "\n")


if __name__ == "__main__":
    main()
