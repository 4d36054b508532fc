"""`compare`: several methods on one problem, one figure and one table."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from paretocosmos import registry
from paretocosmos.conditioning import networks_of
from paretocosmos.config.plan import Plan
from paretocosmos.config.presets import METHODS
from paretocosmos.config.resolve import PlanOptions, make_plan
from paretocosmos.errors import ConfigurationError, FrontWarning, ParetoCosmosError, RunError
from paretocosmos.io.files import sweep
from paretocosmos.pareto.rays import each_alone
from paretocosmos.problems import Problem, problem_name
from paretocosmos.runs.folders import folder_for, refuse_one_run, refuse_other
from paretocosmos.runs.record import record_in
from paretocosmos.runs.run import Run
from paretocosmos.runtime.device import lacks_memory
from paretocosmos.runtime.distributed import join
from paretocosmos.training._comparison import Comparison
from paretocosmos.training._method_settings import all_planned, check_methods, share_out
from paretocosmos.training.callbacks import Callback
from paretocosmos.training.engine._choose import check_engine
from paretocosmos.training.fit import FitOptions, check_seeds, fit
from paretocosmos.training.pages import write_pages
from paretocosmos.training.preflight import preflight
from paretocosmos.training.progress import Progress, follow_progress

__all__ = ["BASELINES", "COMPARED", "Comparison", "compare"]

BASELINES = ("cosmos", "phn_ls", "phn_epo", "pareto_mtl", "mgda", "single_task", "uniform")
"""The paper's method, its baselines, and two of its code's: MGDA and uniform."""
COMPARED = (METHODS["default"], "separate", *BASELINES)
"""What is compared where nobody says: what the default preset trains, the bar for it, and those."""


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
    progress: Callable[[str, Progress], None] | bool = True,
    report: bool = True,
    callbacks: Sequence[Callback] = (),
) -> Comparison:
    """Train several methods on one problem.

    All that can be refused is refused before the first is trained. A method that fails later does
    not stop the others.

    Args:
        problem: a problem, its name, or the path of a CSV file.
        methods: names of methods, or ``"phn_ls"``, ``"phn_epo"``.
        seeds: a run of each method for each.
        preset: as for `fit`, the same for every method.
        protocol: as for `fit`.
        epochs: passes over the data, for every method; the preset's for each if `None`.
        backbone: as for `fit`.
        settings: as for `fit`, each taken by every method; ``"cosmos.penalty"`` is for `cosmos`
            alone and goes before ``"penalty"``.
        out: the folder, new, that gets a run folder for each method; ``runs/PROBLEM-compare`` if
            `None`.
        resume: continue what was begun in `out`.
        device: as for `fit`, and so are the next three.
        engine: how steps are run.
        precision: of products.
        deterministic: only reproducible kernels.
        progress: as for `fit`: a bar for each method, `False` for none, or what is called with
            the method's name after every epoch.
        report: write ``report.html``, as for `fit`, and one page of all methods.
        callbacks: as for `fit`.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/runs"
    >>> done = compare("toy_convex", ["cosmos", "uniform"], epochs=2, out=folder)
    >>> [(row["method"], row["points"]) for row in done.rows]
    [('cosmos', 25), ('uniform', 1)]
    """
    _refuse_processes(device)
    wanted, all_seeds = check_methods(methods), check_seeds(seeds)
    asked = dict(settings or {}) | ({} if epochs is None else {"epochs": epochs})
    how: PlanOptions = {
        "preset": preset,
        "model": None,
        "conditioning": None,
        "backbone": backbone,
        "device": device,
        "precision": precision,
        "deterministic": deterministic,
    }
    with follow_progress(progress is True) as follow:
        lead, plans, own = _planned(problem, wanted, all_seeds, asked, how | {"protocol": protocol})
        _preflight(plans, engine)
        folder, places = _places(out, lead.problem.name, wanted, resume=resume)
        if resume:
            _take_up(folder, plans, places, all_seeds)
        callbacks_by_name = {
            name: follow(name, plan.training.epochs)
            or (partial(progress, name) if callable(progress) else False)
            for name, plan in plans.items()
        }

        def train(method: str) -> list[Run]:
            options: FitOptions = {
                **how,
                "method": method,
                "epochs": None,
                "settings": own[method],
                "out": places[method],
                "resume": resume,
                "engine": engine,
                "progress": callbacks_by_name[method],
                "report": False,
                "callbacks": callbacks,
            }
            return fit(lead.problem, seeds=all_seeds, **options)

        done = Comparison(folder, lead.problem.name, *_trained(plans, train))
        done.save()
        if report:
            write_pages([run for some in done.runs.values() for run in some], folder)
    return done


def _places(
    out: str | Path | None, problem: str, methods: Sequence[str], *, resume: bool
) -> tuple[Path, dict[str, Path]]:
    """The folder of a comparison, and that of each method in it."""
    folder = folder_for(out, f"{problem}-compare", resume=resume, what="comparison")
    refuse_one_run(folder, "a comparison")
    return folder, {method: folder / re.sub(r"[^\w.-]+", "-", method) for method in methods}


def _refuse_processes(device: str) -> None:
    if join(device)[0].count > 1:
        refusal = ConfigurationError(
            "`compare` must run in one process, found several: start it without torchrun, or train "
            "the methods one by one with `train`"
        )
        refusal.shared = True
        raise refusal


def _planned(
    problem: str | Problem,
    methods: Sequence[str],
    seeds: Sequence[int],
    settings: Mapping[str, Any],
    how: PlanOptions,
) -> tuple[Plan, dict[str, Plan], dict[str, dict[str, Any]]]:
    """The first method's plan without settings, every method's, and every method's settings.

    All are on the problem that the first one loaded.
    """

    def plan(problem: str | Problem, method: str, own: Mapping[str, Any]) -> Plan:
        options: PlanOptions = {**how, "method": method, "settings": own}
        return make_plan(problem, seed=seeds[0], **options)

    named = isinstance(problem, str)
    takes = (
        registry.parameters(registry.find("problems", problem_name(str(problem)))) if named else {}
    )
    for_problem = {k: v for k, v in settings.items() if k.removeprefix("problem.") in takes}
    lead = plan(problem, methods[0], for_problem)
    for seed in seeds[1:]:
        lead.for_seed(seed)
    bare = {method: plan(lead.problem, method, {}) for method in methods}
    rest = {key: value for key, value in settings.items() if key not in for_problem}
    own = share_out(rest, bare, list(takes))
    return lead, all_planned(own, partial(plan, lead.problem)), own


def _trained(
    plans: Mapping[str, Plan], train: Callable[[str], list[Run]]
) -> tuple[dict[str, Sequence[Run]], dict[str, str]]:
    """Every method's runs, and of those that failed the reason; an error where all did."""
    runs: dict[str, Sequence[Run]] = {}
    failures: dict[str, str] = {}
    for method, plan in plans.items():
        try:
            with _named(method, plan):
                runs[method] = train(method)
        except ParetoCosmosError as error:
            if isinstance(error, RunError) and not lacks_memory(error.__cause__):
                raise  # a full disk is full for the next method too
            failures[method] = str(error)
    if not runs:
        raise RunError("; ".join(f"{method}: {why}" for method, why in failures.items()))
    return runs, failures


def _preflight(plans: Mapping[str, Plan], engine: str) -> None:
    """What a method would refuse when its turn comes is refused before another is trained."""
    for method, plan in plans.items():
        check_engine(engine, plan.device)
        network = networks_of(plan.model)[0]
        try:
            preflight(network, plan.problem, plan.method, plan.training.batch_size)
        except ParetoCosmosError as error:
            raise type(error)(f"{method}: {error}") from error


def _take_up(
    folder: Path, plans: Mapping[str, Plan], places: Mapping[str, Path], seeds: Sequence[int]
) -> None:
    """What one method refuses to continue is refused before another is trained."""
    for method, plan in plans.items():
        for seed in seeds:
            place = places[method] / f"seed-{seed}"
            if (place / "run.json").exists():
                refuse_other(place, record_in(place), plan.for_seed(seed))
    sweep(folder)


@contextmanager
def _named(method: str, plan: Plan) -> Iterator[None]:
    """Warnings say whose they are; networks for one objective each need not be a front."""
    rays = plan.method.fixed_rays(len(plan.problem.objectives))
    alone = rays is not None and each_alone(rays)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FrontWarning)
        yield
    for one in caught:
        if not (alone and issubclass(one.category, FrontWarning)):
            warnings.warn(f"{method}: {one.message}", one.category, stacklevel=3)
