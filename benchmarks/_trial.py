"""One network under one method in one engine, built as `fit` builds it and ready to be timed."""

import gc
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.random_images import random_faces
from paretocosmos.methods import Cosmos, Method, Uniform
from paretocosmos.nn.backbones import EfficientNet
from paretocosmos.nn.conditioning import Conditioning, TransposedConv, Unconditioned
from paretocosmos.training.engine import (
    Engine,
    Optimizer,
    TrainState,
    UpdateRule,
    choose_engine,
    make_batch_source,
    make_step,
)

SEED = 1
STEPS = 32  # of a timing: what one captured graph holds
EAGER_STEPS = 16


@dataclass(frozen=True)
class Kind:
    """What trials that are timed in turns have in common."""

    engine: str
    batch_size: int
    precision: str = "tf32"
    layout: str = "nchw"
    norm: str = "group"

    def __str__(self) -> str:
        return ", ".join(str(value) for value in asdict(self).values())


class Trial:
    """A training of random faces.

    Args:
        kind: how.
        objectives: tasks; one is trained without rays.
        variant: of the network.
        side: of an image.
        device: where.
        steps: of a timing.
    """

    def __init__(
        self,
        kind: Kind,
        objectives: int,
        *,
        variant: str,
        side: int,
        device: torch.device,
        steps: int,
    ) -> None:
        self.kind, self.device, self.steps = kind, device, steps
        self.seconds: list[float] = []
        forget(device)
        before = allocated(device)
        problem = random_faces(objectives, samples=steps * kind.batch_size, side=side)
        torch.manual_seed(SEED)
        backbone = EfficientNet(
            problem.input_shape,
            problem.outputs,
            variant=variant,  # type: ignore[arg-type]
            weights="random",
            norm=kind.norm,  # type: ignore[arg-type]
        )
        single = objectives == 1
        model: Conditioning = (
            Unconditioned(backbone, 1) if single else TransposedConv(backbone, objectives)
        )
        method: Method = Uniform() if single else Cosmos(penalty=3.0, alpha=1.0)
        model.to(device)
        if kind.layout == "nhwc":
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        parameters = {name: p.detach() for name, p in model.named_parameters()}
        self.parameters = sum(p.numel() for p in parameters.values())
        self.added = self.parameters - sum(p.numel() for p in backbone.parameters())
        adam = Optimizer(parameters, UpdateRule("adam", 0.0))
        adam.set_rates([5e-4])
        work = TrainState(
            step=make_step(
                model.train(),
                problem.objectives,
                method,
                prepare=problem.prepare,
                half=kind.precision == "bf16",
            ),
            parameters=parameters,
            optimizer=adam,
            method_state=dict(method.init(objectives)),
            source=make_batch_source(problem.split("train"), device, torch.float32),
            batch_size=kind.batch_size,
            rays_per_batch=1,
            buffers=list(model.buffers()),
        )
        self.engine: Engine = choose_engine(kind.engine, work, model, traceable=True, steps=steps)
        draw = torch.Generator().manual_seed(SEED)
        self.order = torch.randperm(steps * kind.batch_size, generator=draw).to(device)
        rays = torch.ones(steps, 1) if single else method.sample(objectives, steps, draw)
        self.rays: Tensor = rays.to(device)
        started = time.perf_counter()
        self.engine.prepare(self.order, self.rays)
        self.engine.epoch(self.order, self.rays).cpu()
        self.preparing = time.perf_counter() - started
        self.peak = peak(device) - before

    def time(self) -> None:
        """Once more, the device included."""
        wait(self.device)
        started = time.perf_counter()
        losses = self.engine.epoch(self.order, self.rays)
        wait(self.device)
        self.seconds.append((time.perf_counter() - started) / self.steps)
        assert losses.isfinite().all(), "a loss became NaN"

    def numbers(self) -> dict[str, Any]:
        """What was found."""
        step = statistics.median(self.seconds)
        return {
            **asdict(self.kind),
            "really": self.engine.name,
            "failure": self.engine.failure,
            "step": step,
            "fastest": min(self.seconds),
            "slowest": max(self.seconds),
            "images_per_second": self.kind.batch_size / step,
            "preparing": self.preparing,
            "peak_memory": self.peak,
            "parameters": self.parameters,
            "added_by_the_ray": self.added,
            "share_added": self.added / (self.parameters - self.added),
        }


def forget(device: torch.device) -> None:
    """Give back what earlier trials left behind, and count memory from here."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def allocated(device: torch.device) -> int:
    """Bytes in use on the device."""
    return torch.cuda.memory_allocated() if device.type == "cuda" else 0


def peak(device: torch.device) -> int:
    """The most bytes that were in use; graphs keep what they need, so their pools count."""
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else 0


def wait(device: torch.device) -> None:
    """Until the device has done what it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize()
