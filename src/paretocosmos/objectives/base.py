"""The contract of an objective, shapes it can compare, and means over samples."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.registry import name_of
from paretocosmos.types import Measure, Outputs, Targets


@dataclass(kw_only=True, eq=False, repr=False)
class Objective(ABC):
    """A loss to train on and a score to report, both pure functions of outputs and targets.

    Both give one number for a whole batch. They are vmapped over ray groups and rays, so they use
    masked sums instead of boolean indexing and never read a number back.

    Settings are fields of a dataclass: a subclass with more of them is one too, and checks them in
    `__post_init__`; or it has an `__init__` of its own, which calls this one.

    Args:
        name: its name in fronts; by default its registered name, or that of the class.
        output: the head it reads, if the network has several.
        target: the target it compares with.

    >>> class Missing(Objective):
    ...     def loss(self, outputs, targets):
    ...         return torch.relu(targets["demand"] - outputs).mean()
    >>> Missing(target="demand").score(torch.tensor([1.0]), {"demand": torch.tensor([3.0])})
    tensor(2.)
    """

    traceable: bool = field(default=False, init=False)
    """`True` promises that `loss` decides nothing in Python from values of tensors and keeps no
    Python state between steps, so that fast engines and stacks of seeds may run it; a subclass
    declares it anew."""

    per_head: ClassVar[bool] = False
    """`True` promises that it reads no head but `output`, and none of the heads' targets but
    `target`, so that several of a kind on heads alike are computed in one go; a subclass declares
    it anew."""

    decides: bool = field(default=False, init=False)
    """`True` says that `score` is of decisions: of one logit per sample it reads ``logit > 0``
    alone, so that it can be had at another threshold; a subclass with a score of its own declares
    it anew."""

    measure: ClassVar[Measure | None] = None
    """Its score in plain words, for pages, tables and pictures; `None`: its name must do."""

    name: str = ""
    output: str | None = None
    target: str = "label"

    def __post_init__(self) -> None:
        kind = type(self)
        # a class of one's own is in no registry
        self.name = self.name or name_of("objectives", kind) or kind.__name__

    @abstractmethod
    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        """The differentiable loss of a batch: outputs ``[B, ...]`` to a scalar."""

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Compute the value that a front reports; by default the loss.

        Where targets may be `missing`, it is made of the sums: they say whether there was any.
        """
        sums = None if self.missing is None else self.sums(outputs, targets)
        return self.loss(outputs, targets) if sums is None else self.from_sums(sums)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        """Compute sums over samples from which the score follows, so that no outputs need be kept.

        A tensor of any fixed shape: that of a split is the sum over its batches, and `from_sums`
        makes the score of it. `None` where the score needs all outputs at once, as by default. A
        subclass with a loss or score of its own declares it anew.
        """
        return None

    def from_sums(self, sums: Tensor) -> Tensor:
        """Compute the score of a split from its sums, by default a total and its weight."""
        return mean_of(sums)

    @property
    def missing(self) -> float | None:
        """The value of a target that means there is none; `None` where every sample has one."""
        return None

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        """Compute moments for an interval of the score, if that is a gap between groups' means.

        Of each mean that is compared the groups' sums, sums of squares and sizes,
        ``[means, groups, 3]``; the score is the largest gap. `None` where it is anything else: then
        the interval is a bootstrap's.
        """
        return None

    def unit(self, scale: float) -> float:
        """Return the worth of a score of 1 if targets are numbers in units of `scale`.

        1 for a score that has no unit, `scale` for a difference, its square for a squared one.
        """
        return 1.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


def pick(outputs: Outputs, head: str | None) -> Tensor:
    """Return the tensor of one head, by its name; in a tuple by its position, ``"0"``."""
    # a single tensor serves all objectives, whatever head they name
    if isinstance(outputs, Tensor):
        return outputs
    heads: Any = outputs
    if isinstance(heads, list | tuple):
        heads = {str(index): output for index, output in enumerate(heads)}
    elif is_dataclass(heads):
        heads = vars(heads)
    elif not isinstance(heads, Mapping):
        raise ConfigurationError(
            "an objective reads a tensor, or one of several by name, but the network returns "
            f"{type(outputs).__name__}: return a mapping from names to tensors"
        )
    if head is None or head not in heads:
        raise ConfigurationError(
            f"`output` of an objective must name one of the network's heads {', '.join(heads)}, "
            f"found {head!r}"
        )
    tensor: Tensor = heads[head]
    return tensor


def logits_of(outputs: Outputs, head: str | None) -> Tensor:
    """Return one logit per sample: ``[B]`` or ``[B, 1]`` to ``[B]``."""
    logits = pick(outputs, head)
    # `[B, 1]` would broadcast against labels `[B]` to `[B, B]`
    return logits.squeeze(-1) if logits.ndim > 1 and logits.shape[-1] == 1 else logits


def mean_of(sums: Tensor) -> Tensor:
    """Return the mean, given a total and its weight ``[2]``; 0 if the weight is 0."""
    total, weight = sums.unbind()
    # `where`, not `if`: a step must not read values back from the device
    return total / torch.where(weight > 0, weight, 1.0)


def align(target: Tensor, output: Tensor, name: str = "label") -> Tensor:
    """Return a target in the shape of an output, number by number.

    Axes of length 1 may differ, as in ``[B]`` and ``[B, 1]``. All others must be the same in the
    same order: a reshape would compare channels with positions.

    >>> import torch
    >>> align(torch.zeros(4), torch.zeros(4, 1)).shape
    torch.Size([4, 1])
    """
    if target.shape == output.shape:
        return target
    # the first axis is that of the samples, and counts even where its length is 1
    target_axes, output_axes = (
        (t.shape[:1], [length for length in t.shape[1:] if length != 1]) for t in (target, output)
    )
    if target_axes != output_axes:
        raise ConfigurationError(
            f"`{name}` must have the shape of the outputs, found {list(target.shape)} for "
            f"outputs {list(output.shape)}: bring the axes of the target into the order of the "
            "outputs"
        )
    return target.reshape(output.shape)


def classes_last(
    logits: Tensor, labels: Tensor, axis: int | None = None, name: str = "label"
) -> Tensor:
    """Return logits with their classes on the last axis, for one label each.

    The classes may be second, as torch's cross-entropy has them, ``[B, K, ...]`` for labels
    ``[B, ...]``; or last, as language models give them, ``[B, ..., K]``.

    Args:
        logits: of every class for every label.
        labels: the classes, one each.
        axis: of the classes: 1 or -1; the one that fits if `None`. Where both fit, because there
            are as many positions as classes, it must be given.
        name: of the labels, for a refusal.

    >>> import torch
    >>> classes_last(torch.zeros(4, 21, 16, 15), torch.zeros(4, 16, 15)).shape
    torch.Size([4, 16, 15, 21])
    """
    last = logits.shape[:-1] == labels.shape
    second = logits.ndim > 1 and (*logits.shape[:1], *logits.shape[2:]) == labels.shape
    # `[B, K]` with labels `[B]` fits both descriptions, which are the same there
    if logits.ndim > 2 and last and second and axis is None:
        raise ConfigurationError(
            f"the classes of outputs {list(logits.shape)} may be on the second or the last axis, "
            f"since both fit `{name}` {list(labels.shape)}: pass `axis=1` or `axis=-1`"
        )
    # the axis that was given must fit; without one, either may
    if not {None: last or second, 1: second, -1: last}[axis]:
        wanted = {None: "[B, K], [B, K, ...] or [B, ..., K]", 1: "[B, K, ...]", -1: "[B, ..., K]"}
        raise ConfigurationError(
            f"outputs must be {wanted[axis]} for labels [B] or [B, ...], found "
            f"{list(logits.shape)} for `{name}` {list(labels.shape)}: return the logits of all "
            "classes for every label"
        )
    return logits if last and axis != 1 else logits.movedim(1, -1)


def check_axis(axis: int | None) -> None:
    """Validate the axis of the classes."""
    if axis not in (None, 1, -1):
        raise ConfigurationError(
            f"`axis` must be 1 if classes come second or -1 if they come last, found {axis!r}"
        )


def check_power(power: int) -> None:
    """Validate the power of an error."""
    # 1 leads to quantiles, 2 to expectiles; other powers have no such meaning
    if power not in (1, 2):
        raise ConfigurationError(f"`power` must be 1 or 2, found {power}")


class Parts(NamedTuple):
    """The values of a mean over labels, and their weights.

    Attributes:
        values: of every label, ``[B, ...]``; anything where the label is missing.
        present: which labels exist; `None` for all.
        weights: of the values; `None` for equal ones.
        counted: the factor of each weight in the divisor; 1 if `None`.
    """

    values: Tensor
    present: Tensor | None = None
    weights: Tensor | None = None
    counted: Tensor | None = None

    @property
    def equal(self) -> bool:
        """`True` if every value counts, and counts the same."""
        return self.present is None and self.weights is None and self.counted is None


@dataclass(kw_only=True, eq=False, repr=False)
class LabelMean(Objective):
    """The mean of a value over the labels that exist.

    A batch without labels has a loss of 0 and no gradient, so that it changes nothing; a split
    without labels has the score NaN, since nothing can be said.
    """

    weight: str = "weight"

    @abstractmethod
    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        """Return the values to average."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        parts = self.parts(outputs, targets)
        # a plain mean where all count alike: fewer kernels
        return parts.values.mean() if parts.equal else mean_of(sums_of(parts))

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return sums_of(self.parts(outputs, targets))

    def from_sums(self, sums: Tensor) -> Tensor:
        mean = mean_of(sums)
        return mean if self.missing is None else torch.where(sums[1] > 0, mean, torch.nan)


def sums_of(parts: Parts) -> Tensor:
    """Return the total, and the weight it is divided by: ``[2]``."""
    values, present, weights, counted = parts
    # float16 counts only to 2048
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    if parts.equal:
        return torch.stack([values.sum(), values.new_full((), values.numel())])
    weight = torch.ones_like(values) if weights is None else weights.to(values).expand_as(values)
    if present is not None:
        # selected, not multiplied: the value of a missing label may be NaN
        values, weight = torch.where(present, values, 0.0), torch.where(present, weight, 0.0)
    # class weights are in the divisor too, as in `torch.nn.CrossEntropyLoss`
    total = weight.sum() if counted is None else (weight * counted).sum()
    return torch.stack([(values * weight).sum(), total])


def sample_weights(like: Tensor, targets: Targets, name: str) -> Tensor | None:
    """Return the weight of each sample of values ``[B, ...]``; `None` if all weigh the same."""
    weight = targets.get(name)
    if weight is None:
        return None
    if weight.numel() == len(like):  # of a sample, for all its values
        return weight.to(like.dtype).reshape(-1, *[1] * (like.ndim - 1))
    return align(weight.to(like.dtype), like, name)


def weighted_mean(values: Tensor, targets: Targets) -> Tensor:
    """Return the mean over samples, weighted if the targets hold a ``weight``."""
    if "weight" not in targets:
        return values.mean()
    return mean_of(weighted_sums(values, targets))


def weighted_sums(values: Tensor, targets: Targets) -> Tensor:
    """Return the total over samples, and the weight it is divided by: ``[2]``."""
    return sums_of(Parts(values, weights=sample_weights(values, targets, "weight")))


def known_numbers(target: Tensor, ignore_nan: bool) -> tuple[Tensor, Tensor | None]:
    """Return a target without NaN, and a mask of its numbers; `None` if all must be numbers."""
    if not ignore_nan:
        return target, None
    present = ~target.isnan()
    # NaN times 0 is NaN, in gradients too, so it must not reach the loss
    return target.where(present, 0.0), present
