"""The notebooks of the docs run as they are, in a real kernel."""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def _kinds(cell: Any) -> list[list[str]]:
    return [sorted(one.get("data", {one.output_type: ""})) for one in cell.get("outputs", [])]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat

    monkeypatch.syspath_prepend(str(FOLDER.parents[1] / "scripts"))
    from run_notebooks import executed

    committed = nbformat.read(path, as_version=4)
    now = executed(path)
    assert [_kinds(cell) for cell in now.cells] == [_kinds(cell) for cell in committed.cells]
    texts = [
        one["data"]["text/plain"]
        for cell in now.cells
        for one in cell.get("outputs", [])
        if "data" in one
    ]
    if path.stem == "tables":
        assert any("30/30" in text and "page: people-run/report.html" in text for text in texts)
    assert not any(sys.prefix in text for text in texts)  # no path of a machine
