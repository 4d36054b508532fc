"""`fit`: train a method on a problem, with one seed or several."""

import dataclasses
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack, overload

import torch
from torch import nn

from paretocosmos._version import __version__
from paretocosmos.config.plan import Plan, check_seed
from paretocosmos.config.resolve import PlanOptions, make_plan
from paretocosmos.config.settings import read_optimizer
from paretocosmos.errors import ConfigurationError, DataError, LostProcessError, RunError
from paretocosmos.io.files import remove_leftovers
from paretocosmos.io.progress import print_note, status
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import Conditioning, list_networks
from paretocosmos.problems import Problem
from paretocosmos.problems.streams import explain_loader_error, reports_dead_worker
from paretocosmos.problems.streams.losses import Loss
from paretocosmos.problems.streams.problem import DataProblem
from paretocosmos.runs.folders import (
    Job,
    choose_run_folders,
    claim_runs,
    flatten_settings,
    with_resume_hint,
)
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import PAGE, Run
from paretocosmos.runtime.device import SMALL_STEP, lacks_memory, on_capture_stream
from paretocosmos.runtime.distributed import Processes, join_processes
from paretocosmos.training.callbacks import Callback, Listeners
from paretocosmos.training.engine import DataDependentError, check_engine
from paretocosmos.training.loop import Trainer
from paretocosmos.training.progress import Progress, ProgressCallback, follow_progress
from paretocosmos.training.seed_run import SeedRun

__all__ = ["FitOptions", "Progress", "ProgressCallback", "check_seeds", "fit", "write_pages"]

# Settings that may differ between the processes of one training: each has a device of its own, and
# its machine may keep the files elsewhere; a hash of the data is compared instead.
PER_PROCESS = ("device", "problem.settings.data")

Losses = Sequence[Loss] | Mapping[str, Loss]


class FitOptions(PlanOptions, total=False):
    """The options of `fit` apart from the problem and the seeds, each documented there."""

    epochs: int | None
    lr: float | None
    optimizer: str | torch.optim.Optimizer | None
    out: str | Path | None
    resume: bool
    engine: str
    progress: ProgressCallback | bool
    report: bool
    callbacks: Sequence[Callback]


@overload
def fit(
    problem: str | Problem | nn.Module,
    data: Any = None,
    losses: Losses | None = None,
    *,
    seed: int = 1,
    seeds: None = None,
    **options: Unpack[FitOptions],
) -> Run: ...


@overload
def fit(
    problem: str | Problem | nn.Module,
    data: Any = None,
    losses: Losses | None = None,
    *,
    seed: int = 1,
    seeds: Sequence[int],
    **options: Unpack[FitOptions],
) -> list[Run]: ...


def fit(
    problem: str | Problem | nn.Module,
    data: Any = None,
    losses: Losses | None = None,
    *,
    preset: str | None = None,
    method: str | Method | None = None,
    model: nn.Module | None = None,
    conditioning: str | None = None,
    backbone: str | nn.Module | None = None,
    protocol: str | None = None,
    epochs: int | None = None,
    lr: float | None = None,
    optimizer: str | torch.optim.Optimizer | None = None,
    seed: int = 1,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    engine: str = "auto",
    precision: str = "tf32",
    deterministic: bool = False,
    progress: ProgressCallback | bool = True,
    report: bool = True,
    callbacks: Sequence[Callback] = (),
) -> Run | list[Run]:
    """Train one network for the whole front; or, with some methods, one for each of a few rays.

    Args:
        problem: a problem, its name, or the path of a CSV file; or your own network.
        data: with your own network, its data: a dataset, a loader, a tuple of tensors, or a mapping
            with ``"train"``, ``"val"`` and ``"test"``; as in `DataProblem.of`.
        losses: likewise two or more functions of (outputs, target), torch's or your own.
        preset: ``"default"`` or ``"paper"``, the source of every setting that is not given; if
            `None`, the paper's under ``protocol="paper"``, else the default.
        method: a method or its name; or a name of the paper for a method with its conditioning,
            ``"phn_ls"`` or ``"phn_epo"``; the preset's if `None`.
        model: your own network, ``forward(inputs, ray) -> outputs``; a copy is trained.
        conditioning: how the ray enters the backbone, by name; by the input's shape if `None`.
        backbone: a network that takes no ray, or a backbone's name; likewise.
        protocol: ``"clean"`` or ``"paper"``; the problem's default if `None`.
        epochs: passes over the data; the preset's if `None`.
        lr: the largest learning rate; the preset's if `None`.
        optimizer: ``"adam"``, ``"adamw"``, ``"sgd"``, or one of torch's, whose class, rate and
            weight decay are taken; the preset's if `None`.
        seed: the seed of the weights, the shuffling and the rays.
        seeds: several seeds instead of `seed`: one run each, the same as it would be alone,
            trained together where that is faster and memory allows.
        settings: any further constructor argument by its name, as `--set` on the command line.
        out: the run folder, new; ``runs/PROBLEM-METHOD-SEED`` if `None`. With `seeds`, the folder
            that gets a run folder ``seed-SEED`` for each; ``runs/PROBLEM-METHOD-seeds`` if `None`.
        resume: continue the run in `out` if it was begun there.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``.
        engine: how steps are run: ``"auto"``, ``"eager"``, ``"traced"``, ``"compiled"``,
            ``"captured"``; changes the result by rounding at most.
        precision: ``"tf32"``: float32, whose products a GPU's tensor cores may round; ``"fp32"``:
            they may not; ``"bf16"``: the network in half precision; ``"fp64"``.
        deterministic: only reproducible kernels, for a GPU; a CPU is always reproducible.
        progress: a bar in notebooks and terminals, none where output goes to a file or a pipe;
            `False` for none anywhere; or a function to call after every epoch instead.
        report: write ``report.html``, a page to drag the trade-off on, into the run folder; with
            `seeds`, a page of all of them beside their folders, too.
        callbacks: objects that are told of settings, epochs, fronts and the end
            (`training.callbacks.Callback`), such as `TensorBoard()` of
            `paretocosmos.integrations.loggers`.

    Returns:
        The run: `.front`, `.model`, `.folder`, `.report`; with `seeds`, a list of them.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> run = fit("toy_convex", epochs=2, out=folder)
    >>> run.front.names
    ('first', 'second')
    """
    listeners, (processes, device) = Listeners(callbacks), join_processes(device)
    shortcuts = {"epochs": epochs, "learning_rate": lr, "optimizer": optimizer}
    trained, model, backbone = _take_network(problem, data, losses, model, backbone)
    options = PlanOptions(
        preset=preset,
        method=method,
        model=model,
        conditioning=conditioning,
        backbone=backbone,
        protocol=protocol,
        settings=dict(settings or {}) | read_optimizer(shortcuts),
        device=device,
        deterministic=deterministic,
        precision=precision,
    )
    with ExitStack() as locks, listeners:
        follow = locks.enter_context(follow_progress(progress, first=processes.first))
        # the first may download data for the others
        plans = processes.together(
            lambda: _make_plans(trained, _resolve_seeds(seed, seeds), engine, options)
        )
        _check_agreement(processes, plans)
        jobs, stacks = _claim_jobs(
            locks, plans, processes, out, several=seeds is not None, resume=resume
        )
        runs = _load_others(jobs, stacks)
        for stack, listeners.progress in _add_progress(stacks, follow):
            finished = _train_jobs(stack, engine, listeners, processes)
            runs |= {run.record["seed"]: run for run in finished}
        ordered = [runs[plan.seed] for plan in plans]
        if report and processes.first:
            _update_pages(ordered, rewrite=bool(stacks))
    return ordered[0] if seeds is None else ordered


def _make_plans(
    problem: str | Problem, seeds: list[int], engine: str, options: PlanOptions
) -> list[Plan]:
    lead = make_plan(problem, seed=seeds[0], **options)
    check_engine(engine, lead.device)
    return [lead, *(lead.for_seed(seed) for seed in seeds[1:])]


def _take_network(
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


def _claim_jobs(
    locks: ExitStack,
    plans: list[Plan],
    processes: Processes,
    out: str | Path | None,
    *,
    several: bool,
    resume: bool,
) -> tuple[list[Job], list[list[Job]]]:
    """Choose and lock the run folders; return all jobs, and those to train together as stacks."""
    folders = choose_run_folders(processes, plans, out, several=several, resume=resume)
    jobs = list(zip(plans, folders, strict=True))
    stacked = _should_stack(plans[0], processes)
    # locked until `fit` returns: another program that trains there would mix up the checkpoints;
    # a stack is at one epoch: runs that were interrupted at different ones train one by one
    return jobs, claim_runs(locks, jobs, processes, resume=resume, stacked=stacked)


def _add_progress(
    stacks: Sequence[list[Job]], follow: Callable[[str, int], ProgressCallback | None]
) -> list[tuple[list[Job], ProgressCallback | None]]:
    """Return each stack with its progress callback; several stacks are told apart by their seed."""
    names = [f"seed {stack[0][0].seed}" if len(stacks) > 1 else "" for stack in stacks]
    epochs = [stack[0][0].training.epochs for stack in stacks]
    # all of them before the first training, so that its bar is not the only one
    return list(
        zip(stacks, [follow(*pair) for pair in zip(names, epochs, strict=True)], strict=True)
    )


def write_pages(runs: Sequence[Run], parent: Path | None = None) -> None:
    """Write a page into every run's folder, and one of all runs into the folder `parent`.

    All pages show the same samples. A page that cannot be built costs a warning, not the runs.
    """
    # here, since a training without a page needs none of it
    from paretocosmos.explorer import build_page_model, write_report

    with status("writing the page"):
        try:
            page = build_page_model(runs)
            for run, view in zip(runs, page.runs, strict=True):
                write_report(run.folder / PAGE, dataclasses.replace(page, runs=[view]))
            if parent is not None:
                remove_leftovers(parent, of=PAGE)
                write_report(parent / PAGE, page)
            print_note(f"page: {(parent or runs[0].folder) / PAGE}")
        except ConfigurationError as error:  # hours of training are worth more than a page
            warnings.warn(f"no {PAGE}: {error}", UserWarning, stacklevel=3)


def _update_pages(runs: Sequence[Run], *, rewrite: bool) -> None:
    """Write a page of every run and one of all runs, after a training or if one is missing."""
    parent = runs[0].folder.parent if len(runs) > 1 else None
    folders = [run.folder for run in runs] + ([] if parent is None else [parent])
    if rewrite or not all((folder / PAGE).exists() for folder in folders):
        write_pages(runs, parent)


def _load_others(jobs: Sequence[Job], stacks: Sequence[Sequence[Job]]) -> dict[int, Run]:
    """Load the runs that are finished already, by seed: those in none of the stacks to train."""
    unfinished = {plan.seed for stack in stacks for plan, _ in stack}
    return {
        plan.seed: load_run(
            folder,
            model=None if plan.rebuildable else plan.model,
            trust=plan.configuration.modules,  # the caller named them, and the record agrees
            device=str(plan.device),
        )
        for plan, folder in jobs
        if plan.seed not in unfinished
    }


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
        ).with_hint({"rays_per_batch": least})
        error.shared = True  # all have the same settings, so that all raise it
        raise error
    settings = flatten_settings(plan.configuration.to_dict())
    facts = {f"`{k}`": json.dumps(v) for k, v in settings.items() if k not in PER_PROCESS}
    facts["version of paretocosmos"] = __version__
    facts["data"] = plan.data_hash  # the same path may hold other files on each machine
    processes.agree(facts)


def _resolve_seeds(seed: int, seeds: Sequence[int] | None) -> list[int]:
    if seeds is None:
        return [seed]
    if seed != 1:  # the default, which cannot be told from a 1 that was given
        raise ConfigurationError(f"`seeds` replaces `seed`, found {seed} too: give one of them")
    return check_seeds(seeds)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Return the seeds as a list: at least one, and none twice."""
    distinct = list(seeds) if isinstance(seeds, Iterable) else []
    if not distinct or any(distinct.count(seed) > 1 for seed in distinct):
        raise ConfigurationError(f"`seeds` must be different whole numbers, found {seeds!r}")
    for seed in distinct:
        check_seed(seed)
    return distinct


def _train_jobs(
    jobs: list[Job],
    engine: str,
    listeners: Listeners,
    processes: Processes,
    *,
    stacked: bool = True,
) -> list[Run]:
    """Train one seed, or several as a stack; split the stack if it does not fit in memory.

    Args:
        jobs: plans and their folders.
        engine: the name of the engine.
        listeners: the callbacks.
        processes: the processes that train together.
        stacked: set if networks may train as one; unset once memory has run out.
    """
    lead, folder = jobs[0]
    stacked = stacked and _should_stack(lead, processes)
    networks = len(jobs) * len(list_networks(lead.model))
    try:
        with on_capture_stream(lead.device):
            # not bound to a name, which would keep the networks alive when memory has run out
            return processes.together(
                lambda: Trainer(
                    [SeedRun(*job, processes) for job in jobs], engine, listeners, stacked=stacked
                )
            ).run()
    except DataDependentError:  # raised before the first step of a stack that decides in Python
        return [
            run
            for job in jobs
            for run in _train_jobs([job], engine, listeners, processes, stacked=False)
        ]
    except (DataError, LostProcessError) as error:
        raise with_resume_hint(error, folder) from error
    except (MemoryError, RuntimeError) as error:
        # the signal of a dead data worker interrupts whatever is running
        if reports_dead_worker(error):
            lost_worker = explain_loader_error(f"the data of `{lead.problem.name}`", error)
            raise with_resume_hint(lost_worker, folder) from error
        if not lacks_memory(error):
            raise
        if networks == 1 or not stacked:
            raise with_resume_hint(_build_memory_error(lead.device), folder) from error
    # outside of `except`, since the error's traceback holds the networks; checkpoints hold the rest
    torch.cuda.empty_cache()
    if len(jobs) == 1:
        return _train_jobs(jobs, engine, listeners, processes, stacked=False)
    middle = len(jobs) // 2  # halves, since it is not known how much memory is missing
    halves = (jobs[:middle], jobs[middle:])
    return [run for half in halves for run in _train_jobs(half, engine, listeners, processes)]


def _build_memory_error(device: torch.device) -> RunError:
    if device.type == "cpu":
        return RunError(
            "the computer is out of memory; lower `batch_size`, use fewer `rays` or a smaller "
            "network"
        ).with_hint({"batch_size": 64})
    return RunError(
        "the GPU is out of memory; lower `batch_size`, use micro-batches (rays_per_batch=4, "
        'accumulate=4) or use device="cpu"'
    ).with_hint({"batch_size": 64, "rays_per_batch": 4, "accumulate": 4, "device": "cpu"})


def _should_stack(plan: Plan, processes: Processes) -> bool:
    """Return True if a stack of networks trains faster than one after the other.

    One small network hardly uses a GPU. It does use a CPU, unless it is so small that most of the
    time is spent on dispatching its operations.
    """
    # a dense layer has one multiply-add per weight and sample, a convolution many more
    weights = sum(p.numel() for p in list_networks(plan.model)[0].parameters())
    small = len(plan.problem.input_shape) == 1 and weights * plan.training.batch_size < SMALL_STEP
    faster = plan.device.type == "cuda" or small
    return faster and plan.stackable and not processes.joined
