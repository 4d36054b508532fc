"""What `run.json` may say: the kind and the limits of every field, checked before it is used."""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from paretocosmos.errors import RunError

__all__ = ["FILES", "MOST", "check_record"]

MOST = 1_000_000
"""Of anything that is counted: epochs, rays, outputs."""

FILES = ("model.safetensors", "front.json", "front_val.json", "table.json")
"""What a finished run has beside its record."""

VALUES = 2**26  # of one sample: an image of 4,000 by 4,000 pixels in colour
SETTINGS = 10_000  # entries of a list among a thing's settings
NETWORKS = 10_000
SPENT = ("training", "to_selected", "preparing", "evaluating")


class Kind(NamedTuple):
    """What a field holds, in words, and whether a value is that."""

    words: str
    holds: Callable[[Any], bool]


def _or_none(kind: Kind) -> Kind:
    return Kind(f"{kind.words} or null", lambda value: value is None or kind.holds(value))


def _list(kind: Kind, *, least: int = 0, most: int = MOST) -> Kind:
    def holds(value: Any) -> bool:
        sized = isinstance(value, list) and least <= len(value) <= most
        return sized and all(kind.holds(one) for one in value)

    return Kind(f"a list of at most {most}, each {kind.words}", holds)


def _by_name(kind: Kind) -> Kind:
    def holds(value: Any) -> bool:
        return isinstance(value, dict) and all(kind.holds(one) for one in value.values())

    return Kind(f"an object, each value {kind.words}", holds)


def _whole(least: int, most: int) -> Kind:
    # True is an int too
    def holds(value: Any) -> bool:
        return type(value) is int and least <= value <= most

    return Kind(f"a whole number from {least} to {most}", holds)


def _one_of(*choices: str) -> Kind:
    named = " or ".join(f"`{choice}`" for choice in choices)
    return Kind(named, lambda value: isinstance(value, str) and value in choices)


def _spec(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"name", "settings"}:
        return False
    settings = value["settings"]
    return (
        isinstance(value["name"], str)
        and isinstance(settings, dict)
        and all(len(one) <= SETTINGS for one in settings.values() if isinstance(one, dict | list))
    )


def _shape(value: Any) -> bool:
    return _list(COUNT, least=1, most=8).holds(value) and prod(value) <= VALUES


TEXT = Kind("a text", lambda value: isinstance(value, str))
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a number", lambda value: type(value) in (int, float) and abs(value) < 1e300)
SHARE = Kind("from 0 to 1", lambda value: NUMBER.holds(value) and 0 <= value < 1.001)
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
COUNT = _whole(1, 10**9)
LARGE = _whole(0, 2**63 - 1)
SPEC = Kind("an object with `name` and `settings`", _spec)
SHAPE = Kind(f"a list of sides, with at most {VALUES} values in all", _shape)
OUTPUTS = Kind(
    f"a whole number from 1 to {MOST}, or one by name",
    lambda value: (
        _by_name(_whole(1, MOST)).holds(value)
        if isinstance(value, dict)
        else _whole(1, MOST).holds(value)
    ),
)
RAYS = _list(_list(SHARE, least=1), least=1, most=NETWORKS)
POINTS = _list(_list(_or_none(NUMBER), least=1), least=1)

# What every record holds, begun or finished.
ALWAYS: dict[str, Kind] = {
    "status": _one_of("training", "finished"),
    "name": TEXT,
    "problem": _or_none(SPEC),
    "method": SPEC,
    "conditioning": _or_none(SPEC),
    "backbone": _or_none(SPEC),
    "training": OBJECT,
    "training.epochs": _whole(1, MOST),
    "training.batch_size": COUNT,
    "training.groups": COUNT,
    "training.accumulate": COUNT,
    "training.evaluate_every": COUNT,
    "training.rays": _whole(1, MOST),
    "training.learning_rate": NUMBER,
    "training.weight_decay": NUMBER,
    "training.decay": NUMBER,
    "training.milestones": _list(LARGE),
    "training.reference": _or_none(_list(NUMBER, least=1)),
    "seed": LARGE,
}
# What else a finished one holds.
FINISHED: dict[str, Kind] = {
    "label": TEXT,
    "about": OBJECT,
    "protocol": TEXT,
    "objectives": _whole(1, MOST),
    "names": _list(TEXT, least=1),
    "input_shape": SHAPE,
    "outputs": OUTPUTS,
    "fixed_rays": _or_none(RAYS),
    "parameters": LARGE,
    "caveats": _list(TEXT),
    "device": TEXT,
    "precision": TEXT,
    "version": TEXT,
    "metrics": _by_name(_by_name(_or_none(NUMBER))),
    "metrics.test": OBJECT,
    "metrics.test.hypervolume": NUMBER,
    "metrics.test.hypervolume_ideal": NUMBER,
    "metrics.val": OBJECT,
    "metrics.val.hypervolume": NUMBER,
    "metrics.val.hypervolume_ideal": NUMBER,
    "epoch_selected": LARGE,
    "networks": _list(OBJECT, least=1, most=NETWORKS),
    "evaluations": _list(OBJECT),
    "samples_per_second": _or_none(NUMBER),
    "share_waiting": NUMBER,
    "peak_memory": _or_none(NUMBER),
    "seeds_together": COUNT,
    "processes": COUNT,
    "engine": TEXT,
    "data": TEXT,
    **{f"seconds_{part}": NUMBER for part in SPENT},
    "files": Kind(
        f"an object with the sha256 of {', '.join(FILES)}",
        lambda value: _by_name(TEXT).holds(value) and value.keys() <= {*FILES},
    ),
}
# What is told of a run, and of its kind where it is there.
TOLD: dict[str, Kind] = {
    "answers": _or_none(TEXT),
    "objective_specs": _list(SPEC, least=1),  # since 0.1; older folders have none
    "deterministic": TRUTH,
    "source": TEXT,
    "versions": OBJECT,
    "machine": OBJECT,
    "git": _or_none(OBJECT),
    "command": TEXT,
    "written": TEXT,
    "centre": _or_none(OBJECT),
    "centre.values": OBJECT,
    "centre.metrics": _by_name(_or_none(NUMBER)),
    "sha256": TEXT,
}


def check_record(record: Mapping[str, Any], file: Path) -> None:
    """Refuse a record with a field that is missing or not what it should be.

    Args:
        record: what `run.json` holds.
        file: what it is called in a refusal.
    """
    for mistake in _mistakes(record):
        raise RunError(
            f"`{file}` is damaged: {mistake}; bring back what the training wrote, or train again"
        )


def _mistakes(record: Mapping[str, Any]) -> Iterator[str]:
    finished = record.get("status") == "finished"
    needed = ALWAYS | FINISHED if finished else ALWAYS
    for place, kind in (ALWAYS | FINISHED | TOLD).items():
        *outer, key = place.split(".")
        holder: Any = record
        for name in outer:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if not isinstance(holder, Mapping) or key not in holder:
            if place in needed:
                yield f"it lacks `{place}`"
        elif not kind.holds(holder[key]):
            yield f"`{place}` is {kind.words}, found {_short(holder[key])}"
    if not finished:
        return
    if len(record["names"]) != record["objectives"]:
        yield f"it has {record['objectives']} objectives and {len(record['names'])} names"
    reference = record["training"]["reference"]
    if reference is not None and len(reference) != record["objectives"]:
        yield "`training.reference` has an entry for every objective"
    if any(len(ray) != record["objectives"] for ray in record["fixed_rays"] or ()):
        yield "`fixed_rays` have an entry for every objective"
    if not all(LARGE.holds(one.get("epoch_selected")) for one in record["networks"]):
        yield "`networks` have an `epoch_selected` each"
    for one in record["evaluations"]:
        if not (LARGE.holds(one.get("epoch")) and POINTS.holds(one.get("values"))):
            yield "`evaluations` have an `epoch` and `values` each"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
