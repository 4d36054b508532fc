"""Which numbers add up over samples, so that a front keeps no outputs."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from paretocosmos.objectives._base import Objective, mean_of
from paretocosmos.types import Metric

Declared = TypeVar("Declared", bound=Callable[..., Any])

# What a subclass may change the score by; its `sums` must follow.
HOOKS = ("score", "decided", "rates")


class Streamed(NamedTuple):
    """A number in two steps.

    Attributes:
        sums: of outputs and targets, a tensor that samples add to.
        finish: from the sums of a whole split to the number.
    """

    sums: Metric
    finish: Callable[[Tensor], Tensor]


def streaming(
    sums: Callable[..., Tensor], finish: Callable[[Tensor], Tensor] = mean_of
) -> Callable[[Declared], Declared]:
    """Declare that a metric adds up over samples.

    Args:
        sums: takes what the metric takes, and gives a tensor of fixed shape that samples add to.
        finish: makes the number of it; by default the mean, of a total and a weight ``[2]``.

    >>> import torch
    >>> @streaming(lambda outputs, targets: torch.stack([outputs.sum(), outputs.new_tensor(2.0)]))
    ... def half(outputs, targets):
    ...     return outputs.sum() / 2
    >>> streamed(half).sums(torch.ones(4), {})
    tensor([4., 2.])
    """

    def declared(metric: Declared) -> Declared:
        vars(metric)["streamed"] = Streamed(sums, finish)
        return metric

    return declared


def streamed(metric: Callable[..., Any]) -> Streamed | None:
    """How a metric adds up: a function, or the score of an objective; `None` if nobody says.

    An objective says so with `sums`; a subclass with a score of its own declares it anew.

    >>> from paretocosmos.objectives import accuracy, roc_auc
    >>> streamed(accuracy) is None, streamed(roc_auc) is None
    (False, True)
    """
    if isinstance(metric, partial):
        inner = streamed(metric.func)
        if inner is None:
            return None
        return Streamed(partial(inner.sums, *metric.args, **metric.keywords), inner.finish)
    owner = getattr(metric, "__self__", None)
    if not isinstance(owner, Objective) or metric != owner.score:
        found: Streamed | None = getattr(metric, "streamed", None)
        return found
    of_loss = type(owner).score is Objective.score
    for holder in (owner, *type(owner).__mro__):
        held = vars(holder)
        if holder is Objective:
            return None
        if "sums" in held:
            return Streamed(owner.sums, owner.from_sums)  # type: ignore[arg-type]
        if any(hook in held for hook in HOOKS) or (of_loss and "loss" in held):
            return None
    return None
