"""Networks that train as one: what they advance, and how."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paretocosmos.config.plan import Plan
from paretocosmos.config.promises import from_outside
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import TrainingTask, training_task
from paretocosmos.objectives import Objective
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.engine import (
    BatchSource,
    Engine,
    Optimizer,
    Step,
    TracedStep,
    TrainState,
    UpdateRule,
    choose_engine,
    make_step,
)
from paretocosmos.training.engine.optimizer import find_undecayed
from paretocosmos.training.loss_scales import SCALES, compute_loss_scales


@dataclass(frozen=True)
class NetworkStack:
    """One network, or several stacked along a first axis, and the engine that runs their steps."""

    state: TrainState
    engine: Engine
    networks: int

    @property
    def data_dependent(self) -> bool:
        """Whether Python decides something in its steps, though a declaration says otherwise."""
        step = self.state.step
        return isinstance(step, TracedStep) and step.data_dependent

    def saved_state(self, index: int) -> dict[str, Tensor]:
        """Return one network's state of the method and loss scales for checkpoints, as views."""
        state = dict(self.state.method_state)
        if self.state.loss_scales is not None:
            state[SCALES] = self.state.loss_scales
        return {name: v[index] for name, v in state.items()} if self.networks > 1 else state

    def epoch(self, drawn: Sequence[tuple[Tensor, Tensor]], device: torch.device) -> Tensor:
        """Train for an epoch; the mean losses of the groups, ``[steps, networks, J]``."""
        order, rays = self._join(drawn, device)
        losses = self.engine.epoch(order, rays).mean(dim=-2)
        return losses if self.networks > 1 else losses.unsqueeze(1)

    def prepare(self, drawn: Sequence[tuple[Tensor, Tensor]], device: torch.device) -> None:
        """Trace, compile or capture what an epoch needs, without training."""
        self.engine.prepare(*self._join(drawn, device))

    def averaged(self) -> AbstractContextManager[None]:
        """Give the networks their averaged weights inside, if weights are averaged."""
        return self.state.optimizer.averaged()

    def begin(self, method: Method, epoch: int) -> None:
        """Tell the method that an epoch begins."""
        state = self.state.method_state
        for name, value in method.at_epoch(epoch, state).items():
            if value is not state[name]:
                state[name].copy_(value)

    def _join(
        self, drawn: Sequence[tuple[Tensor, Tensor]], device: torch.device
    ) -> tuple[Tensor, Tensor]:
        order, rays = (
            parts[0] if self.networks == 1 else torch.stack(parts)
            for parts in zip(*drawn, strict=True)
        )
        return order.to(self.state.source.device), rays.to(device)


def make_network_stack(
    networks: Sequence[nn.Module],
    plans: Sequence[Plan],
    source: BatchSource,
    engine: str,
    processes: Processes,
) -> NetworkStack:
    """Stack networks of one architecture, ready to train.

    Args:
        networks: each then uses its share of the stack.
        plans: of each, which differ in the seed at most.
        source: where batches come from.
        engine: how steps are run, by name.
        processes: those that share the steps.
    """
    plan, count = plans[0], len(networks)
    stacked, training = count > 1, plan.training
    tasks = [training_task(network, plan.problem.objectives) for network in networks]
    loss_scales = _compute_scales(networks, tasks, plans)
    networks = [task.network for task in tasks]
    model = networks[0]
    steps = training.epochs * -(-len(source) // training.batch_size)
    parameters = (
        _stack_parameters(networks)
        if stacked
        else {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}
    )
    rule = UpdateRule(
        training.optimizer,
        training.weight_decay,
        find_undecayed(model),
        min(1.0, 1 / (training.average * steps)) if training.average else 0.0,
        training.clip,
    )
    state = TrainState(
        step=_make_step(model, tasks[0].objectives, plan, processes, stacked=stacked),
        parameters=parameters,
        optimizer=Optimizer(parameters, rule, stacked=stacked),
        method_state=_init_method_state(plans),
        source=source,
        batch_size=training.batch_size,
        groups=training.groups,
        loss_scales=loss_scales,
        buffers=list(model.buffers()),
        third_party=[own for part in (*plan.parts, model) for own in from_outside(part)],
    )
    chosen = choose_engine(engine, state, model, traceable=plan.traceable, steps=steps)
    return NetworkStack(state, chosen, count)


def _make_step(
    model: nn.Module,
    objectives: Sequence[Objective],
    plan: Plan,
    processes: Processes,
    *,
    stacked: bool,
) -> Step:
    source = plan.problem.source("train")
    return make_step(
        model,
        objectives,
        plan.method,
        prepare=plan.problem.prepare,
        half=plan.configuration.precision == "bf16",
        stacked=stacked,
        accumulate=plan.training.accumulate,
        processes=processes,
        tasks=() if source is None else tuple(source.parts),
    )


def _init_method_state(plans: Sequence[Plan]) -> dict[str, Tensor]:
    """Return the method's state before the first step, stacked for several networks."""
    states = [plan.method.init(len(plan.problem.objectives)) for plan in plans]
    return {
        name: _join_networks([state[name] for state in states]).to(plans[0].device)
        for name in states[0]
    }


def _compute_scales(
    networks: Sequence[nn.Module], tasks: Sequence[TrainingTask], plans: Sequence[Plan]
) -> Tensor | None:
    """Return the scales of every network's losses, if they are divided by some."""
    # a task of its own has losses of one scale
    if tasks[0].fit is not None or not plans[0].training.scale_losses:
        return None
    scales = [
        compute_loss_scales(network, plan.problem, seed=plan.seed)
        for network, plan in zip(networks, plans, strict=True)
    ]
    return _join_networks(scales).to(plans[0].device)


def _join_networks(tensors: Sequence[Tensor]) -> Tensor:
    """Stack one tensor of each network; copy that of a single one."""
    return torch.stack(list(tensors)) if len(tensors) > 1 else tensors[0].clone()


def _stack_parameters(models: Sequence[nn.Module]) -> dict[str, Tensor]:
    """Stack the models' parameters by name; each model then uses its share of the stack."""
    parameters = [{n: p for n, p in m.named_parameters() if p.requires_grad} for m in models]
    stacked = {n: torch.stack([own[n].detach() for own in parameters]) for n in parameters[0]}
    for index, own in enumerate(parameters):
        for name, parameter in own.items():
            parameter.data = stacked[name][index]
    return stacked
