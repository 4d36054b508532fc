"""From the run folders of a cell to one value: what it reached, and where that comes from."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from paretocosmos.errors import DataError, RunError, SignatureError, UntrustedError
from paretocosmos.io.files import read_json
from paretocosmos.paper._done import differences, read_done
from paretocosmos.paper._means import (
    Done,
    mean_course,
    mean_front,
    rounded,
    spread,
    volume_in,
)
from paretocosmos.paper.recipe import Cell
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import each_alone

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from paretocosmos.io.schema.cell import CellFile

__all__ = ["cell_numbers"]

Record = Mapping[str, Any]


def cell_numbers(
    cell: Cell,
    out: Path,
    *,
    course: bool = False,
    trust: Collection[str] = (),
    verify: "Ed25519PublicKey | None" = None,
) -> dict[str, Any]:
    """What a cell reached: a JSON value; numbers are means over its seeds.

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
    from paretocosmos.io.schema.cell import read_cell

    runs, broken = _runs(cell, out, trust, verify)
    kept = read_cell(cell.folder(out))
    told: dict[str, Any] = {
        "name": cell.name,
        "problem": cell.problem,
        "protocol": cell.protocol,
        "method": cell.method,
        "settings": dict(cell.settings),
        "rehearsal": cell.epochs,
        "seeds": list(runs),
        "missing": [seed for seed in cell.seeds if seed not in runs],
        "error": broken or kept.error,
    }
    if not runs:
        return told
    done = list(runs.values())
    records = [record for record, _, _ in done]
    first = records[0]
    alone = each_alone(first["fixed_rays"])
    front = mean_front([front for _, front, _ in done])
    found = {
        key: spread(record["metrics"]["test"].get(key) for record in records)
        for key in first["metrics"]["test"]
    }
    own = first["method"]["settings"]
    return told | {
        "volume": found[volume_in(first)],
        "volume_of": "ideal point" if alone else "front",
        "metrics": found,
        "seconds": _seconds(records, 1 / _beside(kept)),
        "networks": len(first["networks"]),
        "separate": first["fixed_rays"] is not None,
        "parameters": first["parameters"] // len(first["networks"]),
        "epochs": first["training"]["epochs"],
        "epochs_selected": [record["epoch_selected"] for record in records],
        "varied": {key: own[key] for key in ("penalty", "alpha") if key in own},
        "objectives": list(front.names),
        "reference": front.reference.tolist(),
        "rays": rounded(front.rays),
        "front": rounded(front.values),
        "tasks": _tasks(done, alone=alone),
        **({"course": mean_course(done)} if course else {}),
        "made": _made(records) | {"side_by_side": round(_beside(kept))},
    }


def _runs(
    cell: Cell, out: Path, trust: Collection[str], verify: "Ed25519PublicKey | None"
) -> tuple[dict[int, Done], str | None]:
    """The finished runs by seed, and what is wrong with one that cannot be read."""
    found: dict[int, Done] = {}
    wrong = None
    for seed, folder in cell.runs(out).items():
        try:
            if not (folder / "run.json").exists():
                continue
            record = read_done(folder, cell, trust, verify)
            other = "; ".join(differences(record, cell))
            if other:
                wrong = f"`{folder}` holds a run with other settings ({other})"
            elif record["status"] == "finished":
                names = ("front.json", "front_val.json")
                test, val = (Front.from_dict(read_json(folder / name)) for name in names)
                found[seed] = record, test, val
        except (SignatureError, UntrustedError):
            raise
        except (RunError, DataError) as error:
            wrong = str(error)
    return found, wrong


def _beside(kept: "CellFile") -> float:
    """How many cells shared the device, on average, itself among them."""
    return max(1.0, kept.seconds / kept.share) if kept.share else 1.0


def _seconds(records: Sequence[Record], share: float) -> dict[str, Any]:
    """Of a seed: to the selected epoch, and in all; of all seeds: what the time went into.

    Args:
        records: of the seeds.
        share: the cell's part of the time, where others were trained beside it.
    """

    def map_tensors(key: str) -> list[float]:
        return [share * record[f"seconds_{key}"] / record["seeds_together"] for record in records]

    return {
        "to_selected": spread(map_tensors("to_selected")),
        "training": spread(map_tensors("training")),
        "all_training": sum(map_tensors("training")),
        "all_preparing": sum(map_tensors("preparing")),
        # judged one after the other, each by itself
        "all_evaluating": share * sum(record["seconds_evaluating"] for record in records),
    }


def _tasks(runs: Sequence[Done], *, alone: bool) -> dict[str, Any] | None:
    """Misclassification task by task: with equal weights, or each by its own network."""
    names = runs[0][1].names
    rates = [
        [_rate(record, test, at, name, alone=alone) for at, name in enumerate(names)]
        for record, test, _ in runs
    ]
    known = [[rate for rate in row if rate is not None] for row in rates]
    if any(len(row) < len(names) for row in known):
        return None
    return {
        "judged": "each by its own network" if alone else "with equal weights",
        "misclassification": {
            name: spread(row[at] for row in known) for at, name in enumerate(names)
        },
        "mean": spread(fmean(row) for row in known),
    }


def _rate(record: Record, test: Front, at: int, name: str, *, alone: bool) -> float | None:
    key = f"accuracy_{name}"
    if alone:
        return 1 - float(test.metrics[key][at]) if key in test.metrics else None
    found = ((record.get("centre") or {}).get("metrics") or {}).get(key)
    return None if found is None else 1 - float(found)


def _made(records: Sequence[Record]) -> dict[str, Any]:
    """Where the numbers come from: every answer that seeds give, each once."""

    def every(*keys: str) -> list[Any]:
        found: list[Any] = []
        for record in records:
            value: Any = record
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None and value not in found:
                found.append(value)
        return found

    return {
        "device": every("machine", "device"),
        "threads": every("machine", "threads"),
        "version": every("version"),
        "source": every("source"),
        "torch": every("versions", "torch"),
        "precision": every("precision"),
        "engine": every("engine"),
        "seeds_together": every("seeds_together"),
        "images": every("about", "images"),
        "weights": every("backbone", "settings", "weights"),
        "caveats": list(dict.fromkeys(one for many in every("caveats") for one in many)),
    }
