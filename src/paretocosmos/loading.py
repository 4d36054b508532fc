"""Reading a run back from its folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from paretocosmos.checkpoint import load_tensors
from paretocosmos.conditioning import Several
from paretocosmos.errors import DataError, RunError
from paretocosmos.files import digest, digest_of, one_line, read_json
from paretocosmos.find import Spec
from paretocosmos.front import Front
from paretocosmos.machine import device_of, place
from paretocosmos.networks import Blueprint
from paretocosmos.problems._table import Table
from paretocosmos.record import read_record
from paretocosmos.run import Run

__all__ = ["build_model", "load_run"]


def load_run(
    folder: str | Path,
    *,
    model: nn.Module | None = None,
    backbone: nn.Module | None = None,
    device: str = "cpu",
) -> Run:
    """Read a finished run back from its folder.

    Args:
        folder: the run folder.
        model: a network of the same architecture, for runs trained on a network of one's own,
            which the folder cannot rebuild; it is loaded with the run's weights (copies of it,
            where the method trains several).
        backbone: likewise for runs trained on a backbone of one's own; it is copied.
        device: where the model goes.

    Returns:
        The run, as `fit` returned it.
    """
    folder, where = Path(folder), device_of(device)
    record = read_record(folder)
    if record.get("status") != "finished":
        raise RunError(
            f"the run in `{folder}` was not finished; continue it with the command that started "
            "it and --resume"
        )
    _check_files(folder, record)
    tensors, _ = load_tensors(folder / "model.safetensors")
    network = build_model(record, backbone) if model is None else model
    if record.get("fixed_rays") is not None and not isinstance(network, Several):
        rays = torch.tensor(record["fixed_rays"])
        network = Several([network] * len(rays), rays)
    if all(t.dtype == torch.float64 for t in tensors.values() if t.is_floating_point()):
        network.double()
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise RunError(
            f"the weights in `{folder}` do not fit the network ({one_line(error)}); pass the "
            "network the run was trained on as `model`"
        ) from error
    table = folder / "table.json"
    try:
        fronts = [Front.from_dict(read_json(folder / f)) for f in ("front.json", "front_val.json")]
        fitted = Table.from_dict(read_json(table)) if table.exists() else None
    except (DataError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"`{folder}` is damaged ({error}); train again") from error
    return Run(folder, record, fronts[0], fronts[1], place(network, where).eval(), fitted)


def _check_files(folder: Path, record: Mapping[str, Any]) -> None:
    """Refuse a folder whose files are not those its training wrote."""
    rest = {key: value for key, value in record.items() if key != "sha256"}
    changed = ["run.json"] if digest_of(rest) != record.get("sha256") else []
    for name, written in record["files"].items() if not changed else ():
        if not (folder / name).is_file():
            raise RunError(
                f"`{folder / name}` does not exist; the run folder is incomplete: bring back what "
                "the training wrote, or train again"
            )
        if digest(folder / name) != written:
            changed.append(name)
    if changed:
        raise RunError(
            f"`{folder / changed[0]}` is damaged or was changed (its sha256 is not the one in "
            "run.json): bring back what the training wrote, or train again"
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
            "this run was trained on a network of one's own, which its folder cannot rebuild: "
            f"pass that network as `{given}`"
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
