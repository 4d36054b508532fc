"""`python -m benchmarks.conditioning`: what a step of a conditioned network costs on a CPU.

A ResNet-18 on pictures of 32 x 32 pixels and a transformer on 64 tokens, with two losses and Adam:
the plain network on the sum of the losses, and the network under one ray or several (`--rays`) in
every way a ray can enter. Steps are taken in turns and timed by the processor's clock on one
thread, so that what runs beside them does not count. `--out FILE` writes the numbers as JSON.
"""

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos import condition
from paretocosmos.runs.provenance import get_provenance

WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "scale and shift": {"settings": {"rank": 0}},
    "paper": {"preset": "paper"},
}
CLASSES = 10


class Residual(nn.Module):
    """Two convolutions beside what they add to."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.skip = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norms[1](self.second(self.norms[0](self.first(x)).relu()))
        out: Tensor = (hidden + self.skip(x)).relu()
        return out


def build_resnet() -> nn.Module:
    """A ResNet-18 as it is used for small pictures, with 11 million weights."""
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    pairs = list(itertools.pairwise(widths))
    stem = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    blocks = [Residual(one, two, 1 + (one != two)) for one, two in pairs]
    end = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 2 * CLASSES)]
    return nn.Sequential(*stem, nn.Sequential(*blocks), *end)


class Block(nn.Module):
    """Attention and a perceptron, each beside what it adds to."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.enter, self.leave = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.enter(self.norms[0](x)).unflatten(-1, (3, 4, -1)).movedim(-3, 0)
        query, key, value = (part.transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        x = x + self.leave(mixed)
        out: Tensor = x + self.shrink(F.gelu(self.grow(self.norms[1](x))))
        return out


class Transformer(nn.Module):
    """Four blocks of width 128 on token ids."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 128)
        self.blocks = nn.ModuleList(Block(128) for _ in range(4))
        self.head = nn.Linear(128, 2 * CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.embed(ids)
        for block in self.blocks:
            hidden = block(hidden)
        out: Tensor = self.head(hidden.mean(dim=1))
        return out


def build_cases(batch: int) -> dict[str, tuple[nn.Module, Tensor, tuple[str, ...]]]:
    """Networks, a batch for each, and the ways in which a ray enters."""
    images, ids = torch.randn(batch, 3, 32, 32), torch.randint(0, 1000, (batch, 64))
    return {
        "ResNet-18": (build_resnet(), images, tuple(WAYS)),
        # the paper's way needs a linear layer or a convolution that the input enters
        "transformer": (Transformer(), ids, ("default", "scale and shift")),
    }


def make_step(network: nn.Module, inputs: Tensor, labels: Tensor, rays: int) -> Callable[[], None]:
    """Return a step of training; without rays if there are none."""
    optimizer = torch.optim.Adam(network.parameters())
    weights = torch.full((max(rays, 1), 2), 0.5)

    def step() -> None:
        outputs = network(inputs, weights) if rays else network(inputs)
        losses = [
            F.cross_entropy(logits, label)
            for logits, label in zip(outputs.chunk(2, dim=1), labels, strict=True)
        ]
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        optimizer.step()

    return step


def measure(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Time each kind of step in turns; the first two rounds, which warm up, do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for index in range(rounds + 2):
        for name, step in steps.items():
            started = time.process_time()
            step()
            if index > 1:
                seconds[name].append(time.process_time() - started)
    return seconds


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rays", type=int, nargs="+", default=[1, 4], help="rays in a batch")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    results: dict[str, Any] = {"batch": arguments.batch, "rounds": arguments.rounds, "rows": []}
    for name, (network, inputs, ways) in build_cases(arguments.batch).items():
        labels = torch.randint(0, CLASSES, (2, arguments.batch))
        steps = {"plain": make_step(network, inputs, labels, 0)}
        for way in ways:
            for rays in arguments.rays:
                model = condition(network, 2, norm="keep", **WAYS[way])
                steps[f"{way}, {rays}"] = make_step(model, inputs, labels, rays)
        seconds = measure(steps, arguments.rounds)
        weights = sum(parameter.numel() for parameter in network.parameters())
        for kind, times in seconds.items():
            ratios = [one / plain for one, plain in zip(times, seconds["plain"], strict=True)]
            row = {
                "network": name,
                "weights": weights,
                "kind": kind,
                "milliseconds": 1e3 * statistics.median(times),
                "ratio": statistics.median(ratios),
            }
            results["rows"].append(row)
            print(f"{name:12} {kind:20} {row['milliseconds']:8.1f} ms {row['ratio']:6.3f}")
    if arguments.out is not None:
        results |= get_provenance(torch.device("cpu"))
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
