"""`python -m benchmarks.rate_distortion --out results/rate_distortion.json`: one codec or nine?

The network of `examples/rate_distortion.py`: once with the preference as an input, once for each
of nine preferences without it. All are trained for the same number of steps; each of the nine
starts with a step of rounding that suits its preference. Settings were chosen on the validation
columns of the photographs (`--split val`); the committed numbers are of the test columns. Two
weaker trainings of the nine, without such a start, were judged there before and put aside. Bits are
the cross-entropy of the rounded code.

The curves are compared by Bjøntegaard's mean difference of rates at equal PSNR, and as fronts of
bits and squared error. With `--crops FILE`, what the first network decodes at eleven preferences is
written as one picture for the slider of the gallery, and the original below it.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from examples.rate_distortion import UNIT, Codec, judged, patches, photographs, train
from PIL import Image
from scipy.interpolate import PchipInterpolator
from torch import Tensor, nn

from paretocosmos import Front, condition, even_rays
from paretocosmos.pareto.metrics import front_report
from paretocosmos.runs.provenance import get_provenance

STEPS, SEEDS, DENSE, SHOWN = 700, (1, 2, 3), 41, 11
RAYS = even_rays(9, 2)
TOP, HEIGHT = (72, 136), 160  # rows of the crops in the two photographs
MEASURES = ("monotonicity", "dominated_share", "range_covered", "igd_plus", "hypervolume")
Points = list[tuple[float, float]]


def bd_rate(curve: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """The mean relative difference of rates at equal PSNR: -0.1 is a tenth fewer bits.

    Bjøntegaard (2001): the mean of log rate over the PSNR that both curves reach, here with
    monotone cubic pieces between the points.

    Args:
        curve: ``[N, 2]``, rate and PSNR of each point.
        reference: what it is compared with, alike.
    """
    logs, ends = [], []
    for points in (curve, reference):
        rate, psnr = np.asarray(sorted(np.asarray(points).tolist(), key=lambda p: p[1])).T
        logs.append(PchipInterpolator(psnr, np.log(rate)))
        ends.append((psnr[0], psnr[-1]))
    low, high = max(first for first, _ in ends), min(last for _, last in ends)
    if not low < high:
        raise ValueError(f"no PSNR is on both curves: one ends at {high:.2f} dB")
    ours, theirs = (found.integrate(low, high) / (high - low) for found in logs)
    return float(np.expm1(ours - theirs))


def main() -> None:
    """Train, judge, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--crops", type=Path, help="where the picture for the slider goes")
    parser.add_argument("--split", choices=("val", "test"), default="test")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    parts = photographs()
    content = get_provenance(torch.device("cpu")) | {
        "split": arguments.split,
        "steps": arguments.steps,
        "unit": UNIT,
        "rays": RAYS.tolist(),
        "runs": [],
    }
    for seed in arguments.seeds:
        one, run = compared(parts, seed, arguments.steps, arguments.split)
        print(
            f"seed {seed}: BD-rate {run['bd_rate']:+.1%}", json.dumps(run["measures"]), flush=True
        )
        if arguments.crops and not content["runs"]:
            content["crops"] = shown(one, parts[arguments.split], arguments.crops)
        content["runs"].append(run)
        content["bd_rate"] = float(np.mean([run["bd_rate"] for run in content["runs"]]))
        arguments.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def compared(
    parts: dict[str, Tensor], seed: int, steps: int, split: str
) -> tuple[nn.Module, dict[str, Any]]:
    """One network for all rays, and its numbers beside those of a network for each."""
    torch.manual_seed(seed)
    some, x = patches(parts, 400), parts[split]
    one = condition(Codec(some), objectives=2)
    began = time.process_time()
    train(one, parts, steps=steps)
    trained = time.process_time()
    # each begins with the step of rounding that suits its ray: the error grows with its square
    networks = [Codec(some, step=0.3 * float(ray[0] / ray[1]) ** 0.5) for ray in RAYS]
    for network, ray in zip(networks, RAYS, strict=True):
        train(network, parts, steps=steps, ray=ray)
    seconds = {"one": trained - began, "separate": time.process_time() - trained}
    with torch.no_grad():
        points = [judged(one(x, ray), x) for ray in RAYS]
        separate = [judged(network(x), x) for network in networks]
        curve = [judged(one(x, ray), x) for ray in even_rays(DENSE, 2)]
    return one, {
        "seed": seed,
        "bd_rate": bd_rate(points, separate),
        "cpu_seconds": {name: round(value, 1) for name, value in seconds.items()},
        "measures": {
            "one": measures(points, separate),
            "separate": measures(separate, separate),
        },
        "one": points,
        "separate": separate,
        "curve": curve,
    }


def measures(points: Points, separate: Points) -> dict[str, float]:
    """The library's own measures of a front, beside that of separate networks."""
    names, far = ("bits per pixel", "squared error"), np.array([3.0, 3.0])

    def front_of(points: Points) -> Front:
        losses = [(bits, 10 ** (-psnr / 10) / UNIT) for bits, psnr in points]
        return Front(RAYS.numpy(), np.array(losses), names, far)

    front, bar = front_of(points), front_of(separate)
    numbers = front_report(front, bar).numbers
    return {name: numbers[name] for name in MEASURES}


def shown(model: nn.Module, x: Tensor, path: Path) -> list[dict[str, float]]:
    """Write two crops, side by side, at every preference below one another; tell their numbers."""
    crops = torch.stack([one[:, top : top + HEIGHT] for one, top in zip(x, TOP, strict=True)])
    rows, told = [], []
    for ray in even_rays(SHOWN, 2):
        with torch.no_grad():
            outputs = model(crops, ray)
        bits, psnr = judged(outputs, crops)
        told.append({"weight": float(ray[1]), "bits": bits, "psnr": psnr})
        rows.append(outputs["picture"].clamp(0, 1))
    pixels = torch.stack([*rows, crops]).permute(0, 3, 1, 4, 2).flatten(0, 1).flatten(1, 2)
    Image.fromarray((255 * pixels).round().byte().numpy()).save(path, quality=90, method=6)
    return told


if __name__ == "__main__":
    main()
