"""Reading a run back from its folder."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from paretocosmos.conditioning import PerRayEnsemble
from paretocosmos.config.build import Blueprint
from paretocosmos.config.settings import NETWORK
from paretocosmos.errors import DataError, RunError
from paretocosmos.io.doing import doing
from paretocosmos.io.files import digest, digest_of, one_line, read_json
from paretocosmos.io.signatures import fingerprint_of, read_public_key
from paretocosmos.io.trust import modules_of
from paretocosmos.pareto.front import Front
from paretocosmos.problems import Problem
from paretocosmos.problems.tables.table import Table
from paretocosmos.registry import Spec
from paretocosmos.runs.checkpoint import load_tensors
from paretocosmos.runs.record import check_objectives, read_record
from paretocosmos.runs.run import Run
from paretocosmos.runtime.device import device_of, to_device_layout

__all__ = ["build_model", "check_files", "load_run"]


@doing("reading the run")
def load_run(
    folder: str | Path,
    *,
    model: nn.Module | None = None,
    backbone: nn.Module | None = None,
    problem: Problem | None = None,
    trust: Collection[str] = (),
    verify: str | Path | None = None,
    device: str = "cpu",
) -> Run:
    """Read a finished run from its folder, without running any code in or beside it.

    A run of things of one's own names them as ``package.module:Thing``. They are imported only if
    the caller trusts their package, or hands them over.

    Args:
        folder: the run folder.
        model: a network of the same architecture, for runs trained on a network of one's own,
            which the folder cannot rebuild; it is loaded with the run's weights (copies of it,
            where the method trains several).
        backbone: likewise for runs trained on a backbone of one's own; it is copied.
        problem: likewise for runs trained on a problem of one's own.
        trust: packages and modules whose code the folder may name, as ``["my_package"]``.
        verify: the file of an Ed25519 public key, PEM or OpenSSH: a run that was not signed with
            its private key, or was changed since, is refused before anything else of it is used.
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
    folder, where = Path(folder), device_of(device)
    key = None if verify is None else read_public_key(verify)
    given = _given(model, backbone, problem)
    record = read_record(folder, trust=trust, given=given, verify=key)
    if record.get("status") != "finished":
        raise RunError(
            f"the run in `{folder}` is not finished; continue it with the same call and resume=True"
        ).by({"resume": True})
    check_files(folder, record)
    tensors, _ = load_tensors(folder / "model.safetensors")
    network = _built(folder, record, backbone, tensors) if model is None else model
    if record.get("fixed_rays") is not None and not isinstance(network, PerRayEnsemble):
        rays = torch.tensor(record["fixed_rays"])
        network = PerRayEnsemble([network] * len(rays), rays)
    if all(t.dtype == torch.float64 for t in tensors.values() if t.is_floating_point()):
        network.double()
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise RunError(
            f"the weights in `{folder}` do not fit the network ({one_line(error)}); pass the "
            "network the run was trained on as `model`"
        ) from error
    # a table that the record does not know is none that the training wrote
    table = folder / "table.json" if "table.json" in record["files"] else None
    try:
        fronts = [Front.from_dict(read_json(folder / f)) for f in ("front.json", "front_val.json")]
        fitted = None if table is None else Table.from_dict(read_json(table))
    except DataError as error:
        raise RunError(f"`{folder}` is damaged ({error}); train again") from error
    if any(list(front.names) != record["names"] for front in fronts):
        raise RunError(
            f"`{folder}` is damaged: its fronts have other objectives than run.json; train again"
        )
    origins = [front.provenance.get(key) for front in fronts for key in ("problem", "scores")]
    if not all(isinstance(one, str) for one in origins):
        raise RunError(
            f"`{folder}` is damaged: its fronts do not record their problem and scores; train again"
        )
    test, val = fronts
    if problem is not None:
        check_objectives(folder, record, problem)
    signer = None if key is None else fingerprint_of(key)
    return Run(
        folder, record, test, val, to_device_layout(network, where).eval(), fitted, problem, signer
    )


def _given(
    model: nn.Module | None, backbone: nn.Module | None, problem: Problem | None
) -> list[str]:
    """What of a record need not be imported, since the caller has it."""
    given = ["problem"] if problem is not None else []
    if model is not None:
        return [*given, "conditioning", "backbone"]
    return given if backbone is None else [*given, "backbone"]


def _built(
    folder: Path,
    record: Mapping[str, Any],
    backbone: nn.Module | None,
    tensors: Mapping[str, torch.Tensor],
) -> nn.Module:
    """The network of a record, once it is known to be no larger than the weights that are there."""
    try:
        named = [(record[part] or {}).get("name") for part in NETWORK]
        if backbone is None and not modules_of(named):  # code that is trusted may build as it likes
            with torch.device("meta"):  # shapes without memory, of one network where there are more
                described = build_model({**record, "fixed_rays": None}).state_dict()
            size, there = (sum(t.numel() for t in some.values()) for some in (described, tensors))
            size *= len(record["fixed_rays"] or [1])
            if size > there:
                raise RunError(
                    f"the weights in `{folder}` do not fit the network, {there:,} numbers where "
                    f"its `run.json` describes {size:,}: restore the original files"
                )
        return build_model(record, backbone)
    except RunError:
        raise
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise RunError(
            f"the network that `{folder / 'run.json'}` describes cannot be built "
            f"({one_line(error)}); restore the original file, or train again"
        ) from error


def check_files(folder: Path, record: Mapping[str, Any]) -> None:
    """Refuse a folder whose files are not those its training wrote."""
    rest = {key: value for key, value in record.items() if key != "sha256"}
    changed = ["run.json"] if digest_of(rest) != record.get("sha256") else []
    for name, written in record["files"].items() if not changed else ():
        if not (folder / name).is_file():
            raise RunError(
                f"`{folder / name}` does not exist; the run folder is incomplete: restore the "
                "original file, or train again"
            )
        if digest(folder / name) != written:
            changed.append(name)
    if changed:
        raise RunError(
            f"`{folder / changed[0]}` is damaged or was changed (its sha256 is not the one in "
            "run.json): restore the original file, or train again"
        )


def build_model(record: Mapping[str, Any], backbone: nn.Module | None = None) -> nn.Module:
    """Build the network a run's record describes, or the networks.

    Args:
        record: `run.json`.
        backbone: one's own, where the run was trained on such; else it has fresh weights.
    """
    named, conditioning = record["backbone"], record["conditioning"]
    if conditioning is None or (named is None and backbone is None):
        given = "model" if conditioning is None else "backbone"
        raise RunError(
            "this run used your own network, which its folder cannot rebuild: pass the network as "
            f"`{given}`"
        )
    return Blueprint(
        Spec(**conditioning),
        None if named is None else Spec(**named),
        record["input_shape"],
        record["outputs"],
        record["objectives"],
        record.get("fixed_rays"),
        backbone,
        blank=True,
    ).build()
