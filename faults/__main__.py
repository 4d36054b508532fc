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
"""Number of cases of each part in a full run."""


def main() -> int:
    """Run the parts, print and write the results; return 1 if a guarantee was broken."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument(
        "--part", choices=COUNTS, action="append", help="run only this part; repeatable"
    )
    parser.add_argument("--count", type=int, help="number of cases of each part, instead of all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, help="file for the counts; those of parts that are not run stay in it"
    )
    arguments = parser.parse_args()
    all_kept = True
    for part in arguments.part or COUNTS:
        count = arguments.count or COUNTS[part]
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="paretocosmos-faults-") as folder:
            made: Outcome = import_module(f"faults.{part}").inflict(
                count, seed=arguments.seed, folder=Path(folder)
            )
        seconds = time.perf_counter() - began
        print(
            f"{part}: {made.done.total()} in {seconds:.0f} s, {len(made.broken)} guarantees broken"
        )
        for counts in (made.done, made.answered, made.measured):
            for name, value in sorted(counts.items()):
                print(f"  {value:10,.6g}  {name}")
        for sentence in made.broken:
            print(f"  BROKEN: {sentence}")
        all_kept = all_kept and not made.broken
        if arguments.out is not None:
            _write(arguments.out, part, _describe(made, count, arguments.seed, seconds))
    return 0 if all_kept else 1


def _describe(made: Outcome, count: int, seed: int, seconds: float) -> dict[str, Any]:
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


def _write(out: Path, part: str, described: dict[str, Any]) -> None:
    before = json.loads(out.read_text()) if out.exists() else {}
    parts = before.get("parts", {}) | {part: described}
    content = {"parts": {name: parts[name] for name in COUNTS if name in parts}}
    out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
