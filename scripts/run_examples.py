"""`python scripts/run_examples.py [NAME...]`: run the examples, and keep what they print.

Each runs in an empty folder. Its own lines go to `results/NAME.txt`, from which the README and the
gallery are written; what a loop of others prints beside them does not.
"""

import io
import os
import runpy
import sys
import tempfile
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def printed_by(example: Path) -> str:
    """What the example itself prints.

    Args:
        example: its file, run as a script in a new folder.
    """
    shown, before = io.StringIO(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            kept = {"print": partial(print, file=shown)}
            runpy.run_path(str(example), init_globals=kept, run_name="__main__")
        finally:
            os.chdir(before)
    return shown.getvalue()


def main(names: list[str]) -> None:
    """Run those that are named, else all."""
    for example in sorted((ROOT / "examples").glob("*.py")):
        if not names or example.stem in names:
            kept = ROOT / "results" / f"{example.stem}.txt"
            kept.write_text(printed_by(example), encoding="utf-8")
            print(kept.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
