"""The command line in a process of its own: what it imports, and the whole demonstration."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system


@pytest.mark.parametrize("asked", ["--help", "--version"])
def test_help_and_version_come_without_torch(asked: str) -> None:
    code = (
        f"import sys; sys.argv = ['paretocosmos', {asked!r}]\n"
        "from paretocosmos.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print({'torch', 'numpy', 'pandas', 'pydantic'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "set()"


def test_loading_a_run_imports_no_compiler() -> None:
    """It takes a second, and leaves a folder among the temporary ones."""
    code = "import sys, paretocosmos as p; p.load('adult'); print('torch._dynamo' in sys.modules)"
    command = [sys.executable, "-W", "ignore", "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_demo_gives_the_papers_hypervolumes(tmp_path: Path) -> None:
    """Table 1 of the paper, one seed of ours; the folder has nothing of this repository."""
    command = [sys.executable, "-P", "-m", "paretocosmos", "demo", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    found = json.loads(done.stdout)
    ours = {cell["problem"]: cell["hypervolume"] for cell in found["cells"]}
    paper = {"adult": 3.34, "compas": 3.72, "default_credit": 3.12}
    assert ours == pytest.approx(paper, abs=0.025)
    assert (tmp_path / found["page"]).is_file()
