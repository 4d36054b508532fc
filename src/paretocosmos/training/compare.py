"""`compare`: several methods on one problem, one figure and one table."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from paretocosmos import registry
from paretocosmos.config.plan import Plan
from paretocosmos.config.resolve import make_plan
from paretocosmos.errors import ConfigurationError, ParetoCosmosError, RunError
from paretocosmos.io.files import remove_leftovers
from paretocosmos.nn.conditioning import list_networks
from paretocosmos.problems import Problem, problem_name
from paretocosmos.runs.folders import choose_folder, is_finished, refuse_one_run
from paretocosmos.runs.load import load_planned
from paretocosmos.runs.run import Run
from paretocosmos.runtime.distributed import join_processes
from paretocosmos.training.callbacks import Callback
from paretocosmos.training.comparison import Comparison
from paretocosmos.training.engine import check_engine
from paretocosmos.training.fit import FitOptions, train_seeds, write_pages
from paretocosmos.training.jobs import check_seeds
from paretocosmos.training.preflight import run_preflight
from paretocosmos.training.progress import Progress, ProgressCallback, follow_progress
from paretocosmos.training.scheduler import check_place, train_tasks
from paretocosmos.training.tasks import Task


def check_methods(methods: Sequence[str]) -> list[str]:
    """Return the names as a list: at least one, and none twice."""
    wanted = [methods] if isinstance(methods, str) else list(methods)
    # objects have no name for their folder and their row
    if not all(isinstance(name, str) for name in wanted):
        raise ConfigurationError(
            f"`methods` must be names, found {wanted}: write your own as `package.module:Name`"
        )
    twice = [name for name in dict.fromkeys(wanted) if wanted.count(name) > 1]
    if twice:
        raise ConfigurationError(f"`methods` names `{twice[0]}` twice: name it once")
    if not wanted:
        raise ConfigurationError("`methods` needs at least one name, found none: try cosmos,linear")
    return wanted


def split_by_method(
    settings: Mapping[str, Any], methods: Sequence[str], problem: str | Problem
) -> dict[str, dict[str, Any]]:
    """Return each method's settings: those for all methods, overridden by its ``METHOD.KEY``.

    >>> split_by_method({"epochs": 2, "cosmos.penalty": 1}, ["cosmos", "linear"], "toy_convex")
    {'cosmos': {'epochs': 2, 'penalty': 1}, 'linear': {'epochs': 2}}
    """
    overrides: dict[str, dict[str, Any]] = {method: {} for method in methods}
    shared = dict(settings)
    for key in settings:
        # by the methods' names: a name such as `torchjd:UPGrad` or `module:Name` may hold dots
        method = next((name for name in methods if key.startswith(f"{name}.")), None)
        if method is not None:
            check_comparable(key, problem)
            overrides[method][key.removeprefix(f"{method}.")] = shared.pop(key)
    return {method: shared | own for method, own in overrides.items()}


BASELINES = ("cosmos", "phn_ls", "phn_epo", "pareto_mtl", "mgda", "single_task", "uniform")
"""The paper's method, its baselines, and two of its code's: MGDA and uniform."""
COMPARED = ("linear", "separate", *BASELINES)
"""The methods of a comparison that names none: a weighted sum, separate networks, and those."""


def compare(
    problem: str | Problem,
    methods: Sequence[str] = COMPARED,
    *,
    seeds: Sequence[int] = (1,),
    preset: str | None = None,
    protocol: str | None = None,
    epochs: int | None = None,
    backbone: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    engine: str = "auto",
    precision: str = "tf32",
    deterministic: bool = False,
    workers: int = 0,
    cluster: str | None = None,
    progress: Callable[[str, Progress], None] | bool = True,
    report: bool = True,
    callbacks: Sequence[Callback] = (),
) -> Comparison:
    """Train several methods on one problem.

    Mistakes in any method are refused before the first is trained. A method that fails later does
    not stop the others.

    Args:
        problem: a problem, its name, or the path of a CSV file.
        methods: names of methods, or ``"phn_ls"``, ``"phn_epo"``.
        seeds: each method has one run for each of them.
        preset: as for `fit`, the same for every method.
        protocol: as for `fit`.
        epochs: passes over the data, for every method; the preset's for each if `None`.
        backbone: as for `fit`.
        settings: as for `fit`, for every method; ``"cosmos.penalty"`` is for `cosmos` alone and
            overrides ``"penalty"``.
        out: the new folder that gets a run folder for each method; ``runs/PROBLEM-compare`` if
            `None`.
        resume: continue a comparison that was begun in `out`.
        device: as for `fit`.
        engine: as for `fit`.
        precision: as for `fit`.
        deterministic: as for `fit`.
        workers: processes of this machine that train a method each; 0 trains in this one.
        cluster: as for `fit`, for methods.
        progress: a bar for each method, `False` for none, or a function to call after every epoch
            with the method's name and its progress.
        report: write ``report.html``, as for `fit`, and one page of all methods.
        callbacks: as for `fit`.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/runs"
    >>> done = compare("toy_convex", ["cosmos", "uniform"], epochs=2, out=folder)
    >>> [(row["method"], row["points"]) for row in done.rows]
    [('cosmos', 25), ('uniform', 1)]
    """
    check_single_process("compare", device, workers, cluster)
    wanted, all_seeds = check_methods(methods), check_seeds(seeds)
    asked = {**(settings or {}), **({} if epochs is None else {"epochs": epochs})}
    how: FitOptions = {
        "preset": preset,
        "model": None,
        "conditioning": None,
        "backbone": backbone,
        "protocol": protocol,
        "device": device if cluster is None else "auto",  # a cluster has devices of its own
        "precision": precision,
        "deterministic": deterministic,
    }
    rest: FitOptions = {"device": device, "engine": engine, "callbacks": callbacks}
    with follow_progress(progress is True) as follow:
        by_method = split_by_method(asked, wanted, problem)
        trainings = {m: (problem, how | {"method": m, "settings": s}) for m, s in by_method.items()}
        elsewhere = workers > 0 or cluster is not None
        planned = plan_trainings(trainings, all_seeds, engine, elsewhere=elsewhere)
        name = next(iter(planned.values())).plan.problem.name
        # after all checks that need no folder: a refusal leaves nothing on the disk
        folder = begin_folder(out, f"{name}-compare", resume=resume, what="comparison")
        candidates = {
            # a name such as `torchjd:UPGrad` has characters that some file systems refuse
            method: candidate.begin(folder / re.sub(r"[^\w.-]+", "-", method), rest)
            for method, candidate in planned.items()
        }
        # all bars at once, so that a user sees how much is still to come
        bars = {
            m: partial(progress, m) if callable(progress) else follow(m, c.plan.training.epochs)
            for m, c in candidates.items()
        }
        runs, failures = train_all(candidates, all_seeds, bars, workers=workers, cluster=cluster)
        done = Comparison(folder, name, runs, failures)
        done.save()  # before the pages, which may fail
        if report:
            write_pages([run for by_seed in runs.values() for run in by_seed], folder)
    return done


def begin_folder(out: str | Path | None, default: str, *, resume: bool, what: str) -> Path:
    """Choose the folder of several trainings, without what a killed process left in it."""
    folder = choose_folder(out, default, resume=resume, what=what)
    refuse_one_run(folder, f"a {what}")
    if resume:
        remove_leftovers(folder)
    return folder


def list_problem_settings(problem: str | Problem) -> list[str]:
    """Return the names of a problem's settings, which a loaded one has no longer."""
    if not isinstance(problem, str):
        return []
    return list(registry.parameters(registry.find("problems", problem_name(problem))))


def check_single_process(what: str, device: str, workers: int, cluster: str | None) -> None:
    """Raise in one of several processes: they would have to agree on every failure."""
    check_place(workers, cluster)
    if join_processes(device)[0].count > 1:
        refusal = ConfigurationError(
            f"`{what}` must run in one process, found several: start it without torchrun, or train "
            "one after the other with `train`"
        )
        refusal.shared = True  # every process raises it: one message is enough
        raise refusal


@dataclass(frozen=True)
class Candidate:
    """One of several trainings: its plan and its folder, and the problem and options for `fit`."""

    plan: Plan
    problem: str | Problem
    options: FitOptions
    folder: Path = Path()

    def begin(self, folder: Path, options: FitOptions) -> "Candidate":
        """Return the training with a folder and further options, known once all are planned."""
        return dataclasses.replace(self, folder=folder, options=self.options | options)

    def is_finished(self, seeds: Sequence[int], *, any_device: bool) -> bool:
        """Return True if all seeds came to their end; raise if a folder has other settings."""
        finished = [
            is_finished(self.folder / f"seed-{n}", self.plan.for_seed(n), any_device=any_device)
            for n in seeds
        ]
        return all(finished)


def train_all(
    candidates: Mapping[str, Candidate],
    seeds: Sequence[int],
    callbacks: Mapping[str, ProgressCallback | None],
    *,
    workers: int,
    cluster: str | None,
) -> tuple[dict[str, list[Run]], dict[str, str]]:
    """Train what is not finished; return the runs of each candidate, and why others failed."""
    tasks = [
        Task(n, c.folder, partial(train_seeds, c.problem, seeds, c.options))
        for n, c in candidates.items()
        if not c.is_finished(seeds, any_device=cluster is not None)
    ]
    device = next(iter(candidates.values())).options["device"]
    failed = train_tasks(tasks, callbacks, workers=workers, cluster=cluster, device=device)
    if len(failed) == len(candidates):
        raise RunError("; ".join(f"{name}: {why}" for name, why in failed.items()))
    runs = {
        n: [load_planned(c.plan.for_seed(seed), c.folder / f"seed-{seed}") for seed in seeds]
        for n, c in candidates.items()
        if n not in failed
    }
    # in the order of the candidates, whichever failed first
    return runs, {name: failed[name] for name in candidates if name in failed}


def plan_trainings(
    trainings: Mapping[str, tuple[str | Problem, FitOptions]],
    seeds: Sequence[int],
    engine: str,
    *,
    elsewhere: bool,
) -> dict[str, Candidate]:
    """Plan trainings on data that are loaded once per problem; their folders are not chosen.

    What a training would refuse only when its turn comes is refused now.

    Args:
        trainings: the problem and the options for `fit` of each, by its name in errors.
        seeds: of every training.
        engine: the name of the engine.
        elsewhere: set if other processes train, which load the data by themselves.
    """
    leads: dict[int, Plan] = {}
    candidates: dict[str, Candidate] = {}
    for name, (problem, options) in trainings.items():
        takes, lead = list_problem_settings(problem), leads.get(id(problem))
        # a reference point that was estimated for one training holds for all of them
        reference = None if lead is None else lead.training.reference
        fixed = {} if reference is None else {"reference": reference}
        settings = {**(options["settings"] or {}), **fixed}
        own = {k: v for k, v in settings.items() if k.removeprefix("problem.") not in takes}
        how: Any = options
        try:
            if lead is None:
                plan = make_plan(problem, seed=seeds[0], **(how | {"settings": settings}))
            else:
                plan = make_plan(lead.problem, seed=seeds[0], **(how | {"settings": own}))
            check_engine(engine, plan.device)
            network = list_networks(plan.model)[0]  # the networks of an ensemble are alike
            run_preflight(network, plan.problem, plan.method, plan.training.batch_size)
        except ParetoCosmosError as error:
            # of the same type, by which callers and the command line tell errors apart
            raise type(error)(f"{name}: {error}") from error
        lead = leads.setdefault(id(problem), plan)
        if lead.training.reference is not None:
            own["reference"] = settings["reference"] = lead.training.reference
        by_name = elsewhere and isinstance(problem, str)
        candidates[name] = Candidate(
            plan,
            problem if by_name else plan.problem,
            how | {"settings": settings if by_name else own},
        )
    return candidates


def check_comparable(setting: str, problem: str | Problem) -> None:
    """Raise if trainings with different values of a setting could not be compared."""
    takes = list_problem_settings(problem)
    if setting.rpartition(".")[2] in (*takes, "reference", "protocol", "data"):
        raise ConfigurationError(
            f"`{setting}` changes what is measured, so that trainings could not be compared: give "
            "all of them the same value"
        )
