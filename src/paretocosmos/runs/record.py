"""What `run.json` says of a run: written, and read again."""

import dataclasses
import itertools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from paretocosmos import registry
from paretocosmos.config.plan import Plan
from paretocosmos.config.settings import spec_of
from paretocosmos.errors import RunError
from paretocosmos.io.files import digest, digest_of, json_value, read_json, write_json
from paretocosmos.io.signatures import check_signature
from paretocosmos.io.trust import check_names, check_trust
from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Front
from paretocosmos.problems import Problem, hash_answers
from paretocosmos.problems.tables import Table, TableProblem
from paretocosmos.runs.checkpoint import save_tensors
from paretocosmos.runs.provenance import provenance
from paretocosmos.runs.stored_names import rename_record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = [
    "FORMAT",
    "MODEL",
    "ROOMS",
    "check_objectives",
    "course_of",
    "measured",
    "other_objectives",
    "read_record",
    "record_in",
    "record_of",
    "write_run",
]

# Raised when a run folder of today could not be read by yesterday's code.
FORMAT = 3

MODEL = "model.safetensors"
LONGEST = 200  # letters of an objective in a sentence

# What a record names, and where it is to be found.
ROOMS = {
    "problem": "problems",
    "method": "methods",
    "conditioning": "conditioning",
    "backbone": "backbones",
}


def record_of(plan: Plan, fixed: Tensor | None, status: str) -> dict[str, Any]:
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
    files = {name: digest(folder / name) for name in (MODEL, *contents)}
    added: dict[str, Any] = {"files": files}
    added["sha256"] = digest_of({**record, **added})
    write_json(folder / "run.json", {**record, **added})
    return added


def measured(fronts: Mapping[str, Front]) -> dict[str, Any]:
    """What a record says of its fronts by split: `metrics`, and those of single objectives."""
    reports = {split: metrics.front_report(front).to_dict() for split, front in fronts.items()}
    return {
        "metrics": {split: report["numbers"] for split, report in reports.items()},
        "by_objective": {split: report["by_objective"] for split, report in reports.items()},
    }


def record_in(folder: Path) -> dict[str, Any]:
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
        (room, renamed[role]["name"])
        for role, room in ROOMS.items()
        if renamed[role] is not None and role not in given
    ]
    check_names(named, file=folder / "run.json", trust=trusted)
    return record


def objective_specs(problem: Problem) -> list[dict[str, Any]]:
    """A problem's objectives by name and settings, as `run.json` has them."""
    specs = [spec_of("objectives", objective) for objective in problem.objectives]
    return [{"name": spec.name, "settings": json_value(spec.settings, _kind)} for spec in specs]


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
    return dict(json_value(usual, _kind))


def _said(spec: Mapping[str, Any] | None) -> str:
    if spec is None:
        return "none"
    given = {key: value for key, value in spec["settings"].items() if value is not None}
    said = f"{spec['name']}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}..."


def _kind(value: object) -> str:
    """What JSON cannot say, by its kind, which is the same tomorrow."""
    return repr(value) if isinstance(value, float) else type(value).__name__


def course_of(record: Mapping[str, Any], front_val: Front) -> list[tuple[int, Front]]:
    """The validation front after every epoch that had one: how a training came to its front.

    Args:
        record: `run.json`.
        front_val: `front_val.json`, which has the rays.
    """
    return [
        (int(one["epoch"]), dataclasses.replace(front_val, values=one["values"], metrics={}))
        for one in record["evaluations"]
    ]
