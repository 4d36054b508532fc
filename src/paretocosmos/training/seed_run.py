"""`SeedRun`: one seed's training, with its networks, its generator and its run folder."""

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
from torch import Tensor

from paretocosmos.config.plan import Plan
from paretocosmos.errors import DataError, DivergedError, FindingWarning, FrontWarning, RunError
from paretocosmos.evaluation.diagnostics import diagnose
from paretocosmos.evaluation.evaluate import evaluate_shares
from paretocosmos.evaluation.postprocessing import compute_quality, fit_postprocessing
from paretocosmos.evaluation.samples import Shares
from paretocosmos.io.files import write_json
from paretocosmos.nn.conditioning import Conditioning, list_networks, training_task
from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import even_rays
from paretocosmos.problems.tables import TabularProblem
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
from paretocosmos.runtime.device import get_peak_memory, to_device_layout
from paretocosmos.runtime.distributed import ALONE, Processes
from paretocosmos.training.calibration import find_useful_ends
from paretocosmos.training.callbacks import Evaluation
from paretocosmos.training.progress import EpochSteps


class SeedRun:
    """One seed's training: draw samples and rays, validate, select, save and finish.

    The loop trains its networks, one or several, alone or stacked with others; `state` says how far
    it has come.
    """

    def __init__(self, plan: Plan, folder: Path, processes: Processes = ALONE) -> None:
        self.plan, self.folder, self.processes = plan, folder, processes
        # a copy: plans outlive a training that runs out of memory, and must not keep it in memory
        self.model = to_device_layout(copy.deepcopy(plan.model), plan.device)
        # `train()` on the whole would also switch layers that the caller froze in evaluation mode
        if not self.model.training:
            self.model.train()
        self.networks = list_networks(self.model)
        objectives = len(plan.problem.objectives)
        self.task = training_task(self.networks[0], plan.problem.objectives)
        self.loss_names = [objective.name for objective in self.task.objectives]
        self.fixed_rays = plan.method.fixed_rays(objectives)
        self.rays = (
            even_rays(plan.training.rays, objectives, ends=plan.training.calibrate)
            if self.fixed_rays is None
            else self.fixed_rays
        )
        self.generator = torch.Generator().manual_seed(plan.seed)  # as if trained alone
        self.state: TrainingState

    def start(
        self,
        optimisers: Sequence[Mapping[str, Tensor]],
        method_states: Sequence[Mapping[str, Tensor]],
        *,
        epoch: int,
    ) -> None:
        """Begin, or continue from a checkpoint in the folder.

        Args:
            optimisers: every network's moments, not copies: a checkpoint is loaded into them.
            method_states: every network's state of the method, not copies either.
            epoch: the epoch to go on from; only the first process needs to know it.
        """
        self.method_states = method_states
        optimiser, method_state = join_states(optimisers), join_states(method_states)
        numbers = {
            "run": hash_run(self.plan),
            "epoch": 0,
            "seeds_together": 1,
            "evaluations": [],
            "selected": [None] * len(self.networks),
            "seconds": 0.0,
            "seconds_preparing": 0.0,
            "seconds_evaluating": 0.0,
            "seconds_waiting": 0.0,
        }
        self.state = TrainingState(
            self.model, optimiser, self.generator, method_state, numbers=numbers
        )
        self.saved = [epoch]  # the epochs of the checkpoints to keep, in order
        self.processes.together(lambda: self._load_or_create(epoch))
        self._copy_from_first()
        self.saved = [self.epoch]

    def _load_or_create(self, epoch: int) -> None:
        """Load a checkpoint of the folder, or write the first one; only one process does."""
        if not self.processes.first:
            return
        checkpoint = list_checkpoints(self.folder).get(epoch)
        # a damaged checkpoint of epoch 0 can be written again; later ones were checked when chosen
        if checkpoint is not None and (epoch > 0 or find_flaw(checkpoint, epoch) is None):
            load_checkpoint(checkpoint, self.state)
            return
        record, first = self.folder / "run.json", checkpoint_path(self.folder, 0)
        existed = record.exists()
        try:
            first.parent.mkdir(parents=True, exist_ok=True)
            write_json(record, begin_record(self.plan, self.fixed_rays, "training"))
            self.save()
        except OSError as error:
            if not existed:  # leave nothing behind that looks like a run
                for path in (record, first):
                    with suppress(OSError):
                        path.unlink()
                with suppress(OSError):
                    first.parent.rmdir()
            if isinstance(error, RunError):
                raise
            raise RunError(
                f"cannot create `{self.folder}`: {error.strerror}; choose another `out`"
            ) from error

    def _copy_from_first(self) -> None:
        """Copy the state of the first process, which alone has read the checkpoint."""
        state, processes = self.state, self.processes
        if not processes.joined:
            return
        state.numbers = json.loads(processes.broadcast_bytes(json.dumps(state.numbers).encode()))
        weights = self.model.state_dict()
        if any(selected is not None for selected in state.numbers["selected"]):
            # tensors are broadcast one by one: the same order and device in all processes
            state.best = {
                name: state.best.get(name, weight).to(weight.device, copy=True)
                for name, weight in weights.items()
            }
        by_name = (weights, state.optimiser, state.method_state, state.best)
        processes.follow([tensor for tensors in by_name for tensor in tensors.values()])
        generator = processes.broadcast_bytes(self.generator.get_state().numpy().tobytes())
        self.generator.set_state(torch.frombuffer(bytearray(generator), dtype=torch.uint8))

    @property
    def epoch(self) -> int:
        """The number of epochs done."""
        return int(self.state.numbers["epoch"])

    @property
    def hypervolume_val(self) -> float | None:
        """The hypervolume of the last validation; `None` before the first, or if it is NaN."""
        evaluations = self.state.numbers["evaluations"]
        return evaluations[-1]["hypervolume_val"] if evaluations else None

    @property
    def out_of_patience(self) -> bool:
        """True if none of the last `patience` validations improved a network."""
        numbers, patience = self.state.numbers, self.plan.training.patience
        if not patience or any(selected is None for selected in numbers["selected"]):
            return False
        best = max(selected["epoch"] for selected in numbers["selected"])
        later = [e for e in numbers["evaluations"] if e["epoch"] > best]
        return len(later) >= patience

    def draw_epoch(self, samples: int) -> list[tuple[Tensor, Tensor]]:
        """Draw each network's order ``[samples]`` and rays ``[steps * G, J]``, on the CPU."""
        training, objectives = self.plan.training, len(self.plan.problem.objectives)
        steps, per_step = -(-samples // training.batch_size), training.rays_per_batch
        count = steps * per_step
        draws = []
        for network in range(len(self.networks)):
            order = torch.randperm(samples, generator=self.generator)
            if self.task.fit is not None:  # the network takes no ray, so none is drawn
                rays = torch.full((count, objectives), 1 / objectives)
            elif self.fixed_rays is None:
                sample_steps = self.plan.method.sample_steps
                rays = sample_steps(objectives, steps, per_step, self.generator)
            else:
                rays = self.fixed_rays[network].expand(count, -1)
            draws.append((order, rays))
        return draws

    def check_divergence(self, losses: Tensor) -> None:
        """Raise if a loss of an epoch ``[steps, K, J]``, or a weight after it, is not finite.

        It is checked once an epoch: after every step it would wait for the device.
        """
        infinite = ~torch.isfinite(losses)
        if bool(infinite.any()):
            step, network, objective = infinite.nonzero()[0].tolist()
            value = losses[step, network, objective].item()
            network_text = f" of network {network + 1}" if losses.shape[1] > 1 else ""
            symptom = (
                f"the loss of `{self.loss_names[objective]}`{network_text} became {value} at step "
                f"{step + 1} of epoch {self.epoch + 1}"
            )
        elif not all(bool(torch.isfinite(p).all()) for p in self.model.parameters()):
            symptom = (
                f"the network's weights became NaN or infinite in epoch {self.epoch + 1} though "
                "every loss was finite"
            )
        else:
            return
        raise DivergedError(
            f"{symptom}; the checkpoint of epoch {self.saved[-1]} is kept in `{self.folder}`; "
            "lower `learning_rate`, to 1e-4 for instance, or look at the data"
        )

    def compute_mean_losses(self, losses: Tensor) -> dict[str, float]:
        """Compute the mean of an epoch's losses ``[steps, K, J]`` over steps and networks, by name.

        A network counts for an objective by its weight in the network's ray: one that is not
        trained for it at all says nothing about it.
        """
        by_network = losses.mean(dim=0)
        weights = torch.ones_like(by_network)
        if self.fixed_rays is not None:
            weights = self.fixed_rays.to(by_network)
        means = (by_network * weights).sum(dim=0) / weights.sum(dim=0)
        return dict(zip(self.loss_names, means.tolist(), strict=True))

    def add_epoch(self, steps: EpochSteps, *, seeds_together: int) -> None:
        """Count an epoch and the time it took."""
        numbers = self.state.numbers
        numbers["seconds"] += steps.seconds
        numbers["seconds_preparing"] += steps.preparing
        numbers["seconds_waiting"] += steps.waited
        numbers["epoch"] += 1
        numbers["seeds_together"] = seeds_together

    def validate(self, val: Shares) -> Evaluation:
        """Evaluate the networks on validation, and save the weights of each that improved."""
        numbers, started = self.state.numbers, time.perf_counter()
        fit_postprocessing(self.task, self.plan.problem, quick=True)  # in full at the end
        with warnings.catch_warnings():
            # an early front may lie beyond the reference point; the final one is warned about
            warnings.simplefilter("ignore", FrontWarning)
            front = self._evaluate(val, "val")
            volume = metrics.hypervolume(front)
            # a network for one ray is selected by its own point
            fronts = [front]
            if self.fixed_rays is not None:
                fronts = [front.take([k]) for k in range(len(front))]
            if self.task.fit is None:
                qualities = [self.plan.method.quality(front) for front in fronts]
            else:
                qualities = [compute_quality(self.task, self.plan.problem, val)]
        evaluation = {
            "epoch": numbers["epoch"],
            "hypervolume_val": volume if volume >= 0 else None,  # NaN has no JSON form
            "values": front.to_dict()["values"],  # all evaluations have the rays of the last one
            "losses": numbers.pop("unjudged"),  # the note has served
            "seconds_training": numbers["seconds"],
        }
        numbers["evaluations"].append(evaluation)
        for k, quality in enumerate(qualities):
            best = numbers["selected"][k]
            if best is None or quality > best["quality"]:
                self._copy_to_best(k)
                numbers["selected"][k] = {
                    "epoch": numbers["epoch"],
                    "quality": quality,
                    "seconds_training": numbers["seconds"],
                    "front_val": fronts[k].to_dict(),
                }
        numbers["seconds_evaluating"] += time.perf_counter() - started
        return Evaluation(self.folder, self.epoch, front, volume)

    def _copy_to_best(self, k: int) -> None:
        """Copy the weights of network k to the best ones, under their names in the whole model."""
        (prefix,) = (n for n, m in self.model.named_modules() if m is self.networks[k])
        start = f"{prefix}." if prefix else ""
        best = self.state.best
        for name, value in self.model.state_dict().items():
            if name.startswith(start) or name not in best:
                best[name] = value.detach().clone()

    def save(self) -> None:
        """Write the checkpoint; earlier ones stay until `remove_old_checkpoints`."""
        if self.processes.first:
            save_checkpoint(checkpoint_path(self.folder, self.epoch), self.state)
        self.saved = [self.saved[-1], self.epoch]  # two: the newest may be damaged

    def remove_old_checkpoints(self) -> None:
        """Remove all but the last two checkpoints, once all seeds of the stack have saved."""
        if self.processes.first:
            remove_other_checkpoints(self.folder, self.saved)

    def finish(self, val: Shares, test: Shares, notes: Mapping[str, str], *, samples: int) -> Run:
        """Load the best epoch's network, calibrate and evaluate it, and write the finished run.

        Args:
            val: the split it was selected on, which calibrates it.
            test: the split of the final front.
            notes: the engine and the place of the data, for the record.
            samples: samples in an epoch of one seed.
        """
        numbers, plan, state = self.state.numbers, self.plan, self.state
        selected = numbers["selected"]
        self.model.load_state_dict(state.best)
        self.model.eval()
        selected_fronts = [Front(**network["front_val"]) for network in selected]
        fronts = {"val": selected_fronts[0].join(*selected_fronts[1:])}
        adjusted = self.task.fit is not None
        calibrated = plan.training.calibrate and self.fixed_rays is None and not adjusted
        if calibrated and isinstance(self.model, Conditioning):
            self.model.calibrate(find_useful_ends(self.model, plan.problem, val))
        if calibrated or adjusted:
            # both change what a ray means, so the front of the selection is out of date
            fit_postprocessing(self.task, plan.problem)
            state.best = dict(self.model.state_dict())  # with the new ends
            fronts["val"] = self._evaluate(val, "val")
        fronts["test"] = self._evaluate(test, "test")
        table = plan.problem.table if isinstance(plan.problem, TabularProblem) else None
        record = begin_record(plan, self.fixed_rays, "finished") | {
            **measure_fronts(fronts),
            **self._diagnose(fronts, {"val": val, "test": test}),
            **self._summarize_training(samples),
            **notes,
        }
        if self.processes.first:
            record |= write_run(self.folder, record, state.best, fronts, table)
        return Run(
            self.folder, record, fronts["test"], fronts["val"], self.model, table, plan.problem
        )

    def _summarize_training(self, samples: int) -> dict[str, Any]:
        """Return what the record says about the training: epochs, times and memory."""
        numbers, plan = self.state.numbers, self.plan
        selected, seconds = numbers["selected"], numbers["seconds"]
        last = max(selected, key=lambda network: network["epoch"])
        # of all seeds that trained together, like `Progress.samples_per_second`
        trained = samples * numbers["seeds_together"] * numbers["epoch"] * len(self.networks)
        rays = [None] if self.fixed_rays is None else self.fixed_rays.tolist()
        return {
            "epoch_selected": last["epoch"],
            "networks": [
                {"ray": ray, "epoch_selected": network["epoch"], **plan.method.report(method_state)}
                for ray, network, method_state in zip(
                    rays, selected, self.method_states, strict=True
                )
            ],
            "seconds_training": seconds,
            "seconds_to_selected": last["seconds_training"],
            "seconds_preparing": numbers["seconds_preparing"],
            "seconds_evaluating": numbers["seconds_evaluating"],
            "samples_per_second": trained / seconds if seconds else None,
            "share_waiting": numbers["seconds_waiting"] / seconds if seconds else 0.0,
            "peak_memory": get_peak_memory(plan.device),
            "seeds_together": numbers["seeds_together"],
            "processes": self.processes.count,
            "evaluations": numbers["evaluations"],
        }

    def _evaluate(self, shares: Shares, split: Literal["val", "test"]) -> Front:
        """Evaluate the front of a split; raise if an objective is NaN at every ray."""
        provenance = {
            "method": self.plan.configuration.label,
            "seed": self.plan.seed,
            # None: one for all rays
            "networks": None if self.fixed_rays is None else len(self.fixed_rays),
        }
        front = evaluate_shares(
            self.model,
            self.plan.problem,
            shares,
            self.rays,
            split=split,
            provenance=provenance,
            processes=self.processes,
        )
        for name, values in zip(front.names, front.values.T, strict=True):
            if np.isnan(values).all():
                raise DataError(
                    f"the score of `{name}` on `{split}` is not a number at any ray (scores: "
                    f"{front.provenance['scores']}); a group may be missing there: use protocol "
                    "`clean`, or another objective"
                )
        return front

    def _diagnose(
        self, fronts: Mapping[str, Front], splits: Mapping[str, Shares]
    ) -> dict[str, Any]:
        """Return diagnostics of one network for all rays for the record, and warn of the findings.

        Args:
            fronts: its fronts on val and test.
            splits: those two splits.
        """
        if self.fixed_rays is not None:
            return {"centre": None, "sensitivity": None, "findings": []}
        plan = self.plan
        diagnosis = diagnose(
            self.model,
            plan.problem,
            fronts["val"],
            splits["val"],
            scaled=plan.training.scale_losses,
            learned=self.task.fit is None,
            untrained=plan.model,
        )
        if self.processes.first:
            for finding in diagnosis.findings:
                warnings.warn(finding.text, FindingWarning, stacklevel=2)
        return {
            "centre": self._evaluate_centre(fronts["test"], splits["test"]),
            "sensitivity": diagnosis.sensitivity if math.isfinite(diagnosis.sensitivity) else None,
            "findings": [dataclasses.asdict(finding) for finding in diagnosis.findings],
        }

    def _evaluate_centre(self, front: Front, test: Shares) -> dict[str, dict[str, float | None]]:
        """Evaluate the network at equal weights on test, as the paper does for faces.

        The front on test has that ray if there are two objectives and an odd number of rays.
        """
        weight = 1 / front.objectives
        is_centre = np.abs(front.rays - weight).max(axis=1) < 1e-6  # rays are float32
        if is_centre.any():
            point = front.take([int(is_centre.argmax())])  # evaluated already
        else:
            ray = torch.full((1, front.objectives), weight)
            point = evaluate_shares(
                self.model, self.plan.problem, test, ray, split="test", processes=self.processes
            )
        numbers = point.to_dict()
        return {
            "values": dict(zip(point.names, numbers["values"][0], strict=True)),
            "metrics": {name: value for name, (value,) in numbers["metrics"].items()},
        }
