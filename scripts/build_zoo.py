"""Train the networks that come with the package, and export them with their cards.

    python scripts/build_zoo.py              all of them
    python scripts/build_zoo.py --only adult

Everything is as `paretocosmos train NAME` and `paretocosmos export` do it, with seed 1 and the
default preset; every `run.json` holds the settings, the versions, the commit and the data's hash.
Rebuild after a change to what a run folder, a problem or the default preset is.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from paretocosmos import fit
from paretocosmos.export import export
from paretocosmos.runs import FOLDER, MODELS

SEED = 1


def build(name: str) -> None:
    """Train one network, and put the run's files where `load` finds them."""
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary, name)
        run = fit(name, seed=SEED, device="cpu", out=made, report=False, progress=False)
        written = export(run)
        place = FOLDER / name
        shutil.rmtree(place, ignore_errors=True)
        (place / "export").mkdir(parents=True)
        for file in ("run.json", *run.record["files"]):
            shutil.copyfile(made / file, place / file)
        for path in (written.path, written.card):
            shutil.copyfile(path, place / "export" / path.name)
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    print(f"{name}: hypervolume {run.hypervolume:.4f}, {size:,} bytes in `{place.name}`")


def main() -> None:
    """Build what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=MODELS, action="append", help="repeat for several")
    for name in parser.parse_args().only or MODELS:
        build(name)


if __name__ == "__main__":
    main()
