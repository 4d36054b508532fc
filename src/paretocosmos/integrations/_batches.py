"""What their loaders give, as inputs and targets."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.objectives import GroupObjective, Objective
from paretocosmos.types import Batch

# An objective may weigh samples by this target where it is there.
WEIGHT = "weight"


def targets_of(objectives: Sequence[Objective], further: Sequence[str]) -> tuple[str, ...]:
    """The names of all targets that objectives read, in their order, each once."""
    names = [objective.target for objective in objectives]
    names += [one.sensitive for one in objectives if isinstance(one, GroupObjective)]
    return tuple(dict.fromkeys([*names, *further]))


def as_batch(given: Any, names: Sequence[str]) -> Batch:
    """A batch of theirs as ours.

    Args:
        given: a `Batch`; a pair of inputs and a mapping of targets; inputs and a tensor for each
            target; or a mapping, of which the columns called as a target are targets and the
            others inputs. `labels`, as Hugging Face's collators write it, is `label`.
        names: the targets that are read, in their order.

    >>> import torch
    >>> x, y = torch.zeros(4, 3), torch.ones(4)
    >>> as_batch((x, y), ["label"]).targets
    {'label': tensor([1., 1., 1., 1.])}
    >>> list(as_batch({"input_ids": x, "labels": y}, ["label"]).inputs)
    ['input_ids']
    """
    if isinstance(given, Batch):
        batch = given
    elif isinstance(given, Mapping):
        batch = _by_columns(given, names)
    elif isinstance(given, list | tuple) and len(given) > 1:
        batch = _in_order(given[0], given[1:], names)
    else:
        raise DataError(
            "a batch must be a mapping of columns, or inputs and targets, found "
            f"{type(given).__name__}: return one from the loader's `collate_fn`"
        )
    missing = [name for name in names if name not in batch.targets]
    if missing:
        raise DataError(
            f"the objectives read the target `{missing[0]}`, found {_called(batch.targets)} in the "
            "batch: add it, or name another as the objective's `target`"
        )
    return batch


def batch_of_each(given: Any, objectives: Sequence[Objective]) -> tuple[Any, ...] | None:
    """What each objective's own loader gave, in their order; `None` if one loader serves all.

    Args:
        given: a mapping from the objectives' names to batches, as Lightning's `CombinedLoader`
            makes it; a loader that has ended gives `None`.
        objectives: what is traded.
    """
    names = [objective.name for objective in objectives]
    if not isinstance(given, Mapping) or set(given) != set(names):
        return None
    if any(isinstance(part, Tensor) for part in given.values()):  # columns, called as targets
        return None
    return tuple(given[name] for name in names)


def inputs_of(given: Any, names: Sequence[str]) -> Any:
    """The inputs of a batch of theirs, which may have no targets."""
    if isinstance(given, Batch):
        return given.inputs
    if isinstance(given, Mapping):
        targets = {*names, WEIGHT, "labels" if "label" in names else ""}
        return {name: part for name, part in given.items() if name not in targets}
    return given[0] if isinstance(given, list | tuple) else given


def _by_columns(given: Mapping[str, Tensor], names: Sequence[str]) -> Batch:
    columns = dict(given)
    if "label" in names and "label" not in columns and "labels" in columns:
        columns["label"] = columns.pop("labels")
    targets = {name: columns.pop(name) for name in (*names, WEIGHT) if name in columns}
    if not columns:
        raise DataError(
            f"a batch needs inputs as well as targets, found only {_called(targets)}: add the "
            "inputs of the network"
        )
    return Batch(columns, targets)


def _in_order(inputs: Any, rest: Sequence[Any], names: Sequence[str]) -> Batch:
    if len(rest) == 1 and isinstance(rest[0], Mapping):
        return Batch(inputs, dict(rest[0]))
    if len(rest) != len(names):
        raise DataError(
            f"after the inputs, a batch must have a tensor for each target, {', '.join(names)}, "
            f"found {len(rest)}: pass the targets as a mapping"
        )
    return Batch(inputs, dict(zip(names, rest, strict=True)))


def _called(targets: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in targets) or "none"
