"""Engines: how one training step is run. The step itself is one pure function of tensors."""

from typing import Literal

import torch
from torch import nn

from paretocosmos.errors import ConfigurationError, check_choice, unknown
from paretocosmos.evaluation.samples import move_batch
from paretocosmos.runtime.device import fits_on_device
from paretocosmos.training.engine.batch_source import (
    AHEAD,
    SLOTS,
    THREAD,
    BatchHandle,
    BatchSource,
    FromLoader,
    InMemory,
    Share,
    SplitTensors,
    Streamed,
    collect_handles,
)
from paretocosmos.training.engine.engines import CudaGraphEngine, EagerEngine, TrainState
from paretocosmos.training.engine.gradients import (
    HypernetGradients,
    HypernetWithFeatures,
    LossGradients,
    find_head_modules,
)
from paretocosmos.training.engine.optimizer import Optimizer, UpdateRule
from paretocosmos.training.engine.step import Step, StepResult, compute_group_losses, make_step
from paretocosmos.training.engine.tracing import (
    DataDependentError,
    TracedStep,
)
from paretocosmos.types import Batch

ENGINES = ("auto", "eager", "traced", "compiled", "captured")

# Steps that a recording on a CPU pays for: it was gained back after 146 to 929 of them, by network
# and method.
WORTH_RECORDING = 300


Engine = EagerEngine | CudaGraphEngine
"""Runs epochs; all engines give the same result up to rounding.

`name` is the way steps are run in fact, and `failure` the reason if it is another than was asked
for.
"""


def check_engine(engine: str, device: torch.device) -> None:
    """Validate the engine name for the device."""
    check_choice("engine", engine, ENGINES)
    if engine == "captured" and device.type != "cuda":
        raise ConfigurationError(
            f"`engine` captured needs a CUDA device, found `{device}`: use traced, or compiled"
        )


def choose_engine(
    engine: str, state: TrainState, model: nn.Module, *, traceable: bool, steps: int
) -> Engine:
    """Return the engine of that name; it may replace the state's step by a traced one.

    Args:
        engine: ``"eager"``: Python and autograd at every step; ``"traced"``: operations recorded
            and replayed; ``"compiled"``: recorded and fused by Inductor, on a GPU captured too;
            ``"captured"``: CUDA graphs of several steps. ``"auto"`` picks captured on a GPU and
            traced on a CPU where everything a step calls is this package's own, torch's, or
            declares `traceable = True`, eager otherwise: other code may decide things in Python
            that a recording would freeze. On a CPU a training of few steps is eager, too: it gives
            the same, and is over before a recording has paid for itself.
        state: the eager step and what it advances.
        model: the network it runs.
        traceable: whether everything a step calls is known to decide nothing in Python.
        steps: of the whole training.
    """
    device = next(iter(state.parameters.values())).device
    check_engine(engine, device)
    if engine == "auto":
        fast = "captured" if device.type == "cuda" else "traced"
        # on a GPU a short training gains too: asking for kernels takes longer than running them
        pays = device.type == "cuda" or steps >= WORTH_RECORDING
        engine = fast if traceable and pays else "eager"
    # an eager step runs the network's own Python, so that nothing about it has to be checked
    if engine == "eager":
        return EagerEngine(state)
    mode: Literal["compiled", "traced"] = "compiled" if engine == "compiled" else "traced"
    # graphs capture the traced step, which has no autograd
    state.step = TracedStep(state.step, model, mode, state.third_party)
    return (
        CudaGraphEngine(state)
        if device.type == "cuda" and engine != "traced"
        else EagerEngine(state)
    )


def make_batch_source(
    data: Batch,
    device: torch.device,
    dtype: torch.dtype,
    share: Share | None = None,
    *,
    agree: bool = False,
) -> BatchSource:
    """Return the source of a split: in memory if it fits, its floats of that type.

    Args:
        data: the split.
        device: where steps run.
        dtype: of floats.
        share: which of a batch's inputs this process needs.
        agree: whether other processes must decide the same on devices like this.
    """
    # in memory, a batch is picked inside the step, and a CUDA graph may hold many steps
    if fits_on_device(data, device, dtype, alike=agree):
        return InMemory(move_batch(data, device, dtype), share)
    return Streamed(data, device, dtype, share)
