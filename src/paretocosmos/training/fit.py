"""`fit`: train a method on a problem, with one seed or several."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Unpack, overload

import torch
from torch import nn

from paretocosmos.config.plan import Plan
from paretocosmos.config.resolve import PlanOptions
from paretocosmos.config.settings import read_optimizer
from paretocosmos.errors import ConfigurationError, DataError, LostProcessError, RunError
from paretocosmos.io.files import remove_leftovers
from paretocosmos.io.progress import print_note, status
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import list_networks
from paretocosmos.problems import Problem
from paretocosmos.problems.streams import explain_loader_error, reports_dead_worker
from paretocosmos.runs.folders import (
    Job,
    claim_runs,
    is_finished,
    with_resume_hint,
)
from paretocosmos.runs.load import load_planned
from paretocosmos.runs.run import PAGE, Run
from paretocosmos.runtime.device import SMALL_STEP, lacks_memory, on_capture_stream
from paretocosmos.runtime.distributed import Processes, join_processes
from paretocosmos.training.callbacks import Callback, Listeners
from paretocosmos.training.engine import DataDependentError
from paretocosmos.training.jobs import Losses, plan_jobs, take_network
from paretocosmos.training.loop import Trainer
from paretocosmos.training.progress import ProgressCallback, follow_progress
from paretocosmos.training.scheduler import check_place, train_tasks
from paretocosmos.training.seed_run import SeedRun
from paretocosmos.training.tasks import Task


class FitOptions(PlanOptions, total=False):
    """The options of `fit` apart from the problem and the seeds, each documented there."""

    epochs: int | None
    lr: float | None
    optimizer: str | torch.optim.Optimizer | None
    out: str | Path | None
    resume: bool
    engine: str
    workers: int
    cluster: str | None
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
    workers: int = 0,
    cluster: str | None = None,
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
        workers: processes of this machine that train `seeds` side by side, with the same results
            on a CPU, where seeds that are fastest together stay together; 0 trains in this one.
        cluster: the address of a Ray cluster that trains `seeds`, whose machines load the problem
            by its name; ``"local"`` starts one on this machine.
        progress: a bar in notebooks and terminals, none where output goes to a file or a pipe;
            `False` for none anywhere; or a function to call after every epoch instead.
        report: write ``report.html``, a page to drag the trade-off on, into the run folder; with
            `seeds`, a page of all of them beside their folders, too.
        callbacks: objects that are told of settings, epochs, fronts and the end
            (`training.callbacks.Callback`), such as `TensorBoard()` of
            `paretocosmos.integrations.loggers`; `workers` and `cluster` use copies of them.

    Returns:
        The run: `.front`, `.model`, `.folder`, `.report`; with `seeds`, a list of them.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> run = fit("toy_convex", epochs=2, out=folder)
    >>> run.front.names
    ('first', 'second')
    """
    listeners, (processes, device) = Listeners(callbacks), join_processes(device)
    elsewhere = _check_elsewhere(workers, cluster, seeds, processes)
    shortcuts = {"epochs": epochs, "learning_rate": lr, "optimizer": optimizer}
    trained, model, backbone = take_network(problem, data, losses, model, backbone)
    options: FitOptions = {
        "preset": preset,
        "method": method,
        "model": model,
        "conditioning": conditioning,
        "backbone": backbone,
        "protocol": protocol,
        "settings": dict(settings or {}) | read_optimizer(shortcuts),
        "device": device if cluster is None else "auto",  # a cluster has devices of its own
        "deterministic": deterministic,
        "precision": precision,
    }
    with ExitStack() as locks, listeners:
        follow = locks.enter_context(follow_progress(progress, first=processes.first))
        stacks = list[list[Job]]()
        jobs = plan_jobs(trained, seed, seeds, engine, options, processes, out, resume=resume)
        if elsewhere:
            how = options | {"device": device, "engine": engine, "callbacks": callbacks}
            _train_elsewhere(trained, jobs, how, follow, workers=workers, cluster=cluster)
        else:
            # locked until the end: another program that trains there would mix up the checkpoints
            stacked = _should_stack(jobs[0][0], processes)
            stacks = claim_runs(locks, jobs, processes, resume=resume, stacked=stacked)
        runs = _train_stacks(jobs, stacks, engine, listeners, processes, follow)
        if report and processes.first:
            _update_pages(runs, rewrite=elsewhere or bool(stacks))
    return runs[0] if seeds is None else runs


def _check_elsewhere(
    workers: int, cluster: str | None, seeds: Sequence[int] | None, processes: Processes
) -> bool:
    """Return True if seeds are to be trained by other processes; raise if they cannot be."""
    check_place(workers, cluster)
    if not workers and cluster is None:
        return False
    if seeds is None:
        raise ConfigurationError(
            "`workers` and `cluster` share `seeds` out, found none: give several `seeds`"
        )
    if processes.joined:
        raise ConfigurationError(
            "`workers` and `cluster` start processes of their own: start this one without torchrun"
        )
    return True


def _train_elsewhere(
    problem: str | Problem,
    jobs: Sequence[Job],
    options: FitOptions,
    follow: Callable[[str, int], ProgressCallback | None],
    *,
    workers: int,
    cluster: str | None,
) -> None:
    """Train the jobs that are not finished in other processes."""
    seeds = [
        plan.seed
        for plan, folder in jobs
        if not is_finished(folder, plan, any_device=cluster is not None)
    ]
    lead, folder = jobs[0]
    # a stack rounds differently from its seeds one by one
    whole = lead.device.type == "cpu" and fits_stack(lead)
    groups = [seeds] if whole and seeds else [[seed] for seed in seeds]
    names = [f"seed {', '.join(map(str, group))}" for group in groups]
    tasks = [
        Task(name, folder.parent, partial(train_seeds, problem, group, options))
        for name, group in zip(names, groups, strict=True)
    ]
    callbacks = {name: follow(name, lead.training.epochs) for name in names}
    failures = train_tasks(
        tasks, callbacks, workers=workers, cluster=cluster, device=options["device"]
    )
    if failures:
        raise RunError("; ".join(f"{name}: {why}" for name, why in failures.items()))


def train_seeds(
    problem: str | Problem,
    seeds: Sequence[int],
    options: FitOptions,
    folder: Path,
    progress: ProgressCallback,
) -> list[Run]:
    """Train seeds in a folder, as a `Task` does; go on with what was begun there."""
    task_options: FitOptions = {
        "out": folder,
        "resume": True,
        "progress": progress,
        "report": False,
    }
    return fit(problem, seeds=seeds, **(options | task_options))


def _train_stacks(
    jobs: Sequence[Job],
    stacks: Sequence[list[Job]],
    engine: str,
    listeners: Listeners,
    processes: Processes,
    follow: Callable[[str, int], ProgressCallback | None],
) -> list[Run]:
    """Train stacks, load the jobs that are in none of them, and return the runs of all jobs."""
    unfinished = {plan.seed for stack in stacks for plan, _ in stack}
    runs = {
        plan.seed: load_planned(plan, folder)
        for plan, folder in jobs
        if plan.seed not in unfinished
    }
    # several stacks are told apart by their seeds; all bars before the first training
    names = [f"seed {stack[0][0].seed}" if len(stacks) > 1 else "" for stack in stacks]
    epochs = [stack[0][0].training.epochs for stack in stacks]
    callbacks = [follow(*pair) for pair in zip(names, epochs, strict=True)]
    for stack, listeners.progress in zip(stacks, callbacks, strict=True):
        for run in _train_jobs(stack, engine, listeners, processes):
            runs[run.record["seed"]] = run
    return [runs[plan.seed] for plan, _ in jobs]


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
        )
    return RunError(
        "the GPU is out of memory; lower `batch_size`, use micro-batches (rays_per_batch=4, "
        'accumulate=4) or use device="cpu"'
    )


def _should_stack(plan: Plan, processes: Processes) -> bool:
    """Return True if processes train several seeds as a stack."""
    return fits_stack(plan) and not processes.joined


def fits_stack(plan: Plan) -> bool:
    """Return True if a stack of networks trains faster than one after the other.

    One small network hardly uses a GPU. It does use a CPU, unless it is so small that most of the
    time is spent on dispatching its operations.
    """
    # a dense layer has one multiply-add per weight and sample, a convolution many more
    weights = sum(p.numel() for p in list_networks(plan.model)[0].parameters())
    small = len(plan.problem.input_shape) == 1 and weights * plan.training.batch_size < SMALL_STEP
    return (plan.device.type == "cuda" or small) and plan.stackable


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
