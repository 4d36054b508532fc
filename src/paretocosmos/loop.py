"""The training loop: epochs, validations and checkpoints of one seed, or of several together."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from paretocosmos.engine import Adam, Work, choose, make_step
from paretocosmos.errors import ConfigurationError, DivergedError, EngineWarning
from paretocosmos.evaluation import move
from paretocosmos.lane import Lane
from paretocosmos.machine import keep_memory, precise, seeded, threads_for
from paretocosmos.rehearsal import rehearse, split_of
from paretocosmos.run import Run

__all__ = ["Progress", "Trainer"]


@dataclass(frozen=True)
class Progress:
    """Where a training stands; handed to `fit`'s `progress` after every epoch.

    Attributes:
        epoch: epochs done.
        epochs: epochs in all.
        losses: the epoch's mean training loss of every objective, over all seeds.
        hypervolume_val: the last validation's hypervolume, their mean; `None` before the first.
        seconds: training time so far.
        engine: how steps are run.
        folder: the run folder; that of the first seed where several train together.
    """

    epoch: int
    epochs: int
    losses: Mapping[str, float]
    hypervolume_val: float | None
    seconds: float
    engine: str
    folder: Path


class Trainer:
    """Trains lanes to the end, together; `fit` is the verb that runs it.

    All lanes have the same plan but for the seed, and stand at the same epoch.
    """

    def __init__(
        self, lanes: Sequence[Lane], engine: str, progress: Callable[[Progress], None] | None
    ) -> None:
        self.lanes, self.progress = lanes, progress
        self.plan = plan = lanes[0].plan
        keep_memory(plan.device)
        if plan.configuration.precision == "fp64":
            for lane in lanes:
                lane.model.double()
        dtype = next(self.lanes[0].model.parameters()).dtype
        self.train, self.val = (
            move(split_of(plan.problem, name), plan.device, dtype) for name in ("train", "val")
        )
        if len(self.train) < plan.training.groups:
            raise ConfigurationError(
                f"`groups` must be at most the {len(self.train)} training samples, found "
                f"{plan.training.groups}"
            )
        rehearse(lanes[0].model, plan.problem, self.train)
        # multiply-adds of a forward pass, known only for networks without convolutions
        dense = len(plan.problem.input_shape) == 1
        weights = sum(p.numel() for p in plan.model.parameters())
        self.small = weights * plan.training.batch_size * len(lanes) if dense else None
        self.work = self._work()
        self.engine = choose(engine, self.work, lanes[0].model, traceable=plan.traceable)
        self.dtype = dtype

    def _work(self) -> Work:
        plan, stacked = self.plan, len(self.lanes) > 1
        model = self.lanes[0].model
        parameters = (
            _stack([lane.model for lane in self.lanes])
            if stacked
            else {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}
        )
        initial = plan.method.init(len(plan.problem.objectives))
        state = {
            name: (torch.stack([value] * len(self.lanes)) if stacked else value).to(plan.device)
            for name, value in initial.items()
        }
        return Work(
            step=make_step(
                model,
                plan.problem.objectives,
                plan.method,
                prepare=plan.problem.prepare,
                half=plan.configuration.precision == "bf16",
                stacked=stacked,
            ),
            parameters=parameters,
            adam=Adam(parameters, weight_decay=plan.training.weight_decay, stacked=stacked),
            state=state,
            data=self.train,
            batch_size=plan.training.batch_size,
            groups=plan.training.groups,
            buffers=list(model.buffers()),
        )

    def run(self) -> list[Run]:
        """Begin or continue, train to the end, and leave the finished runs in their folders."""
        configuration = self.plan.configuration
        deterministic = configuration.deterministic
        with (
            seeded(self.plan.seed, self.plan.device, deterministic=deterministic),
            precise(configuration.precision),
        ):
            for place, lane in enumerate(self.lanes):
                stacked = len(self.lanes) > 1
                state = self.work.state
                mine = {n: v[place] for n, v in state.items()} if stacked else state
                lane.start(self.work.adam.state(place), mine)
            prepared = False
            while self.lanes[0].epoch < self.plan.training.epochs:
                self._epoch(prepare=not prepared)
                prepared = True
            return self._finish()

    def _epoch(self, *, prepare: bool) -> None:
        plan, training = self.plan, self.plan.training
        epoch = self.lanes[0].epoch
        drawn = [lane.draw(len(self.train)) for lane in self.lanes]
        started = time.perf_counter()
        order, rays = (_joined(part).to(plan.device) for part in zip(*drawn, strict=True))
        self.work.adam.set_learning_rate(training.learning_rate_at(epoch))
        preparing = 0.0
        with threads_for(self.small):
            if prepare:
                self.engine.prepare(order, rays)
                preparing = time.perf_counter() - started
                if self.engine.failure is not None:
                    warnings.warn(
                        f"{self.engine.failure}; training goes on {self.engine.name}, which is "
                        "slower and gives the same",
                        EngineWarning,
                        stacklevel=2,
                    )
            # the one time an epoch is read back
            losses = self.engine.epoch(order, rays).mean(dim=-2).cpu()
        seconds = time.perf_counter() - started - preparing
        diverged: list[DivergedError] = []
        for lane, own in zip(self.lanes, _apart(losses, len(self.lanes)), strict=True):
            try:
                lane.refuse_divergence(own)
            except DivergedError as error:  # the others have done their epoch
                diverged.append(error)
                continue
            numbers = lane.at.numbers
            numbers["seconds"] += seconds
            numbers["seconds_preparing"] += preparing
            numbers["epoch"] += 1
            mean = self._named(own.mean(dim=0))
            if lane.epoch % training.evaluate_every == 0 or lane.epoch == training.epochs:
                lane.validate(self.val, mean)
            lane.save()
        if diverged:
            others = "; leave its seed out and add --resume to go on with the others"
            raise DivergedError(f"{diverged[0]}{others if len(self.lanes) > 1 else ''}")
        if self.progress is not None:
            self.progress(self._standing(losses))

    def _standing(self, losses: Tensor) -> Progress:
        lead = self.lanes[0]
        reached = [lane.hypervolume_val for lane in self.lanes if lane.hypervolume_val is not None]
        return Progress(
            lead.epoch,
            self.plan.training.epochs,
            self._named(losses.flatten(0, -2).mean(dim=0)),
            sum(reached) / len(reached) if reached else None,
            lead.at.numbers["seconds"],
            self.engine.name,
            lead.folder,
        )

    def _named(self, losses: Tensor) -> dict[str, float]:
        return dict(zip(self.plan.problem.names, losses.tolist(), strict=True))

    def _finish(self) -> list[Run]:
        test = move(split_of(self.plan.problem, "test"), self.plan.device, self.dtype)
        failure = self.engine.failure
        engine = self.engine.name if failure is None else f"{self.engine.name}: {failure}"
        together = len(self.lanes)
        return [lane.finish(test, engine=engine, together=together) for lane in self.lanes]


def _stack(models: Sequence[nn.Module]) -> dict[str, Tensor]:
    """The models' parameters stacked by name; each model then lives in its share of the stack."""
    parameters = [{n: p for n, p in m.named_parameters() if p.requires_grad} for m in models]
    stacked = {n: torch.stack([own[n].detach() for own in parameters]) for n in parameters[0]}
    for place, own in enumerate(parameters):
        for name, parameter in own.items():
            parameter.data = stacked[name][place]
    return stacked


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.stack(list(parts))


def _apart(losses: Tensor, lanes: int) -> Sequence[Tensor]:
    """Losses ``[steps, (S,) J]`` lane by lane."""
    return [losses] if lanes == 1 else losses.unbind(1)
