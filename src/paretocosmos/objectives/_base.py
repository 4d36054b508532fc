"""The contract of an objective, and what its files share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import ClassVar

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
        name: how fronts call it; by default the registered name, or else the class's.
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
    """The outputs of any network by their names."""
    if isinstance(outputs, Mapping):
        return outputs
    if isinstance(outputs, list | tuple):
        return {str(place): part for place, part in enumerate(outputs)}
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
