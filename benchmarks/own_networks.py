"""`python -m benchmarks.own_networks`: `fit` with nothing set, on networks it was not written for.

Every network is trained once on two squared errors, to targets a and b that it can compute from its
inputs. At a + t (b - a) they are t² D and (1 - t)² D, where D is the mean squared distance of the
targets: the exact front, on which t runs from 0 to 1. The table says from where to where a network
gets, t = (1 + (L1 - L2) / D) / 2, how far above the exact front its losses are at most, and whether
t follows the ray. `--out FILE` writes the numbers as JSON, `--only NAME...` trains some.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos import DataProblem, fit
from paretocosmos.pareto.metrics import monotonicity
from paretocosmos.runs.provenance import get_provenance

SAMPLES = 4096
NEAR, FAR = 0.05, 0.93
"""The front counts as reached from `NEAR` at most to `FAR` at least."""

Targets = tuple[Tensor, Tensor, Tensor]
"""Inputs, and the targets a and b."""


def make_rows() -> Targets:
    """Rows of eight numbers; the first two, or the next two."""
    x = torch.randn(SAMPLES, 8)
    return x, x[:, :2], x[:, 2:4]


def make_sums() -> Targets:
    """The same rows; one number to predict."""
    x = torch.randn(SAMPLES, 8)
    return x, x[:, :2].sum(1, keepdim=True), x[:, 2:4].sum(1, keepdim=True)


def make_codes() -> Targets:
    """Rows of eight numbers that follow from three; themselves, or the same from the other end."""
    x = torch.randn(SAMPLES, 3) @ torch.randn(3, 8)
    return x, x, x.flip(1)


def make_pairs() -> Targets:
    """Pairs of rows; the difference of their first two numbers, or of the next two."""
    x = torch.randn(SAMPLES, 2, 8)
    difference = x[:, 0] - x[:, 1]
    return x, difference[:, :2], difference[:, 2:4]


def make_sequences() -> Targets:
    """Ten steps of four numbers; the sums of the first two along time, or of the last two."""
    x = torch.randn(SAMPLES, 10, 4)
    sums = x.mean(dim=1) * 10**0.5
    return x, sums[:, :2], sums[:, 2:]


def make_signals() -> Targets:
    """As `make_sequences`, with time last."""
    x, first, second = make_sequences()
    return x.transpose(1, 2).contiguous(), first, second


def make_words() -> Targets:
    """Twelve of twenty tokens; the mean of one value of each token, or of another."""
    words = torch.randint(0, 20, (SAMPLES, 12))
    means = torch.randn(20, 2)[words].mean(dim=1) * 12**0.5
    return words, means[:, :1], means[:, 1:]


def make_images() -> Targets:
    """Pictures of 8 x 8 pixels; the mean of the first channel, or of the second."""
    x = torch.randn(SAMPLES, 3, 1, 1) + 0.5 * torch.randn(SAMPLES, 3, 8, 8)
    means = x.mean(dim=(2, 3))
    return x, means[:, :1], means[:, 1:2]


def make_maps() -> Targets:
    """The same pictures; the first channel itself, or the second."""
    x = torch.randn(1024, 3, 1, 1) + 0.5 * torch.randn(1024, 3, 8, 8)
    return x, x[:, :1], x[:, 1:2]


class Call(nn.Module):
    """Layers by name, and a function of them and the inputs."""

    def __init__(self, function: Callable[[Any, Tensor], Any], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


class Residual(nn.Module):
    """A body beside what it adds to."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.body(x)
        return out


@dataclass
class Answer:
    """What a network gives that names its outputs."""

    value: Tensor
    hidden: Tensor


def build_mlp(inputs: int, outputs: int, *between: nn.Module, width: int = 64) -> nn.Module:
    """Two hidden layers, each followed by these modules."""
    layers = [nn.Linear(inputs, width), *between, nn.ReLU(), nn.Linear(width, width), *between]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(width, outputs))


def build_residual() -> nn.Module:
    """Three residual blocks."""
    blocks = [Residual(nn.LayerNorm(32), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))]
    blocks += [Residual(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 32)) for _ in range(2)]
    return nn.Sequential(nn.Linear(8, 32), *blocks, nn.Linear(32, 2))


def build_tied() -> nn.Module:
    """An autoencoder whose decoder is its encoder, transposed."""
    return Call(lambda n, x: F.linear(n.layer(x), n.layer.weight.T), layer=nn.Linear(8, 8))


def build_mixture() -> nn.Module:
    """Four experts that give one number, under a gate."""
    experts = nn.ModuleList(build_mlp(8, 1, width=16) for _ in range(4))
    return Call(
        lambda n, x: sum(
            weight * expert(x)
            for weight, expert in zip(n.gate(x).softmax(1).split(1, dim=1), n.experts, strict=True)
        ),
        experts=experts,
        gate=nn.Linear(8, 4),
    )


def build_ensemble() -> nn.Module:
    """The mean of five networks with one output."""
    members = nn.ModuleList(build_mlp(8, 1, width=32) for _ in range(5))
    return Call(lambda n, x: torch.stack([m(x) for m in n.members]).mean(dim=0), members=members)


def build_towers() -> nn.Module:
    """A shared body and two heads with one output."""
    heads = nn.ModuleList(build_mlp(32, 1, width=16) for _ in range(2))
    return Call(
        lambda n, x: torch.cat([head(n.body(x).relu()) for head in n.heads], dim=1),
        body=nn.Linear(8, 32),
        heads=heads,
    )


def build_named() -> nn.Module:
    """A network that gives a mapping."""
    return Call(
        lambda n, x: {"value": n.head(n.body(x)), "hidden": n.body(x)},
        body=nn.Sequential(nn.Linear(8, 64), nn.ReLU()),
        head=nn.Linear(64, 2),
    )


def build_dataclass() -> nn.Module:
    """A network that gives a dataclass."""
    return Call(
        lambda n, x: Answer(n.head(n.body(x)), n.body(x)),
        body=nn.Sequential(nn.Linear(8, 64), nn.ReLU()),
        head=nn.Linear(64, 2),
    )


def build_tuple() -> nn.Module:
    """A network that gives a tuple."""
    return Call(
        lambda n, x: (n.head(n.body(x)), n.body(x), x),
        body=nn.Sequential(nn.Linear(8, 64), nn.ReLU()),
        head=nn.Linear(64, 2),
    )


def build_siamese() -> nn.Module:
    """One encoder for both of a pair."""
    return Call(
        lambda n, x: n.head(n.encoder(x[:, 0]) - n.encoder(x[:, 1])),
        encoder=build_mlp(8, 32),
        head=nn.Linear(32, 2),
    )


def build_gru() -> nn.Module:
    """The last state of a GRU."""
    gru = nn.GRU(4, 32, batch_first=True)
    return Call(lambda n, x: n.head(n.gru(x)[0][:, -1]), gru=gru, head=nn.Linear(32, 2))


def build_lstm() -> nn.Module:
    """A bidirectional LSTM, its mean along time."""
    lstm = nn.LSTM(4, 24, batch_first=True, bidirectional=True)
    return Call(lambda n, x: n.head(n.lstm(x)[0].mean(dim=1)), lstm=lstm, head=nn.Linear(48, 2))


def build_signal_network() -> nn.Module:
    """Convolutions along time with group normalisation."""
    return nn.Sequential(
        *(nn.Conv1d(4, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU()),
        *(nn.Conv1d(32, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU()),
        *(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 2)),
    )


def build_transformer() -> nn.Module:
    """Two layers of attention over the steps."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return Call(
        lambda n, x: n.head(n.encoder(n.enter(x)).mean(dim=1)),
        enter=nn.Linear(4, 32),
        encoder=encoder,
        head=nn.Linear(32, 2),
    )


def build_set_network() -> nn.Module:
    """DeepSets: a sum over the elements of a set, inside and outside a perceptron."""
    return Call(
        lambda n, x: n.outside(n.inside(x).mean(dim=1)),
        inside=build_mlp(4, 32),
        outside=build_mlp(32, 2),
    )


def build_graph_network() -> nn.Module:
    """Two rounds of messages along a ring, each step a node."""
    rounds = nn.ModuleList(nn.Linear(2 * 32, 32) for _ in range(2))

    def forward(network: Any, x: Tensor) -> Tensor:
        nodes = network.enter(x)
        for update in network.rounds:
            messages = nodes.roll(1, dims=1) + nodes.roll(-1, dims=1)
            nodes = nodes + update(torch.cat([nodes, messages], dim=2)).relu()
        out: Tensor = network.head(nodes.mean(dim=1))
        return out

    return Call(forward, enter=nn.Linear(4, 32), rounds=rounds, head=nn.Linear(32, 2))


def build_bag_of_words() -> nn.Module:
    """Embeddings, their mean, and a perceptron."""
    return Call(
        lambda n, x: n.head(n.words(x).mean(dim=1)),
        words=nn.Embedding(20, 32),
        head=build_mlp(32, 1),
    )


def build_convolutions() -> nn.Module:
    """Two convolutions with batch normalisation."""
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16, 1)),
    )


def build_unet() -> nn.Module:
    """Down, up, and a skip."""

    def forward(network: Any, x: Tensor) -> Tensor:
        high = network.down(x).relu()
        low = network.low(F.max_pool2d(high, 2)).relu()
        out: Tensor = network.head(torch.cat([high, network.up(low)], dim=1))
        return out

    return Call(
        forward,
        down=nn.Conv2d(3, 8, 3, padding=1),
        low=nn.Conv2d(8, 16, 3, padding=1),
        up=nn.ConvTranspose2d(16, 8, 2, stride=2),
        head=nn.Conv2d(16, 1, 1),
    )


def build_patches() -> nn.Module:
    """A transformer over patches of a picture."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    return Call(
        lambda n, x: n.head(n.encoder(n.patch(x).flatten(2).transpose(1, 2)).mean(dim=1)),
        patch=nn.Conv2d(3, 16, 4, stride=4),
        encoder=encoder,
        head=nn.Linear(16, 1),
    )


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Targets]]] = {
    "one linear layer": (lambda: nn.Linear(8, 2), make_rows),
    "MLP": (lambda: build_mlp(8, 2), make_rows),
    "MLP with batch norm": (lambda: build_mlp(8, 2, nn.BatchNorm1d(64)), make_rows),
    "MLP with layer norm": (lambda: build_mlp(8, 2, nn.LayerNorm(64)), make_rows),
    "MLP with dropout": (lambda: build_mlp(8, 2, nn.Dropout(0.1)), make_rows),
    "residual MLP": (build_residual, make_rows),
    "tied weights": (build_tied, make_codes),
    "autoencoder": (
        lambda: nn.Sequential(build_mlp(8, 3), build_mlp(3, 8)),
        make_codes,
    ),
    "mixture of experts": (build_mixture, make_sums),
    "ensemble": (build_ensemble, make_sums),
    "towers with one output": (build_towers, make_rows),
    "dict of outputs": (build_named, make_rows),
    "dataclass of outputs": (build_dataclass, make_rows),
    "tuple of outputs": (build_tuple, make_rows),
    "siamese": (build_siamese, make_pairs),
    "GRU": (build_gru, make_sequences),
    "bidirectional LSTM": (build_lstm, make_sequences),
    "1d CNN with group norm": (build_signal_network, make_signals),
    "transformer": (build_transformer, make_sequences),
    "DeepSets": (build_set_network, make_sequences),
    "message passing": (build_graph_network, make_sequences),
    "embeddings": (build_bag_of_words, make_words),
    "CNN with batch norm": (build_convolutions, make_images),
    "U-Net": (build_unet, make_maps),
    "vision transformer": (build_patches, make_images),
}


def compute_error(outputs: Any, target: Tensor) -> Tensor:
    """Mean squared error of the first output, whatever holds it."""
    if isinstance(outputs, dict | tuple):
        outputs = outputs["value"] if isinstance(outputs, dict) else outputs[0]
    return F.mse_loss(outputs.value if isinstance(outputs, Answer) else outputs, target)


def measure_network(
    network: nn.Module, data: Targets, seed: int = 1, **options: Any
) -> dict[str, Any]:
    """Train a network with `fit` and return what part of the exact front it reaches."""
    problem = DataProblem.of(data, [compute_error] * 2)
    first, second = (
        problem.split("test").targets[objective.target] for objective in problem.objectives
    )
    distance = float((first - second).square().mean())
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is noted of a run stands in the row
        run = fit(
            problem,
            backbone=network,
            seed=seed,
            out=Path(folder) / "run",
            report=False,
            progress=False,
            **options,
        )
        losses = np.asarray(run.front.values) / distance
        place = (1 + losses[:, 0] - losses[:, 1]) / 2
        above = losses[:, 0] - place**2
        return {
            "weights": sum(parameter.numel() for parameter in network.parameters()),
            "from": round(float(place.min()), 4),
            "to": round(float(place.max()), 4),
            "above": round(float(above.max()), 4),
            "order": round(float(monotonicity(run.front).min()), 4),
            "findings": [finding["kind"] for finding in run.record["findings"]],
            "seconds": round(time.process_time() - started, 1),
        }


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--only", nargs="+", default=list(NETWORKS), help="names of networks")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows: dict[str, dict[str, Any]] = {}
    for name in arguments.only:
        build, make_data = NETWORKS[name]
        torch.manual_seed(arguments.seed)
        row = rows[name] = measure_network(build(), make_data(), arguments.seed)
        print(
            f"{name:24} {row['from']:5.2f} to {row['to']:4.2f}, {row['above']:.3f} above, "
            f"order {row['order']:.2f}, {row['seconds']:5.1f} s {' '.join(row['findings'])}",
            flush=True,
        )
    reached = sum(row["from"] <= NEAR and row["to"] >= FAR for row in rows.values())
    print(f"{reached} of {len(rows)} from {NEAR} to {FAR}")
    if arguments.out is not None:
        content = {"seed": arguments.seed, "near": NEAR, "far": FAR, "networks": rows}
        content |= get_provenance(torch.device("cpu"))
        arguments.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
