"""Without the extra the files can be imported, and what they hold says how to install it."""

import subprocess
import sys
from pathlib import Path

import pytest

from paretocosmos.integrations.weighting import import_base

CODE = """
import sys
sys.modules[{package!r}] = None  # as if it were not installed
from paretocosmos.integrations.{package} import {name}
from paretocosmos.errors import MissingExtraError
try:
    {name}(None, None)
except MissingExtraError as error:
    print(error)
"""


@pytest.mark.system
@pytest.mark.parametrize(
    ("package", "name"), [("lightning", "ParetoModule"), ("transformers", "ParetoTrainer")]
)
def test_a_missing_extra_gives_the_command(package: str, name: str) -> None:
    code = CODE.format(package=package, name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        f"`{name}` needs `{package}`, which is not installed; "
        f'run: pip install "paretocosmos[{package}]"'
    )


def test_a_package_that_is_there_but_broken_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_installed.py").write_text("import its_missing_half\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="its_missing_half"):
        import_base("half_installed", "Thing", "`Thing`")


@pytest.mark.system
def test_the_package_draws_in_neither() -> None:
    code = (
        "import sys, paretocosmos.integrations; "
        "print({'lightning', 'transformers'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
