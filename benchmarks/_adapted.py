"""A small decoder, and the ways of adapting it that `benchmarks.language` compares."""

import copy
import math
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

from benchmarks._corpora import NAMES, windows
from paretocosmos import condition
from paretocosmos.methods import Linear
from paretocosmos.nn.conditioning import Conditioning, Lora

# positions of a window, windows of each corpus in a step, rays of a step
LENGTH, SHARE, GROUPS = 64, 8, 4
# of the base
BASE_LENGTH, BASE_SHARE = 96, 16
RANK, SCALE = 4, 2.0
ENDS = {"bos_token_id": 10, "eos_token_id": None, "pad_token_id": 0}
Data = dict[str, Tensor]
Losses = Callable[[Tensor, Tensor], Tensor]


class PlainLora(nn.Module):
    """Textbook LoRA around one layer: ``layer(x) + s·B(A x)``."""

    def __init__(self, layer: Any, rank: int) -> None:
        super().__init__()
        self.layer = layer
        self.reads = nn.Linear(layer.nx, rank, bias=False)
        self.writes = nn.Linear(rank, layer.nf, bias=False)
        nn.init.zeros_(self.writes.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        out: Tensor = self.layer(inputs) + SCALE * self.writes(self.reads(inputs))
        return out


def gpt2(**settings: Any) -> nn.Module:
    """A GPT-2 with weights just drawn."""
    theirs: Any = transformers
    network: nn.Module = theirs.GPT2LMHeadModel(theirs.GPT2Config(**settings))
    return network


def decoder() -> nn.Module:
    """A GPT-2 of four layers that reads bytes."""
    none = dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
    shape = {"n_positions": 256, "n_embd": 128, "n_layer": 4, "n_head": 4}
    return gpt2(vocab_size=256, **shape, **none, **ENDS)


def pretrain(network: nn.Module, data: Data, *, steps: int, rate: float) -> float:
    """Train the whole network on both corpora alike; the processor seconds it took."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.05
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, cosine(100, steps))
    begun = time.process_time()
    for _ in range(steps):
        drawn = [windows(data[name], BASE_SHARE, BASE_LENGTH, generator) for name in NAMES]
        ids = torch.cat(drawn)
        loss = losses_of(network(ids)["logits"], ids).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    network.eval()
    return time.process_time() - begun


def cosine(warm: int, steps: int) -> Callable[[int], float]:
    """The rate of each step: up for some, then down along a cosine."""
    return lambda at: min((at + 1) / warm, 0.5 + 0.5 * math.cos(math.pi * at / steps))


def plain_lora(base: nn.Module, rank: int) -> nn.Module:
    """A copy of the frozen network with textbook adapters in its blocks."""
    network = copy.deepcopy(base).requires_grad_(False)
    for place in lora(base).places:
        network.set_submodule(place, PlainLora(network.get_submodule(place), rank))
    return network


def lora(base: nn.Module) -> Lora:
    """LoRA mixed by the ray."""
    return Lora(base, 2, adapter_rank=RANK, scale=SCALE)


def film(base: nn.Module) -> Conditioning:
    """A scale and a shift after each block, on the frozen network."""
    model = condition(base, 2, how="film", settings={"rank": 0})
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in model.ray_parameters)
    return model


def soup(base: nn.Module, ends: list[nn.Module]) -> Conditioning:
    """Rewarded soups: the weights of the two end adapters, mixed by the ray (Ramé et al. 2023)."""
    model = Lora(base, 2, adapter_rank=2 * RANK, scale=SCALE)
    parts = [dict(end.named_modules()) for end in ends]
    with torch.no_grad():
        model.shares.copy_(torch.eye(2).repeat_interleave(2 * RANK, dim=1))
        for place in model.places:
            mixed: Any = model.backbone.get_submodule(place)
            each: list[Any] = [part[place] for part in parts]
            mixed.reads.weight.copy_(torch.cat([one.reads.weight for one in each]))
            mixed.writes.copy_(torch.cat([one.writes.weight for one in each], dim=1))
    return model


def losses_of(logits: Tensor, ids: Tensor) -> Tensor:
    """Cross-entropy of every window, in nats per byte."""
    nats = F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
    return nats.mean(dim=1)


def batch(data: Data, generator: torch.Generator, rays_per_batch: int = 1) -> Tensor:
    """Windows ``[B, T]``: rays_per_batch of neighbours, half of each from either corpus."""
    drawn = [windows(data[name], SHARE, LENGTH, generator) for name in NAMES]
    return torch.cat(
        [
            part
            for pair in zip(*(d.chunk(rays_per_batch) for d in drawn), strict=True)
            for part in pair
        ]
    )


def step(model: nn.Module, ids: Tensor, rays: Tensor) -> Tensor:
    """The weighted losses of a batch, one ray for every group."""
    called = model(ids, rays) if isinstance(model, Conditioning) else model(ids)
    losses = losses_of(called["logits"], ids)
    by_group = losses.unflatten(0, (len(rays), 2, -1)).mean(dim=-1)
    total: Tensor = (rays * by_group).sum(dim=-1).mean()
    return total


def train(
    model: nn.Module, data: Data, rays: Tensor | None, *, steps: int, rate: float, seed: int
) -> float:
    """Train what is not frozen, at one ray or at rays drawn for every step; processor seconds."""
    generator = torch.Generator().manual_seed(seed)
    method = Linear(alpha=0.5, stratified=True)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, cosine(max(1, steps // 20), steps))
    model.train()
    begun = time.process_time()
    for _ in range(steps):
        drawn = method.sample(2, GROUPS, generator) if rays is None else rays.unsqueeze(0)
        loss = step(model, batch(data, generator, len(drawn)), drawn)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    return time.process_time() - begun


@torch.no_grad()
def evaluated(model: nn.Module, texts: dict[str, Tensor], ray: Tensor) -> list[float]:
    """The cross-entropy of both corpora at a ray, in nats per byte."""
    found = []
    for name in NAMES:
        parts = []
        for ids in texts[name].split(128):
            called = model(ids, ray) if isinstance(model, Conditioning) else model(ids)
            parts.append(losses_of(called["logits"], ids))
        found.append(float(torch.cat(parts).mean()))
    return found
