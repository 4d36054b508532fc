"""What to try where a front is not what one hoped for."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from paretocosmos.cli.output._console import note
from paretocosmos.pareto.front import Front
from paretocosmos.runs.run import Run

# Rays whose losses differ by less than this share of their size give the same for all purposes.
SAME = 0.01
# Rays a batch with which a deep network came to depend on them (results/celeba.json).
MANY = 32


def advise(run: Run, networks: list[dict[str, Any]]) -> None:
    """Notes on stderr, at most one on the front of one network."""
    lost = sum(network.get("reached_cone") == 0 for network in networks)
    if lost:
        note(
            f"{lost} of {len(networks)} networks were not in their cone when the search ended, so "
            "their points may lie close together: try a larger --set search_epochs"
        )
    record = run.record
    if record["fixed_rays"] is not None:
        return  # separate networks have no setting that would spread them
    if record.get("findings"):
        return  # the training's end has told what it is
    cosmos = record["method"]["name"] == "cosmos"
    if is_point(run.front):
        ways = _more_rays(record["training"]) + ["a smaller --penalty"] * cosmos
        note(
            "all rays give nearly the same losses, so the front is a point: the network may not "
            "depend on the ray yet, or the objectives do not conflict on this data; try "
            f"{', or '.join([*ways, 'more epochs (--epochs)'])}"
        )
    elif (record["metrics"]["test"].get("dominated_share") or 0) > 0.5:
        note(
            "most rays are dominated, so there is little to choose from: the objectives may hardly "
            f"conflict on this data; try another {'--penalty' if cosmos else '--alpha'}, or --set "
            "groups=4"
        )


def is_point(front: Front) -> bool:
    """Whether all points of a front lie in a box that is small beside their losses."""
    values = front.values[~np.isnan(front.values).any(axis=1)]
    if len(values) < 2:
        return False
    width = np.linalg.norm(np.ptp(values, axis=0))
    return bool(width < SAME * np.linalg.norm(np.abs(values).max(axis=0)))


def _more_rays(training: Mapping[str, Any]) -> list[str]:
    """More rays a batch, as many as divide it, unless there are as many already."""
    most = max(n for n in range(1, MANY + 1) if training["batch_size"] % n == 0)
    return [f"more rays a batch (--set groups={most})"] if most > training["groups"] else []
