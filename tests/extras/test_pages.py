"""Python blocks of the README and of the pages run as they are written."""

import re
import sys
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paretocosmos import fit, load_run

pytest.importorskip("onnxruntime")

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    "docs/start.md",
    "docs/concepts.md",
    "docs/add_a_method.md",
    "docs/howto/tables.md",
    "docs/howto/choosing.md",
    "docs/howto/scikit_learn.md",
    "docs/howto/own_network.md",
    "docs/howto/own_problem.md",
    "docs/howto/explorer.md",
    "docs/howto/export.md",
    "docs/howto/images.md",
    "docs/howto/run_folders.md",
    "docs/howto/logging.md",
    "docs/howto/clusters.md",
)
NOT_RUN = ("my_package",)  # somebody's, which a reader has to have


def _people(rows: int, seed: int) -> pd.DataFrame:
    """Whose income depends on skill and hours, and hours on sex."""
    draw = np.random.default_rng(seed)
    made = pd.DataFrame({"sex": draw.choice(["female", "male"], rows)})
    made["skill"] = draw.normal(size=rows)
    made["hours"] = 30 + 8 * (made["sex"] == "male") + draw.normal(0, 4, rows)
    chance = 1 / (1 + np.exp(-(2 * made["skill"] + 0.3 * (made["hours"] - 34))))
    return made.assign(income=np.where(draw.random(rows) < chance, "high", "low"))


def _loans(people: pd.DataFrame) -> pd.DataFrame:
    granted = np.where(people["income"] == "high", "granted", "refused")
    return people.drop(columns="income").assign(loan=granted)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, and a run of it."""
    folder = tmp_path_factory.mktemp("reader")
    _people(4_000, 1).to_csv(folder / "people.csv", index=False)
    _loans(_people(4_000, 2)).to_csv(folder / "loans.csv", index=False)
    _loans(_people(8_000, 3)).to_csv(folder / "val.csv", index=False)  # enough to be sure by
    files = {"data": str(folder / "loans.csv"), "val": str(folder / "val.csv")}
    columns = {"target": "loan", "positive": "granted", "sensitive": "sex"}
    fit("table", epochs=4, settings=files | columns, out=folder / "runs" / "demo", report=False)
    return folder


def _given(folder: Path) -> dict[str, Any]:
    """The names that pages take as given."""
    people = pd.read_csv(folder / "people.csv")
    return {
        "run": load_run(folder / "runs" / "demo"),
        "people": _loans(people),
        "X": people[["skill", "hours"]],
        "y": people["income"],
        "group": people["sex"],
        "preference": np.array([[0.5, 0.5]], dtype=np.float32),
    }


# Packages of loggers are behind with what others deprecate, and leave temporary folders behind.
LOGGING = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy"),
]
# Ray leaves sockets and processes to its end.
CLUSTERS = [pytest.mark.filterwarnings("ignore")]
MARKS = {"docs/howto/logging.md": LOGGING, "docs/howto/clusters.md": CLUSTERS}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=MARKS.get(page, ()), id=page) for page in PAGES]
)
@pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")
@pytest.mark.filterwarnings("ignore::paretocosmos.errors.EngineWarning")
def test_blocks_run(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    run = [block for block in blocks if not any(name in block for name in NOT_RUN)]
    assert run
    monkeypatch.chdir(place)
    monkeypatch.setattr(webbrowser, "open", lambda *_, **__: True)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    names = {} if page in ("README.md", "docs/start.md") else _given(place)
    try:
        for block in run:
            exec(compile(block, page, "exec"), names)
    finally:
        if "ray" in sys.modules:  # which a page may have started, and other tests start anew
            sys.modules["ray"].shutdown()


def test_what_is_not_run_can_be_read() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
            compile(block, str(path), "exec")
