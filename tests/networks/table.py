"""The page of the networks tried: ``python -m tests.networks.table --write`` tries them and writes.

Numbers go to `results/networks.json`, and from there to `docs/networks.md`.
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
COMMITTED = ROOT / "docs" / "networks.md"
RESULTS = ROOT / "results" / "networks.json"

HEAD = """\
# Networks tried

Sixty networks, five of each kind, that `condition` was not written for. The list was made before
the code. Each network was conditioned with `how="auto"` and trained for {steps} steps of Adam
towards two sets of random targets, with two rays per batch.

- **{taken} of {every}** are conditioned without further settings, and train.
- For all of these, one ray per sample, groups of rays and `each_ray` equal one ray at a time, to
  1e-5.
- **Sensitivity** is how far the ray moves the outputs, as a share of how far another sample would:
  {median:.2f} in the median, {least:.2f} at least.

`python -m tests.networks.table --write` writes this page, and a test compares it.

| kind | network | `auto` chose | the ray enters after | moving the weights of | sensitivity |
|---|---|---|---|---|---|
"""


def results() -> dict[str, Any]:
    """What is committed."""
    loaded: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return loaded


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
    rows = [_row(kind, name, networks[name]) for kind, made in KINDS.items() for name in made]
    return head + "\n".join(rows) + "\n"


def _row(kind: str, name: str, one: dict[str, Any]) -> str:
    if "refused" in one:
        return f"| {kind} | {name} | refused | {one['refused']} | | |"
    places = [f"`{place}`" for place in one["places"]]
    some = ", ".join(places[:3]) + f" and {len(places) - 3} more" * (len(places) > 3)
    layers = "layer" if one["moved"] == 1 else "layers"
    moved = f"{one['moved']} {layers}" if one["moved"] else ""
    return f"| {kind} | {name} | {one['how']} | {some} | {moved} | {one['sensitivity']:.2f} |"


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
