"""Every public name says what it is, and shows it by an example that a test runs."""

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from tests.extras.test_pages import NOT_RUN, PAGES

from paretocosmos import errors, registry
from paretocosmos.cli.listing import KINDS

ROOT = Path(__file__).resolve().parents[1]

# What no doctest can have: a server, a heavy extra, the files of CelebA. Its docstring names the
# example or the page that a test runs instead.
ELSEWHERE = {
    "paretocosmos.serving.serve": "examples/serve_and_ask.py",
    "paretocosmos.integrations.lightning.ParetoModule": "examples/lightning_loop.py",
    "paretocosmos.integrations.transformers.ParetoTrainer": "examples/hf_trainer.py",
    "paretocosmos.integrations.loggers.TensorBoard": "docs/howto/logging.md",
    "paretocosmos.integrations.loggers.WandB": "docs/howto/logging.md",
    "paretocosmos.integrations.loggers.MLflow": "docs/howto/logging.md",
    "backbones/efficientnet": "docs/howto/images.md",
    **{
        f"problems/{name}": "examples/drawn_faces.py"
        for name in registry.names("problems")
        if name.startswith("celeba")
    },
}


def _referenced() -> list[str]:
    """The names of the API reference, which has all of `paretocosmos.__all__`."""
    found = []
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        names = re.findall(
            r"^\.\. auto\w+:: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        found += [name if "." in name else f"paretocosmos.{name}" for name in names]
    return found


NAMES = _referenced() + [f"{kind}/{name}" for kind in KINDS for name in registry.names(kind)]


def _thing(name: str) -> Any:
    kind, _, called = name.partition("/")
    if called:
        return registry.find(kind, called)
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _examples(name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(_thing(name).__doc__ or "")


@pytest.mark.parametrize("name", NAMES)
def test_the_first_line_says_what_it_is(name: str) -> None:
    first, *rest = (_thing(name).__doc__ or "").splitlines()
    assert first.endswith((".", "?", ")."))
    assert not rest or not rest[0].strip()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE])
def test_its_example_is_run_as_a_doctest(name: str) -> None:
    """What pytest finds in its module, as it finds it in all of `src`."""
    module = importlib.import_module(_thing(name).__module__)
    found = doctest.DocTestFinder().find(module)
    run = {(one.source, one.want) for test in found for one in test.examples}
    own = _examples(name)
    assert {(one.source, one.want) for one in own} <= run
    assert not any(doctest.SKIP in one.options for one in own)
    assert any(one.want for one in own)  # it shows something
    assert Path(module.__file__ or "").is_relative_to(ROOT / "src")


@pytest.mark.parametrize(("name", "place"), ELSEWHERE.items())
def test_its_example_elsewhere_is_run(name: str, place: str) -> None:
    assert not _examples(name)
    assert f"``{place}``" in (_thing(name).__doc__ or "")
    text = (ROOT / place).read_text(encoding="utf-8")
    if place.startswith("docs/"):
        assert place in PAGES
        blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
        text = "\n".join(block for block in blocks if not any(word in block for word in NOT_RUN))
    else:
        started = re.compile(
            rf'(shown_by|run_example|_run|run_path)\(.*"{re.escape(Path(place).name)}"'
        )
        tests = (ROOT / "tests").rglob("test_*.py")
        assert any(started.search(path.read_text(encoding="utf-8")) for path in tests)
    assert re.search(rf"\b{_thing(name).__name__}\b", text)


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_and_warnings_say_what_they_mean(name: str) -> None:
    assert (getattr(errors, name).__doc__ or "").partition("\n")[0].endswith(".")


def test_no_name_is_excused_that_is_not_public() -> None:
    assert ELSEWHERE.keys() <= set(NAMES)
    assert len(NAMES) == len(set(NAMES))
    assert all(inspect.isclass(_thing(name)) or callable(_thing(name)) for name in NAMES)
