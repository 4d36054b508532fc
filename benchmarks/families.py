"""`python -m benchmarks.families --out FILE`: a network of every family in timm, conditioned.

Takes one of the smallest networks of each module of `timm.models`, with random weights, conditions
it as by default, and asks three things: does it start as it was, does the ray change what it
gives, and do two rays in a batch give what each gives alone. Networks of more than sixty million
parameters are left out. Needs `timm`, which nothing else here does.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import timm
import torch
from torch import Tensor, nn

from paretocosmos import condition
from paretocosmos.errors import ConfigurationError
from paretocosmos.runs.provenance import get_provenance

LARGEST = 60_000_000
# what the makers call their smallest
SMALL = ("nano", "atto", "pico", "femto", "xx", "tiny", "_050", "_s0", "b0", "xsmall", "small",
         "18", "x0", "26", "s12", "_t", "_s")  # fmt: skip
RAYS = torch.tensor([[0.1, 0.9], [0.9, 0.1]])
CLOSE = 1e-4


def main() -> None:
    """Try all, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="*", help="only these modules")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    rows = []
    for family in arguments.families or sorted(timm.list_modules()):
        row = {"family": family, **tried(family)}
        rows.append(row)
        print(json.dumps(row), flush=True)
    counts = {
        kind: sum(row["found"] == kind for row in rows)
        for kind in ("right", "refused", "wrong", "left out")
    }
    print(counts)
    if arguments.out is not None:
        whole = {"timm": timm.__version__, "counts": counts, "families": rows}
        text = json.dumps(whole | get_provenance(torch.device("cpu")), indent=1)
        arguments.out.write_text(text + "\n")


def tried(family: str) -> dict[str, Any]:
    """What became of the smallest network of a family."""
    small = smallest(family)
    if small is None:
        return {"found": "left out", "why": "too large, or not made without its files"}
    name, size = small
    torch.manual_seed(0)
    network = timm.create_model(name, num_classes=10).eval()
    about = {"network": name, "parameters": size}
    inputs = pictures(network)
    if inputs is None:
        return about | {"found": "left out", "why": "takes no pictures"}
    try:
        return about | measured(network, inputs)
    except ConfigurationError as error:
        return about | {"found": "refused", "why": str(error)}


def smallest(family: str) -> tuple[str, int] | None:
    """The name and the parameters of one of the smallest networks."""

    def rank(name: str) -> tuple[int, int]:
        return min([at for at, word in enumerate(SMALL) if word in name] or [99]), len(name)

    found = []
    for name in sorted(timm.list_models(module=family), key=rank)[:3]:
        with torch.device("meta"):
            network = timm.create_model(name, num_classes=10)
        found.append((name, sum(one.numel() for one in network.parameters())))
    best = min(found, key=lambda one: one[1], default=None)
    return best if best is not None and best[1] <= LARGEST else None


def pictures(network: Any) -> Tensor | None:
    """Two pictures of a size that the network takes, small if it can be."""
    _, *own = network.default_cfg.get("input_size", (3, 224, 224))
    for size in ([min(128, *own)] * 2, own):
        inputs = torch.randn(2, 3, *size)
        try:
            with torch.no_grad():
                network(inputs)
        except (RuntimeError, AssertionError, ValueError):
            continue
        return inputs
    return None


def measured(network: nn.Module, inputs: Tensor) -> dict[str, Any]:
    """How far the conditioned network is from what it should be, relative to its outputs."""
    with torch.no_grad():
        before = network(inputs)
    model = condition(network, objectives=2, norm="frozen").eval()
    started = model(inputs, RAYS[0])
    started.square().sum().backward()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in model.ray_parameters:
                parameter.add_(0.1 * torch.randn_like(parameter))
        both = [model(inputs, ray) for ray in RAYS]
        alone = torch.cat([model(x.unsqueeze(0), r) for x, r in zip(inputs, RAYS, strict=True)])
        found = {
            "places": len(getattr(model, "places", ())),
            "start": _far(started, before),
            "together": _far(model(inputs, RAYS), alone),
            "changed": _far(*both),
        }
    right = max(found["start"], found["together"]) < CLOSE < found["changed"]
    return {"found": "right" if right else "wrong"} | found


def _far(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max().clamp_min(1e-9))


if __name__ == "__main__":
    main()
