"""What follows an epoch's steps: it is counted, validated and saved."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, final

from paretocosmos.errors import DivergedError, ParetoCosmosError
from paretocosmos.evaluation.samples import Shares
from paretocosmos.io.progress import status
from paretocosmos.training.callbacks import Evaluation
from paretocosmos.training.progress import CheckpointBudget, EpochDone
from paretocosmos.training.validation import mean_losses

if TYPE_CHECKING:
    from paretocosmos.training.seed_run import SeedRun
    from paretocosmos.training.stack import Stack

__all__ = ["Settled", "Settling", "networks_of_each"]


class Settled(NamedTuple):
    """The mean losses of each seed run, and the fronts that were evaluated."""

    means: list[dict[str, float]]
    found: list[Evaluation]


def networks_of_each(seed_runs: "Sequence[SeedRun]") -> list[slice]:
    """Which of all networks are a seed run's."""
    count = len(seed_runs[0].networks)
    return [slice(at * count, (at + 1) * count) for at in range(len(seed_runs))]


@final
class Settling:
    """Settles the epochs of seed runs that train together.

    Args:
        seed_runs: what was trained.
        stacks: their networks.
        val: the split they are judged on.
    """

    def __init__(
        self, seed_runs: "Sequence[SeedRun]", stacks: "Sequence[Stack]", val: Shares
    ) -> None:
        self.val, self._seed_runs, self._stacks = val, seed_runs, stacks
        self._budget = CheckpointBudget()

    def settle(self, done: EpochDone) -> Settled:
        """Count an epoch, validate and save where it is time to.

        A seed run that diverged is refused after the others were saved. Where a validation fails,
        the epoch is saved without it: it is made up for when the training goes on.
        """
        training = self._seed_runs[0].plan.training
        diverged: list[DivergedError] = []
        failed: list[ParetoCosmosError] = []
        settled, counted = Settled([], []), list["SeedRun"]()
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
            settled.means.append(mean_losses(own, seed_run.fixed, seed_run.trained))
            due = seed_run.epoch % training.evaluate_every == 0 or last
            if due and not seed_run.ended:
                # until it is validated: a checkpoint that is written before says so
                seed_run.at.numbers["unjudged"] = settled.means[-1]
        for seed_run in counted:
            try:
                settled.found.extend(self._judged(seed_run))
            except ParetoCosmosError as error:
                failed.append(error)
        # all seeds, which would else stand at different epochs
        saving = self._save(counted) if last or failed or self._budget.due else 0.0
        self._budget.note(training=done.seconds, saving=saving)
        if diverged:
            raise self._refusal(diverged[0])
        if failed:
            raise failed[0]
        return settled

    def catch_up(self) -> None:
        """Make up for validations that failed before the training was resumed."""
        found = [one for seed_run in self._seed_runs for one in self._judged(seed_run)]
        if found:
            self._save(self._seed_runs)

    def _judged(self, seed_run: "SeedRun") -> list[Evaluation]:
        """The front of a seed run, if it is to be judged."""
        if "unjudged" not in seed_run.at.numbers:
            return []
        with ExitStack() as averaged:
            for stack in self._stacks:
                averaged.enter_context(stack.averaged())
            with status("validating"):
                return [seed_run.validate(self.val)]

    def _save(self, seed_runs: "Sequence[SeedRun]") -> float:
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
            error = DivergedError(f"{error}; {others}").by({**error.ways, "resume": True})
        error.shared = self._seed_runs[0].processes.joined  # all have the same losses
        return error


def _count(seed_run: "SeedRun", done: EpochDone, *, together: int) -> None:
    """An epoch is done, of so many seeds that train together."""
    numbers = seed_run.at.numbers
    numbers["seconds"] += done.seconds
    numbers["seconds_preparing"] += done.preparing
    numbers["seconds_waiting"] += done.waited
    numbers["epoch"] += 1
    numbers["seeds_together"] = together
