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
from paretocosmos.io.files import digest, digest_of, one_line, read_json, user_path
from paretocosmos.io.progress import status
from paretocosmos.io.signatures import fingerprint_of, read_public_key
from paretocosmos.io.trust import modules_of
from paretocosmos.pareto.front import Front
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import Table
from paretocosmos.registry import Spec
from paretocosmos.runs.checkpoint import check_count, load_tensors
from paretocosmos.runs.record import MODEL, check_objectives, read_record
from paretocosmos.runs.run import Run
from paretocosmos.runs.stored_names import rename_record, rename_tensors
from paretocosmos.runtime.device import device_of, to_device_layout
from paretocosmos.runtime.weights import describe_misfit

__all__ = ["build_model", "check_files", "check_record", "load_run"]

FRONTS = ("front.json", "front_val.json")


@status("reading the run")
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
    folder, where = user_path(folder), device_of(device)
    key = None if verify is None else read_public_key(verify)
    given = _given(model, backbone, problem)
    record = read_record(folder, trust=trust, given=given, verify=key)
    if record.get("status") != "finished":
        raise RunError(
            f"the run in `{folder}` is not finished; continue it with the same call and resume=True"
        ).by({"resume": True})
    check_record(folder, record)
    record = rename_record(record)
    _check_size(folder, record, model, backbone)
    check_files(folder, record)
    tensors, _ = load_tensors(folder / MODEL)
    network = _built(folder, record, backbone) if model is None else model
    if record.get("fixed_rays") is not None and not isinstance(network, PerRayEnsemble):
        rays = torch.tensor(record["fixed_rays"])
        network = PerRayEnsemble([network] * len(rays), rays)
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
    _refuse_broken_weights(folder / "model.safetensors", network, tensors)
    # a table that the record does not know is none that the training wrote
    table = folder / "table.json" if "table.json" in record["files"] else None
    try:
        test, val = (Front.from_dict(read_json(folder / name)) for name in FRONTS)
        fitted = None if table is None else Table.from_dict(read_json(table))
    except DataError as error:
        raise RunError(f"`{folder}` is damaged ({error}); train again") from error
    if any(list(front.names) != record["names"] for front in (test, val)):
        raise RunError(
            f"`{folder}` is damaged: its fronts have other objectives than run.json; train again"
        )
    origins = [front.provenance.get(key) for front in (test, val) for key in ("problem", "scores")]
    if not all(isinstance(one, str) for one in origins):
        raise RunError(
            f"`{folder}` is damaged: its fronts do not record their problem and scores; train again"
        )
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


def _check_size(
    folder: Path, record: Mapping[str, Any], model: nn.Module | None, backbone: nn.Module | None
) -> None:
    """Refuse weights that are more or fewer than the network has, before any memory is used."""
    named = [(record[part] or {}).get("name") for part in NETWORK]
    if not (folder / MODEL).is_file() or (model is None and (backbone or modules_of(named))):
        return  # code that is trusted may build as it likes
    copies = 1 if isinstance(model, PerRayEnsemble) else len(record.get("fixed_rays") or [1])
    if model is None:
        with torch.device("meta"):  # shapes without memory, of one network where there are more
            model = _built(folder, {**record, "fixed_rays": None}, None)
    check_count(folder / MODEL, model, copies=copies)


def _built(folder: Path, record: Mapping[str, Any], backbone: nn.Module | None) -> nn.Module:
    """Return the network of a record."""
    try:
        return build_model(record, backbone)
    except RunError:
        raise
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise RunError(
            f"the network that `{folder / 'run.json'}` describes cannot be built "
            f"({one_line(error)}); restore the original file, or train again"
        ) from error


def _refuse_broken_weights(
    path: Path, network: nn.Module, tensors: Mapping[str, torch.Tensor]
) -> None:
    """Refuse NaN anywhere, and infinity in parameters; a buffer may mask with it."""
    parameters = dict(network.named_parameters())
    for name, tensor in tensors.items():
        broken = ~tensor.isfinite() if name in parameters else tensor.isnan()
        if broken.any():
            raise RunError(
                f"the weights in `{path}` must be finite numbers, found "
                f"{tensor[broken][0].item()} in `{name}`: restore the original file, or train again"
            )


def check_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Refuse a record that was changed after its training wrote it."""
    rest = {key: value for key, value in record.items() if key != "sha256"}
    if digest_of(rest) != record.get("sha256"):
        raise _changed(folder / "run.json")


def check_files(folder: Path, record: Mapping[str, Any]) -> None:
    """Refuse a folder whose files are not those its training wrote."""
    for name, written in record["files"].items():
        if not (folder / name).is_file():
            raise RunError(
                f"`{folder / name}` does not exist; the run folder is incomplete: restore the "
                "original file, or train again"
            )
        if digest(folder / name) != written:
            raise _changed(folder / name)


def _changed(file: Path) -> RunError:
    return RunError(
        f"`{file}` is damaged or was changed (its sha256 is not the one in run.json): restore the "
        "original file, or train again"
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
