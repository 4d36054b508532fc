"""Plan the runs of `fit`, one for each seed, and choose their folders."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from paretocosmos._version import __version__
from paretocosmos.config.plan import Plan, check_seed
from paretocosmos.config.resolve import PlanOptions, make_plan
from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning import Conditioning
from paretocosmos.problems import Problem
from paretocosmos.problems.streams.losses import Loss
from paretocosmos.problems.streams.problem import DataProblem
from paretocosmos.runs.folders import (
    Job,
    choose_run_folders,
    flatten_settings,
)
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.engine import check_engine

Losses = Sequence[Loss] | Mapping[str, Loss]

# Settings that may differ between the processes of one training: each has a device of its own, and
# its machine may keep the files elsewhere; a hash of the data is compared instead.
PER_PROCESS = ("device", "problem.settings.data")


def take_network(
    problem: str | Problem | nn.Module,
    data: Any,
    losses: Losses | None,
    model: nn.Module | None,
    backbone: str | nn.Module | None,
) -> tuple[str | Problem, nn.Module | None, str | nn.Module | None]:
    """Return the problem, the model and the backbone, whose network may come first."""
    if not isinstance(problem, nn.Module):
        if data is not None or losses is not None:
            raise ConfigurationError(
                "`data` and `losses` go with your own network, as in fit(network, data, losses), "
                f"found {problem!r:.80}: leave them out"
            )
        return problem, model, backbone
    if data is None or losses is None or model is not None or backbone is not None:
        raise ConfigurationError(
            "your own network needs `data` and `losses` beside it, and neither `model` nor "
            "`backbone`: fit(network, data, losses)"
        )
    made = DataProblem.of(data, losses)
    # a conditioned network takes the ray already
    return (made, problem, None) if isinstance(problem, Conditioning) else (made, None, problem)


def plan_jobs(
    problem: str | Problem,
    seed: int,
    seeds: Sequence[int] | None,
    engine: str,
    options: PlanOptions,
    processes: Processes,
    out: str | Path | None,
    *,
    resume: bool,
) -> list[Job]:
    """Return the plan of each seed, for data that is loaded once, and its run folder."""

    def make_plans() -> list[Plan]:
        if seeds is not None and seed != 1:  # the default, as good as a 1 that was given
            raise ConfigurationError(f"`seeds` replaces `seed`, found {seed} too: give one of them")
        all_seeds = [seed] if seeds is None else check_seeds(seeds)
        lead = make_plan(problem, seed=all_seeds[0], **options)
        check_engine(engine, lead.device)
        return [lead, *(lead.for_seed(later) for later in all_seeds[1:])]

    plans = processes.together(make_plans)  # the first may download data for the others
    _check_agreement(processes, plans)
    several = seeds is not None
    folders = choose_run_folders(processes, plans, out, several=several, resume=resume)
    return list(zip(plans, folders, strict=True))


def _check_agreement(processes: Processes, plans: list[Plan]) -> None:
    """Raise if processes cannot share a batch, or have different settings, data or versions."""
    plan = plans[0]
    if not processes.joined:
        return
    # whole groups go to a process: a group's losses have one ray
    rays_per_batch = plan.training.rays_per_batch // plan.training.accumulate
    if rays_per_batch > 1 and rays_per_batch % processes.count:
        least = processes.count * plan.training.accumulate
        error = ConfigurationError(
            "`rays_per_batch` per micro-batch must be 1 (the same ray for all processes) or a "
            f"multiple of their number, {processes.count}, found {rays_per_batch}: "
            f"use rays_per_batch={least}"
        )
        error.shared = True  # all have the same settings, so that all raise it
        raise error
    settings = flatten_settings(plan.configuration.to_dict())
    facts = {f"`{k}`": json.dumps(v) for k, v in settings.items() if k not in PER_PROCESS}
    facts["version of paretocosmos"] = __version__
    facts["data"] = plan.data_hash  # the same path may hold other files on each machine
    processes.agree(facts)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Return the seeds as a list: at least one, and none twice."""
    distinct = list(seeds) if isinstance(seeds, Iterable) else []
    if not distinct or any(distinct.count(seed) > 1 for seed in distinct):
        raise ConfigurationError(f"`seeds` must be different whole numbers, found {seeds!r}")
    for seed in distinct:
        check_seed(seed)
    return distinct
