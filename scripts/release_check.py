"""Build the wheel and the sdist, install the wheel in a fresh environment, and try it there.

    python scripts/release_check.py --constraint constraints.txt     as `make release-check` does
    python scripts/release_check.py --torch-index URL --out dist     as CI does, with ranges

Nothing of this checkout is imported: what is tested is what a user installs. Needs nothing but
Python; everything else is installed into a temporary environment.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHEEL_LIMIT, SDIST_LIMIT = 3_000_000, 4_000_000
"""Bytes."""
IMPORT_LIMIT = 0.1
"""Of the time that `import torch` takes."""
MODULES_LIMIT = 150
"""Modules that `import paretocosmos` may load, those of the standard library included."""
HEAVY = ("torch", "numpy", "pandas", "sklearn", "matplotlib", "fastapi", "rich", "typer")
TOOLS = ("cvxpy", "hypothesis", "mypy", "pandas-stubs", "pytest", "scipy", "torchjd")
NEEDED = (
    "paretocosmos/py.typed",
    "paretocosmos/config/paper.toml",
    "paretocosmos/explorer/page/page.html",
    *(f"paretocosmos/problems/data/{n}.csv.xz" for n in ("adult", "compas", "default_credit")),
    *(
        f"paretocosmos/runs/models/{name}/{file}"
        for name in ("adult", "compas", "default_credit")
        for file in ("run.json", "model.safetensors", "export/model.onnx", "export/model.onnx.md")
    ),
)

CONSUMER = """
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from paretocosmos import Front, Run, condition, cosmos_loss, even_rays, fit, hypervolume, load
from paretocosmos.estimators import ParetoClassifier


def probabilities(frame: pd.DataFrame) -> npt.NDArray[np.float64]:
    run: Run = load("adult")
    return run.predict(frame, ray={"binary_cross_entropy": 0.5, "demographic_parity": 0.5})


def volume(out: Path) -> float:
    front: Front = fit("toy_convex", epochs=1, out=out).front
    return hypervolume(front.values, (2.0, 2.0))


def step(network: torch.nn.Module, losses: torch.Tensor) -> torch.Tensor:
    conditioned = condition(network, 2)
    reveal_type(conditioned)
    return cosmos_loss(losses, even_rays(1, 2)[0], penalty=1.0)


estimator = ParetoClassifier()
"""


class CheckError(Exception):
    """What is wrong with the release, in a sentence."""


def require(condition: bool, why: str) -> None:
    """Refuse a release that does not fulfil a condition."""
    if not condition:
        raise CheckError(why)


def said(*command: str | Path, cwd: Path) -> str:
    """What a command prints; one that fails ends the check with what it printed."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    clean |= {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1", "COLUMNS": "100"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=clean, capture_output=True, text=True, encoding="utf-8"
    )
    if done.returncode:
        line = " ".join(map(str, command))[:200]
        raise CheckError(f"`{line}` failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


class Environment:
    """A fresh virtual environment.

    Args:
        folder: where it and what it downloads go.
        constraint: pins with hashes, which pip then requires of everything, if any.
        torch_index: where the build of torch comes from, if not from the usual index.
    """

    def __init__(self, folder: Path, constraint: Path | None, torch_index: str | None) -> None:
        self.folder = folder
        said(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.bin / "python"
        self.pins = ["--constraint", str(constraint)] if constraint else []
        self.index = ["--index-url", torch_index] if torch_index else []
        if constraint:  # an older pip takes no hashes from constraints: pinned in full, and first
            first, text = folder / "pip.txt", constraint.read_text(encoding="utf-8")
            (pinned,) = re.findall(r"(?m)^pip==(?:.*\\\n)*.*\n", text)
            first.write_text(pinned, encoding="utf-8")
            said(self.python, "-m", "pip", "install", "-q", "--requirement", first, cwd=folder)
        else:
            said(self.python, "-m", "pip", "install", "-q", "--upgrade", "pip", cwd=folder)

    def install(self, *what: str | Path, options: Sequence[str] = ()) -> None:
        """Install packages, as pinned."""
        said(
            *(self.python, "-m", "pip", "install", "-q", *self.pins, *options, *what),
            cwd=self.folder,
        )

    def install_torch(self) -> None:
        """The build of torch that is pinned, or the newest of the index.

        A build of the machine's own has no hash in the index, so it is fetched, then checked.
        """
        if not self.pins:
            self.install("torch", options=self.index)
            return
        pins = Path(self.pins[1]).read_text(encoding="utf-8").splitlines()
        pin = next(line.split()[0] for line in pins if line.startswith("torch=="))
        fetched = self.folder / "torch"
        said(
            *(self.python, "-m", "pip", "download", "-q", "--no-deps", "--dest", fetched, pin),
            cwd=self.folder,
        )
        self.install("torch", options=["--no-deps", "--no-index", "--find-links", str(fetched)])

    def run(self, code: str) -> str:
        """What a line of Python prints there."""
        return said(self.python, "-I", "-c", code, cwd=self.folder)


def build(env: Environment, out: Path, tag: str | None) -> Path:
    """Build both files, and look at what is in them."""
    env.install("hatchling", "packaging")
    for target in ("sdist", "wheel"):
        said(env.python, "-m", "hatchling", "build", "-d", out, "-t", target, cwd=ROOT)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    sizes = wheel.stat().st_size, sdist.stat().st_size
    require(sizes[0] < WHEEL_LIMIT, f"the wheel has {sizes[0]:,} bytes, above {WHEEL_LIMIT:,}")
    require(sizes[1] < SDIST_LIMIT, f"the sdist has {sizes[1]:,} bytes, above {SDIST_LIMIT:,}")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        metadata = next(n for n in names if n.endswith(".dist-info/METADATA"))
        (env.folder / "METADATA").write_bytes(opened.read(metadata))
    absent = sorted(set(NEEDED) - names)
    require(not absent, f"the wheel lacks {', '.join(absent)}")
    outside = sorted(n for n in names if not n.startswith(("paretocosmos/", "paretocosmos-")))
    require(not outside, f"the wheel holds {', '.join(outside[:5])}, which is not the package")
    wrong = sorted(n for n in names if "test" in Path(n).name or n.endswith((".pyc", ".pem")))
    require(not wrong, f"the wheel holds {', '.join(wrong[:5])}")
    with tarfile.open(sdist) as packed:
        packed.extractall(env.folder / "sdist", filter="data")
    (unpacked,) = (env.folder / "sdist").iterdir()
    again = env.folder / "again"
    said(env.python, "-m", "hatchling", "build", "-d", again, "-t", "wheel", cwd=unpacked)
    (second,) = again.glob("*.whl")
    with zipfile.ZipFile(second) as opened:
        require(set(opened.namelist()) == names, "the wheel of the sdist holds other files")
    print(f"built: wheel {sizes[0]:,} bytes, {len(names)} files; sdist {sizes[1]:,} bytes")
    check_metadata(env, wheel, tag)
    return wheel


def check_metadata(env: Environment, wheel: Path, tag: str | None) -> None:
    """What an index would refuse, and whether all say the same version."""
    version = wheel.name.split("-")[1]
    found = env.run(
        "from packaging.metadata import Metadata; from pathlib import Path; "
        "m = Metadata.from_email(Path('METADATA').read_bytes(), validate=True); "
        "assert m.description and m.description_content_type == 'text/markdown'; "
        "assert m.license_expression == 'MIT' and m.project_urls and m.author; "
        "print(m.name, m.version, len(m.classifiers))"
    )
    require(found.split()[:2] == ["paretocosmos", version], f"the metadata are of {found}")
    require(tag in (None, f"v{version}"), f"the tag is {tag}, the version {version}")
    for file, line in (("CITATION.cff", f"version: {version}"), ("CHANGELOG.md", f"## {version}")):
        text = (ROOT / file).read_text(encoding="utf-8")
        require(line in text, f"{file} has no line `{line}`")
    print(f"metadata: valid, version {version} everywhere")


def check_import(env: Environment) -> None:
    """What `import paretocosmos` costs where nothing but the core is installed."""
    timed = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    times = {
        name: statistics.median(float(env.run(timed.format(name))) for _ in range(5))
        for name in ("paretocosmos", "torch")
    }
    ratio = times["paretocosmos"] / times["torch"]
    loaded = env.run("import sys, paretocosmos; print(*sys.modules)").split()
    own = sum(name.partition(".")[0] == "paretocosmos" for name in loaded)
    heavy = [name for name in HEAVY if name in loaded]
    require(not heavy, f"`import paretocosmos` imports {', '.join(heavy)}")
    require(len(loaded) < MODULES_LIMIT, f"`import paretocosmos` loads {len(loaded)} modules")
    require(ratio < IMPORT_LIMIT, f"`import paretocosmos` takes {ratio:.2f} of `import torch`")
    every = "import sys; from paretocosmos import *; print(*sys.modules)"
    drawn = {"pandas", "sklearn", "matplotlib", "fastapi"} & set(env.run(every).split())
    require(not drawn, f"its public names import {', '.join(sorted(drawn))}")
    print(f"import: {ratio:.3f} of `import torch`, {len(loaded)} modules, {own} of its own")


def check_tests(env: Environment) -> None:
    """Tests of the core and of the zoo, against what is installed."""
    copy = env.folder / "checkout"
    for name in ("tests", "docs"):
        shutil.copytree(ROOT / name, copy / name)
    shutil.copyfile(ROOT / "pyproject.toml", copy / "pyproject.toml")
    where = env.run("import paretocosmos; print(paretocosmos.__file__)")
    require(Path(where).is_relative_to(env.folder), f"what is tested is in {where}")
    found = said(
        *(env.python, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("@tests/core.txt", "tests/runs/test_zoo.py"),
        cwd=copy,
    )
    print(f"tests of the installed wheel: {found.splitlines()[-1]}")


def check_types(env: Environment) -> None:
    """A typed script that uses the public names, under `mypy --strict`."""
    script = env.folder / "consumer.py"
    script.write_text(CONSUMER, encoding="utf-8")
    found = said(env.python, "-m", "mypy", "--strict", script.name, cwd=env.folder)
    require("Conditioning" in found, f"`condition` has lost its type: {found}")
    print("types: a strict script of a consumer passes")


def check_first_steps(env: Environment) -> None:
    """The commands from a CSV of one's own to a front and a choice."""
    lines = ["age,city,sex,hired"]
    for row in range(2000):
        age, sex = 20 + row * 7 % 45, "fm"[row * 13 % 5 < 2]
        score = age + 12 * (sex == "m") + row * 31 % 23
        lines.append(f"{age},{('Ulm', 'Graz', 'Bern')[row % 3]},{sex},{'ny'[score > 60]}")
    (env.folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = env.bin / "paretocosmos"
    table = ["--target", "hired", "--positive", "y", "--sensitive", "sex"]
    said(command, "train", "people.csv", *table, "--out", "run", cwd=env.folder)
    bound = ["--max", "demographic_parity=0.2"]
    said(command, "choose", "run", *bound, cwd=env.folder)
    said(command, "predict", "run", "people.csv", *bound, "--out", "new.csv", cwd=env.folder)
    for name in ("front.json", "front.png", "report.html"):
        require((env.folder / "run" / name).is_file(), f"`train` wrote no {name}")
    said(command, "demo", "--out", "demo", cwd=env.folder)
    require((env.folder / "demo" / "report" / "report.html").is_file(), "`demo` wrote no page")
    print("first steps: pip install, demo, train, choose and predict give a front of a CSV")


def main() -> None:
    """Check a release; the first mistake ends it with exit code 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--constraint", type=Path, help="install what is pinned here")
    parser.add_argument("--torch-index", help="take torch from this index")
    parser.add_argument("--out", type=Path, help="keep the wheel and the sdist in this folder")
    parser.add_argument("--tag", help="the tag that is released, as v0.3.0")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="release-") as temporary:
        pins = None if asked.constraint is None else asked.constraint.resolve()
        env = Environment(Path(temporary).resolve(), pins, asked.torch_index)
        wheel = build(env, env.folder / "dist", asked.tag)
        env.install_torch()
        # a file has no hash in the constraints: it is installed alone, then what it depends on
        said(env.python, "-m", "pip", "install", "-q", "--no-deps", wheel, cwd=env.folder)
        env.install("paretocosmos")
        check_import(env)
        env.install("paretocosmos[tabular,plot,onnx]", *TOOLS)
        check_types(env)
        check_first_steps(env)
        check_tests(env)
        if asked.out is not None:
            asked.out.mkdir(parents=True, exist_ok=True)
            for path in wheel.parent.iterdir():
                shutil.copyfile(path, asked.out / path.name)
    print("the release can be tagged")


if __name__ == "__main__":
    try:
        main()
    except CheckError as error:
        sys.exit(f"not ready: {error}")
