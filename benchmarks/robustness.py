"""`python -m benchmarks.robustness --out results/robustness.json`: clean against robust accuracy.

The digits of `examples/robust_accuracy.py`. One network for every preference, as the example trains
it, beside five networks without a ray, trained in the same way for a preference each, with as many
steps each. Digits that were not trained on are attacked with 20 projected gradient steps, four
times as many as in training; every network at every preference by itself.

`--split val` judges them on validation digits. By those of two seeds the settings were chosen, the
same for all networks: learning rates of 2e-3 and 4e-3, constant or falling, and one or four rays a
step; and a change of 4 grey levels among 2 to 5, at which something is traded.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from examples.robust_accuracy import EPSILON, accuracy, attacked, network, split, trained
from torch import Tensor, nn

from paretocosmos import Front, condition, hypervolume
from paretocosmos.pareto.metrics import front_report
from paretocosmos.runs.provenance import get_provenance

SEEDS = (1, 2, 3)
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
FINE = tuple(twentieth / 20 for twentieth in range(21))
ATTACK = 20
DIGITS = 4  # in the picture
NAMES = ("clean error", "error under attack")


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--split", choices=("val", "test"), default="test")
    parser.add_argument("--steps", type=int, default=1000, help="of training")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cells = [cell(seed, arguments.split, arguments.steps) for seed in arguments.seeds]
    results = {
        "split": arguments.split,
        "epsilon": EPSILON,
        "attack_steps": ATTACK,
        "seeds": list(arguments.seeds),
        "weights": WEIGHTS,
        "mean": {name: fmean(c["numbers"][name] for c in cells) for name in cells[0]["numbers"]},
        "cells": cells,
        **get_provenance(torch.device("cpu")),
    }
    print("mean  " + "  ".join(f"{name} {value:.3f}" for name, value in results["mean"].items()))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def cell(seed: int, part: str, steps: int) -> dict[str, Any]:
    """One network beside five, of one seed, which draws the split too.

    Args:
        seed: of all that is drawn.
        part: the split they are judged on.
        steps: of training.
    """
    data = split(seed)
    torch.manual_seed(seed)
    started = time.process_time()
    one = trained(condition(network(), objectives=2), *data["train"], steps=steps)
    seconds = time.process_time() - started
    several: list[nn.Module] = []
    for weight in WEIGHTS:
        plain = condition(network(), objectives=2, how="none")
        several.append(trained(plain, *data["train"], ray=ray_of(weight), steps=steps))
    apart = time.process_time() - started - seconds
    front = front_of([one] * len(WEIGHTS), WEIGHTS, data[part], part)
    separate = front_of(several, WEIGHTS, data[part], part)
    fine = front_of([one] * len(FINE), FINE, data[part], part)
    return {
        "seed": seed,
        "one": front.to_dict(),
        "separate": separate.to_dict(),
        "fine": fine.to_dict(),
        "digits": told_apart(one, data[part]),
        "report": front_report(front, separate).to_dict(),
        "report_separate": front_report(separate).to_dict(),
        "numbers": compared(front, separate) | {"seconds": seconds, "seconds_separate": apart},
    }


def ray_of(weight: float) -> Tensor:
    """The preference with that weight on attacked digits."""
    return torch.tensor([1 - weight, weight])


def front_of(
    models: list[nn.Module], weights: tuple[float, ...], data: tuple[Tensor, Tensor], part: str
) -> Front:
    """Shares of plain and of attacked digits that are read wrongly, a network for each weight."""
    values = []
    for model, weight in zip(models, weights, strict=True):
        ray = ray_of(weight)
        torch.manual_seed(0)  # the same random start of the attack for all
        bad = attacked(model, *data, ray, steps=ATTACK)
        values.append([1 - accuracy(model, images, data[1], ray) for images in (data[0], bad)])
    rays = torch.stack([ray_of(weight) for weight in weights])
    return Front(rays.numpy(), values, NAMES, (1.0, 1.0), split=part)


def told_apart(model: nn.Module, data: tuple[Tensor, Tensor]) -> list[dict[str, Any]]:
    """Some digits on which the ends of the front differ under attack, for the picture.

    Each is plain read correctly at both ends; attacked, each end by itself, only at the robust one.
    """
    images, label = data
    found = []
    for weight in (0.0, 1.0):
        ray = ray_of(weight)
        torch.manual_seed(0)
        bad = attacked(model, images, label, ray, steps=ATTACK)
        with torch.no_grad():
            found.append((model(images, ray).argmax(1), bad, model(bad, ray).argmax(1)))
    (plain, bad, read), (plain_too, bad_too, read_too) = found
    fine = (plain == label) & (plain_too == label) & (read != label) & (read_too == label)
    return [
        {
            "digit": int(label[at]),
            "pixels": [levels(image[at]) for image in (images, bad, bad_too)],
            "read": [int(one[at]) for one in (plain, read, read_too)],
        }
        for at in fine.nonzero().flatten()[:DIGITS].tolist()
    ]


def levels(image: Tensor) -> list[list[float]]:
    """The 8 x 8 grey levels of an image, from 0 to 16."""
    found: list[list[float]] = (16 * image[0]).round(decimals=1).tolist()
    return found


def compared(front: Front, separate: Front) -> dict[str, float]:
    """Our measures of both, side by side."""
    found, bar = front_report(front, separate).numbers, front_report(separate).numbers
    return {
        "order": found["monotonicity"],
        "order_separate": bar["monotonicity"],
        "dominated": found["dominated_share"],
        "dominated_separate": bar["dominated_share"],
        "range": found["range_covered"],
        "hypervolume": hypervolume(front) / hypervolume(separate),
        "clean": 1 - float(front.values[:, 0].min()),
        "clean_separate": 1 - float(separate.values[:, 0].min()),
        "robust": 1 - float(front.values[:, 1].min()),
        "robust_separate": 1 - float(separate.values[:, 1].min()),
    }


if __name__ == "__main__":
    main()
