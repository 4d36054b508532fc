"""Look every version of constraints.txt up among the known vulnerabilities, with pip-audit.

The exit status says how it went: 0, none is known; 1, there is one; 2, pip-audit failed; 3, the
advisory service could not be reached, so nothing was learned.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["CLEAN", "FAILED", "NOT_RUN", "VULNERABLE", "audit"]

CLEAN, VULNERABLE, FAILED, NOT_RUN = range(4)

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
# Of what is pinned, not of what is installed: a machine may have other builds, or fewer packages.
COMMAND = ["pip_audit", "--requirement", str(CONSTRAINTS), "--disable-pip", "--no-deps"]
COMMAND += ["--vulnerability-service", "osv", "--format", "json", "--progress-spinner", "off"]

# How pip-audit ends where the service does not answer, or answers with an error of its own.
UNREACHED = re.compile(
    r"requests\.exceptions\.\w+|(?:Service|Connection)Error|[Cc]ould not connect"
)

Ended = subprocess.CompletedProcess[str]


def audit(run: Callable[[Sequence[str]], Ended]) -> tuple[int, str]:
    """How an audit went: a status, and what to say of it.

    Args:
        run: runs Python with arguments, and gives its output.
    """
    ended = run(["-m", *COMMAND])
    try:
        found = json.loads(ended.stdout)["dependencies"]
    except (KeyError, TypeError, ValueError):
        last = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
        if UNREACHED.search(last):
            return NOT_RUN, "the audit could NOT run: the advisory service cannot be reached"
        return FAILED, f"the audit failed: {last[:300]}"
    skipped = [one["name"] for one in found if "skip_reason" in one]
    if skipped or not found:
        named = ", ".join(skipped) or "anything"
        return NOT_RUN, f"the audit could NOT run: the advisory service does not know {named}"
    known = [_told(one, flaw) for one in found for flaw in one["vulns"]]
    if known:
        packages = sum(bool(one["vulns"]) for one in found)
        head = f"{packages} of {len(found)} packages have known vulnerabilities:"
        return VULNERABLE, "\n".join([head, *known])
    return CLEAN, f"{len(found)} packages were checked: no vulnerability is known"


def _told(package: dict[str, Any], flaw: dict[str, Any]) -> str:
    mended = ", ".join(flaw.get("fix_versions") or ()) or "no version yet"
    return f"  {package['name']} {package['version']}: {flaw['id']}, mended in {mended}"


def _python(arguments: Sequence[str]) -> Ended:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    status, said = audit(_python)
    print(said)
    sys.exit(status)
