"""A seed run: one seed's training. Its networks, its generator, and the folder it leaves behind."""

import copy
import dataclasses
import json
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.config.plan import Plan
from paretocosmos.errors import DataError, DivergedError, FindingWarning, FrontWarning, RunError
from paretocosmos.evaluation.diagnostics import diagnose
from paretocosmos.evaluation.evaluate import evaluate_shares
from paretocosmos.evaluation.postprocessing import compute_quality, fit_postprocessing
from paretocosmos.evaluation.samples import Shares
from paretocosmos.io.files import write_json
from paretocosmos.methods import Method, State
from paretocosmos.nn.conditioning import Conditioning, list_networks, training_task
from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import even_rays
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import TableProblem
from paretocosmos.runs.checkpoint import (
    TrainingState,
    checkpoint_path,
    find_flaw,
    join_states,
    list_checkpoints,
    load_checkpoint,
    remove_other_checkpoints,
    save_checkpoint,
)
from paretocosmos.runs.folders import hash_run
from paretocosmos.runs.record import begin_record, measure_fronts, write_run
from paretocosmos.runs.run import Run
from paretocosmos.runtime.device import peak_memory, to_device_layout
from paretocosmos.runtime.distributed import ALONE, Processes
from paretocosmos.training.calibration import useful_ends
from paretocosmos.training.callbacks import Evaluation


def judged_front(
    model: nn.Module,
    plan: Plan,
    shares: Shares,
    rays: Tensor,
    processes: Processes,
    *,
    split: str,
) -> Front:
    """The front of a split, with its origin; refuses one without a number in it."""
    fixed = plan.method.fixed_rays(len(plan.problem.objectives))
    networks = None if fixed is None else len(fixed)  # None: one for all rays
    origin = {"method": plan.configuration.label, "seed": plan.seed, "networks": networks}
    front = evaluate_shares(
        model, plan.problem, shares, rays, split=split, provenance=origin, processes=processes
    )
    for name, values in zip(front.names, front.values.T, strict=True):
        if np.isnan(values).all():
            raise DataError(
                f"the score of `{name}` on `{split}` is not a number at any ray (scores: "
                f"{front.provenance['scores']}); a group may be missing there: use protocol "
                "`clean`, or another objective"
            )
    return front


def evaluate_equal_weights(
    model: nn.Module, problem: Problem, front: Front, test: Shares, processes: Processes
) -> dict[str, dict[str, float | None]]:
    """What one network for all rays reaches with equal weights, where the paper judges faces.

    Args:
        model: the network.
        problem: what it was trained on.
        front: on test; with two objectives and an odd number of rays it has that ray.
        test: what to evaluate it on where the front has not.
        processes: those that share the samples.
    """
    even = 1 / front.objectives
    there = np.abs(front.rays - even).max(axis=1) < 1e-6
    if there.any():
        one = front.take([int(there.argmax())])
    else:
        ray = torch.full((1, front.objectives), even)
        one = evaluate_shares(model, problem, test, ray, split="test", processes=processes)
    found = one.to_dict()
    return {
        "values": dict(zip(one.names, found["values"][0], strict=True)),
        "metrics": {name: value for name, (value,) in found["metrics"].items()},
    }


def examined(
    model: nn.Module,
    plan: Plan,
    fronts: Mapping[str, Front],
    splits: Mapping[str, Shares],
    processes: Processes,
) -> dict[str, Any]:
    """What a record says of one network for all rays; what it should say aloud is warned of.

    Args:
        model: the network.
        plan: what it was trained by.
        fronts: on val and test.
        splits: those two.
        processes: those that share the samples, of which the first one warns.
    """
    problem = plan.problem
    if plan.method.fixed_rays(len(problem.objectives)) is not None:
        return {"centre": None, "sensitivity": None, "findings": []}
    scaled = plan.training.scale_losses
    learned = training_task(model, problem.objectives).fit is None
    found = diagnose(model, problem, fronts["val"], splits["val"], scaled=scaled, learned=learned)
    if processes.first:
        for finding in found.findings:
            warnings.warn(finding.text, FindingWarning, stacklevel=2)
    return {
        "centre": evaluate_equal_weights(model, problem, fronts["test"], splits["test"], processes),
        "sensitivity": found.sensitivity if math.isfinite(found.sensitivity) else None,
        "findings": [dataclasses.asdict(finding) for finding in found.findings],
    }


def networks_told(
    fixed: Tensor | None,
    selected: Sequence[Mapping[str, Any]],
    states: Sequence[State],
    method: Method,
) -> list[dict[str, Any]]:
    """What there is to say of each network: its ray, its epoch, and what the method noted."""
    rays = [None] if fixed is None else fixed.tolist()
    return [
        {"ray": ray, "epoch_selected": one["epoch"], **method.report(state)}
        for ray, one, state in zip(rays, selected, states, strict=True)
    ]


def mean_losses(losses: Tensor, fixed: Tensor | None, names: Sequence[str]) -> dict[str, float]:
    """Losses ``[steps, K, J]`` of an epoch by name, their mean over steps and networks.

    A network counts for an objective by its ray's share: one that is not trained for it at all says
    nothing of it.

    Args:
        losses: of all steps.
        fixed: the rays ``[K, J]`` of the networks, if each has one.
        names: the objectives'.
    """
    own = losses.mean(dim=0)
    shares = torch.ones_like(own) if fixed is None else fixed.to(own)
    means = (own * shares).sum(dim=0) / shares.sum(dim=0)
    return dict(zip(names, means.tolist(), strict=True))


def check_finite(
    losses: Tensor, model: nn.Module, *, names: Sequence[str], epoch: int, kept: str
) -> None:
    """Refuse to go on from NaN or infinity.

    Args:
        losses: of an epoch's steps, of every network, ``[steps, K, J]``.
        model: whose weights are looked at too.
        names: the objectives'.
        epoch: which one it was.
        kept: what is left to go on from, in words.
    """
    bad = ~torch.isfinite(losses)
    if bool(bad.any()):
        step, network, objective = bad.nonzero()[0].tolist()
        value = losses[step, network, objective].item()
        which = f" of network {network + 1}" if losses.shape[1] > 1 else ""
        raise DivergedError(
            f"the loss of `{names[objective]}`{which} became {value} at step {step + 1} of epoch "
            f"{epoch}; {kept}; lower `learning_rate`, to 1e-4 for instance, or look at the data"
        ).with_hint({"learning_rate": "1e-4"})
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise DivergedError(
            f"the network's weights became NaN or infinite in epoch {epoch} though every loss was "
            f"finite; {kept}; lower `learning_rate`, to 1e-4 for instance, or look at the data"
        ).with_hint({"learning_rate": "1e-4"})


class SeedRun:
    """One seed's training: what it draws, how it is judged, and what it writes.

    The loop trains its networks, one or several, alone or stacked with others; `at` is how far it
    has come.
    """

    def __init__(self, plan: Plan, folder: Path, processes: Processes = ALONE) -> None:
        self.plan, self.folder, self.processes = plan, folder, processes
        # a copy: plans outlive a training that runs out of memory, and must not hold on to it
        self.model = to_device_layout(copy.deepcopy(plan.model), plan.device)
        if not self.model.training:  # a part that was frozen on purpose stays in its mode
            self.model.train()
        self.networks = list_networks(self.model)
        objectives = len(plan.problem.objectives)
        self.task = training_task(self.networks[0], plan.problem.objectives)
        self.trained = [objective.name for objective in self.task.objectives]
        self.fixed = plan.method.fixed_rays(objectives)
        self.rays = (
            even_rays(plan.training.rays, objectives, ends=plan.training.calibrate)
            if self.fixed is None
            else self.fixed
        )
        self.generator = torch.Generator().manual_seed(plan.seed)
        self.at: TrainingState

    def start(
        self,
        optimisers: Sequence[Mapping[str, Tensor]],
        method_states: Sequence[Mapping[str, Tensor]],
        *,
        epoch: int,
    ) -> None:
        """Begin, or continue from a checkpoint in the folder.

        Args:
            optimisers: every network's moments, not copies.
            method_states: every network's state of the method, not copies.
            epoch: the one to go on from; only the first process need know.
        """
        self.states = method_states
        optimiser, method_state = join_states(optimisers), join_states(method_states)
        numbers = {
            "run": hash_run(self.plan),
            "epoch": 0,
            "seeds_together": 1,
            "evaluations": [],
            "selected": [None] * len(self.networks),
            **{f"seconds{part}": 0.0 for part in ("", "_preparing", "_evaluating", "_waiting")},
        }
        self.at = TrainingState(
            self.model, optimiser, self.generator, method_state, numbers=numbers
        )
        self.saved = [epoch]  # the epochs of the checkpoints to keep, the last one last
        self.processes.together(lambda: self._begin(epoch))
        self._follow()
        self.saved = [self.epoch]

    def _begin(self, epoch: int) -> None:
        """Take up a checkpoint in the folder, or write the first; only one process does."""
        if not self.processes.first:
            return
        there = list_checkpoints(self.folder).get(epoch)
        if there is not None and (epoch > 0 or find_flaw(there, epoch) is None):
            from paretocosmos.runs.schema import check_checkpoint

            load_checkpoint(there, self.at)
            check_checkpoint(self.at.numbers, there)
            return
        record, first = self.folder / "run.json", checkpoint_path(self.folder, 0)
        begun = record.exists()
        try:
            first.parent.mkdir(parents=True, exist_ok=True)
            write_json(record, begin_record(self.plan, self.fixed, "training"))
            self.save()
        except OSError as error:
            if not begun:  # take back a run that could not be begun
                for path in (record, first):
                    with suppress(OSError):
                        path.unlink()
                with suppress(OSError):
                    first.parent.rmdir()
            if isinstance(error, RunError):
                raise
            raise RunError(
                f"cannot create `{self.folder}`: {error.strerror}; choose another `out`"
            ).with_hint({"out": None}) from error

    def _follow(self) -> None:
        """Stand where the first process stands, which alone has read the checkpoint."""
        at, processes = self.at, self.processes
        if not processes.joined:
            return
        at.numbers = json.loads(processes.broadcast_bytes(json.dumps(at.numbers).encode()))
        network = self.model.state_dict()
        if any(selected is not None for selected in at.numbers["selected"]):
            # in one order, and where the network is, as in the other processes
            at.best = {
                n: at.best.get(n, own).to(own.device, copy=True) for n, own in network.items()
            }
        kept = (network, at.optimiser, at.method_state, at.best)
        processes.follow([tensor for part in kept for tensor in part.values()])
        drawn = processes.broadcast_bytes(self.generator.get_state().numpy().tobytes())
        self.generator.set_state(torch.frombuffer(bytearray(drawn), dtype=torch.uint8))

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return int(self.at.numbers["epoch"])

    @property
    def hypervolume_val(self) -> float | None:
        """Of the last validation; `None` before the first, or where it is not known."""
        evaluations = self.at.numbers["evaluations"]
        return evaluations[-1]["hypervolume_val"] if evaluations else None

    @property
    def ended(self) -> bool:
        """Whether its patience is at an end: no validation of late was better than one before."""
        numbers, patience = self.at.numbers, self.plan.training.patience
        if not patience or any(selected is None for selected in numbers["selected"]):
            return False
        best = max(selected["epoch"] for selected in numbers["selected"])
        later = [one for one in numbers["evaluations"] if one["epoch"] > best]
        return len(later) >= patience

    def draw(self, samples: int) -> list[tuple[Tensor, Tensor]]:
        """An epoch's order ``[samples]`` and rays ``[steps * G, J]``, on the CPU, per network."""
        training = self.plan.training
        steps, groups = -(-samples // training.batch_size), training.groups
        drawn = []
        for network in range(len(self.networks)):
            order = torch.randperm(samples, generator=self.generator)
            objectives = len(self.plan.problem.objectives)
            if self.task.fit is not None:  # no ray is seen, so none is drawn
                rays = torch.full((steps * groups, objectives), 1 / objectives)
            elif self.fixed is None:
                rays = self.plan.method.sample_steps(objectives, steps, groups, self.generator)
            else:
                rays = self.fixed[network].expand(steps * groups, -1)
            drawn.append((order, rays))
        return drawn

    def refuse_divergence(self, losses: Tensor) -> None:
        """Losses ``[steps, K, J]`` of an epoch; read once, so a step costs no round trip."""
        kept = f"the checkpoint of epoch {self.saved[-1]} is kept in `{self.folder}`"
        check_finite(losses, self.model, names=self.trained, epoch=self.epoch + 1, kept=kept)

    def validate(self, val: Shares) -> Evaluation:
        """Judge the networks as they are, and keep each that is the best of its own so far."""
        numbers, started = self.at.numbers, time.perf_counter()
        fit_postprocessing(self.task, self.plan.problem, quick=True)
        with warnings.catch_warnings():
            # an early front may lie beyond the reference point; the final one is warned about
            warnings.simplefilter("ignore", FrontWarning)
            front = self._front(val, "val")
            reached = metrics.hypervolume(front)
            own = [front] if self.fixed is None else [front.take([k]) for k in range(len(front))]
            qualities = [self.plan.method.quality(one) for one in own]
            if self.task.fit is not None:
                qualities = [compute_quality(self.task, self.plan.problem, val)]
        evaluation = {
            "epoch": numbers["epoch"],
            "hypervolume_val": reached if reached >= 0 else None,
            "values": front.to_dict()["values"],  # its rays are those of the last one
            "losses": numbers.pop("unjudged"),
            "seconds_training": numbers["seconds"],
        }
        numbers["evaluations"].append(evaluation)
        for k, quality in enumerate(qualities):
            before = numbers["selected"][k]
            if before is None or quality > before["quality"]:
                self._keep(k)
                numbers["selected"][k] = {
                    "epoch": numbers["epoch"],
                    "quality": quality,
                    "seconds_training": numbers["seconds"],
                    "front_val": own[k].to_dict(),
                }
        numbers["seconds_evaluating"] += time.perf_counter() - started
        return Evaluation(self.folder, self.epoch, front, reached)

    def _keep(self, k: int) -> None:
        """Remember a network as it is now, in the names of the whole model."""
        (prefix,) = (n for n, m in self.model.named_modules() if m is self.networks[k])
        start = f"{prefix}." if prefix else ""
        for name, value in self.model.state_dict().items():
            if name.startswith(start) or name not in self.at.best:
                self.at.best[name] = value.detach().clone()

    def save(self) -> None:
        """Write the checkpoint; those before are kept until `tidy`."""
        if self.processes.first:
            save_checkpoint(checkpoint_path(self.folder, self.epoch), self.at)
        self.saved = [self.saved[-1], self.epoch]

    def tidy(self) -> None:
        """Keep the last two checkpoints; only when all seeds of the stack have written theirs."""
        if self.processes.first:
            remove_other_checkpoints(self.folder, self.saved)

    def finish(self, val: Shares, test: Shares, said: Mapping[str, str], *, samples: int) -> Run:
        """Take the best epoch's network and leave the finished run in the folder.

        Args:
            val: the split it was selected on, which calibrates it.
            test: the split the front is of.
            said: how steps were run and where the data was, for the record.
            samples: in an epoch of one seed.
        """
        numbers, plan = self.at.numbers, self.plan
        # as many as trained, of which a kill may have let some finish before
        together = numbers["seeds_together"]
        # a rate of all seeds together, as `Progress` has it
        seconds, selected = numbers["seconds"], numbers["selected"]
        seen = samples * together * numbers["epoch"] * len(self.networks)
        last = max(selected, key=lambda one: one["epoch"])
        self.model.load_state_dict(self.at.best)
        self.model.eval()
        judged = [Front(**one["front_val"]) for one in selected]
        fronts = {"val": judged[0].join(*judged[1:])}
        fitted = self.task.fit is not None
        calibrates = plan.training.calibrate and self.fixed is None and not fitted
        if calibrates and isinstance(self.model, Conditioning):
            self.model.calibrate(useful_ends(self.model, plan.problem, val))
        if calibrates or fitted:
            fit_postprocessing(self.task, plan.problem)
            self.at.best = dict(self.model.state_dict())
            fronts["val"] = self._front(val, "val")
        fronts["test"] = self._front(test, "test")
        table = plan.problem.table if isinstance(plan.problem, TableProblem) else None
        record = begin_record(plan, self.fixed, "finished") | {
            **measure_fronts(fronts),
            **examined(self.model, plan, fronts, {"val": val, "test": test}, self.processes),
            "epoch_selected": last["epoch"],
            "networks": networks_told(self.fixed, selected, self.states, plan.method),
            "seconds_training": seconds,
            "seconds_to_selected": last["seconds_training"],
            "seconds_preparing": numbers["seconds_preparing"],
            "seconds_evaluating": numbers["seconds_evaluating"],
            "samples_per_second": seen / seconds if seconds else None,
            "share_waiting": numbers["seconds_waiting"] / seconds if seconds else 0.0,
            "peak_memory": peak_memory(plan.device),
            "seeds_together": together,
            "processes": self.processes.count,
            "evaluations": numbers["evaluations"],
            **said,
        }
        if self.processes.first:
            record |= write_run(self.folder, record, self.at.best, fronts, table)
        return Run(
            self.folder, record, fronts["test"], fronts["val"], self.model, table, plan.problem
        )

    def _front(self, shares: Shares, split: Literal["val", "test"]) -> Front:
        return judged_front(self.model, self.plan, shares, self.rays, self.processes, split=split)
