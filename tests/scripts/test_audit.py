"""What an audit says, with an auditor of our own in pip-audit's place."""

import json
import subprocess
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

UNREACHABLE = (
    "Traceback (most recent call last):\n  ...\nrequests.exceptions.ConnectionError: Max retries",
    "ERROR:pip_audit._cli:Could not connect to OSV's vulnerability feed",
    "requests.exceptions.ReadTimeout: Read timed out. (read timeout=15)",
    "pip_audit._service.interface.ServiceError",
)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = util.spec_from_file_location("audit", ROOT / "scripts" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _auditor(out: str, err: str = "", code: int = 0) -> Any:
    def run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        assert arguments[:2] == ["-m", "pip_audit"]
        return subprocess.CompletedProcess(list(arguments), code, out, err)

    return run


def _found(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


def _package(name: str, *flaws: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "vulns": list(flaws)}


def test_without_vulnerabilities_the_packages_are_counted(script: ModuleType) -> None:
    status, said = script.audit(_auditor(_found(_package("a"), _package("b"))))
    assert (status, said) == (0, "2 packages were checked: no vulnerability is known")


def test_a_vulnerability_fails(script: ModuleType) -> None:
    flaws = {"id": "PYSEC-1", "fix_versions": ["1.1", "2.0"]}, {"id": "PYSEC-2", "fix_versions": []}
    status, said = script.audit(_auditor(_found(_package("a"), _package("b", *flaws)), code=1))
    assert status == 1
    assert said.splitlines() == [
        "1 of 2 packages have known vulnerabilities:",
        "  b 1.0: PYSEC-1, mended in 1.1, 2.0",
        "  b 1.0: PYSEC-2, mended in no version yet",
    ]


@pytest.mark.parametrize("err", UNREACHABLE)
def test_an_audit_that_could_not_run_says_so(script: ModuleType, err: str) -> None:
    status, said = script.audit(_auditor("", err, 1))
    assert (status, said) == (3, "the audit could NOT run: the advisory service cannot be reached")


def test_packages_that_were_skipped_were_not_audited(script: ModuleType) -> None:
    """As pip-audit does where a service answers that there is no such package."""
    skipped = {"name": "b", "skip_reason": "Dependency not found"}
    status, said = script.audit(_auditor(_found(_package("a"), skipped)))
    assert (status, said) == (3, "the audit could NOT run: the advisory service does not know b")
    assert script.audit(_auditor(_found()))[0] == 3


@pytest.mark.parametrize("out", ["", "[]", "{}", "null", "no JSON"])
def test_a_broken_auditor_is_a_failure(script: ModuleType, out: str) -> None:
    status, said = script.audit(_auditor(out, "No module named pip_audit", 1))
    assert (status, said) == (2, "the audit failed: No module named pip_audit")
    assert script.audit(_auditor(out))[0] == 2
