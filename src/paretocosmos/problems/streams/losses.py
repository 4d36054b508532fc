"""A problem from data and plain loss functions, as one has them beside a network."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler, Subset, TensorDataset

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.objectives import Objective
from paretocosmos.problems.base import SPLITS, Split
from paretocosmos.types import Batch, Outputs, Targets

Loss = Callable[..., Tensor]
"""A function of outputs and a target to one number, such as `torch.nn.functional.mse_loss`."""

# Samples of ten that validate, and that test.
HELD_OUT = 1
FEWEST = 10


@dataclass(kw_only=True, eq=False, repr=False)
class LossFunction(Objective):
    """A loss that is any function of an output and a target, as torch's are.

    Args:
        function: ``function(output, target)``, the mean over a batch.
        index: its place among the losses.
        count: the number of losses: a network with as many outputs has one for each, by their
            names or in their order; any other gives the same to all.
    """

    function: Loss
    index: int
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        declared = getattr(self.function, "traceable", False)
        # torch's own losses decide nothing in Python
        kind = type(self.function) if isinstance(self.function, nn.Module) else self.function
        origin = str(getattr(kind, "__module__", "")).partition(".")[0]
        self.traceable = bool(declared) or origin == "torch"

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        output, target = self._find_output(outputs), targets[self.target]
        try:
            return self.function(output, target)
        except Exception as error:
            # the usual cause: a function that looks for its head among the outputs of all
            error.add_note(
                f"`{self.name}` was called with an output of {_describe_shape(output)} and a "
                f"target of {_describe_shape(target)}: a network with an output for each loss "
                "gives each its own"
            )
            raise

    def _find_output(self, outputs: Any) -> Any:
        if isinstance(outputs, Mapping) and self.name in outputs:
            return outputs[self.name]
        if isinstance(outputs, list | tuple) and len(outputs) == self.count:
            return outputs[self.index]
        return outputs


def _describe_shape(value: Any) -> str:
    return f"shape {list(value.shape)}" if isinstance(value, Tensor) else f"{value!r:.80}"


def make_objectives(losses: Any, data: Mapping[Split, Any]) -> tuple[Objective, ...]:
    """Return an objective for each loss; the data show which target is whose.

    Args:
        losses: functions or objectives, by name or in the order of the targets.
        data: of each split.
    """
    if not isinstance(losses, Mapping | list | tuple) or len(losses) < 2:
        raise ConfigurationError(
            f"`losses` must be a list of two or more functions, or a mapping from names to them, "
            f"found {losses!r:.80}"
        )
    named = losses if isinstance(losses, Mapping) else _name_losses(losses)
    targets = _find_targets(_read_sample(data), list(named))
    objectives: list[Objective] = []
    for index, (name, loss) in enumerate(named.items()):
        if isinstance(loss, Objective):
            objectives.append(loss)
            continue
        if not callable(loss):
            raise ConfigurationError(
                f"`losses` must be functions of (output, target), found {loss!r:.80}"
            )
        target = targets[index]
        objectives.append(
            LossFunction(name=name, target=target, function=loss, index=index, count=len(named))
        )
    return tuple(objectives)


def find_inputs(
    data: Mapping[Split, Any], objectives: Sequence[Objective]
) -> tuple[str, ...] | None:
    """Return the names of several inputs: what no objective names; `None` where there is one."""
    sample = _read_sample(data)
    targets = {objective.target for objective in objectives}
    names = tuple(sample) if isinstance(sample, Mapping) else ()
    inputs = tuple(name for name in names if name not in targets)
    return inputs if len(inputs) > 1 and targets < {*names} else None


def _read_sample(data: Mapping[Split, Any]) -> Any:
    """Return a sample, or a batch, of which only the structure counts."""
    train = data["train"].dataset if isinstance(data["train"], DataLoader) else data["train"]
    return train[0] if hasattr(train, "__getitem__") else next(iter(train))


def split_data(data: Any) -> dict[Split, Any]:
    """Return the data of each split: those of a mapping, or a tenth for `val` and for `test` each.

    Args:
        data: a dataset, a loader of one, a tuple of arrays or tensors, or a mapping from `train`,
            `val` and `test` to any of them.
    """
    if isinstance(data, Mapping) and {*data} == {*SPLITS}:
        return {name: _join_arrays(data[name]) for name in SPLITS}
    data = _join_arrays(data)
    dataset: Any = data.dataset if isinstance(data, DataLoader) else data
    try:
        count = len(dataset)
        dataset[0]
    except (TypeError, NotImplementedError, LookupError) as error:
        raise ConfigurationError(
            f"only data with a length and an index can be split, found {type(dataset).__name__}: "
            'give {"train": ..., "val": ..., "test": ...}'
        ) from error
    if count < FEWEST:
        raise DataError(f"`data` needs {FEWEST} samples or more to be split, found {count}")
    # the same split for every seed, so that runs can be compared
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0)).tolist()
    few = count * HELD_OUT // FEWEST
    rows = {"train": order[2 * few :], "val": order[:few], "test": order[few : 2 * few]}
    return {name: _take(data, dataset, rows[name]) for name in SPLITS}


def _take(data: Any, dataset: Any, rows: list[int]) -> Any:
    subset: Any = Subset(dataset, rows)
    if not isinstance(data, DataLoader):
        return subset
    if data.batch_size is None:
        raise ConfigurationError(
            "a loader whose dataset makes batches cannot be split: give "
            '{"train": ..., "val": ..., "test": ...}'
        )
    return DataLoader(
        subset,
        batch_size=data.batch_size,
        shuffle=isinstance(data.sampler, RandomSampler),
        num_workers=data.num_workers,
        collate_fn=data.collate_fn,
        drop_last=data.drop_last,
    )


def _join_arrays(data: Any) -> Any:
    """Return tensors and arrays as a dataset; other data as they are."""
    if not isinstance(data, list | tuple) or not any(hasattr(part, "shape") for part in data):
        return data
    if others := [type(part).__name__ for part in data if not hasattr(part, "shape")]:
        way_out = "give the targets one by one, in the order of `losses`"
        if not hasattr(data[0], "shape"):
            way_out = (
                "for several inputs give a dataset of mappings from names to tensors, of which "
                "those that no loss names are inputs"
            )
        raise DataError(
            f"`data` of arrays must be (inputs, target, ...), found {others[0]} beside an array: "
            f"{way_out}"
        )
    tensors = [torch.as_tensor(part) for part in data]
    if len(tensors) < 2 or len({len(tensor) for tensor in tensors}) > 1:
        raise DataError(
            "`data` of arrays must be inputs and targets of equal length, found shapes "
            f"{[tuple(tensor.shape) for tensor in tensors]}"
        )
    return TensorDataset(*tensors)


def _find_targets(sample: Any, names: list[str]) -> list[str]:
    """Return the name of each loss's target; a single one is everybody's."""
    if isinstance(sample, Batch):
        keys = list(sample.targets)
    elif isinstance(sample, Mapping):
        # the first part is the input, unless the names of the losses say otherwise
        keys = [str(key) for key in sample][len(sample) == 2 :]
    elif isinstance(sample, list | tuple) and len(sample) == 2 and isinstance(sample[1], Mapping):
        keys = list(sample[1])
    elif isinstance(sample, list | tuple):
        # without names: they are called after their losses, or `target` if all share one
        count = len(sample) - 1
        keys = ["target"] if count == 1 else names if count == len(names) else []
    else:
        keys = []
    if {*names} <= {*keys}:
        return names
    if len(keys) == 1:
        return keys * len(names)
    raise ConfigurationError(
        f"`data` must give one target for all losses, or one for each of {len(names)}, found "
        f"{', '.join(keys) or type(sample).__name__}: yield (inputs, target, ...), or name the "
        "losses after the targets, as in losses={'label': ...}"
    )


def _name_losses(losses: Sequence[Any]) -> dict[str, Any]:
    names = []
    for place, loss in enumerate(losses, start=1):
        name = getattr(loss, "__name__", type(loss).__name__)
        if isinstance(loss, Objective):
            name = loss.name
        elif not name.isidentifier():  # a lambda
            name = f"loss_{place}"
        names.append(name)
    # losses of one kind are told apart by their place
    return {
        name if names.count(name) == 1 else f"{name}_{place}": loss
        for place, (name, loss) in enumerate(zip(names, losses, strict=True), start=1)
    }
