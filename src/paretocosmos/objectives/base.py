"""The contract of an objective, shapes it can compare, and means over samples."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import ClassVar, NamedTuple

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
        name: how fronts call it; its registered name by default, or that of the class.
        output: which head it reads, where the network has several.
        target: which target it compares with.

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
        self.name = self.name or name_of("objectives", kind) or kind.__name__

    @abstractmethod
    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        """The differentiable loss of a batch: outputs ``[B, ...]`` to a scalar."""

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        """What a front reports; the loss, unless the objective knows better.

        Where targets may be `missing`, it is made of the sums: they say whether there was any.
        """
        sums = None if self.missing is None else self.sums(outputs, targets)
        return self.loss(outputs, targets) if sums is None else self.from_sums(sums)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        """What the score follows from and samples add to, so that no outputs need be kept.

        A tensor of any fixed shape: that of a split is the sum over its batches, and `from_sums`
        makes the score of it. `None` where the score needs all outputs at once, as by default. A
        subclass with a loss or score of its own declares it anew.
        """
        return None

    def from_sums(self, sums: Tensor) -> Tensor:
        """The score of a split, given its sums; by default a mean, of a total and a weight."""
        return mean_of(sums)

    @property
    def missing(self) -> float | None:
        """The value of a target that means there is none; `None` where every sample has one."""
        return None

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        """What an interval of the score follows from, where that is a gap between groups' means.

        Of each mean that is compared the groups' sums, sums of squares and sizes,
        ``[means, groups, 3]``; the score is the largest gap. `None` where it is anything else: then
        the interval is a bootstrap's.
        """
        return None

    def unit(self, scale: float) -> float:
        """What a score of 1 is worth where targets are numbers in units of `scale`.

        1 for a score that has no unit, `scale` for a difference, its square for a squared one.
        """
        return 1.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


def pick(outputs: Outputs, head: str | None) -> Tensor:
    """The tensor of one head, by its name; in a tuple by its place, ``"0"``."""
    if isinstance(outputs, Tensor):
        return outputs
    heads = _by_name(outputs)
    if head is None or head not in heads:
        raise ConfigurationError(
            f"the network has the heads {', '.join(heads)}; an objective must name one with "
            f"`output`, found {head!r}"
        )
    return heads[head]


def _by_name(outputs: object) -> Mapping[str, Tensor]:
    if isinstance(outputs, Mapping):
        return outputs
    if isinstance(outputs, list | tuple):
        return {str(index): output for index, output in enumerate(outputs)}
    if is_dataclass(outputs):
        return vars(outputs)
    raise ConfigurationError(
        "an objective reads a tensor, or one of several by name, but the network returns "
        f"{type(outputs).__name__}: return a mapping from names to tensors"
    )


def logits_of(outputs: Outputs, head: str | None) -> Tensor:
    """One logit per sample: ``[B]`` or ``[B, 1]`` to ``[B]``."""
    logits = pick(outputs, head)
    return logits.squeeze(-1) if logits.ndim > 1 and logits.shape[-1] == 1 else logits


def mean_of(sums: Tensor) -> Tensor:
    """The mean, given a total and its weight ``[2]``; 0 where nothing counts."""
    total, weight = sums.unbind()
    return total / torch.where(weight > 0, weight, 1.0)


def aligned(target: Tensor, output: Tensor, name: str = "label") -> Tensor:
    """A target in the shape of an output, number by number.

    Axes of length 1 may differ, as in ``[B]`` and ``[B, 1]``. All others must be the same in the
    same order: a reshape would compare channels with positions.

    >>> import torch
    >>> aligned(torch.zeros(4), torch.zeros(4, 1)).shape
    torch.Size([4, 1])
    """
    if target.shape == output.shape:
        return target
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
    """Logits with their classes on the last axis, for one label each.

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
    if logits.ndim > 2 and last and second and axis is None:
        raise ConfigurationError(
            f"outputs {list(logits.shape)} may have their classes on the second or on the last "
            f"axis, found as many positions as classes in `{name}` {list(labels.shape)}: pass "
            "`axis=1` or `axis=-1`"
        )
    if not {None: last or second, 1: second, -1: last}[axis]:
        wanted = {None: "[B, K], [B, K, ...] or [B, ..., K]", 1: "[B, K, ...]", -1: "[B, ..., K]"}
        raise ConfigurationError(
            f"outputs are {wanted[axis]} for labels [B] or [B, ...], found {list(logits.shape)} "
            f"for `{name}` {list(labels.shape)}: the network must return logits of all classes for "
            "every label"
        )
    return logits if last and axis != 1 else logits.movedim(1, -1)


def check_axis(axis: int | None) -> None:
    """Refuse an axis that classes are never on."""
    if axis not in (None, 1, -1):
        raise ConfigurationError(
            f"`axis` must be 1 if classes come second or -1 if they come last, found {axis!r}"
        )


class Parts(NamedTuple):
    """What a mean over labels is made of.

    Attributes:
        values: of every label, ``[B, ...]``; anything where it is not known.
        known: which labels there are; `None` for all.
        weights: of the values; `None` for equal ones.
        counted: what each value counts for in the divisor, times its weight; 1 if `None`.
    """

    values: Tensor
    known: Tensor | None = None
    weights: Tensor | None = None
    counted: Tensor | None = None

    @property
    def equal(self) -> bool:
        """`True` if every value counts, and counts the same."""
        return self.known is None and self.weights is None and self.counted is None


@dataclass(kw_only=True, eq=False, repr=False)
class LabelMean(Objective):
    """The mean of something over the labels that there are.

    A batch without labels has a loss of 0 and no gradient, so that it changes nothing; a split
    without labels has the score NaN, since nothing can be said.
    """

    weight: str = "weight"

    @abstractmethod
    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        """What is averaged."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        parts = self.parts(outputs, targets)
        return parts.values.mean() if parts.equal else mean_of(sums_of(parts))

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return sums_of(self.parts(outputs, targets))

    def from_sums(self, sums: Tensor) -> Tensor:
        mean = mean_of(sums)
        return mean if self.missing is None else torch.where(sums[1] > 0, mean, torch.nan)


def sums_of(parts: Parts) -> Tensor:
    """The total, and the weight it is divided by: ``[2]``."""
    values, known, weights, counted = parts
    values = values.to(torch.promote_types(values.dtype, torch.float32))  # half of it cannot count
    if parts.equal:
        return torch.stack([values.sum(), values.new_full((), values.numel())])
    weight = torch.ones_like(values) if weights is None else weights.to(values).expand_as(values)
    if known is not None:
        values, weight = torch.where(known, values, 0.0), torch.where(known, weight, 0.0)
    total = weight.sum() if counted is None else (weight * counted).sum()
    return torch.stack([(values * weight).sum(), total])


def sample_weights(like: Tensor, targets: Targets, name: str) -> Tensor | None:
    """What each sample of values ``[B, ...]`` counts for, ``[B, 1, ...]``; `None`: all the same."""
    weight = targets.get(name)
    if weight is None:
        return None
    if weight.numel() == len(like):  # of a sample, for all its values
        return weight.to(like.dtype).reshape(-1, *[1] * (like.ndim - 1))
    return aligned(weight.to(like.dtype), like, name)


def weighted_mean(values: Tensor, targets: Targets) -> Tensor:
    """The mean over samples, weighted where the targets hold a ``weight``."""
    if "weight" not in targets:
        return values.mean()
    return mean_of(weighted_sums(values, targets))


def weighted_sums(values: Tensor, targets: Targets) -> Tensor:
    """The total of a mean over samples, and the weight it is divided by: ``[2]``."""
    return sums_of(Parts(values, weights=sample_weights(values, targets, "weight")))


def known_numbers(target: Tensor, ignore_nan: bool) -> tuple[Tensor, Tensor | None]:
    """A target without its NaNs, and which of it are numbers; `None` where all are to be."""
    if not ignore_nan:
        return target, None
    known = ~target.isnan()
    return target.where(known, 0.0), known
