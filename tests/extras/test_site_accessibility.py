"""axe-core finds nothing to complain about on any page of the site that `make site` built."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
SITE = Path(__file__).resolve().parents[2] / "site"
PAGES = [page for page in sorted(SITE.rglob("*.html")) if "_static" not in page.parts]


@pytest.mark.skipif(not PAGES, reason="the site is not built: run `make site`")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_of_the_site_has_a_violation(chromium: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    shown = chromium.new_page(color_scheme=scheme)
    violations = []
    for page in PAGES:
        shown.goto(page.as_uri())
        found = Axe().run(shown).response["violations"]
        violations += [(page.name, one["id"], one["nodes"][0]["html"]) for one in found]
    shown.close()
    assert violations == []
