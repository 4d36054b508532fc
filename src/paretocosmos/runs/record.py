"""What `run.json` says of a run: written, and read again."""

import dataclasses
import itertools
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from paretocosmos import registry
from paretocosmos.config.plan import Plan
from paretocosmos.config.settings import spec_of
from paretocosmos.errors import ConfigurationError, DataWarning, ParetoCosmosError, RunError
from paretocosmos.io.files import (
    hash_file,
    hash_json,
    one_line,
    read_json,
    to_json_value,
    write_json,
)
from paretocosmos.io.signatures import check_signature
from paretocosmos.io.trust import check_names, check_trust
from paretocosmos.objectives import Objective
from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Front
from paretocosmos.problems import Problem, hash_answers, load_problem, shares_of
from paretocosmos.problems.tables import Table, TableProblem
from paretocosmos.registry import Spec
from paretocosmos.runs.checkpoint import save_tensors
from paretocosmos.runs.provenance import provenance
from paretocosmos.runs.stored_names import rename_record
from paretocosmos.types import Outputs

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# Raised when a run folder of today could not be read by yesterday's code.
FORMAT = 3

MODEL = "model.safetensors"
LONGEST = 200  # letters of an objective in a sentence

# What a record names, and where it is to be found.
KINDS = {
    "problem": "problems",
    "method": "methods",
    "conditioning": "conditioning",
    "backbone": "backbones",
}


def begin_record(plan: Plan, fixed: Tensor | None, status: str) -> dict[str, Any]:
    """What is known of a run when it begins.

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
        "names": list(plan.problem.names),
        "objective_specs": objective_specs(plan.problem),
        "input_shape": list(plan.problem.input_shape),
        "outputs": outputs if isinstance(outputs, int) else dict(outputs),
        "fixed_rays": None if fixed is None else fixed.tolist(),
        "parameters": sum(p.numel() for p in plan.model.parameters()),
        "caveats": list(plan.problem.caveats),
        "data_hash": plan.data_hash,
        "answers": hash_answers(plan.problem) if isinstance(plan.problem, TableProblem) else None,
        **provenance(plan.device),
    }


def write_run(
    folder: Path,
    record: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    fronts: Mapping[str, Front],
    table: Table | None,
) -> dict[str, Any]:
    """Leave a finished run in its folder, and give the hashes that its record gains.

    Args:
        folder: where it goes.
        record: what is known of it, written last.
        weights: of the selected epoch.
        fronts: on test and val.
        table: the preprocessing, where there is one.
    """
    save_tensors(folder / MODEL, weights, {"epoch": record["epoch_selected"]})
    contents = {"front.json": fronts["test"].to_dict(), "front_val.json": fronts["val"].to_dict()}
    if table is not None:
        contents["table.json"] = table.to_dict()
    for name, content in contents.items():
        write_json(folder / name, content)
    files = {name: hash_file(folder / name) for name in (MODEL, *contents)}
    added: dict[str, Any] = {"files": files}
    added["sha256"] = hash_json({**record, **added})
    write_json(folder / "run.json", {**record, **added})
    return added


def measure_fronts(fronts: Mapping[str, Front]) -> dict[str, Any]:
    """What a record says of its fronts by split: `metrics`, and those of single objectives."""
    reports = {split: metrics.front_report(front).to_dict() for split, front in fronts.items()}
    return {
        "metrics": {split: report["numbers"] for split, report in reports.items()},
        "by_objective": {split: report["by_objective"] for split, report in reports.items()},
    }


def load_record(folder: Path) -> dict[str, Any]:
    """`run.json` as data, to compare with: whose code it names is not checked.

    What is built from a record is built from that of `read_record`.
    """
    return _checked(folder, _content(folder))


def _content(folder: Path) -> dict[str, Any]:
    """`run.json` as it was found."""
    try:
        there = folder.is_dir()
    except OSError:  # a name too long, a parent we may not look into
        there = False
    if not there:
        raise RunError(f"`{folder}` is not a folder; give the folder that `train` printed")
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
    return read_json(folder / "run.json")


def _checked(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    """What `run.json` holds, if this version can read it and it is what it should be."""
    from paretocosmos.runs.schema import check_record

    written = record.get("format")
    if not isinstance(written, int):
        raise RunError(f"`{folder / 'run.json'}` does not come from paretocosmos; train again")
    if written != FORMAT:
        version = str(record.get("version"))
        version = version if version.isprintable() and len(version) < 40 else "unknown"
        raise RunError(
            f"`{folder}` was written by another version ({version}), whose folders this one does "
            "not read: upgrade with `pip install --upgrade paretocosmos`, or use that version"
        )
    check_record(record, folder / "run.json")
    return record


def read_record(
    folder: Path,
    *,
    trust: Collection[str] = (),
    given: Collection[str] = (),
    verify: "Ed25519PublicKey | None" = None,
) -> dict[str, Any]:
    """`run.json`, if all that it names may be imported.

    Args:
        folder: the run's.
        trust: packages and modules whose code the caller allows it to name.
        given: what of it, such as ``"backbone"``, the caller has at hand, so that nothing is
            imported for it.
        verify: the key that it must be signed with, which is seen to before anything else.
    """
    trusted, found = check_trust(trust), _content(folder)
    if verify is not None:
        check_signature(folder, found, verify)
    record = _checked(folder, found)
    renamed = rename_record(record)
    named = [
        (kind, renamed[role]["name"])
        for role, kind in KINDS.items()
        if renamed[role] is not None and role not in given
    ]
    check_names(named, file=folder / "run.json", trust=trusted)
    return record


def check_hash(folder: Path, record: Mapping[str, Any]) -> None:
    """Refuse a record that was changed after its training wrote it."""
    rest = {key: value for key, value in record.items() if key != "sha256"}
    if hash_json(rest) != record.get("sha256"):
        raise _changed(folder / "run.json")


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
        if hash_file(folder / name) != written:
            raise _changed(folder / name)


def _changed(file: Path) -> RunError:
    return RunError(
        f"`{file}` is damaged or was changed (its sha256 is not the one in run.json): restore the "
        "original file, or train again"
    )


def objective_specs(problem: Problem) -> list[dict[str, Any]]:
    """A problem's objectives by name and settings, as `run.json` has them."""
    specs = [spec_of("objectives", objective) for objective in problem.objectives]
    return [{"name": spec.name, "settings": to_json_value(spec.settings, _kind)} for spec in specs]


def other_objectives(record: Mapping[str, Any], problem: Problem) -> list[str]:
    """Say how a problem's objectives differ from those a run was trained on, if they do.

    A class of one's own may have moved to another module.
    """
    pairs = list(itertools.zip_longest(record["objective_specs"], objective_specs(problem)))
    return [f"objective: {_said(a)} there, {_said(b)} now" for a, b in pairs if _key(a) != _key(b)]


def check_objectives(folder: Path, record: Mapping[str, Any], problem: Problem) -> None:
    """Refuse a problem whose objectives are not those a run was trained on."""
    other = other_objectives(record, problem)
    if other:
        raise RunError(
            f"`{folder}` was trained on other objectives than this problem has "
            f"({'; '.join(other)}): pass the problem it was trained on as `problem`"
        )


def _key(spec: Mapping[str, Any] | None) -> object:
    """What an objective is compared by."""
    if spec is None:
        return None
    outside, _, kind = str(spec["name"]).rpartition(":")
    return bool(outside), kind, _usual(spec["name"]) | spec["settings"]


def _usual(name: str) -> dict[str, Any]:
    """What settings of an objective are where nobody set them: one may be newer than a folder."""
    if name not in registry.names("objectives"):  # nothing is imported because a file names it
        return {}
    found = registry.parameters(registry.find("objectives", name))
    usual = {key: one.default for key, one in found.items() if one.default is not one.empty}
    return dict(to_json_value(usual, _kind))


def _said(spec: Mapping[str, Any] | None) -> str:
    if spec is None:
        return "none"
    given = {key: value for key, value in spec["settings"].items() if value is not None}
    said = f"{spec['name']}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}..."


def _kind(value: object) -> str:
    """What JSON cannot say, by its kind, which is the same tomorrow."""
    return repr(value) if isinstance(value, float) else type(value).__name__


def list_validation_fronts(record: Mapping[str, Any], front_val: Front) -> list[tuple[int, Front]]:
    """The validation front after every epoch that had one: how a training came to its front.

    Args:
        record: `run.json`.
        front_val: `front_val.json`, which has the rays.
    """
    return [
        (int(one["epoch"]), dataclasses.replace(front_val, values=one["values"], metrics={}))
        for one in record["evaluations"]
    ]


def rebuild_problem(
    folder: Path, record: Mapping[str, Any], name: str, settings: Mapping[str, Any]
) -> Problem:
    """The problem of the record, if it is one that the network can have been trained on."""
    try:
        with warnings.catch_warnings():
            # what was assumed of the data was said when it was trained on
            warnings.simplefilter("ignore", DataWarning)
            problem = load_problem(name, settings=settings)
    except ParetoCosmosError:
        raise
    except (LookupError, OSError, TypeError, ValueError) as error:
        if ":" in name:  # a mistake in code of one's own is best seen as it is
            raise
        raise RunError(
            f"`{folder}` was trained on `{name}` with invalid settings ({one_line(error)}): "
            "restore the original `run.json`"
        ) from error
    problem = _as_trained(folder, record, problem, name)
    found = {"names": list(problem.names), "input_shape": list(problem.input_shape)}
    for key, value in found.items():
        if value != record[key]:
            raise RunError(
                f"`{folder}` was not trained on `{name}` as it is here, whose `{key}` is "
                f"{value}, there {record[key]}: pass the same data as `data`"
            ).with_hint({"data": None})
    return problem


def _as_trained(folder: Path, record: Mapping[str, Any], problem: Problem, name: str) -> Problem:
    """The problem with the objectives it was trained on, which its owner may have replaced."""
    other = other_objectives(record, problem)
    if not other:
        return problem
    specs = [Spec(**spec) for spec in record["objective_specs"]]
    gone = _unknown_settings(specs)
    if gone:
        raise RunError(
            f"`{folder}` was trained on objectives that changed since: this version has no {gone} "
            f"({'; '.join(other)}): train again, or evaluate it with the "
            f"version that wrote it, {record['version']}"
        )
    if {spec.name for spec in specs} <= {*registry.names("objectives")}:
        with suppress(ConfigurationError):
            objectives = tuple(rebuild_objective(spec) for spec in specs)
            rebuilt = dataclasses.replace(problem, objectives=objectives)
            if not other_objectives(record, rebuilt):
                _check_names(folder, rebuilt)
                return rebuilt
    raise RunError(
        f"`{folder}` was trained on `{name}` with objectives that its folder cannot "
        f"rebuild ({'; '.join(other)}): pass the problem as `load_run(..., problem=problem)`"
    )


def _check_names(folder: Path, problem: Problem) -> None:
    """Refuse objectives of a record that name an output or a target that the problem lacks."""
    widths = problem.outputs
    for objectives, few in shares_of(problem, 2):
        if isinstance(widths, int):
            outputs: Outputs = torch.zeros(len(few), widths)
        else:
            outputs = {head: torch.zeros(len(few), width) for head, width in widths.items()}
        for objective in objectives:
            try:
                objective.loss(outputs, few.targets)
            except LookupError as error:
                raise RunError(
                    f"`{folder / 'run.json'}` is damaged: its objective `{objective.name}` reads "
                    f"{error}, which `{problem.name}` does not have (its targets are "
                    f"{', '.join(few.targets)}): restore the original file"
                ) from error
            except (RuntimeError, TypeError, ValueError):
                pass  # of two samples, such as a group without any


def _unknown_settings(specs: Sequence[Spec]) -> str:
    """The settings in a record that this package's objectives of those names do not have."""
    here = {*registry.names("objectives")}
    return ", ".join(
        f"`{key}` of `{spec.name}`"
        for spec in specs
        if spec.name in here
        for key in spec.settings
        if key not in registry.parameters(registry.find("objectives", spec.name))
    )


def rebuild_objective(spec: Spec) -> Objective:
    """An objective of this package from a record, each setting of the kind it is declared with."""
    known = registry.parameters(registry.find("objectives", spec.name))
    settings = {
        name: registry.convert(name, value, known[name].annotation)
        for name, value in spec.settings.items()
    }
    built: Objective = registry.build("objectives", Spec(spec.name, settings))
    return built
