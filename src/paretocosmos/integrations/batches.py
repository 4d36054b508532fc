"""Conversion of any loader's batches into inputs and targets."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.objectives import GroupObjective, Objective
from paretocosmos.types import Batch

# The target by which objectives weight samples if a batch has it.
WEIGHT = "weight"


def collect_target_names(objectives: Sequence[Objective], extra: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all targets that objectives read, in their order, without duplicates."""
    names = [objective.target for objective in objectives]
    names += [o.sensitive for o in objectives if isinstance(o, GroupObjective)]
    return tuple(dict.fromkeys([*names, *extra]))


def to_batch(data: Any, names: Sequence[str]) -> Batch:
    """Convert what a loader gives into a `Batch`.

    Args:
        data: a `Batch`; a pair of inputs and a mapping of targets; inputs and a tensor for each
            target; or a mapping, of which the columns named after a target are targets and the
            others inputs. `labels`, as Hugging Face's collators write it, is `label`.
        names: the targets that are read, in their order.

    >>> import torch
    >>> x, y = torch.zeros(4, 3), torch.ones(4)
    >>> to_batch((x, y), ["label"]).targets
    {'label': tensor([1., 1., 1., 1.])}
    >>> list(to_batch({"input_ids": x, "labels": y}, ["label"]).inputs)
    ['input_ids']
    """
    if isinstance(data, Batch):
        batch = data
    elif isinstance(data, Mapping):
        batch = _split_columns(data, names)
    elif isinstance(data, list | tuple) and len(data) > 1:
        batch = _pair_targets(data[0], data[1:], names)
    else:
        raise DataError(
            "a batch must be a mapping of columns, or inputs and targets, found "
            f"{type(data).__name__}: return one from the loader's `collate_fn`"
        )
    missing = [name for name in names if name not in batch.targets]
    if missing:
        raise DataError(
            f"the objectives read the target `{missing[0]}`, found {_quote_names(batch.targets)} "
            "in the batch: add it, or name another as the objective's `target`"
        )
    return batch


def split_by_objective(data: Any, objectives: Sequence[Objective]) -> tuple[Any, ...] | None:
    """Return the batch of each objective's own loader, or `None` if one loader serves all.

    Args:
        data: a mapping from the objectives' names to batches, as Lightning's `CombinedLoader`
            makes it; a loader that has ended gives `None`.
        objectives: what is traded.
    """
    names = [objective.name for objective in objectives]
    if not isinstance(data, Mapping) or set(data) != set(names):
        return None
    if any(isinstance(value, Tensor) for value in data.values()):
        return None  # one batch of columns that are named as the objectives
    return tuple(data[name] for name in names)


def extract_inputs(data: Any, names: Sequence[str]) -> Any:
    """Return the inputs of what a loader gives, which may have no targets."""
    if isinstance(data, Batch):
        return data.inputs
    if isinstance(data, Mapping):
        targets = {*names, WEIGHT, "labels" if "label" in names else ""}
        return {name: column for name, column in data.items() if name not in targets}
    return data[0] if isinstance(data, list | tuple) else data


def _split_columns(data: Mapping[str, Tensor], names: Sequence[str]) -> Batch:
    """Split a mapping of columns into targets, by their names, and inputs."""
    columns = dict(data)
    # collators of `transformers` rename `label`; a network's own loss would read `labels`
    if "label" in names and "label" not in columns and "labels" in columns:
        columns["label"] = columns.pop("labels")
    targets = {name: columns.pop(name) for name in (*names, WEIGHT) if name in columns}
    if not columns:
        raise DataError(
            f"a batch needs inputs as well as targets, found only {_quote_names(targets)}: add the "
            "inputs of the network"
        )
    return Batch(columns, targets)


def _pair_targets(inputs: Any, targets: Sequence[Any], names: Sequence[str]) -> Batch:
    """Pair the targets after the inputs with their names."""
    if len(targets) == 1 and isinstance(targets[0], Mapping):  # a pair, the targets by name
        return Batch(inputs, dict(targets[0]))
    if len(targets) != len(names):
        raise DataError(
            f"after the inputs, a batch must have a tensor for each target, {', '.join(names)}, "
            f"found {len(targets)}: pass the targets as a mapping"
        )
    return Batch(inputs, dict(zip(names, targets, strict=True)))


def _quote_names(targets: Mapping[str, Any]) -> str:
    """Quote names for a message."""
    return ", ".join(f"`{name}`" for name in targets) or "none"
