"""axe-core finds nothing to complain about, light and dark, on wide and narrow screens."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from benchmarks.explorer import made_up

from paretocosmos.explorer import write_report

axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
OPEN = """() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  document.getElementById("pin-A").click();
}"""


@pytest.mark.parametrize(
    ("objectives", "scheme", "size"),
    [
        (2, "light", (1440, 900)),
        (2, "dark", (390, 844)),
        (3, "dark", (1440, 900)),
        (3, "light", (390, 844)),
        (5, "light", (820, 1180)),
    ],
)
def test_no_violation(
    chromium: Any, tmp_path: Path, objectives: int, scheme: str, size: tuple[int, int]
) -> None:
    page = tmp_path / "page.html"
    write_report(page, made_up(objectives, rays=7, runs=2))
    viewport = {"width": size[0], "height": size[1]}
    shown = chromium.new_page(viewport=viewport, color_scheme=scheme, bypass_csp=True)
    shown.goto(page.as_uri())
    shown.evaluate(OPEN)
    shown.wait_for_timeout(300)
    shown.evaluate(AXE)
    found = shown.evaluate("axe.run()")["violations"]
    shown.close()
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
