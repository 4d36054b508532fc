import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch

import paretocosmos
from paretocosmos.runs import get_provenance
from paretocosmos.runs import provenance as module

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _ask_git_again() -> Iterator[None]:
    module._describe_commit.cache_clear()
    yield
    module._describe_commit.cache_clear()


@pytest.mark.system
def test_it_says_what_ran_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/paretocosmos", "train", "/data/my.csv"])
    found = get_provenance(CPU)
    assert json.loads(json.dumps(found)) == found
    assert found["version"] == paretocosmos.__version__
    assert found["versions"] == {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    assert found["machine"]["device"] == "cpu"
    assert found["machine"]["threads"] == torch.get_num_threads()
    assert found["command"] == "paretocosmos train my.csv"  # a machine's own paths are not said
    age = datetime.now(UTC) - datetime.fromisoformat(found["written"])
    assert timedelta(0) <= age < timedelta(minutes=1)


def _run_git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit, in which this package would be found."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # as in a commit hook
        monkeypatch.delenv(name, raising=False)
    source = tmp_path / "src" / "paretocosmos" / "runs" / "provenance.py"
    source.parent.mkdir(parents=True)
    source.write_text("one\n")
    _run_git(tmp_path, "init", "-q")
    _run_git(tmp_path, "add", ".")
    _run_git(tmp_path, "commit", "-q", "-m", "one")
    monkeypatch.setattr(module, "__file__", str(source))
    return tmp_path


@pytest.mark.system
def test_the_state_of_a_checkout(checkout: Path) -> None:
    commit = _run_git(checkout, "rev-parse", "HEAD")
    assert get_provenance(CPU)["git"] == {"commit": commit, "changed": False}
    (checkout / "src" / "paretocosmos" / "runs" / "provenance.py").write_text("two\n")
    module._describe_commit.cache_clear()
    assert get_provenance(CPU)["git"] == {"commit": commit, "changed": True}


@pytest.mark.system
def test_a_checkout_without_git_or_commit_has_none(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", os.devnull)
        assert get_provenance(CPU)["git"] is None
    (checkout / ".git" / "HEAD").write_text("nonsense")
    module._describe_commit.cache_clear()
    assert get_provenance(CPU)["git"] is None
