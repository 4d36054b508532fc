"""The training loop: epochs, validations and checkpoints of one seed or several together."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from statistics import fmean
from typing import NamedTuple, TypeVar, final

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
    get_peak_memory,
    limit_threads,
    mix_seed,
    retain_freed_memory,
    seed_torch,
    set_precision,
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
from paretocosmos.training.preflight import run_preflight
from paretocosmos.training.progress import (
    CheckpointBudget,
    EpochSteps,
    Progress,
)
from paretocosmos.training.seed_run import SeedRun

T = TypeVar("T")


def make_training_source(plan: Plan, dtype: torch.dtype, processes: Processes) -> BatchSource:
    """Return the source of batches: a split in memory, or a loader that reads during training."""
    source = plan.problem.source("train")
    if source is not None:
        # a reader gives each process its share of a batch, not of every micro-batch
        if processes.count > 1 and plan.training.accumulate > 1:
            raise ConfigurationError(
                "`accumulate` needs the training split in memory if several processes train, "
                f"found {plan.training.accumulate} and {source.where}: set it to 1, or gather=True"
            )
        return FromLoader(
            source,
            plan.problem.objectives,
            device=plan.device,
            dtype=dtype,
            rays_per_batch=plan.training.rays_per_batch,
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
def open_source(plan: Plan, processes: Processes, *, epoch: int) -> Iterator[None]:
    """End the readers of streamed data on exit; warn if a resumed training sees other samples."""
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
        source.end()  # worker processes would outlive the training


class EpochResult(NamedTuple):
    """The mean losses of each seed run, and the fronts that were evaluated."""

    means: list[dict[str, float]]
    evaluations: list[Evaluation]


def split_networks(seed_runs: Sequence[SeedRun]) -> list[slice]:
    """Return the slice of each seed run in the list of all networks."""
    count = len(seed_runs[0].networks)
    return [slice(index * count, (index + 1) * count) for index in range(len(seed_runs))]


@final
class EpochEnd:
    """The end of an epoch of seed runs that train together: count, validate, save.

    Args:
        seed_runs: the seed runs.
        stacks: their networks.
        val: the validation split.
    """

    def __init__(
        self, seed_runs: Sequence[SeedRun], stacks: Sequence[NetworkStack], val: Shares
    ) -> None:
        self.val, self._seed_runs, self._stacks = val, seed_runs, stacks
        self._budget = CheckpointBudget()

    def finish_epoch(self, steps: EpochSteps) -> EpochResult:
        """Count an epoch; validate and save if it is time.

        A seed run that diverged raises after the others were saved. If a validation fails, the
        epoch is saved with a note, so that it is repeated when the training is resumed.
        """
        training = self._seed_runs[0].plan.training
        errors: list[ParetoCosmosError] = []
        result, finite = EpochResult([], []), list[SeedRun]()
        last = self._seed_runs[0].epoch + 1 == training.epochs
        for seed_run, share in zip(self._seed_runs, split_networks(self._seed_runs), strict=True):
            losses = steps.losses[:, share]
            try:
                seed_run.check_divergence(losses)
            except DivergedError as error:
                errors.append(self._complete_error(error))
                continue
            seed_run.add_epoch(steps, seeds_together=len(self._seed_runs))
            finite.append(seed_run)
            means = seed_run.compute_mean_losses(losses)
            result.means.append(means)
            due = seed_run.epoch % training.evaluate_every == 0 or last
            # one that ran out of patience is only carried along by the others of its stack
            if due and not seed_run.out_of_patience:
                # the note: a checkpoint that is written before the validation has it
                seed_run.state.numbers["unjudged"] = means
        diverged = len(errors)
        for seed_run in finite:
            try:
                result.evaluations.extend(self._validate_if_due(seed_run))
            except ParetoCosmosError as error:
                errors.append(error)
        # save all seeds or none: a stack can only be resumed if they are at the same epoch
        failed = len(errors) > diverged
        saving = self._save(finite) if last or failed or self._budget.due else 0.0
        self._budget.add(training=steps.seconds, saving=saving)
        if errors:
            raise errors[0]
        return result

    def validate_pending(self) -> None:
        """Repeat validations that failed before the training was resumed."""
        if [_ for seed_run in self._seed_runs for _ in self._validate_if_due(seed_run)]:
            self._save(self._seed_runs)

    def _validate_if_due(self, seed_run: SeedRun) -> list[Evaluation]:
        if "unjudged" not in seed_run.state.numbers:
            return []
        with ExitStack() as averaged:
            for stack in self._stacks:
                averaged.enter_context(stack.state.optimizer.averaged())
            with status("validating"):
                return [seed_run.validate(self.val)]

    def _save(self, seed_runs: Sequence[SeedRun]) -> float:
        """Write the checkpoints and return the seconds it took."""
        started = time.perf_counter()
        for seed_run in seed_runs:
            seed_run.save()
        seconds = time.perf_counter() - started
        # only now: were it done seed by seed, a kill in between would leave no common epoch
        for seed_run in self._seed_runs:
            seed_run.remove_old_checkpoints()
        return seconds

    def _complete_error(self, error: DivergedError) -> DivergedError:
        if len(self._seed_runs) > 1:
            error = DivergedError(
                f"{error}; leave its seed out and go on with the others, with resume=True"
            )
        error.shared = self._seed_runs[0].processes.joined  # all processes have the same losses
        return error


class Trainer:
    """Trains seed runs to the end, together; `fit` runs it.

    They have the same plan apart from the seed, and are at the same epoch. Their networks train as
    one stack or one after the other.
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
        self.seed_runs, self.listeners, self.engine_option = seed_runs, listeners, engine
        self.plan = plan = seed_runs[0].plan
        self.processes = seed_runs[0].processes
        retain_freed_memory(plan.device)  # before anything large is allocated and freed
        if plan.configuration.precision == "fp64":
            for seed_run in seed_runs:
                seed_run.model.double()
        self.networks = [network for seed_run in seed_runs for network in seed_run.networks]
        self.dtype = next(self.networks[0].parameters()).dtype
        if plan.device.type == "cuda":
            # else the peak of an earlier training would count
            torch.cuda.reset_peak_memory_stats(plan.device)
        self.source = make_training_source(plan, self.dtype, self.processes)
        samples = len(self.source)
        if samples < plan.training.rays_per_batch:
            raise ConfigurationError(
                f"`rays_per_batch` must be at most the {samples} training samples, found "
                f"{plan.training.rays_per_batch}"
            )
        labels = run_preflight(
            self.networks[0],
            plan.problem,
            plan.method,
            plan.training.batch_size,
            smallest=self._compute_smallest_part(samples),
        )
        # only now is it known which labels the batches may have
        if isinstance(self.source, FromLoader):
            self.source.labels.update(labels)
        self.labels = labels
        val = load_samples(plan.problem, "val", plan.device, self.dtype, labels)
        self.stack_size = len(self.networks) if stacked else 1
        # multiply-adds of a forward pass, known only for networks without convolutions
        dense = len(plan.problem.input_shape) == 1
        weights = sum(p.numel() for p in self.networks[0].parameters())
        self.work = weights * plan.training.batch_size * self.stack_size if dense else None
        plans = [seed_run.plan for seed_run in seed_runs for _ in seed_run.networks]
        self.stacks = [
            make_network_stack(networks, plans, self.source, engine, self.processes)
            for networks, plans in zip(self._chunk(self.networks), self._chunk(plans), strict=True)
        ]
        self.epoch_end = EpochEnd(seed_runs, self.stacks, val)

    def _chunk(self, values: Sequence[T]) -> list[Sequence[T]]:
        """Split one value per network into one sequence per stack."""
        starts = range(0, len(values), self.stack_size)
        return [values[start : start + self.stack_size] for start in starts]

    def _compute_smallest_part(self, samples: int) -> int:
        """Compute the samples in the smallest part of a batch that any process sees at once."""
        training, count = self.plan.training, self.processes.count
        size, rays_per_batch = training.batch_size, training.rays_per_batch
        batches = [min(size, samples), samples % size // rays_per_batch * rays_per_batch]
        micro_batches = [batch // training.accumulate for batch in batches if batch]
        # too few samples to share go to every process
        return min(size // count or size for size in micro_batches)

    def run(self) -> list[Run]:
        """Begin or continue, train to the end, and leave the finished runs in their folders."""
        configuration = self.plan.configuration
        deterministic = configuration.deterministic
        with (
            seed_torch(self.plan.seed, self.plan.device, deterministic=deterministic),
            set_precision(configuration.precision),
        ):
            # views of the stacks: a checkpoint that is loaded into them reaches the stacks
            moments = [s.state.optimizer.state(k) for s in self.stacks for k in range(s.networks)]
            states = [s.saved_state(k) for s in self.stacks for k in range(s.networks)]
            # the epoch to go on from, the same for all seed runs; only the first process reads it
            folders = [seed_run.folder for seed_run in self.seed_runs]
            epoch = self.processes.together(
                lambda: find_common_epoch(folders) if self.processes.first else 0
            )
            for seed_run, share in zip(self.seed_runs, split_networks(self.seed_runs), strict=True):
                seed_run.start(moments[share], states[share], epoch=epoch)
                if self.processes.first:
                    self.listeners.started(seed_run.folder, seed_run.epoch)
            self.epoch_end.validate_pending()
            first, epochs = self.seed_runs[0].epoch, self.plan.training.epochs
            with open_source(self.plan, self.processes, epoch=first):
                for epoch in range(first, epochs):
                    if all(seed_run.out_of_patience for seed_run in self.seed_runs):
                        break
                    self.train_epoch(prepare=epoch == first)
            return self._finish()

    def train_epoch(self, *, prepare: bool) -> None:
        """Run an epoch's steps, then validate, save and report progress."""
        with status(f"training, epoch {self.seed_runs[0].epoch + 1}"):
            steps = self._run_steps(prepare=prepare)
        means, evaluations = self.epoch_end.finish_epoch(steps)
        if self.processes.first:
            by_seed = [
                self._make_progress([seed_run], [mean], steps)
                for seed_run, mean in zip(self.seed_runs, means, strict=True)
            ]
            overall = self._make_progress(self.seed_runs, means, steps)
            self.listeners.epoch(by_seed, evaluations, overall)

    def _run_steps(self, *, prepare: bool) -> EpochSteps:
        """Run all steps of an epoch, those of all seed runs together."""
        plan, epoch = self.plan, self.seed_runs[0].epoch
        draws = [pair for run in self.seed_runs for pair in run.draw_epoch(len(self.source))]
        by_stack = list(zip(self.stacks, self._chunk(draws), strict=True))
        loader = self.source if isinstance(self.source, FromLoader) else None
        if loader is not None:
            loader.begin(plan.seed, epoch)
        if self.processes.joined or loader is not None:
            # dropout and the like draw from torch's generator: differently in every process, and
            # after a resume as without the interruption
            torch.manual_seed(mix_seed(plan.seed, epoch, self.processes.rank))
        started = time.perf_counter()
        rates = plan.training.compute_learning_rates(epoch, len(self.source))
        for stack in self.stacks:
            stack.state.optimizer.set_rates(rates)
            stack.begin(plan.method, epoch)
        preparing = 0.0
        with limit_threads(self.work):
            if prepare:
                with status("preparing the steps"):
                    for stack, stack_draws in by_stack:
                        stack.prepare(stack_draws, plan.device)
                preparing = time.perf_counter() - started
                if any(stack.data_dependent and stack.networks > 1 for stack in self.stacks):
                    # a branch in Python would be taken for all networks of a stack together
                    raise DataDependentError(self.failure)
                if self.failure is not None:
                    warnings.warn(
                        f"{self.failure}; training continues {self.engine_name}, which is slower "
                        "but gives the same result",
                        EngineWarning,
                        stacklevel=4,
                    )
            waited = self.source.waited
            with loader.checks.explain_errors() if loader is not None else nullcontext():
                losses = [stack.epoch(stack_draws, plan.device) for stack, stack_draws in by_stack]
            # reading the losses back waits for the device: once an epoch, not once a step
            all_losses = torch.cat(losses, dim=1).cpu()
        for network in self.networks:  # batch statistics, which each process has of its own share
            self.processes.follow(list(network.buffers()))
        seconds = time.perf_counter() - started - preparing
        return EpochSteps(all_losses, seconds, preparing, self.source.waited - waited)

    @property
    def engine_name(self) -> str:
        """The engine that runs the steps: of stacks that differ, the one that had to fall back."""
        return next((s.engine for s in self.stacks if s.engine.failure), self.stacks[0].engine).name

    @property
    def failure(self) -> str | None:
        """The reason why steps are not run by the engine that was chosen; `None` if they are."""
        return next((s.engine.failure for s in self.stacks if s.engine.failure), None)

    def _make_progress(
        self, seed_runs: Sequence[SeedRun], means: Sequence[Mapping[str, float]], steps: EpochSteps
    ) -> Progress:
        lead, volumes = seed_runs[0], [seed_run.hypervolume_val for seed_run in seed_runs]
        known_volumes = [volume for volume in volumes if volume is not None]
        # all epochs so far, without the preparation of the first
        evaluating = sum(run.state.numbers["seconds_evaluating"] for run in self.seed_runs)
        per_epoch = (lead.state.numbers["seconds"] + evaluating) / lead.epoch
        return Progress(
            epoch=lead.epoch,
            epochs=self.plan.training.epochs,
            losses={name: fmean(mean[name] for mean in means) for name in means[0]},
            hypervolume_val=sum(known_volumes) / len(known_volumes) if known_volumes else None,
            seconds=lead.state.numbers["seconds"],
            engine=self.engine_name,
            folder=lead.folder,
            # a shape of three: channels, height, width
            unit="images" if len(self.plan.problem.input_shape) == 3 else "samples",
            samples_per_second=len(self.source) * len(self.networks) / steps.seconds,
            seconds_left=per_epoch * (self.plan.training.epochs - lead.epoch),
            memory=get_peak_memory(self.plan.device),
            waiting=steps.waited / steps.seconds,
        )

    @status("evaluating on test")
    def _finish(self) -> list[Run]:
        problem, device = self.plan.problem, self.plan.device
        test = load_samples(problem, "test", device, self.dtype, self.labels)
        # a user who named an engine knows why; "auto" says why it chose the slower one
        reason = self.failure or (self.plan.eager_reason if self.engine_option == "auto" else None)
        engine = self.engine_name if reason is None else f"{self.engine_name}: {reason}"
        notes = {"engine": engine, "data": "on the device" if self.source.resident else "streamed"}
        samples = len(self.source)
        runs = [
            seed_run.finish(self.epoch_end.val, test, notes, samples=samples)
            for seed_run in self.seed_runs
        ]
        for run in runs:
            self.listeners.finished(run)
        return runs
