"""What a program writes is what is committed, and what the docs point to is there."""

import re
from collections.abc import Callable
from importlib import util
from pathlib import Path

import pytest

from paretocosmos.experiments._recipe_file import read_recipe

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _texts() -> Callable[[], dict[str, str]]:
    spec = util.spec_from_file_location("write_docs", ROOT / "scripts" / "write_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    texts: Callable[[], dict[str, str]] = module.texts
    return texts


def test_the_written_pages_are_current() -> None:
    for path, text in _texts()().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    dead = [x for x in links if "://" not in x and not (page.parent / x).exists()]
    assert dead == []


def test_recipes_in_the_guide_can_be_read() -> None:
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    found = re.findall(r"```toml\n(.*?)```", guide, flags=re.DOTALL)
    recipes = [text for text in found if "[[grid]]" in text]
    assert recipes
    for text in recipes:
        assert len(read_recipe("guide.md", text)["grid"]) == 2


def test_the_readme_example_is_short() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = readme.partition("<!-- written: own_model -->")[2].partition("<!-- end -->")[0]
    lines = [line for line in example.splitlines() if line and not line.startswith("```")]
    assert 5 < len(lines) <= 12
