"""`Training`: the settings of a run's optimiser and of its evaluation."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval

from paretocosmos.errors import ConfigurationError
from paretocosmos.io.schema import MOST

Positive = Annotated[int, Ge(1)]
Fraction = Annotated[float, Interval(ge=0, lt=1)]
"""A fraction of a training's steps."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The settings of the optimiser and of evaluation; the defaults are the paper's for tables.

    Attributes:
        epochs: passes over the training data.
        batch_size: samples per step; the last short batch is kept.
        optimizer: ``"adam"``, ``"adamw"`` or ``"sgd"``.
        learning_rate: the largest that is reached.
        weight_decay: added to the gradients by `adam`; decoupled in the others, and there only for
            matrices and kernels that do not read the ray.
        schedule: ``"steps"``: by `milestones`; ``"cosine"``: half a cosine from the learning rate
            down to 0, over all steps.
        warmup: the fraction of the steps in which the rate grows from 0, under ``"cosine"``.
        milestones: after these epochs the learning rate is multiplied by `decay`.
        decay: see `milestones`.
        average: the fraction of the steps over which weights are averaged (an exponential moving
            average); averaged weights are evaluated and saved. 0: no averaging.
        clip: the largest norm of a step's gradients; 0: any.
        scale_losses: divide every loss by how strongly it pulls on a fresh network's outputs, so
            that a preference means the same for losses of any size.
        calibrate: at the end, move the ends of the simplex to where more weight on an objective
            stops paying off on validation; fronts then go from end to end.
        patience: stop after so many validations without an improvement; 0: never.
        groups: rays per batch, each for an equal share of it; the paper draws one.
        accumulate: micro-batches per batch, one after the other, to save memory; it must divide
            `groups`, since each has rays of its own. The step is the same as without.
        evaluate_every: epochs between validations, by which the best epoch is selected.
        rays: even rays of a front, where one network serves all.
        reference: the reference point of the hypervolume; `None` for the problem's own.
    """

    epochs: Annotated[int, Interval(ge=1, le=MOST)] = 50
    batch_size: Positive = 256
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: Annotated[float, Gt(0)] = 1e-3
    weight_decay: Annotated[float, Ge(0)] = 0.0
    schedule: Literal["steps", "cosine"] = "steps"
    warmup: Fraction = 0.0
    milestones: tuple[int, ...] = ()
    decay: Annotated[float, Gt(0)] = 0.1
    average: Fraction = 0.0
    clip: Annotated[float, Ge(0)] = 0.0
    scale_losses: bool = False
    calibrate: bool = False
    patience: Annotated[int, Ge(0)] = 0
    groups: Positive = 1
    accumulate: Positive = 1
    evaluate_every: Positive = 5
    rays: Annotated[int, Interval(ge=1, le=MOST)] = 25
    reference: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        mistakes = list(find_out_of_bounds(self))  # all of them are reported at once
        if self.milestones and self.schedule != "steps":
            mistakes.append("`milestones` go with schedule `steps`: leave one of them out")
        if not all(math.isfinite(value) for value in self.reference or ()):
            mistakes.append(f"`reference` must be finite, found {self.reference}")
        # max(..., 1): a 0 is reported as out of bounds above, and must not raise ZeroDivisionError
        if self.batch_size % max(self.groups, 1):
            mistakes.append(
                f"`groups` must divide `batch_size`, found {self.groups} and {self.batch_size}"
            )
        if self.groups % max(self.accumulate, 1):
            mistakes.append(
                "`accumulate` must divide `groups`, since every micro-batch has rays of its own, "
                f"found {self.accumulate} and {self.groups}: set groups={self.accumulate} too"
            )
        if mistakes:
            raise ConfigurationError("; ".join(mistakes))

    def compute_learning_rates(self, epoch: int, samples: int) -> list[float]:
        """Compute the learning rates of an epoch's steps; one if all are the same.

        Args:
            epoch: counted from 0.
            samples: samples in an epoch.
        """
        if self.schedule == "steps":
            return [self.learning_rate * self.decay ** sum(epoch >= m for m in self.milestones)]
        steps = -(-samples // self.batch_size)  # rounded up for the last short batch
        indices = range(epoch * steps, (epoch + 1) * steps)
        total = steps * self.epochs
        return [self.learning_rate * self.compute_cosine(step, total) for step in indices]

    def compute_cosine(self, step: int, steps: int) -> float:
        """Compute the fraction of the learning rate that a step has under ``"cosine"``.

        Args:
            step: counted from 0.
            steps: steps of the whole training.

        >>> Training(warmup=0.5).compute_cosine(0, 2), Training().compute_cosine(1, 2)
        (0.5, 0.5)
        """
        warmup = self.warmup * steps
        if step < warmup:
            return (step + 1) / (warmup + 1)  # not 0 in the first step, which would be lost
        return (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


def find_out_of_bounds(settings: object) -> Iterator[str]:
    """Yield a sentence for each field of a dataclass outside the bounds that its type declares."""
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        value: Any = getattr(settings, name)
        if get_origin(hint) is Literal and value not in get_args(hint):
            yield f"`{name}` is one of {', '.join(get_args(hint))}, found `{value}`"
        if get_origin(hint) is not Annotated:
            continue
        bounds = hint.__metadata__[0]  # `Ge`, `Gt` or `Interval`, which have some of the four
        at_least, above, below, at_most = (
            getattr(bounds, key, None) for key in ("ge", "gt", "lt", "le")
        )
        if not math.isfinite(value):  # NaN passes every comparison below
            yield f"`{name}` must be finite, found {value}"
        elif at_least is not None and value < at_least:
            yield f"`{name}` must be at least {at_least}, found {value}"
        elif above is not None and value <= above:
            yield f"`{name}` must be above {above}, found {value}"
        elif below is not None and value >= below:
            yield f"`{name}` must be below {below}, found {value}"
        elif at_most is not None and value > at_most:
            yield f"`{name}` must be at most {at_most:,}, found {value}"
