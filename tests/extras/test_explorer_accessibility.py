"""axe-core finds nothing to complain about, light and dark, on wide and narrow screens."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from benchmarks.explorer import made_up

from paretocosmos import load
from paretocosmos.explorer import write_page, write_report

axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
OPEN = """() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  document.getElementById("pin-A").click();
  const bound = document.getElementById("add-bound");
  bound.selectedIndex = 1;
  bound.dispatchEvent(new Event("change"));
}"""
SIZES = [(1440, 900), (820, 1180), (390, 844)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Write each page once."""
    folder = tmp_path_factory.mktemp("pages")

    def write(kind: str) -> Path:
        path = folder / f"{kind}.html"
        if path.exists():
            return path
        if kind == "adult":  # two groups, a case, rows of one's own, a dozen samples
            write_page([load("adult")], path, samples=True)
        else:
            write_report(path, made_up(int(kind), rays=7, runs=2))
        return path

    return write


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["adult", "3", "5"])
@pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")
def test_no_violation(
    chromium: Any, pages: Callable[[str], Path], kind: str, scheme: str, size: tuple[int, int]
) -> None:
    viewport = {"width": size[0], "height": size[1]}
    shown = chromium.new_page(viewport=viewport, color_scheme=scheme, bypass_csp=True)
    shown.goto(pages(kind).as_uri())
    shown.evaluate(OPEN)
    shown.wait_for_timeout(500)
    shown.evaluate(AXE)
    found = shown.evaluate("axe.run()")["violations"]
    assert shown.evaluate("document.documentElement.scrollWidth") <= size[0]
    shown.close()
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
