"""Write results/quality.json: how much the tests run, and how many mistakes they would notice.

    python scripts/quality.py --mutants mutants --note "..."        after `mutmut run`
    python scripts/quality.py --coverage coverage.json --note "..."  after `coverage json`

What is not measured again stays as it is. A mutant is killed if a test fails or runs forever; one
that no test reaches counts as survived.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from paretocosmos.runs.provenance import get_provenance

FILE = Path(__file__).parents[1] / "results" / "quality.json"
LEAST = 0.85  # files below it are named
# exit codes that mutmut keeps: of pytest, and its own for a mutant without tests and one too slow
ENDS = {None: "not_run", 0: "survived", 1: "killed", 3: "killed", 5: "no_tests", 33: "no_tests"}


def mutants(folder: Path) -> dict[str, Any]:
    """Counts by file, and the score, of what mutmut left in its folder."""
    files: dict[str, dict[str, int]] = {}
    total: Counter[str] = Counter()
    source = folder / "src" / "paretocosmos"
    for path in sorted(source.rglob("*.meta")):
        codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"].values()
        counts = Counter(ENDS.get(code, "too_slow") for code in codes)
        if counts:
            files[path.relative_to(source).with_suffix("").as_posix()] = dict(
                sorted(counts.items())
            )
            total += counts
    noticed = total["killed"] + total["too_slow"]
    tried = noticed + total["survived"] + total["no_tests"]
    return {"score": noticed / tried, "tried": tried, "counts": dict(total), "files": files}


def coverage(file: Path) -> dict[str, Any]:
    """Line coverage of the package, its packages and its least covered files.

    Args:
        file: what `coverage json` wrote; it has all files of the package, also those never imported.
    """
    packages: dict[str, Counter[str]] = {}
    files: dict[str, float] = {}
    for name, found in json.loads(file.read_text(encoding="utf-8"))["files"].items():
        inside = name.replace("\\", "/").partition("paretocosmos/")[2]
        if not inside:  # a file that a test wrote
            continue
        package = inside.partition("/")[0].removesuffix(".py")
        summary = found["summary"]
        kinds = {"lines": summary["num_statements"], "run": summary["covered_lines"]}
        packages.setdefault(package, Counter()).update(kinds)
        if kinds["lines"]:
            files[inside] = kinds["run"] / kinds["lines"]
    lines, run = (sum(one[kind] for one in packages.values()) for kind in ("lines", "run"))
    shares = {
        package: one["run"] / one["lines"]
        for package, one in sorted(packages.items())
        if one["lines"]
    }
    least = {name: share for name, share in sorted(files.items()) if share < LEAST}
    return {"share": run / lines, "lines": lines, "packages": shares, "least_covered": least}


def main() -> None:
    """Write what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mutants", type=Path, help="the folder that mutmut wrote")
    parser.add_argument("--coverage", type=Path, help="the JSON that coverage wrote")
    parser.add_argument("--note", default="", help="what was run, if not everything")
    asked = parser.parse_args()
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name, read in (("mutants", mutants), ("coverage", coverage)):
        place: Path | None = getattr(asked, name)
        if place is not None:
            about = {"note": asked.note, "provenance": get_provenance(torch.device("cpu"))}
            before[name] = read(place) | about
            share = before[name].get("score", before[name].get("share"))
            print(f"{name}: {share:.1%}")
    FILE.write_text(json.dumps(before, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
