"""Read a run back from its folder."""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from paretocosmos import registry
from paretocosmos.config.plan import NetworkSpec, Plan
from paretocosmos.config.settings import NETWORK
from paretocosmos.errors import ConfigurationError, DataError, RunError, unknown
from paretocosmos.io.files import one_line, read_json, user_path
from paretocosmos.io.progress import status
from paretocosmos.nn.conditioning import PerRayEnsemble
from paretocosmos.pareto.front import Front
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import Table, TabularProblem, label_rows
from paretocosmos.registry import Spec, modules_of
from paretocosmos.runs.checkpoint import check_count, load_tensors
from paretocosmos.runs.record import (
    MODEL,
    check_files,
    check_hash,
    check_objectives,
    check_targets,
    read_record,
    rebuild_objective,
)
from paretocosmos.runs.run import Run
from paretocosmos.runs.stored_names import rename_record, rename_tensors
from paretocosmos.runtime.device import resolve_device, to_device_layout
from paretocosmos.runtime.weights import describe_misfit

if TYPE_CHECKING:
    import pandas as pd

# on test and on validation, in the order in which `_read_data` returns them
FRONTS = ("front.json", "front_val.json")


@status("reading the run")
def load_run(
    folder: str | Path,
    *,
    model: nn.Module | None = None,
    backbone: nn.Module | None = None,
    problem: Problem | None = None,
    trust: Collection[str] = (),
    device: str = "cpu",
) -> Run:
    """Read a finished run from its folder, without running any code in or beside it.

    A run with third-party parts names them as ``package.module:Class``. They are imported only if
    the caller trusts their package, and not at all if the caller supplies them.

    Args:
        folder: the run folder.
        model: a network of the same architecture, for runs trained on a network of one's own,
            which the folder cannot rebuild; it is loaded with the run's weights (copies of it,
            where the method trains several).
        backbone: likewise for runs trained on a backbone of one's own; it is copied.
        problem: likewise for runs trained on a problem of one's own.
        trust: packages and modules whose code the folder may name, as ``["my_package"]``.
        device: where the model goes.

    Returns:
        The run, as `fit` returned it.

    >>> import tempfile
    >>> from paretocosmos import fit
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> run = fit("toy_convex", epochs=2, out=folder, report=False)
    >>> bool((load_run(folder).front.values == run.front.values).all())
    True
    """
    # the device first: reading gigabytes for one that does not exist would be a waste
    folder, target = user_path(folder), resolve_device(device)
    # roles in the record that need not be imported, since the caller supplies them
    supplied = ["conditioning"] * (model is not None) + ["problem"] * (problem is not None)
    supplied += ["backbone"] * (model is not None or backbone is not None)
    record = read_record(folder, trust=trust, supplied=supplied)
    if record.get("status") != "finished":
        raise RunError(
            f"the run in `{folder}` is not finished; continue it with the same call and resume=True"
        )
    check_hash(folder, record)  # before renaming: the hash is of the record as written
    record = rename_record(record)
    # a file may claim gigabytes, which hashing or reading it would cost
    _check_size(folder, record, model, backbone)
    check_files(folder, record)
    tensors, _ = load_tensors(folder / MODEL)
    if any(bool(tensor.isnan().any()) for tensor in tensors.values()):
        raise RunError(
            f"`{folder / MODEL}` is damaged: a weight is NaN; restore the original file, or train "
            "again"
        )
    network = _build_network(folder, record, backbone) if model is None else model
    if record.get("fixed_rays") is not None and not isinstance(network, PerRayEnsemble):
        rays = torch.tensor(record["fixed_rays"])
        # equal networks at first: the file has the weights of each
        network = PerRayEnsemble([network] * len(rays), rays)
    # trained in double precision
    if all(t.dtype == torch.float64 for t in tensors.values() if t.is_floating_point()):
        network.double()
    try:
        network.load_state_dict(rename_tensors(tensors, network))
    except RuntimeError as error:
        raise RunError(
            f"the weights in `{folder}` do not fit the network: "
            f"{describe_misfit(network, tensors, error)}; pass the network the run was trained on "
            "as `model`"
        ) from error
    test, val, table = _read_data(folder, record)
    if problem is not None:
        check_objectives(folder, record, problem)
    network = to_device_layout(network, target).eval()
    return Run(folder, record, test, val, network, table, problem)


def load_planned(plan: Plan, folder: Path) -> Run:
    """Load the finished run of a plan."""
    return load_run(
        folder,
        model=None if plan.rebuildable else plan.model,
        problem=plan.problem,
        trust=plan.configuration.modules,  # the caller named them, and the record agrees
        device=str(plan.device),
    )


def _read_data(folder: Path, record: Mapping[str, Any]) -> tuple[Front, Front, Table | None]:
    """Read the fronts on test and val, and the preprocessing of a tabular problem."""
    # a file that the record does not list was not written by the training
    path = folder / "table.json" if "table.json" in record["files"] else None
    try:
        test, val = (Front.from_dict(read_json(folder / name)) for name in FRONTS)
        table = None if path is None else Table.from_dict(read_json(path))
    except DataError as error:
        raise RunError(f"`{folder}` is damaged ({error}); train again") from error
    if any(list(front.names) != record["names"] for front in (test, val)):
        raise RunError(
            f"`{folder}` is damaged: its fronts have other objectives than run.json; train again"
        )
    return test, val, table


def _check_size(
    folder: Path, record: Mapping[str, Any], model: nn.Module | None, backbone: nn.Module | None
) -> None:
    """Raise if a file has more or fewer weights than the network, before memory is used."""
    names = [(record[role] or {}).get("name") for role in NETWORK]
    if not (folder / MODEL).is_file() or (model is None and (backbone or modules_of(names))):
        return  # code that is trusted may build as it likes
    # a file holds a network per fixed ray; the caller's ensemble has all of them already
    copies = 1 if isinstance(model, PerRayEnsemble) else len(record.get("fixed_rays") or [1])
    if model is None:
        with torch.device("meta"):  # shapes without memory, of one network where there are more
            model = _build_network(folder, {**record, "fixed_rays": None}, None)
    check_count(folder / MODEL, model, copies=copies)


def _build_network(
    folder: Path, record: Mapping[str, Any], backbone: nn.Module | None
) -> nn.Module:
    """Build the network that a record describes, or its networks.

    Args:
        folder: of the run, for the message.
        record: `run.json`.
        backbone: a third-party one, if the run was trained on such; copied.
    """
    # `None` stands for a network of the caller, which JSON cannot hold
    named, conditioning = record["backbone"], record["conditioning"]
    if conditioning is None or (named is None and backbone is None):
        argument = "model" if conditioning is None else "backbone"
        raise RunError(
            "this run used your own network, which its folder cannot rebuild: pass the network as "
            f"`{argument}`"
        )
    try:
        return NetworkSpec(
            conditioning=Spec(**conditioning),
            backbone=None if named is None else Spec(**named),
            input_shape=record["input_shape"],
            outputs=record["outputs"],
            objectives=record["objectives"],
            rays=record.get("fixed_rays"),
            module=backbone,
            # weights are loaded next, so drawing them would be wasted time
            blank=True,
        ).build()
    except RunError:
        raise
    # a record may hold any sizes, which fail in many ways where they do not fit
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise RunError(
            f"the network that `{folder / 'run.json'}` describes cannot be built "
            f"({one_line(error)}); restore the original file, or train again"
        ) from error


def problem_from_rows(run: Run, frame: "pd.DataFrame") -> TabularProblem:
    """Return the problem of a run with other rows as its test data, to pass to `evaluate`.

    The data that the run was trained on are not needed.

    Args:
        run: a run on a table.
        frame: rows with the columns the run was trained on, the target and the sensitive columns.

    >>> from paretocosmos import evaluate, load
    >>> from paretocosmos.problems.tables import read_embedded
    >>> run, rows = load("compas"), read_embedded("compas").tail(1000)
    >>> front = evaluate(run.model, problem_from_rows(run, rows), rays=[[1.0, 0.0], [0.0, 1.0]])
    >>> before, after = front.values[:, front.names.index("demographic_parity")]
    >>> bool(after < before)  # the gap between men and women
    True
    """
    # with the names of the target and the groups, which `label_rows` reads
    about = run.record["about"]
    if run.table is None or not {"grouping", "answer"} & about.keys():
        raise RunError(
            f"`{run.folder}` does not record its target and group columns: it was not trained on a "
            "table, or by an earlier version; train again"
        )
    specs = [Spec(**spec) for spec in run.record["objective_specs"]]
    # an objective of one's own is code, which a folder does not hold
    foreign = [spec.name for spec in specs if spec.name not in registry.names("objectives")]
    if foreign:
        raise RunError(
            f"`{run.folder}` was trained on `{foreign[0]}`, your own objective, which the folder "
            "cannot rebuild: use `run.predict` and compute it yourself"
        )
    # with the scales and categories of the training rows, which the network expects
    problem = label_rows(
        frame,
        table=run.table,
        about=about,
        objectives=tuple(rebuild_objective(spec) for spec in specs),
        reference=tuple(run.front.reference.tolist()),
        name=run.record["name"],
    )
    check_targets(run.folder, problem, "test")
    return problem


FOLDER = Path(__file__).with_name("models")
MODELS = ("adult", "compas", "default_credit")
"""Names of the trained networks in the package: those of the problems they were trained on."""


def load(name: str, *, device: str = "cpu") -> Run:
    """Load a trained network that comes with this package, to predict at any preference.

    There is one for each of the tables `adult`, `compas` and `default_credit`, trained with the
    default preset: the front trades cross-entropy for equal selection rates of men and women. They
    are meant for trying things out and for teaching, not for decisions about people. The folder
    `load(name).folder` also holds the network as ONNX, with a model card, in ``export/``.

    Args:
        name: one of the three; a run folder of your own is read by `load_run`.
        device: where the model goes.

    Returns:
        The run. Nothing is written into its folder, which is part of the package: `explore` and
        `export` write elsewhere.

    >>> from paretocosmos import load
    >>> run = load("adult")
    >>> run.front.names
    ('binary_cross_entropy', 'demographic_parity')
    >>> len(run.front)
    25
    """
    # names only: a path could reach outside of the package
    if name not in MODELS:
        # the likeliest mistake has the shortest way out
        if Path(name).is_dir():
            raise ConfigurationError(
                f"`load` takes the name of a model that comes with paretocosmos, "
                f"{', '.join(MODELS)}; found the folder `{name}`: open it with `load_run`"
            )
        raise unknown("model", name, MODELS)
    return dataclasses.replace(load_run(FOLDER / name, device=device), saved=False)
