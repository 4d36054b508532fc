"""The training loop: epochs, validations and checkpoints of one seed, or of several together."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from statistics import fmean
from typing import NamedTuple, final

import torch

from paretocosmos.config.plan import Plan
from paretocosmos.errors import (
    ConfigurationError,
    DataWarning,
    DivergedError,
    EngineWarning,
    ParetoCosmosError,
)
from paretocosmos.evaluation.samples import Shares, load_samples
from paretocosmos.io.progress import status
from paretocosmos.problems import split_of
from paretocosmos.runs.checkpoint import find_common_epoch
from paretocosmos.runs.run import Run
from paretocosmos.runtime.device import (
    keep_memory,
    mixed_seed,
    peak_memory,
    precise,
    seeded,
    threads_for,
)
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.callbacks import Evaluation, Listeners
from paretocosmos.training.engine import (
    BatchSource,
    DataDependentError,
    FromLoader,
    make_batch_source,
)
from paretocosmos.training.network_stack import NetworkStack, make_network_stack
from paretocosmos.training.preflight import preflight
from paretocosmos.training.progress import (
    CheckpointBudget,
    EpochDone,
    Progress,
    RemainingTime,
    unit_of,
)
from paretocosmos.training.seed_run import SeedRun, mean_losses


def make_training_source(plan: Plan, dtype: torch.dtype, processes: Processes) -> BatchSource:
    """Return where batches come from: a split in memory, or a source read meanwhile."""
    source = plan.problem.source("train")
    if source is not None:
        if processes.count > 1 and plan.training.accumulate > 1:
            raise ConfigurationError(
                "`accumulate` needs the training split in memory if several processes train, "
                f"found {plan.training.accumulate} and {source.where}: set it to 1, or gather=True"
            ).with_hint({"accumulate": 1})
        return FromLoader(
            source,
            plan.problem.objectives,
            device=plan.device,
            dtype=dtype,
            groups=plan.training.groups,
            processes=processes,
        )
    return make_batch_source(
        split_of(plan.problem, "train"),
        plan.device,
        dtype,
        partial(processes.share_of_index, parts=plan.training.accumulate)
        if processes.count > 1
        else None,
        agree=processes.joined,
    )


@contextmanager
def reading(plan: Plan, processes: Processes, *, epoch: int) -> Iterator[None]:
    """A training from an epoch on: says what is not read again, ends its readers."""
    source = plan.problem.source("train")
    if source is None:
        yield
        return
    if source.inexact and 0 < epoch < plan.training.epochs and processes.first:
        warnings.warn(
            f"training continues after epoch {epoch}, but not with the same samples as without the "
            f"interruption: {source.inexact}",
            DataWarning,
            stacklevel=5,
        )
    try:
        yield
    finally:
        source.end()


class EpochResult(NamedTuple):
    """The mean losses of each seed run, and the fronts that were evaluated."""

    means: list[dict[str, float]]
    found: list[Evaluation]


def networks_of_each(seed_runs: Sequence[SeedRun]) -> list[slice]:
    """Which of all networks are a seed run's."""
    count = len(seed_runs[0].networks)
    return [slice(at * count, (at + 1) * count) for at in range(len(seed_runs))]


@final
class EpochEnd:
    """Settles the epochs of seed runs that train together.

    Args:
        seed_runs: what was trained.
        stacks: their networks.
        val: the split they are judged on.
    """

    def __init__(
        self, seed_runs: Sequence[SeedRun], stacks: Sequence[NetworkStack], val: Shares
    ) -> None:
        self.val, self._seed_runs, self._stacks = val, seed_runs, stacks
        self._budget = CheckpointBudget()

    def finish_epoch(self, done: EpochDone) -> EpochResult:
        """Count an epoch, validate and save where it is time to.

        A seed run that diverged is refused after the others were saved. Where a validation fails,
        the epoch is saved without it: it is made up for when the training goes on.
        """
        training = self._seed_runs[0].plan.training
        diverged: list[DivergedError] = []
        failed: list[ParetoCosmosError] = []
        result, counted = EpochResult([], []), list[SeedRun]()
        last = self._seed_runs[0].epoch + 1 == training.epochs
        for seed_run, share in zip(self._seed_runs, networks_of_each(self._seed_runs), strict=True):
            own = done.losses[:, share]
            try:
                seed_run.refuse_divergence(own)
            except DivergedError as error:  # the others have done their epoch
                diverged.append(error)
                continue
            _count(seed_run, done, together=len(self._seed_runs))
            counted.append(seed_run)
            result.means.append(mean_losses(own, seed_run.fixed, seed_run.trained))
            due = seed_run.epoch % training.evaluate_every == 0 or last
            if due and not seed_run.ended:
                # until it is validated: a checkpoint that is written before says so
                seed_run.at.numbers["unjudged"] = result.means[-1]
        for seed_run in counted:
            try:
                result.found.extend(self._judged(seed_run))
            except ParetoCosmosError as error:
                failed.append(error)
        # all seeds, which would else stand at different epochs
        saving = self._save(counted) if last or failed or self._budget.due else 0.0
        self._budget.note(training=done.seconds, saving=saving)
        if diverged:
            raise self._refusal(diverged[0])
        if failed:
            raise failed[0]
        return result

    def validate_pending(self) -> None:
        """Make up for validations that failed before the training was resumed."""
        found = [one for seed_run in self._seed_runs for one in self._judged(seed_run)]
        if found:
            self._save(self._seed_runs)

    def _judged(self, seed_run: SeedRun) -> list[Evaluation]:
        """The front of a seed run, if it is to be judged."""
        if "unjudged" not in seed_run.at.numbers:
            return []
        with ExitStack() as averaged:
            for stack in self._stacks:
                averaged.enter_context(stack.averaged())
            with status("validating"):
                return [seed_run.validate(self.val)]

    def _save(self, seed_runs: Sequence[SeedRun]) -> float:
        """Write the checkpoints; the seconds it took."""
        began = time.perf_counter()
        for seed_run in seed_runs:
            seed_run.save()
        seconds = time.perf_counter() - began
        for seed_run in self._seed_runs:  # now that each has written its own
            seed_run.tidy()
        return seconds

    def _refusal(self, error: DivergedError) -> DivergedError:
        if len(self._seed_runs) > 1:
            others = "leave its seed out and go on with the others, with resume=True"
            error = DivergedError(f"{error}; {others}").with_hint({**error.hints, "resume": True})
        error.shared = self._seed_runs[0].processes.joined  # all have the same losses
        return error


def _count(seed_run: SeedRun, done: EpochDone, *, together: int) -> None:
    """An epoch is done, of so many seeds that train together."""
    numbers = seed_run.at.numbers
    numbers["seconds"] += done.seconds
    numbers["seconds_preparing"] += done.preparing
    numbers["seconds_waiting"] += done.waited
    numbers["epoch"] += 1
    numbers["seeds_together"] = together


__all__ = ["Progress", "Trainer"]


class Trainer:
    """Trains seed runs to the end, together; `fit` is the verb that runs it.

    They have the same plan but for the seed, and stand at the same epoch. Their networks are
    stacked and train as one, or each for itself.
    """

    @status("bringing the data to the device and trying a few samples")
    def __init__(
        self,
        seed_runs: Sequence[SeedRun],
        engine: str,
        listeners: Listeners,
        *,
        stacked: bool,
    ) -> None:
        self.seed_runs, self.listeners, self.asked = seed_runs, listeners, engine
        self.plan = plan = seed_runs[0].plan
        self.processes = seed_runs[0].processes
        self.remaining = RemainingTime(plan.training.epochs, plan.training.evaluate_every)
        keep_memory(plan.device)
        if plan.configuration.precision == "fp64":
            for seed_run in seed_runs:
                seed_run.model.double()
        self.networks = [network for seed_run in seed_runs for network in seed_run.networks]
        self.dtype = next(self.networks[0].parameters()).dtype
        if plan.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(plan.device)
        self.source = make_training_source(plan, self.dtype, self.processes)
        samples = len(self.source)
        if samples < plan.training.groups:
            raise ConfigurationError(
                f"`groups` must be at most the {samples} training samples, found "
                f"{plan.training.groups}"
            )
        labels = preflight(
            self.networks[0],
            plan.problem,
            plan.method,
            plan.training.batch_size,
            smallest=self._smallest(samples),
        )
        if isinstance(self.source, FromLoader):
            self.source.labels.update(labels)
        self.labels = labels
        val = load_samples(plan.problem, "val", plan.device, self.dtype, labels)
        together = len(self.networks) if stacked else 1
        # multiply-adds of a forward pass, known only for networks without convolutions
        dense = len(plan.problem.input_shape) == 1
        weights = sum(p.numel() for p in self.networks[0].parameters())
        self.small = weights * plan.training.batch_size * together if dense else None
        plans = [seed_run.plan for seed_run in seed_runs for _ in seed_run.networks]
        parts = [slice(at, at + together) for at in range(0, len(self.networks), together)]
        self.stacks = [
            make_network_stack(self.networks[own], plans[own], self.source, engine, self.processes)
            for own in parts
        ]
        self.epoch_end = EpochEnd(seed_runs, self.stacks, val)

    def _smallest(self, samples: int) -> int:
        """Samples in the smallest part of a batch that any process sees at once."""
        training, count = self.plan.training, self.processes.count
        size, groups = training.batch_size, training.groups
        batches = [min(size, samples), samples % size // groups * groups]
        parts = [batch // training.accumulate for batch in batches if batch]
        return min(part // count or part for part in parts)

    def run(self) -> list[Run]:
        """Begin or continue, train to the end, and leave the finished runs in their folders."""
        configuration = self.plan.configuration
        deterministic = configuration.deterministic
        with (
            seeded(self.plan.seed, self.plan.device, deterministic=deterministic),
            precise(configuration.precision),
        ):
            moments = [s.state.optimizer.state(k) for s in self.stacks for k in range(s.networks)]
            states = [s.saved_state(k) for s in self.stacks for k in range(s.networks)]
            epoch = self.processes.together(self._resumed)
            for seed_run, own in zip(self.seed_runs, networks_of_each(self.seed_runs), strict=True):
                seed_run.start(moments[own], states[own], epoch=epoch)
                if self.processes.first:
                    self.listeners.started(seed_run.folder, seed_run.epoch)
            self.epoch_end.validate_pending()
            prepared = False
            epochs = self.plan.training.epochs
            with reading(self.plan, self.processes, epoch=self.seed_runs[0].epoch):
                while self.seed_runs[0].epoch < epochs and not all(s.ended for s in self.seed_runs):
                    self._epoch(prepare=not prepared)
                    prepared = True
            return self._finish()

    def _resumed(self) -> int:
        """The epoch to go on from, the same for all seed runs; the first process finds it."""
        folders = [seed_run.folder for seed_run in self.seed_runs]
        return find_common_epoch(folders) if self.processes.first else 0

    def _epoch(self, *, prepare: bool) -> None:
        """One pass over the data for all seed runs, and what follows it: validate, save, report."""
        started = time.perf_counter()
        with status(f"training, epoch {self.seed_runs[0].epoch + 1}"):
            done = self._steps(prepare=prepare)
        judged = self._seconds_judging()
        means, found = self.epoch_end.finish_epoch(done)
        judged = self._seconds_judging() - judged
        self.remaining.note(time.perf_counter() - started - done.preparing - judged, judged)
        if self.processes.first:
            each = [
                self._progress_of([one], [mean], done)
                for one, mean in zip(self.seed_runs, means, strict=True)
            ]
            self.listeners.epoch(each, found, self._progress_of(self.seed_runs, means, done))

    def _steps(self, *, prepare: bool) -> EpochDone:
        """All steps of an epoch, of all seed runs together."""
        plan, epoch = self.plan, self.seed_runs[0].epoch
        drawn = [one for seed_run in self.seed_runs for one in seed_run.draw(len(self.source))]
        pieces = [
            (stack, drawn[at * stack.networks : (at + 1) * stack.networks])
            for at, stack in enumerate(self.stacks)
        ]
        if isinstance(self.source, FromLoader):
            self.source.begin(plan.seed, epoch)
        if self.processes.joined or isinstance(self.source, FromLoader):
            # dropout and its like draw from torch's generator: differently in every process
            torch.manual_seed(mixed_seed(plan.seed, epoch, self.processes.rank))
        started = time.perf_counter()
        for stack in self.stacks:
            stack.state.optimizer.set_rates(plan.training.learning_rates(epoch, len(self.source)))
            stack.begin(plan.method, epoch)
        preparing = 0.0
        with threads_for(self.small):
            if prepare:
                with status("preparing the steps"):
                    for stack, own in pieces:
                        stack.prepare(own, plan.device)
                preparing = time.perf_counter() - started
                if any(stack.data_dependent and stack.networks > 1 for stack in self.stacks):
                    # what Python decides would be decided for all of them together
                    raise DataDependentError(self.failure)
                self._warn_of_failure()
            waited = self.source.waited
            # the one time an epoch is read back
            with (
                self.source.checks.explain_errors()
                if isinstance(self.source, FromLoader)
                else nullcontext()
            ):
                every = [stack.epoch(own, plan.device) for stack, own in pieces]
            losses = torch.cat(every, dim=1).cpu()
        for network in self.networks:  # statistics of batches, each process's of its own
            self.processes.follow(list(network.buffers()))
        seconds = time.perf_counter() - started - preparing
        return EpochDone(losses, seconds, preparing, self.source.waited - waited)

    def _warn_of_failure(self) -> None:
        if self.failure is not None:
            warnings.warn(
                f"{self.failure}; training continues {self.engine_name}, which is slower but gives "
                "the same result",
                EngineWarning,
                stacklevel=4,
            )

    def _seconds_judging(self) -> float:
        return float(sum(seed_run.at.numbers["seconds_evaluating"] for seed_run in self.seed_runs))

    @property
    def engine_name(self) -> str:
        """How steps are run; where some cannot be as they were meant to, how those are."""
        return next((s.engine for s in self.stacks if s.engine.failure), self.stacks[0].engine).name

    @property
    def failure(self) -> str | None:
        """Why they are not run as they were meant to be."""
        return next((s.engine.failure for s in self.stacks if s.engine.failure), None)

    def _progress_of(
        self, seed_runs: Sequence[SeedRun], means: Sequence[Mapping[str, float]], done: EpochDone
    ) -> Progress:
        """Where some of the seed runs stand."""
        lead, every = seed_runs[0], [seed_run.hypervolume_val for seed_run in seed_runs]
        reached = [one for one in every if one is not None]
        return Progress(
            lead.epoch,
            self.plan.training.epochs,
            {name: fmean(mean[name] for mean in means) for name in means[0]},
            sum(reached) / len(reached) if reached else None,
            lead.at.numbers["seconds"],
            self.engine_name,
            lead.folder,
            unit_of(self.plan.problem.input_shape),
            len(self.source) * len(self.networks) / done.seconds,
            self.remaining.left(lead.epoch),
            peak_memory(self.plan.device),
            done.waited / done.seconds,
        )

    @status("evaluating on test")
    def _finish(self) -> list[Run]:
        problem, device = self.plan.problem, self.plan.device
        test = load_samples(problem, "test", device, self.dtype, self.labels)
        why = self.failure or (self.plan.why_eager if self.asked == "auto" else None)
        engine = self.engine_name if why is None else f"{self.engine_name}: {why}"
        said = {"engine": engine, "data": "on the device" if self.source.resident else "streamed"}
        samples = len(self.source)
        runs = [
            one.finish(self.epoch_end.val, test, said, samples=samples) for one in self.seed_runs
        ]
        for run in runs:
            self.listeners.finished(run)
        return runs
