"""The training loop: epochs of steps, validations, checkpoints, and what a finished run leaves."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from paretocosmos import metrics
from paretocosmos.checkpoint import Progressed, load_checkpoint, save_checkpoint, save_tensors
from paretocosmos.engine import Step, describe
from paretocosmos.engine.adam import make_adam, make_update
from paretocosmos.errors import (
    ConfigurationError,
    DataError,
    DivergedError,
    FrontWarning,
    RunError,
)
from paretocosmos.evaluation import evaluate_batch, move
from paretocosmos.files import write_json
from paretocosmos.front import Front
from paretocosmos.machine import seeded, threads_for
from paretocosmos.plan import Plan
from paretocosmos.problems import TabularProblem
from paretocosmos.provenance import provenance
from paretocosmos.rays import even_rays
from paretocosmos.rehearsal import rehearse, split_of
from paretocosmos.run import FORMAT, Run
from paretocosmos.types import Batch, each

__all__ = ["Progress", "Trainer"]


@dataclass(frozen=True)
class Progress:
    """Where a training stands; handed to `fit`'s `progress` after every epoch.

    Attributes:
        epoch: epochs done.
        epochs: epochs in all.
        losses: the epoch's mean training loss of every objective.
        hypervolume_val: the last validation's hypervolume, `None` before the first.
        seconds: training time so far.
        folder: the run folder.
    """

    epoch: int
    epochs: int
    losses: Mapping[str, float]
    hypervolume_val: float | None
    seconds: float
    folder: Path


class Trainer:
    """One training, epoch by epoch, in a folder; `fit` is the verb that runs it."""

    def __init__(
        self, plan: Plan, folder: Path, step: Step, progress: Callable[[Progress], None] | None
    ) -> None:
        self.plan, self.folder, self.step, self.progress = plan, folder, step, progress
        self.checkpoint = folder / "checkpoint" / "last.safetensors"
        self.model = plan.model.to(plan.device)
        if not self.model.training:  # a part that was frozen on purpose stays in its mode
            self.model.train()
        self.parameters = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self.train, self.val = (
            move(split_of(plan.problem, name), plan.device) for name in ("train", "val")
        )
        if len(self.train) < plan.training.groups:
            raise ConfigurationError(
                f"`groups` must be at most the {len(self.train)} training samples, found "
                f"{plan.training.groups}"
            )
        # multiply-adds of a forward pass, known only for networks without convolutions
        dense = len(plan.problem.input_shape) == 1
        weights = sum(p.numel() for p in self.model.parameters())
        self.work = weights * plan.training.batch_size if dense else None
        self.rays = even_rays(plan.training.rays, len(plan.problem.objectives))
        rehearse(self.model, plan.problem, self.train)
        optimiser = make_adam(
            self.parameters.values(),
            learning_rate=plan.training.learning_rate,
            weight_decay=plan.training.weight_decay,
        )
        state = {
            name: value.to(plan.device)
            for name, value in plan.method.init(len(plan.problem.objectives)).items()
        }
        self.at = Progressed(
            self.model,
            optimiser,
            torch.Generator().manual_seed(plan.seed),
            state,
            numbers={"epoch": 0, "evaluations": [], "seconds": 0.0},
        )

    def run(self) -> Run:
        """Begin or continue, train to the end, and leave the finished run in its folder."""
        plan = self.plan
        with seeded(plan.seed, plan.device, deterministic=plan.configuration.deterministic):
            return self._run()

    def _run(self) -> Run:
        try:
            self._begin()
            while self.at.numbers["epoch"] < self.plan.training.epochs:
                self._epoch()
            return self._finish()
        except torch.cuda.OutOfMemoryError as error:
            raise RunError(
                "the GPU is out of memory; lower `batch_size` (--set batch_size=64) or use "
                f"--device cpu; the last good checkpoint is in `{self.folder}`"
            ) from error

    def _begin(self) -> None:
        places = (self.checkpoint.parent, self.folder, *self.folder.parents)
        absent = [place for place in places if not place.exists()]
        try:
            self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
            if self.checkpoint.exists():
                load_checkpoint(self.checkpoint, self.at)
            else:
                write_json(self.folder / "run.json", self._record("training"))
                save_checkpoint(self.checkpoint, self.at)
        except OSError as error:
            if self.folder in absent:
                _remove_begun(self.folder / "run.json", self.checkpoint, absent)
            if isinstance(error, RunError):
                raise
            raise RunError(
                f"cannot create `{self.folder}`: {error.strerror}; choose another --out"
            ) from error

    def _epoch(self) -> None:
        numbers, training = self.at.numbers, self.plan.training
        started = time.perf_counter()
        for group in self.at.optimiser.param_groups:
            group["lr"] = training.learning_rate_at(numbers["epoch"])
        with threads_for(self.work):
            losses = torch.stack(list(self._steps())).mean(dim=1).cpu()
        numbers["seconds"] += time.perf_counter() - started
        self._refuse_divergence(losses)
        numbers["epoch"] += 1
        mean = dict(zip(self.plan.problem.names, losses.mean(dim=0).tolist(), strict=True))
        if numbers["epoch"] % training.evaluate_every == 0 or numbers["epoch"] == training.epochs:
            self._validate(mean)
        save_checkpoint(self.checkpoint, self.at)
        if self.progress is not None:
            last = numbers["evaluations"][-1]["hypervolume_val"] if numbers["evaluations"] else None
            self.progress(
                Progress(
                    numbers["epoch"], training.epochs, mean, last, numbers["seconds"], self.folder
                )
            )

    def _steps(self) -> Iterator[Tensor]:
        """Train one epoch; the losses ``[G, J]`` of each step, still on the device."""
        training, at = self.plan.training, self.at
        device, count = self.plan.device, len(self.train)
        order = torch.randperm(count, generator=at.generator).to(device)
        batches = order.split(training.batch_size)
        update = make_update(at.optimiser)
        objectives = len(self.plan.problem.objectives)
        rays = self.plan.method.sample(objectives, len(batches) * training.groups, at.generator)
        for index, ray in zip(batches, rays.to(device).split(training.groups), strict=True):
            # the last short batch loses at most groups - 1 samples, other ones in every epoch
            usable = len(index) // training.groups * training.groups
            if usable == 0:
                continue
            index = index[:usable]
            batch = Batch(
                each(lambda part, at=index: part.index_select(0, at), self.train.inputs),
                each(lambda part, at=index: part.index_select(0, at), self.train.targets),
            )
            losses, gradients, at.method_state = self.step(
                self.parameters, batch, ray, at.method_state
            )
            update([gradients[name] for name in self.parameters])
            yield losses

    def _refuse_divergence(self, losses: Tensor) -> None:
        """Losses ``[steps, J]`` of an epoch; read once, so a step costs no round trip."""
        epoch = self.at.numbers["epoch"]
        kept = f"the checkpoint of epoch {epoch} is kept in `{self.folder}`"
        way_out = "lower the learning rate (--set learning_rate=1e-4) or look at the data"
        bad = ~torch.isfinite(losses)
        if bool(bad.any()):
            step, objective = bad.nonzero()[0].tolist()
            value = losses[step, objective].item()
            raise DivergedError(
                f"the loss of `{self.plan.problem.names[objective]}` became {value} at step "
                f"{step + 1} of epoch {epoch + 1}; {kept}; {way_out}"
            )
        if not all(bool(torch.isfinite(p).all()) for p in self.parameters.values()):
            raise DivergedError(
                f"the network's weights became NaN or infinite in epoch {epoch + 1} though every "
                f"loss was finite; {kept}; {way_out}"
            )

    def _validate(self, losses: Mapping[str, float]) -> None:
        numbers = self.at.numbers
        with warnings.catch_warnings():
            # an early front may lie beyond the reference point; the final one is warned about
            warnings.simplefilter("ignore", FrontWarning)
            reached = metrics.hypervolume(self._front(self.val, "val"))
        best = max((e["hypervolume_val"] for e in numbers["evaluations"]), default=-math.inf)
        numbers["evaluations"].append(
            {
                "epoch": numbers["epoch"],
                "hypervolume_val": reached,
                "losses": dict(losses),
                "seconds_training": numbers["seconds"],
            }
        )
        if reached > best:
            self.at.best = {k: v.detach().clone() for k, v in self.model.state_dict().items()}

    def _front(self, batch: Batch, split: Literal["val", "test"]) -> Front:
        plan = self.plan
        origin = {"method": plan.configuration.method.name, "seed": plan.seed}
        front = evaluate_batch(
            self.model, plan.problem, batch, self.rays, split=split, provenance=origin
        )
        for name, values in zip(front.names, front.values.T, strict=True):
            if np.isnan(values).all():
                raise DataError(
                    f"the score of `{name}` on `{split}` is not a number at any ray (scores: "
                    f"{front.provenance['scores']}); a group may be missing there: use protocol "
                    "`clean`, or another objective"
                )
        return front

    def _finish(self) -> Run:
        evaluations = self.at.numbers["evaluations"]
        selected = max(evaluations, key=lambda e: (e["hypervolume_val"], -e["epoch"]))
        self.model.load_state_dict(self.at.best)
        self.model.eval()
        test = move(split_of(self.plan.problem, "test"), self.plan.device)
        fronts = {"test": self._front(test, "test"), "val": self._front(self.val, "val")}
        save_tensors(self.folder / "model.safetensors", self.at.best, {"epoch": selected["epoch"]})
        write_json(self.folder / "front.json", fronts["test"].to_dict())
        write_json(self.folder / "front_val.json", fronts["val"].to_dict())
        table = self.plan.problem.table if isinstance(self.plan.problem, TabularProblem) else None
        if table is not None:
            write_json(self.folder / "table.json", table.to_dict())
        record = self._record("finished") | {
            "metrics": {split: _summary(front) for split, front in fronts.items()},
            "epoch_selected": selected["epoch"],
            "seconds_training": self.at.numbers["seconds"],
            "seconds_to_selected": selected["seconds_training"],
            "evaluations": evaluations,
            "engine": describe(self.step),
        }
        write_json(self.folder / "run.json", record)
        return Run(self.folder, record, fronts["test"], fronts["val"], self.model, table)

    def _record(self, status: str) -> dict[str, Any]:
        plan = self.plan
        return {
            "format": FORMAT,
            "status": status,
            **plan.configuration.to_dict(),
            "name": plan.problem.name,
            "about": dict(plan.problem.about),
            "protocol": plan.problem.protocol,
            "objectives": len(plan.problem.objectives),
            "names": list(plan.problem.names),
            "input_shape": list(plan.problem.input_shape),
            "outputs": plan.problem.outputs
            if isinstance(plan.problem.outputs, int)
            else dict(plan.problem.outputs),
            "parameters": sum(p.numel() for p in plan.model.parameters()),
            "caveats": list(plan.problem.caveats),
            **provenance(plan.device),
        }


def _summary(front: Front) -> dict[str, float | None]:
    """The front's numbers; one that does not exist (an angle to a front of zeros) is `None`."""
    return {k: v if math.isfinite(v) else None for k, v in metrics.summary(front).items()}


def _remove_begun(record: Path, checkpoint: Path, folders: Iterable[Path]) -> None:
    """Take back a run that could not be begun; only what this process may have made."""
    for path in (record, checkpoint):
        with suppress(OSError):
            path.unlink()
    for path in folders:
        with suppress(OSError):
            path.rmdir()
