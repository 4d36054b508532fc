"""`compare`: several methods on one problem, one figure and one table."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from paretocosmos import registry
from paretocosmos.config.plan import Plan
from paretocosmos.config.resolve import PlanOptions, make_plan
from paretocosmos.config.settings import Training, get_pairs
from paretocosmos.errors import (
    ConfigurationError,
    ParetoCosmosError,
    RunError,
    joined,
    unknown,
)
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
        raise ConfigurationError(f"`methods` names {_format_names(twice)} twice: name it once")
    if not wanted:
        raise ConfigurationError("`methods` needs at least one name, found none: try cosmos,linear")
    return wanted


def split_by_method(
    settings: Mapping[str, Any], plans: Mapping[str, Plan], of_problem: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return each method's settings: those for all methods, overridden by its ``METHOD.KEY``.

    Every mistake is reported at once.

    Args:
        settings: all but those of the problem.
        plans: what each method trains, before any of them.
        of_problem: the names of the problem's, to suggest.
    """
    takes = {method: _list_settings(plan) for method, plan in plans.items()}
    shared: dict[str, Any] = {}
    overrides: dict[str, dict[str, Any]] = {method: {} for method in plans}
    mistakes: list[ConfigurationError] = []
    for key, value in settings.items():
        # by the methods' names: a name such as `torchjd:UPGrad` or `module:Name` may hold dots
        method = next((name for name in plans if key.startswith(f"{name}.")), None)
        name = key.removeprefix(f"{method}.")
        if method is None:
            mistakes += _find_shared_mistakes(key, value, takes, of_problem)
            shared[key] = value
        elif name.removeprefix("training.") == "reference":
            # hypervolumes are volumes up to the reference point: of two they are not comparable
            refusal = ConfigurationError(
                "`reference` must be the same for all methods, so that hypervolumes can be "
                f"compared, found `{key}`: set `reference` to {value}"
            )
            mistakes.append(refusal.with_hint({"reference": value}))
        elif name not in takes[method]:
            # the short form of every setting is enough to suggest from
            names = [f"{method}.{n}" for n in takes[method] if "." not in n and n != "reference"]
            mistakes.append(unknown("setting", key, names))
        else:
            overrides[method][name] = value
    if mistakes:
        raise joined(mistakes)
    return {method: shared | settings for method, settings in overrides.items()}


@contextmanager
def name_in_errors(name: str) -> Iterator[None]:
    """Begin the message of an error with the name of the training that it is about."""
    try:
        yield
    except ParetoCosmosError as error:
        # of the same type, by which callers and the command line tell errors apart
        raise type(error)(f"{name}: {error}").with_hint(error.hints) from error


def _find_shared_mistakes(
    key: str, value: Any, takes: Mapping[str, Sequence[str]], of_problem: Sequence[str]
) -> list[ConfigurationError]:
    takers = [method for method, names in takes.items() if key in names]
    refusers = [method for method in takes if method not in takers]
    if not refusers:
        return []
    if takers:  # ignored by some, it would compare methods under different settings
        overrides = {f"{method}.{key}": value for method in takers}
        refusal = ConfigurationError(
            f"`{key}` is not a setting of {_format_names(refusers)}: set "
            f"{_format_names(overrides)} instead"
        )
        return [refusal.with_hint(overrides)]
    owner = key.partition(".")[0]
    if owner in (*registry.names("methods"), *get_pairs()):
        return [
            ConfigurationError(
                f"`{key}` is for `{owner}`, which is not among the methods: add it to `methods`"
            )
        ]
    short_names = {name for names in takes.values() for name in names if "." not in name}
    return [unknown("setting", key, {*short_names, *of_problem})]


def _list_settings(plan: Plan) -> list[str]:
    """Return the names of all settings, as ``penalty`` and as ``method.penalty``."""
    made = plan.configuration
    # only parts that the plan has: a user's own network has no conditioning or backbone to set
    things = {"training": Training, "method": registry.find("methods", made.method.name)}
    if made.conditioning is not None:
        things["conditioning"] = registry.find("conditioning", made.conditioning.name)
    if made.backbone is not None:
        things["backbone"] = registry.find("backbones", made.backbone.name)
    names = [(role, name) for role, thing in things.items() for name in registry.parameters(thing)]
    return [form for role, name in names for form in (name, f"{role}.{name}")]


def _format_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


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
    asked = dict(settings or {}) | ({} if epochs is None else {"epochs": epochs})
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
    # other processes load the data by themselves
    by_name = isinstance(problem, str) and (workers > 0 or cluster is not None)
    with follow_progress(progress is True) as follow:
        source, plans, options = _plan_methods(
            problem, wanted, all_seeds, asked, how, by_name=by_name
        )
        check_plans(plans, engine)
        # after all checks that need no folder: a refusal leaves nothing on the disk
        folder, folders = _choose_folders(out, plans[wanted[0]].problem.name, wanted, resume=resume)
        # all bars at once, so that a user sees how much is still to come
        bars = {name: follow(name, plan.training.epochs) for name, plan in plans.items()}
        if callable(progress):
            bars = {name: partial(progress, name) for name in wanted}
        rest: FitOptions = {"device": device, "engine": engine, "callbacks": callbacks}
        candidates = {
            name: Candidate(plan, folders[name], source, options[name] | rest)
            for name, plan in plans.items()
        }
        runs, failures = train_all(candidates, all_seeds, bars, workers=workers, cluster=cluster)
        done = Comparison(folder, plans[wanted[0]].problem.name, runs, failures)
        done.save()  # before the pages, which may fail
        if report:
            write_pages([run for some in done.runs.values() for run in some], folder)
    return done


def _choose_folders(
    out: str | Path | None, problem: str, methods: Sequence[str], *, resume: bool
) -> tuple[Path, dict[str, Path]]:
    """Choose the folder of a comparison, and in it the folder of each method."""
    folder = begin_folder(out, f"{problem}-compare", resume=resume, what="comparison")
    # a name such as `torchjd:UPGrad` has characters that some file systems refuse
    return folder, {method: folder / re.sub(r"[^\w.-]+", "-", method) for method in methods}


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


def _plan_methods(
    problem: str | Problem,
    methods: Sequence[str],
    seeds: Sequence[int],
    settings: Mapping[str, Any],
    how: FitOptions,
    *,
    by_name: bool,
) -> tuple[str | Problem, dict[str, Plan], dict[str, FitOptions]]:
    """Plan every method on the problem that the first one loads.

    Returns:
        The problem to train on, by name if asked; every method's plan, and its options for `fit`.
    """

    def plan(problem: str | Problem, method: str, settings: Mapping[str, Any]) -> Plan:
        base: PlanOptions = how
        options: PlanOptions = {**base, "method": method, "settings": settings}
        return make_plan(problem, seed=seeds[0], **options)

    takes = list_problem_settings(problem)
    # they are needed now, to load it; the others wait until it is known what each method takes
    for_problem = {k: v for k, v in settings.items() if k.removeprefix("problem.") in takes}
    lead = plan(problem, methods[0], for_problem)  # the only one that loads data
    for seed in seeds[1:]:  # a seed that cannot be used is refused before any training
        lead.for_seed(seed)
    if lead.training.reference is not None:  # an estimate holds for all methods
        settings = {**settings, "reference": lead.training.reference}
    # without settings, only to ask what each method takes
    bare = {method: plan(lead.problem, method, {}) for method in methods}
    rest = {key: value for key, value in settings.items() if key not in for_problem}
    by_method = split_by_method(rest, bare, takes)
    loading = for_problem if by_name else {}
    options: dict[str, FitOptions] = {
        method: how | {"method": method, "settings": loading | own}
        for method, own in by_method.items()
    }
    plans = {}
    for method, own in by_method.items():
        with name_in_errors(method):
            plans[method] = plan(lead.problem, method, own)
    return problem if by_name else lead.problem, plans, options


@dataclass(frozen=True)
class Candidate:
    """One of several trainings: its plan and its folder, and the problem and options for `fit`."""

    plan: Plan
    folder: Path
    problem: str | Problem
    options: FitOptions

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


def check_plans(plans: Mapping[str, Plan], engine: str) -> None:
    """Refuse now what a training would refuse only when its turn comes."""
    for name, plan in plans.items():
        check_engine(engine, plan.device)
        network = list_networks(plan.model)[0]  # the networks of an ensemble are alike
        with name_in_errors(name):
            run_preflight(network, plan.problem, plan.method, plan.training.batch_size)
