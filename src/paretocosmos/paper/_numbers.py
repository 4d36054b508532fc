"""From the finished runs of a cell to its result: means over seeds, and where they come from."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from paretocosmos.errors import DataError
from paretocosmos.io.schema.cell import read_cell
from paretocosmos.io.schema.collected import CellResult, Origin, Seconds, Spread, Stage, Tasks
from paretocosmos.paper._done import FinishedRun, Record, finished_runs, seconds_in, volume_in
from paretocosmos.paper.recipe import Cell
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import span
from paretocosmos.pareto.rays import each_alone
from paretocosmos.runs.record import list_validation_fronts

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["cell_result", "mean_course", "mean_front", "spread"]

EPOCHS_SHOWN = 10  # of a course: the paper's figure has a front every ten epochs of a hundred
DIGITS = 6  # of what is only drawn


def cell_result(
    cell: Cell,
    out: Path,
    *,
    course: bool = False,
    trust: Collection[str] = (),
    verify: "Ed25519PublicKey | None" = None,
) -> CellResult:
    """What a cell reached; numbers are means over its seeds.

    Seeds that trained together share their time: a seed's is an equal part. So do cells that were
    trained side by side on one device. `volume` is what the paper prints as hypervolume: of one
    network per objective that of their ideal point.

    Args:
        cell: the cell.
        out: the folder of the reproduction.
        course: whether to keep the validation fronts of some epochs.
        trust: packages whose code its runs may name.
        verify: the key that they must be signed with.
    """
    runs, broken = finished_runs(cell, out, trust, verify)
    kept = read_cell(cell.folder(out))
    told: dict[str, Any] = {
        **{key: getattr(cell, key) for key in ("name", "problem", "protocol", "method", "preset")},
        "settings": dict(cell.settings),
        "rehearsal": cell.epochs,
        "seeds": list(runs),
        "missing": [seed for seed in cell.seeds if seed not in runs],
        "error": broken or kept.error,
    }
    if not runs:
        return CellResult(**told)
    done = list(runs.values())
    first = done[0].record
    front = mean_front([run.test for run in done])
    found = {
        key: _spread_if_known([run.record["metrics"]["test"].get(key) for run in done])
        for key in first["metrics"]["test"]
    }
    own = first["method"]["settings"]
    beside = max(1.0, kept.seconds / kept.share) if kept.share else 1.0
    if course:
        told["course"] = mean_course(done)
    return CellResult(
        **told,
        volume=spread([run.record["metrics"]["test"][volume_in(first)] for run in done]),
        volume_of="ideal point" if each_alone(first["fixed_rays"]) else "front",
        metrics=found,
        seconds=_seconds([run.record for run in done], 1 / beside),
        networks=len(first["networks"]),
        separate=first["fixed_rays"] is not None,
        parameters=first["parameters"] // len(first["networks"]),
        epochs=first["training"]["epochs"],
        epochs_selected=[run.record["epoch_selected"] for run in done],
        varied={key: own[key] for key in ("penalty", "alpha") if key in own},
        objectives=list(front.names),
        reference=front.reference.tolist(),
        rays=_rounded(front.rays),
        front=_rounded(front.values),
        tasks=_tasks(done),
        made=_origin([run.record for run in done], round(beside)),
    )


def spread(values: Sequence[float]) -> Spread:
    """Mean, deviation of a sample (`None` for one seed) and each.

    >>> spread([1.0, 2.0, 3.0])
    Spread(mean=2.0, std=1.0, each=[1.0, 2.0, 3.0])
    """
    deviation = stdev(values) if len(values) > 1 else None
    return Spread(mean=fmean(values), std=deviation, each=list(map(float, values)))


def _spread_if_known(values: Sequence[float | None]) -> Spread | None:
    """The same, or `None` if one of the values does not exist."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return spread(known) if len(known) == len(values) else None


def mean_front(fronts: Sequence[Front]) -> Front:
    """The mean of fronts ray by ray; they have the same rays.

    >>> one = Front([[0.5, 0.5]], [[0.2, 0.4]], ("loss", "gap"), (2, 2))
    >>> two = Front([[0.5, 0.5]], [[0.4, 0.4]], ("loss", "gap"), (2, 2))
    >>> mean_front([one, two]).values.round(3).tolist()
    [[0.3, 0.4]]
    """
    first = fronts[0]
    for front in fronts:
        alike = front.names == first.names and front.rays.shape == first.rays.shape
        if not (alike and np.allclose(front.rays, first.rays, atol=1e-6)):
            raise DataError(
                "a mean front needs fronts of the same objectives and rays, found "
                f"{first!r} and {front!r}: train all seeds with the same `rays`"
            )
    values = np.mean([front.values for front in fronts], axis=0)
    return Front(first.rays, values, first.names, first.reference, {}, first.split)


def mean_course(runs: Sequence[FinishedRun]) -> list[Stage]:
    """Some epochs, evenly, the last among them: the mean validation front and its numbers."""
    courses = [list_validation_fronts(run.record, run.val) for run in runs]
    epochs = [epoch for epoch, _ in courses[0]]
    if not epochs or any([epoch for epoch, _ in course] != epochs for course in courses):
        return []
    step = math.ceil(len(epochs) / EPOCHS_SHOWN)
    found = []
    for at in sorted({*range(step - 1, len(epochs), step), len(epochs) - 1}):
        fronts = [course[at][1] for course in courses]
        volume = _spread_if_known(
            [run.record["evaluations"][at]["hypervolume_val"] for run in runs]
        )
        width = _spread_if_known([span(front) for front in fronts])
        if volume is not None and width is not None:
            values = _rounded(mean_front(fronts).values)
            found.append(Stage(epoch=epochs[at], hypervolume=volume, span=width, values=values))
    return found


def _rounded(values: Array) -> list[list[float | None]]:
    """To some digits, for what is only drawn; a value that does not exist is `None`."""
    return [
        [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in row]
        for row in values
    ]


def _seconds(records: Sequence[Record], share: float) -> Seconds:
    """The time of the seeds, of which a cell has a share where others were trained beside it."""

    def each(part: str) -> list[float]:
        return [share * seconds_in(record, part) for record in records]

    return Seconds(
        to_selected=spread(each("to_selected")),
        training=spread(each("training")),
        all_training=sum(each("training")),
        all_preparing=sum(each("preparing")),
        all_evaluating=sum(each("evaluating")),
    )


def _tasks(runs: Sequence[FinishedRun]) -> Tasks | None:
    """Misclassification task by task, `None` if it is not known of every task."""
    names = runs[0].test.names
    alone = each_alone(runs[0].record["fixed_rays"])
    rates = [[_rate(run, at, alone=alone) for at in range(len(names))] for run in runs]
    known = [[rate for rate in row if math.isfinite(rate)] for row in rates]
    if any(len(row) < len(names) for row in known):
        return None
    return Tasks(
        judged="each by its own network" if alone else "with equal weights",
        misclassification={
            name: spread([row[at] for row in known]) for at, name in enumerate(names)
        },
        mean=spread([fmean(row) for row in known]),
    )


def _rate(run: FinishedRun, at: int, *, alone: bool) -> float:
    """The misclassification of a task, NaN if it is not known."""
    key = f"accuracy_{run.test.names[at]}"
    if alone:
        return 1 - float(run.test.metrics[key][at]) if key in run.test.metrics else math.nan
    found = ((run.record.get("centre") or {}).get("metrics") or {}).get(key)
    return math.nan if found is None else 1 - float(found)


def _origin(records: Sequence[Record], side_by_side: int) -> Origin:
    """Every answer that seeds give, each once."""

    def every(*keys: str) -> list[Any]:
        found: list[Any] = []
        for record in records:
            value: Any = record
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None and value not in found:
                found.append(value)
        return found

    return Origin(
        **{key: every(key) for key in ("version", "source", "precision", "engine")},
        device=every("machine", "device"),
        threads=every("machine", "threads"),
        torch=every("versions", "torch"),
        seeds_together=every("seeds_together"),
        images=every("about", "images"),
        weights=every("backbone", "settings", "weights"),
        caveats=list(dict.fromkeys(one for many in every("caveats") for one in many)),
        side_by_side=side_by_side,
    )
