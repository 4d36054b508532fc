"""The page of the networks tried: ``python -m tests.networks.table --write`` tries them and writes.

Numbers go to `results/networks.json`, and from there to `docs/tested_architectures.md`.
"""

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
from tests.networks.listed import KINDS, NETWORKS
from tests.networks.tried import STEPS, conditioned, train

from paretocosmos.errors import ConfigurationError
from paretocosmos.runs import get_provenance

__all__ = ["COMMITTED", "page", "results"]

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "tested_architectures.md"
RESULTS = ROOT / "results" / "networks.json"

HEAD = """\
# Tested architectures

Sixty networks, five of each kind, that `condition` was not written for; the list was made first.
Each was conditioned with the defaults and trained for {steps} steps towards two sets of random
targets. **{taken} of {every}** need no settings; for these, one ray per sample, groups of rays
and `each_ray` equal one ray at a time, to 1e-5.

The **sensitivity** is how far the ray moves the outputs, as a share of how far another sample
would: {median:.2f} in the median, {least:.2f} at least. [The result](../results/networks.json)
has every network and the layers after which the ray enters (`python -m tests.networks.table
--write`).

| kind | conditioned | sensitivity |
|---|---|---|
"""


def results() -> dict[str, Any]:
    """What is committed."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def page() -> str:
    """The page as it should be."""
    networks = results()["networks"]
    found = [one["sensitivity"] for one in networks.values() if "refused" not in one]
    head = HEAD.format(
        steps=STEPS,
        taken=len(found),
        every=len(networks),
        median=statistics.median(found),
        least=min(found),
    )
    rows = []
    for kind, made in KINDS.items():
        numbers = [one["sensitivity"] for one in map(networks.get, made) if "refused" not in one]
        spread = f"{min(numbers):.2f} to {max(numbers):.2f}"
        rows.append(f"| {kind} | {len(numbers)} of {len(made)} | {spread} |")
    refused = [
        f"Refused, **{name}**: {one['refused']}."
        for name, one in networks.items()
        if "refused" in one
    ]
    return head + "\n".join([*rows, "", *refused]) + "\n"


def _tried(name: str) -> dict[str, Any]:
    try:
        conditioned(name)
    except ConfigurationError as error:
        return {"refused": str(error)}
    tried = train(name)
    return {
        "how": tried.how,
        "places": list(tried.places),
        "moved": tried.moved,
        "losses": [round(loss, 4) for loss in tried.losses],
        "sensitivity": round(tried.sensitivity, 4),
    }


def _write() -> None:
    found = {"seed": 0, "steps": STEPS, "networks": {name: _tried(name) for name in NETWORKS}}
    text = json.dumps(found | get_provenance(torch.device("cpu")), indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    COMMITTED.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.networks.table --write")
    _write()
