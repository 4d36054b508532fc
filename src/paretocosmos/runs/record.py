"""The record of a run, `run.json`: written, read and checked; a problem rebuilt from it."""

import dataclasses
import itertools
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from paretocosmos import registry
from paretocosmos.config.plan import Plan
from paretocosmos.config.settings import make_spec
from paretocosmos.errors import ConfigurationError, DataWarning, ParetoCosmosError, RunError
from paretocosmos.io.files import (
    hash_file,
    hash_json,
    one_line,
    read_json,
    to_json_value,
    write_json,
)
from paretocosmos.objectives import Objective
from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Front
from paretocosmos.problems import Problem, Split, hash_answers, load_problem
from paretocosmos.problems.tables import Table, TabularProblem
from paretocosmos.registry import Spec, check_names, check_trust
from paretocosmos.runs.checkpoint import save_tensors
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.runs.stored_names import drop_removed_settings, rename_record

# To be raised when the previous version could not read a run folder of this one.
FORMAT = 3

MODEL = "model.safetensors"
# An objective may have a weight for each of thousands of classes.
LONGEST = 200  # characters of an objective in a message

# The registry of each role that a record names.
KINDS = {
    "problem": "problems",
    "method": "methods",
    "conditioning": "conditioning",
    "backbone": "backbones",
}


def begin_record(plan: Plan, fixed: Tensor | None, status: str) -> dict[str, Any]:
    """Return the record of a run that begins.

    Args:
        plan: the training.
        fixed: the rays ``[K, J]`` with a network each; `None` if one serves all.
        status: ``"training"`` or ``"finished"``.
    """
    outputs = plan.problem.outputs
    return {
        "format": FORMAT,
        "status": status,
        **plan.configuration.to_dict(),
        "label": plan.configuration.label,
        "name": plan.problem.name,
        "about": dict(plan.problem.about),
        "protocol": plan.problem.protocol,
        "objectives": len(plan.problem.objectives),
        # lists, not tuples, so that the record equals what is read from its JSON
        "names": list(plan.problem.names),
        "objective_specs": list_objective_specs(plan.problem),
        "input_shape": list(plan.problem.input_shape),
        "outputs": outputs if isinstance(outputs, int) else dict(outputs),
        "fixed_rays": None if fixed is None else fixed.tolist(),
        # without buffers, such as the means of a batch norm, which are not learnt
        "parameters": sum(p.numel() for p in plan.model.parameters()),
        "caveats": list(plan.problem.caveats),
        "data_hash": plan.data_hash,
        "answers": hash_answers(plan.problem) if isinstance(plan.problem, TabularProblem) else None,
        **get_provenance(plan.device),
    }


def write_run(
    folder: Path,
    record: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    fronts: Mapping[str, Front],
    table: Table | None,
) -> dict[str, Any]:
    """Write a finished run into its folder, and return the hashes that its record gains.

    Args:
        folder: the run folder.
        record: its record, written last: a folder without it is not finished.
        weights: of the selected epoch.
        fronts: on test and val.
        table: the preprocessing of a tabular problem.
    """
    # the largest file first: if the disk is full, there is no record that claims a result
    save_tensors(folder / MODEL, weights, {"epoch": record["epoch_selected"]})
    contents = {"front.json": fronts["test"].to_dict(), "front_val.json": fronts["val"].to_dict()}
    if table is not None:
        contents["table.json"] = table.to_dict()
    for name, content in contents.items():
        write_json(folder / name, content)
    files = {name: hash_file(folder / name) for name in (MODEL, *contents)}
    added: dict[str, Any] = {"files": files}
    # of the record with the hashes of its files, so that this one stands for all of them
    added["sha256"] = hash_json({**record, **added})
    write_json(folder / "run.json", {**record, **added})
    return added


def measure_fronts(fronts: Mapping[str, Front]) -> dict[str, Any]:
    """Return the metrics of fronts by split, over all objectives and for each, for a record."""
    reports = {split: metrics.front_report(front).to_dict() for split, front in fronts.items()}
    return {
        "metrics": {split: report["numbers"] for split, report in reports.items()},
        "by_objective": {split: report["by_objective"] for split, report in reports.items()},
    }


def load_record(folder: Path) -> dict[str, Any]:
    """Read `run.json` as data to compare with; the code that it names is not checked.

    To build something from a record, read it with `read_record`.
    """
    from paretocosmos.runs.schema import check_record

    try:
        is_folder = folder.is_dir()
    except OSError:  # the name is too long, or a parent may not be read
        is_folder = False
    if not is_folder:
        raise RunError(f"`{folder}` is not a folder; give the folder that `train` printed")
    # the two likeliest mistakes: the folder above the run
    if (folder / "compare.json").exists() and not (folder / "run.json").exists():
        raise RunError(
            f"`{folder}` holds the runs of several methods; give one of them, such as "
            f"`{next(iter(sorted(folder.glob('*/seed-*/'))), folder)}`"
        )
    seeds = sorted(path.name for path in folder.glob("seed-*/"))
    if seeds and not (folder / "run.json").exists():
        raise RunError(
            f"`{folder}` holds the runs of several seeds ({', '.join(seeds)}); give one of them, "
            f"such as `{folder / seeds[0]}`"
        )
    record = read_json(folder / "run.json")
    written = record.get("format")
    # before the schema, whose complaint would not say that the version is at fault
    if not isinstance(written, int):
        raise RunError(f"`{folder / 'run.json'}` does not come from paretocosmos; train again")
    if written != FORMAT:
        version = str(record.get("version"))
        # what a foreign file says goes to a terminal
        version = version if version.isprintable() and len(version) < 40 else "unknown"
        raise RunError(
            f"`{folder}` was written by another version ({version}), whose folders this one does "
            "not read: upgrade with `pip install --upgrade paretocosmos`, or use that version"
        )
    check_record(rename_record(record), folder / "run.json")
    return record


def read_record(
    folder: Path,
    *,
    trust: Collection[str] = (),
    supplied: Collection[str] = (),
) -> dict[str, Any]:
    """Read `run.json`; raise if it names code that must not be imported.

    Args:
        folder: the run folder.
        trust: packages and modules whose code the caller allows it to name.
        supplied: roles such as ``"backbone"`` that the caller supplies, so that nothing is imported
            for them.
    """
    trusted, record = check_trust(trust), load_record(folder)
    # the record itself keeps the names it was written with, by which it is hashed
    renamed = rename_record(record)
    named = [
        (kind, renamed[role]["name"])
        for role, kind in KINDS.items()
        if renamed[role] is not None and role not in supplied
    ]
    check_names(named, file=folder / "run.json", trust=trusted)
    return record


def check_hash(folder: Path, record: Mapping[str, Any]) -> None:
    """Raise if a record was changed after its training wrote it."""
    # a hash cannot cover itself
    rest = {key: value for key, value in record.items() if key != "sha256"}
    if hash_json(rest) != record.get("sha256"):
        raise _make_damage_error(folder / "run.json")


def check_files(
    folder: Path, record: Mapping[str, Any], names: Collection[str] | None = None
) -> None:
    """Raise if files of a folder, by default all, are not those its training wrote."""
    for name, written in record.get("files", {}).items():
        if names is not None and name not in names:
            continue
        if not (folder / name).is_file():
            raise RunError(
                f"`{folder / name}` does not exist; the run folder is incomplete: restore the "
                "original file, or train again"
            )
        # hashed again at every read: a corrupt weight would only predict wrongly
        if hash_file(folder / name) != written:
            raise _make_damage_error(folder / name)


def _make_damage_error(file: Path) -> RunError:
    return RunError(
        f"`{file}` is damaged or was changed (its sha256 is not the one in run.json): restore the "
        "original file, or train again"
    )


def list_objective_specs(problem: Problem) -> list[dict[str, Any]]:
    """Return the objectives of a problem by name and settings, as a record holds them."""
    specs = [make_spec("objectives", objective) for objective in problem.objectives]
    return [
        {"name": spec.name, "settings": to_json_value(spec.settings, _describe_value)}
        for spec in specs
    ]


def find_objective_differences(record: Mapping[str, Any], problem: Problem) -> list[str]:
    """Return how the objectives of a problem differ from those a run was trained on.

    A third-party class may have moved to another module.
    """
    # `zip_longest`, so that a missing objective counts as a difference
    pairs = list(itertools.zip_longest(record["objective_specs"], list_objective_specs(problem)))
    return [
        f"objective: {_format_spec(a)} there, {_format_spec(b)} now"
        for a, b in pairs
        if _get_key(a) != _get_key(b)
    ]


def check_objectives(folder: Path, record: Mapping[str, Any], problem: Problem) -> None:
    """Raise if the objectives of a problem are not those a run was trained on."""
    differences = find_objective_differences(record, problem)
    if differences:
        raise RunError(
            f"`{folder}` was trained on other objectives than this problem has "
            f"({'; '.join(differences)}): pass the problem it was trained on as `problem`"
        )


def _get_key(spec: Mapping[str, Any] | None) -> object:
    """Return what an objective is compared by."""
    if spec is None:
        return None
    module, _, name = str(spec["name"]).rpartition(":")
    defaults = {}
    # the defaults of settings, which may be newer than a record; nothing is imported because a file
    # names it
    if spec["name"] in registry.names("objectives"):
        parameters = registry.parameters(registry.find("objectives", spec["name"]))
        defaults = {key: p.default for key, p in parameters.items() if p.default is not p.empty}
    # by its class, not by its module; whether it is built in counts, though
    return bool(module), name, to_json_value(defaults, _describe_value) | spec["settings"]


def _format_spec(spec: Mapping[str, Any] | None) -> str:
    if spec is None:
        return "none"
    settings = (f"{key}={value!r}" for key, value in spec["settings"].items() if value is not None)
    text = f"{spec['name']}({', '.join(settings)})"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _describe_value(value: object) -> str:
    """Describe a value that JSON lacks by its type: an address in memory changes."""
    return repr(value) if isinstance(value, float) else type(value).__name__


def list_validation_fronts(record: Mapping[str, Any], front_val: Front) -> list[tuple[int, Front]]:
    """Return the validation front after every epoch that was validated, with the epoch.

    Args:
        record: `run.json`.
        front_val: `front_val.json`, which has the rays.
    """
    return [
        (int(e["epoch"]), dataclasses.replace(front_val, values=e["values"], metrics={}))
        for e in record["evaluations"]
    ]


def rebuild_problem(
    folder: Path, record: Mapping[str, Any], name: str, settings: Mapping[str, Any]
) -> Problem:
    """Return the problem of a record; raise if the network was not trained on it."""
    try:
        with warnings.catch_warnings():
            # what is assumed about the data was said when the run was trained
            warnings.simplefilter("ignore", DataWarning)
            problem = load_problem(name, settings=drop_removed_settings(name, settings))
    except ParetoCosmosError:
        raise
    except (LookupError, OSError, TypeError, ValueError) as error:
        if ":" in name:  # an error in third-party code is best seen with its traceback
            raise
        raise RunError(
            f"`{folder}` was trained on `{name}` with invalid settings ({one_line(error)}): "
            "restore the original `run.json`"
        ) from error
    problem = _restore_objectives(folder, record, problem)
    shapes = {"names": list(problem.names), "input_shape": list(problem.input_shape)}
    for key, value in shapes.items():
        if value != record[key]:
            raise RunError(
                f"`{folder}` was not trained on `{name}` as it is here, whose `{key}` is "
                f"{value}, there {record[key]}: pass the same data as `data`"
            )
    return problem


def _restore_objectives(folder: Path, record: Mapping[str, Any], problem: Problem) -> Problem:
    """Return a problem with the objectives of a record, which the caller of `fit` may have set."""
    differences = find_objective_differences(record, problem)
    if not differences:
        return problem
    specs = [Spec(**spec) for spec in record["objective_specs"]]
    # only objectives of this package: others are code that the folder may not name
    if {spec.name for spec in specs} <= {*registry.names("objectives")}:
        # a setting that this version does not have is a KeyError
        with suppress(ConfigurationError, KeyError):
            # a caller of `fit` may have changed a setting of an objective that the problem has
            objectives = tuple(rebuild_objective(spec) for spec in specs)
            rebuilt = dataclasses.replace(problem, objectives=objectives)
            if not find_objective_differences(record, rebuilt):
                check_targets(folder, rebuilt, "val")
                return rebuilt
    raise RunError(
        f"`{folder}` was trained on `{problem.name}` with objectives that its folder cannot "
        f"rebuild ({'; '.join(differences)}): pass the problem as `load_run(..., problem=problem)`"
    )


def check_targets(folder: Path, problem: Problem, split: Split) -> None:
    """Raise if an objective of a record reads a target that a problem does not have."""
    if problem.source(split) is not None:
        return  # it would have to be read
    targets = problem.split(split).targets
    for objective in problem.objectives:
        for name in (objective.target, getattr(objective, "sensitive", objective.target)):
            if name not in targets:
                raise RunError(
                    f"`{folder / 'run.json'}` is damaged: `{objective.name}` reads the target "
                    f"`{name}`, found only {', '.join(targets)}; restore the original file"
                )


def rebuild_objective(spec: Spec) -> Objective:
    """Rebuild an objective of this package from a record, its settings in their declared types."""
    parameters = registry.parameters(registry.find("objectives", spec.name))
    settings = {
        # JSON turned tuples into lists and enums into text
        name: registry.convert(name, value, parameters[name].annotation)
        for name, value in spec.settings.items()
    }
    objective: Objective = registry.build("objectives", Spec(spec.name, settings))
    return objective
