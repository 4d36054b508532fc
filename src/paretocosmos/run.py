"""A run: one training and its folder."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.checkpoint import load_tensors
from paretocosmos.conditioning import Several
from paretocosmos.errors import ConfigurationError, DataError, RunError
from paretocosmos.files import one_line, read_json
from paretocosmos.find import Spec
from paretocosmos.front import Array, Front
from paretocosmos.machine import device_of, place
from paretocosmos.networks import Blueprint
from paretocosmos.objectives._base import logits_of
from paretocosmos.problems import Problem, TabularProblem, load_problem
from paretocosmos.problems._table import Table
from paretocosmos.rays import as_rays
from paretocosmos.types import Outputs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMAT", "Run", "build_model", "course_of", "load_run"]

# Raised when a run folder of today could not be read by yesterday's code.
FORMAT = 3

# What every record holds, begun or finished.
NEEDED = ("status", "name", "problem", "method", "conditioning", "backbone", "training", "seed")


@dataclass(frozen=True)
class Run:
    """What a training gave: the model, its fronts, and the folder that holds them.

    Attributes:
        folder: where everything is saved.
        record: `run.json`: the resolved configuration, versions, timings and numbers.
        front: the test front at the selected epoch.
        front_val: the validation front at the selected epoch.
        model: ``forward(inputs, ray) -> outputs``, at the selected epoch, in evaluation mode.
        table: the fitted preprocessing of a tabular problem.
    """

    folder: Path
    record: Mapping[str, Any]
    front: Front
    front_val: Front
    model: nn.Module
    table: Table | None = None

    def __repr__(self) -> str:
        reached = f"hypervolume {self.hypervolume:.4f} on {len(self.front)} rays"
        return f"Run({str(self.folder)!r}: {self.record['name']}, {reached})"

    @property
    def hypervolume(self) -> float:
        """Of the test front."""
        return float(self.record["metrics"]["test"]["hypervolume"])

    def predict(self, rows: "pd.DataFrame", *, ray: Tensor | Sequence[float]) -> Array:
        """The probability of the positive class for rows of a table, at one preference.

        Args:
            rows: a DataFrame with the columns the run was trained on; others are ignored.
            ray: the preference, one entry per objective, summing to 1.

        Returns:
            One probability per row.
        """
        if self.table is None:
            raise ConfigurationError(
                "`predict` is for tabular problems; call `run.model(inputs, ray)` for this one"
            )
        checked = as_rays(ray, self.front.objectives)
        if len(checked) > 1:
            raise ConfigurationError(
                f"`predict` takes one ray, found {len(checked)}: call it once for each"
            )
        parameter = next(self.model.parameters())
        inputs = torch.from_numpy(self.table.transform(rows)).to(parameter)
        with torch.inference_mode():
            outputs: Outputs = self.model(inputs, checked[0].to(parameter))
        return torch.sigmoid(logits_of(outputs, None)).double().cpu().numpy().astype(np.float64)

    def problem(self, *, data: str | None = None) -> Problem:
        """Load the problem this run was trained on.

        Args:
            data: where its data lies now, if it has moved.
        """
        saved = self.record["problem"]
        if saved is None:
            raise RunError(
                f"`{self.folder}` was trained on a problem built by hand, which its folder cannot "
                "rebuild: hand the problem to `evaluate(run.model, problem)`"
            )
        settings = dict(saved["settings"])
        if data is not None:
            settings["data"] = data
        problem = load_problem(saved["name"], settings=settings)
        if isinstance(problem, TabularProblem) and problem.table != self.table:
            raise RunError(
                f"the data of `{self.folder}` is not what it was trained on: its columns, "
                "categories or means differ; give the same file with --data, or use `run.predict` "
                "for new rows"
            )
        made, found = (about.get("sha256") for about in (self.record["about"], problem.about))
        if made != found:
            raise RunError(
                f"the images found are not those `{self.folder}` was trained on (sha256 {found}, "
                f"there {made}): give the same files with --data"
            )
        reference = self.record["training"]["reference"]
        if reference is None:
            return problem
        return dataclasses.replace(problem, reference=tuple(reference))


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


def read_record(folder: Path) -> dict[str, Any]:
    """`run.json`, checked to be one this version can read."""
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
    record = read_json(folder / "run.json")
    written = record.get("format")
    if not isinstance(written, int):
        raise RunError(f"`{folder / 'run.json'}` does not come from paretocosmos; train again")
    if written > FORMAT:
        raise RunError(
            f"`{folder}` was written by a newer version ({record.get('version')}); "
            "upgrade with: pip install --upgrade paretocosmos"
        )
    absent = [key for key in NEEDED if key not in record]
    if absent:
        raise RunError(f"`{folder / 'run.json'}` is damaged: it lacks {absent}; train again")
    return record


def course_of(record: Mapping[str, Any], front_val: Front) -> list[tuple[int, Front]]:
    """The validation front after every epoch that had one: how a training came to its front.

    Args:
        record: `run.json`; one of an earlier version keeps no fronts, and gives none.
        front_val: `front_val.json`, which has the rays.
    """
    return [
        (int(one["epoch"]), dataclasses.replace(front_val, values=one["values"], metrics={}))
        for one in record["evaluations"]
        if "values" in one
    ]


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
