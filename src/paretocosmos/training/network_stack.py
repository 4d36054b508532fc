"""Network stacks: one network or several that train as one, and the engine that runs them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paretocosmos.config.plan import Plan, find_third_party
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import training_task
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.engine import (
    BatchSource,
    Engine,
    Optimizer,
    TracedStep,
    TrainState,
    UpdateRule,
    choose_engine,
    make_step,
)
from paretocosmos.training.engine.optimizer import find_undecayed
from paretocosmos.training.engine.step import LOSS_SCALES
from paretocosmos.training.loss_scales import compute_loss_scales


@dataclass(frozen=True)
class NetworkStack:
    """One network, or several stacked along a first axis, and the engine that runs their steps."""

    state: TrainState
    engine: Engine
    networks: int

    @property
    def data_dependent(self) -> bool:
        """True if its step branches on values in Python, though a declaration says otherwise."""
        step = self.state.step
        return isinstance(step, TracedStep) and step.data_dependent

    def saved_state(self, index: int) -> dict[str, Tensor]:
        """Return one network's state of the method and loss scales for checkpoints, as views."""
        state = self.state.method_state
        return {n: v[index] for n, v in state.items()} if self.networks > 1 else dict(state)

    def epoch(self, draws: Sequence[tuple[Tensor, Tensor]], device: torch.device) -> Tensor:
        """Train for an epoch and return the groups' mean losses, ``[steps, networks, J]``."""
        order, rays = self._join(draws, device)
        losses = self.engine.epoch(order, rays).mean(dim=-2)  # over groups, each of another ray
        return losses if self.networks > 1 else losses.unsqueeze(1)

    def prepare(self, draws: Sequence[tuple[Tensor, Tensor]], device: torch.device) -> None:
        """Trace, compile or capture what an epoch needs, without training."""
        self.engine.prepare(*self._join(draws, device))

    def begin(self, method: Method, epoch: int) -> None:
        """Tell the method that an epoch begins."""
        state = self.state.method_state
        for name, value in method.at_epoch(epoch, state).items():
            if value is not state[name]:
                state[name].copy_(value)  # in place: a captured graph reads these tensors

    def _join(
        self, draws: Sequence[tuple[Tensor, Tensor]], device: torch.device
    ) -> tuple[Tensor, Tensor]:
        order, rays = (
            by_network[0] if self.networks == 1 else torch.stack(by_network)
            for by_network in zip(*draws, strict=True)
        )
        # the order may stay on the CPU, where streamed samples are gathered
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
        networks: the networks; their parameters become views of the stack.
        plans: the plan of each, which differ in the seed at most.
        source: the source of batches.
        engine: the name of the engine.
        processes: the processes that share the steps.
    """
    plan, count = plans[0], len(networks)
    stacked, training = count > 1, plan.training
    tasks = [training_task(network, plan.problem.objectives) for network in networks]
    # a task with a loss of its own has losses of one scale
    scaled = training.scale_losses and tasks[0].fit is None
    # before the networks are stacked: scales are those of each fresh network by itself
    method_state = _init_method_state(networks, plans, scaled=scaled)
    model = tasks[0].network
    # rounded up: the last short batch of an epoch is a step, too
    steps = training.epochs * -(-len(source) // training.batch_size)
    # frozen parameters get no gradient and no moments
    parameters = (
        _stack_parameters([task.network for task in tasks])
        if stacked
        else {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}
    )
    rule = UpdateRule(
        training.optimizer,
        training.weight_decay,
        find_undecayed(model),
        # an average over n steps moves by 1/n; over less than one step, all the way
        min(1.0, 1 / (training.average * steps)) if training.average else 0.0,
        training.clip,
    )
    samples = plan.problem.source("train")
    step = make_step(
        model,
        tasks[0].objectives,
        plan.method,
        prepare=plan.problem.prepare,
        half=plan.configuration.precision == "bf16",
        stacked=stacked,
        accumulate=training.accumulate,
        processes=processes,
        tasks=() if samples is None else tuple(samples.parts),
    )
    state = TrainState(
        step=step,
        parameters=parameters,
        optimizer=Optimizer(parameters, rule, stacked=stacked),
        method_state=method_state,
        source=source,
        batch_size=training.batch_size,
        rays_per_batch=training.rays_per_batch,
        buffers=list(model.buffers()),
        third_party=[
            third_party
            for component in (*plan.step_components, model)
            for third_party in find_third_party(component)
        ],
    )
    chosen = choose_engine(engine, state, model, traceable=plan.traceable, steps=steps)
    return NetworkStack(state, chosen, count)


def _init_method_state(
    networks: Sequence[nn.Module], plans: Sequence[Plan], *, scaled: bool
) -> dict[str, Tensor]:
    """Return the method's state and loss scales before the first step, stacked for several."""
    states = []
    for network, plan in zip(networks, plans, strict=True):
        state = dict(plan.method.init(len(plan.problem.objectives)))
        if scaled:
            state[LOSS_SCALES] = compute_loss_scales(network, plan.problem, seed=plan.seed)
        states.append(state)
    device = plans[0].device
    if len(states) > 1:
        return {n: torch.stack([state[n] for state in states]).to(device) for n in states[0]}
    # a clone, since the stack changes its state in place
    return {name: value.clone().to(device) for name, value in states[0].items()}


def _stack_parameters(models: Sequence[nn.Module]) -> dict[str, Tensor]:
    """Stack the models' parameters by name and make each model's parameters views of the stack."""
    by_model = [{n: p for n, p in m.named_parameters() if p.requires_grad} for m in models]
    stacked = {n: torch.stack([by_name[n].detach() for by_name in by_model]) for n in by_model[0]}
    for index, by_name in enumerate(by_model):
        for name, parameter in by_name.items():
            # `.data`, so that it stays the same Parameter: tied weights and hooks refer to it
            parameter.data = stacked[name][index]
    return stacked
