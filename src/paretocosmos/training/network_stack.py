"""Networks that train as one: what they advance, and how."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paretocosmos.conditioning import TrainingTask, training_task
from paretocosmos.config.plan import Plan
from paretocosmos.config.promises import from_outside
from paretocosmos.methods import Method
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.engine import Engine, choose
from paretocosmos.training.engine.batch_source import Feed
from paretocosmos.training.engine.eager import Work
from paretocosmos.training.engine.optimizer import Optimizer, Recipe, undecayed
from paretocosmos.training.engine.step import SCALES, make_step
from paretocosmos.training.engine.tracing import Recorded
from paretocosmos.training.loss_scales import loss_scales


@dataclass(frozen=True)
class Stack:
    """One network, or several stacked along a first axis, and the engine that runs their steps."""

    work: Work
    engine: Engine
    networks: int

    @property
    def frozen(self) -> bool:
        """Whether Python decides something in its steps, though a declaration says otherwise."""
        step = self.work.step
        return isinstance(step, Recorded) and step.frozen

    def state(self, place: int) -> dict[str, Tensor]:
        """The method's state of one of them, not a copy."""
        state = self.work.state
        return {n: v[place] for n, v in state.items()} if self.networks > 1 else state

    def epoch(self, drawn: Sequence[tuple[Tensor, Tensor]], device: torch.device) -> Tensor:
        """Train for an epoch; the mean losses of the groups, ``[steps, networks, J]``."""
        order, rays = self._joined(drawn, device)
        losses = self.engine.epoch(order, rays).mean(dim=-2)
        return losses if self.networks > 1 else losses.unsqueeze(1)

    def prepare(self, drawn: Sequence[tuple[Tensor, Tensor]], device: torch.device) -> None:
        """Record, compile or capture what an epoch needs, without training."""
        self.engine.prepare(*self._joined(drawn, device))

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside, the networks have their averaged weights, where weights are averaged."""
        with self.work.optimizer.averaged():
            yield

    def begin(self, method: Method, epoch: int) -> None:
        """Let the method know that an epoch begins."""
        for name, value in method.at_epoch(epoch, self.work.state).items():
            if value is not self.work.state[name]:
                self.work.state[name].copy_(value)

    def _joined(
        self, drawn: Sequence[tuple[Tensor, Tensor]], device: torch.device
    ) -> tuple[Tensor, Tensor]:
        order, rays = (
            parts[0] if self.networks == 1 else torch.stack(parts)
            for parts in zip(*drawn, strict=True)
        )
        return order.to(self.work.feed.device), rays.to(device)


def make_stack(
    networks: Sequence[nn.Module],
    plans: Sequence[Plan],
    feed: Feed,
    engine: str,
    processes: Processes,
) -> Stack:
    """Networks of one architecture as a stack, ready to train.

    Args:
        networks: each then uses its share of the stack.
        plans: of each, which differ in the seed at most.
        feed: where batches come from.
        engine: how steps are run, by name.
        processes: those that share the steps.
    """
    plan, count = plans[0], len(networks)
    tasks = [training_task(network, plan.problem.objectives) for network in networks]
    initial = [_initial_state(*one) for one in zip(networks, tasks, plans, strict=True)]
    networks = [task.network for task in tasks]
    model = networks[0]
    source = plan.problem.source("train")
    parameters = (
        _stacked(networks)
        if count > 1
        else {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}
    )
    state = {
        name: (torch.stack([one[name] for one in initial]) if count > 1 else value.clone())
        for name, value in initial[0].items()
    }
    work = Work(
        step=make_step(
            model,
            tasks[0].objectives,
            plan.method,
            prepare=plan.problem.prepare,
            half=plan.configuration.precision == "bf16",
            stacked=count > 1,
            accumulate=plan.training.accumulate,
            processes=processes,
            tasks=() if source is None else tuple(source.parts),
        ),
        parameters=parameters,
        optimizer=Optimizer(parameters, _recipe(model, plan, feed), stacked=count > 1),
        state=state,
        feed=feed,
        batch_size=plan.training.batch_size,
        groups=plan.training.groups,
        buffers=list(model.buffers()),
        from_outside=[own for part in (*plan.parts, model) for own in from_outside(part)],
    )
    chosen = choose(engine, work, model, traceable=plan.traceable, steps=_steps(plan, feed))
    return Stack(work, chosen, count)


def _initial_state(network: nn.Module, task: TrainingTask, plan: Plan) -> dict[str, Tensor]:
    """What the method remembers before the first step, and the losses' scales."""
    found = dict(plan.method.init(len(plan.problem.objectives)))
    # a task of its own has losses of one scale
    if plan.training.scale_losses and task.fit is None:
        found[SCALES] = loss_scales(network, plan.problem, seed=plan.seed)
    return {name: value.to(plan.device) for name, value in found.items()}


def _steps(plan: Plan, feed: Feed) -> int:
    """How many steps a training has."""
    return plan.training.epochs * -(-len(feed) // plan.training.batch_size)


def _recipe(model: nn.Module, plan: Plan, feed: Feed) -> Recipe:
    """How a network's parameters are updated."""
    training, steps = plan.training, _steps(plan, feed)
    return Recipe(
        training.optimizer,
        training.weight_decay,
        undecayed(model),
        min(1.0, 1 / (training.average * steps)) if training.average else 0.0,
        training.clip,
    )


def _stacked(models: Sequence[nn.Module]) -> dict[str, Tensor]:
    """The models' parameters stacked by name; each model then uses its share of the stack."""
    parameters = [{n: p for n, p in m.named_parameters() if p.requires_grad} for m in models]
    stacked = {n: torch.stack([own[n].detach() for own in parameters]) for n in parameters[0]}
    for place, own in enumerate(parameters):
        for name, parameter in own.items():
            parameter.data = stacked[name][place]
    return stacked
