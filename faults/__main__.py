"""`python -m faults`: every part in full; `--part`, `--count` and `--seed` choose."""

import argparse
import json
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from faults.outcome import Outcome
from paretocosmos.runs.provenance import get_provenance

CPU = torch.device("cpu")
COUNTS = {"kills": 500, "files": 20_000, "commands": 600, "requests": 10_000}
"""How much of each part is the whole of it."""


def main() -> int:
    """Do it, print what came of it, write it; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--part", choices=COUNTS, action="append", help="only this one; repeatable")
    parser.add_argument("--count", type=int, help="so many of each part instead of all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, help="write the counts here, beside those of parts not run"
    )
    arguments = parser.parse_args()
    whole = True
    for part in arguments.part or COUNTS:
        count = arguments.count or COUNTS[part]
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="paretocosmos-faults-") as folder:
            made: Outcome = import_module(f"faults.{part}").inflict(
                count, seed=arguments.seed, folder=Path(folder)
            )
        seconds = time.perf_counter() - began
        print(f"{part}: {made.done.total()} in {seconds:.0f} s, {len(made.broken)} promises broken")
        for counts in (made.done, made.answered, made.measured):
            for name, value in sorted(counts.items()):
                print(f"  {value:10,.6g}  {name}")
        for sentence in made.broken:
            print(f"  BROKEN: {sentence}")
        whole = whole and not made.broken
        if arguments.out is not None:
            _write(arguments.out, part, _told(made, count, arguments.seed, seconds))
    return 0 if whole else 1


def _told(made: Outcome, count: int, seed: int, seconds: float) -> dict[str, Any]:
    return {
        "count": count,
        "seed": seed,
        "seconds": round(seconds, 1),
        "done": dict(sorted(made.done.items())),
        "answered": dict(sorted(made.answered.items())),
        "measured": made.measured,
        "broken": made.broken,
        **get_provenance(CPU),
    }


def _write(out: Path, part: str, told: dict[str, Any]) -> None:
    before = json.loads(out.read_text()) if out.exists() else {}
    parts = before.get("parts", {}) | {part: told}
    content = {"parts": {name: parts[name] for name in COUNTS if name in parts}}
    out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
