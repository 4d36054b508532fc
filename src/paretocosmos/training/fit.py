"""`fit`: a problem and a method give a run, or one for each of several seeds."""

import dataclasses
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack, overload

import torch
from torch import nn

from paretocosmos._version import __version__
from paretocosmos.config.plan import Plan, check_seed
from paretocosmos.config.resolve import PlanOptions, make_plan
from paretocosmos.errors import ConfigurationError, DataError, LostProcessError, RunError
from paretocosmos.io.files import remove_leftovers
from paretocosmos.io.progress import print_note, status
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import list_networks
from paretocosmos.problems import Problem
from paretocosmos.problems.streams import explain_loader_error, reports_dead_worker
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
from paretocosmos.runtime.distributed import Processes, join
from paretocosmos.training.callbacks import Callback, Listeners
from paretocosmos.training.engine import DataDependentError, check_engine
from paretocosmos.training.loop import Trainer
from paretocosmos.training.progress import Progress, ProgressCallback, follow_progress
from paretocosmos.training.seed_run import SeedRun


def write_pages(runs: Sequence[Run], together: Path | None = None) -> None:
    """Write a page into every run's folder, and one of all runs into the folder `together`.

    What is shown of the data is looked at once, so all pages show the same samples. A page that
    cannot be made costs a warning, not the runs.
    """
    from paretocosmos.explorer import build_page_model, write_report

    with status("writing the page"):
        try:
            page = build_page_model(runs)
            for run, view in zip(runs, page.runs, strict=True):
                write_report(run.folder / PAGE, dataclasses.replace(page, runs=[view]))
            if together is not None:
                remove_leftovers(together, of=PAGE)  # what a killed process left half written
                write_report(together / PAGE, page)
            print_note(f"page: {(together or runs[0].folder) / PAGE}")
        except ConfigurationError as error:
            warnings.warn(f"no {PAGE}: {error}", UserWarning, stacklevel=3)


__all__ = ["FitOptions", "Progress", "ProgressCallback", "check_seeds", "fit", "write_pages"]

OWN_TO_A_PROCESS = ("device", "problem.settings.data")


class FitOptions(PlanOptions, total=False):
    """What `fit` takes beside the problem and the seeds, each documented there."""

    epochs: int | None
    out: str | Path | None
    resume: bool
    engine: str
    progress: ProgressCallback | bool
    report: bool
    callbacks: Sequence[Callback]


@overload
def fit(
    problem: str | Problem, *, seed: int = 1, seeds: None = None, **options: Unpack[FitOptions]
) -> Run: ...


@overload
def fit(
    problem: str | Problem, *, seed: int = 1, seeds: Sequence[int], **options: Unpack[FitOptions]
) -> list[Run]: ...


def fit(
    problem: str | Problem,
    *,
    preset: str | None = None,
    method: str | Method | None = None,
    model: nn.Module | None = None,
    conditioning: str | None = None,
    backbone: str | nn.Module | None = None,
    protocol: str | None = None,
    epochs: int | None = None,
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
        problem: a problem, its name, or the path of a CSV file.
        preset: ``"default"`` or ``"paper"``: where every setting begins that is not given; the
            paper's if `None` under ``protocol="paper"``, else the default.
        method: a method or its name; or a name of the paper for a method with its conditioning,
            ``"phn_ls"`` or ``"phn_epo"``; the preset's if `None`.
        model: a network of one's own, ``forward(inputs, ray) -> outputs``; a copy is trained.
        conditioning: how the ray enters the backbone, by name; by the input's shape if `None`.
        backbone: a network that knows no rays, or a backbone's name; likewise.
        protocol: ``"clean"`` or ``"paper"``; the problem's default if `None`.
        epochs: passes over the data; the preset's if `None`.
        seed: of the weights, the shuffling and the rays.
        seeds: several of them, instead of `seed`: one run each, the same as it would be alone,
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
            `False` for none anywhere; or what is called after every epoch instead.
        report: write ``report.html``, a page to drag the trade-off on, into the run folder; with
            `seeds`, a page of all of them beside their folders, too.
        callbacks: told of settings, epochs, fronts and the end (`training.callbacks.Callback`),
            such as `TensorBoard()` of `paretocosmos.integrations.loggers`.

    Returns:
        The run: `.front`, `.model`, `.folder`, `.report`; with `seeds`, a list of them.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> run = fit("toy_convex", epochs=2, out=folder)
    >>> run.front.names
    ('first', 'second')
    """
    several, listeners, (processes, where) = seeds is not None, Listeners(callbacks), join(device)

    def planned() -> list[Plan]:
        wanted = _seeds(seed, seeds)
        lead = make_plan(
            problem,
            preset=preset,
            method=method,
            model=model,
            conditioning=conditioning,
            backbone=backbone,
            protocol=protocol,
            settings=dict(settings or {}) | ({} if epochs is None else {"epochs": epochs}),
            seed=wanted[0],
            device=where,
            deterministic=deterministic,
            precision=precision,
        )
        check_engine(engine, lead.device)
        return [lead, *(lead.for_seed(other) for other in wanted[1:])]

    with ExitStack() as locks, listeners:
        follow = locks.enter_context(follow_progress(progress, first=processes.first))
        plans = _agreed(processes, processes.together(planned))
        folders = choose_run_folders(processes, plans, out, several=several, resume=resume)
        jobs, stacked = list(zip(plans, folders, strict=True)), _stackable(plans[0], processes)
        parts = claim_runs(locks, jobs, processes, resume=resume, stacked=stacked)
        behind = {plan.seed for part in parts for plan, _ in part}
        done = {plan.seed: _loaded(plan, at) for plan, at in jobs if plan.seed not in behind}
        names = [f"seed {part[0][0].seed}" if len(parts) > 1 else "" for part in parts]
        shown = [follow(name, plans[0].training.epochs) for name in names]
        for part, listeners.progress in zip(parts, shown, strict=True):
            done |= {run.record["seed"]: run for run in _train(part, engine, listeners, processes)}
        runs = [done[plan.seed] for plan in plans]
        if report and processes.first:
            _update_pages(runs, rewrite=bool(parts))
    return runs if several else done[seed]


def _update_pages(runs: Sequence[Run], *, rewrite: bool) -> None:
    """Write the runs' pages, and one of all of them, after a training or where one is missing."""
    together = runs[0].folder.parent if len(runs) > 1 else None
    folders = [run.folder for run in runs] + ([] if together is None else [together])
    if rewrite or not all((folder / PAGE).exists() for folder in folders):
        write_pages(runs, together)


def _loaded(plan: Plan, folder: Path) -> Run:
    model = None if plan.rebuildable else plan.model
    trust = plan.configuration.modules  # the caller named them, and the record agrees
    return load_run(folder, model=model, trust=trust, device=str(plan.device))


def _stackable(plan: Plan, processes: Processes) -> bool:
    return _together(plan) and not processes.joined


def _agreed(processes: Processes, plans: list[Plan]) -> list[Plan]:
    """Refuse what several processes cannot share, and processes that are not set up alike."""
    plan = plans[0]
    if not processes.joined:
        return plans
    groups = plan.training.groups // plan.training.accumulate
    if groups > 1 and groups % processes.count:
        every = processes.count * plan.training.accumulate
        refusal = ConfigurationError(
            "`groups` per micro-batch must be 1 (the same ray for all processes) or a multiple of "
            f"their number, {processes.count}, found {groups}: use groups={every}"
        ).with_hint({"groups": every})
        refusal.shared = True
        raise refusal
    settings = flatten_settings(plan.configuration.to_dict())
    facts = {f"`{k}`": json.dumps(v) for k, v in settings.items() if k not in OWN_TO_A_PROCESS}
    facts["version of paretocosmos"] = __version__
    facts["data"] = plan.data_hash
    processes.agree(facts)
    return plans


def _seeds(seed: int, seeds: Sequence[int] | None) -> list[int]:
    if seeds is None:
        return [seed]
    if seed != 1:
        raise ConfigurationError(f"`seeds` replaces `seed`, found {seed} too: give one of them")
    return check_seeds(seeds)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """The seeds, if there are some and none twice."""
    wanted = list(seeds) if isinstance(seeds, Iterable) else []
    if not wanted or any(wanted.count(one) > 1 for one in wanted):
        raise ConfigurationError(f"`seeds` must be different whole numbers, found {seeds!r}")
    for one in wanted:
        check_seed(one)
    return wanted


def _train(
    jobs: list[Job],
    engine: str,
    listeners: Listeners,
    processes: Processes,
    *,
    stacked: bool = True,
) -> list[Run]:
    """Train one seed, or several as a stack; where memory runs out, in smaller ones.

    Args:
        jobs: plans and their folders.
        engine: how steps are run.
        listeners: told how it goes.
        processes: those that train together.
        stacked: whether networks may train as one; they may not once memory has run out.
    """
    lead, folder = jobs[0]
    stacked = stacked and _stackable(lead, processes)
    networks = len(jobs) * len(list_networks(lead.model))
    try:
        with on_capture_stream(lead.device):
            # no name for them: what ran out of memory must be let go
            return processes.together(
                lambda: Trainer(
                    [SeedRun(*job, processes) for job in jobs], engine, listeners, stacked=stacked
                )
            ).run()
    except DataDependentError:  # a stack of what must not be stacked: nothing was trained yet
        return [
            run
            for job in jobs
            for run in _train([job], engine, listeners, processes, stacked=False)
        ]
    except (DataError, LostProcessError) as error:
        raise with_resume_hint(error, folder) from error
    except (MemoryError, RuntimeError) as error:
        if reports_dead_worker(error):  # raised wherever the training was when the signal came
            refusal = explain_loader_error(f"the data of `{lead.problem.name}`", error)
            raise with_resume_hint(refusal, folder) from error
        if not lacks_memory(error):
            raise
        if networks == 1 or not stacked:
            raise with_resume_hint(_too_large(lead.device), folder) from error
    # too many for the memory: their checkpoints are where they stopped, their networks are let go
    torch.cuda.empty_cache()
    if len(jobs) == 1:
        return _train(jobs, engine, listeners, processes, stacked=False)
    half = len(jobs) // 2
    halves = (jobs[:half], jobs[half:])
    return [run for part in halves for run in _train(part, engine, listeners, processes)]


def _too_large(device: torch.device) -> RunError:
    if device.type == "cpu":
        return RunError(
            "the computer is out of memory; lower `batch_size`, use fewer `rays` or a smaller "
            "network"
        ).with_hint({"batch_size": 64})
    return RunError(
        "the GPU is out of memory; lower `batch_size`, use micro-batches (groups=4, accumulate=4) "
        'or use device="cpu"'
    ).with_hint({"batch_size": 64, "groups": 4, "accumulate": 4, "device": "cpu"})


def _together(plan: Plan) -> bool:
    """Whether a stack of networks trains faster than one after the other.

    A GPU is hardly used by one small network. A CPU is, unless the network is so small that most of
    the time goes into asking for its operations.
    """
    weights = sum(p.numel() for p in list_networks(plan.model)[0].parameters())
    small = len(plan.problem.input_shape) == 1 and weights * plan.training.batch_size < SMALL_STEP
    return plan.stackable and (plan.device.type == "cuda" or small)
