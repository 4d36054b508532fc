"""How a run optimises and how it evaluates."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval

from paretocosmos.errors import ConfigurationError
from paretocosmos.io.schema import MOST

Positive = Annotated[int, Ge(1)]
Share = Annotated[float, Interval(ge=0, lt=1)]
"""A share of a training's steps."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a run optimises and how it evaluates; the defaults are the paper's for tables.

    Attributes:
        epochs: passes over the training data.
        batch_size: samples per step; the last short batch is kept.
        optimizer: ``"adam"``, ``"adamw"`` or ``"sgd"``.
        learning_rate: the largest that is reached.
        weight_decay: added to the gradients by `adam`; by the others decoupled, for matrices and
            kernels that do not read the ray.
        schedule: ``"steps"``: by `milestones`; ``"cosine"``: half a cosine from the learning rate
            down to 0, over all steps.
        warmup: the share of the steps in which the rate grows from 0, under ``"cosine"``.
        milestones: after these epochs the learning rate is multiplied by `decay`.
        decay: see `milestones`.
        average: the share of the steps over which weights are averaged (an exponential moving
            average); averaged weights are evaluated and kept. 0: the weights themselves are.
        clip: the largest norm of a step's gradients; 0: any.
        scale_losses: divide every loss by how strongly it pulls on a fresh network's outputs, so
            that a preference means the same for losses of any size.
        calibrate: at the end, move the ends of the simplex to where more weight on an objective
            stops paying off on validation; fronts then go from end to end.
        patience: end after so many validations without a better one; 0: never.
        groups: rays per batch, each for an equal share of it; the paper draws one.
        accumulate: micro-batches per batch, one after the other, so that less memory is needed;
            each has rays of its own, so that it divides `groups`, and a step is the same without.
        evaluate_every: epochs between validations, by which the best epoch is selected.
        rays: how many even rays a front has, where one network serves all.
        reference: the point hypervolume is measured from; `None` for the problem's own.
    """

    epochs: Annotated[int, Interval(ge=1, le=MOST)] = 50
    batch_size: Positive = 256
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: Annotated[float, Gt(0)] = 1e-3
    weight_decay: Annotated[float, Ge(0)] = 0.0
    schedule: Literal["steps", "cosine"] = "steps"
    warmup: Share = 0.0
    milestones: tuple[int, ...] = ()
    decay: Annotated[float, Gt(0)] = 0.1
    average: Share = 0.0
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
        wrong = list(find_out_of_bounds(self))
        if self.milestones and self.schedule != "steps":
            wrong.append("`milestones` go with schedule `steps`: leave one of them out")
        if not all(math.isfinite(value) for value in self.reference or ()):
            wrong.append(f"`reference` must be finite, found {self.reference}")
        if self.batch_size % max(self.groups, 1):
            wrong.append(
                f"`groups` must divide `batch_size`, found {self.groups} and {self.batch_size}"
            )
        if self.groups % max(self.accumulate, 1):
            wrong.append(
                "`accumulate` must divide `groups`, since every micro-batch has rays of its own, "
                f"found {self.accumulate} and {self.groups}: set groups={self.accumulate} too"
            )
        if wrong:
            raise ConfigurationError("; ".join(wrong))

    def learning_rates(self, epoch: int, samples: int) -> list[float]:
        """The learning rates of an epoch's steps, the first epoch being 0; one if all are the same.

        Args:
            epoch: which.
            samples: in an epoch.
        """
        if self.schedule == "steps":
            return [self.learning_rate * self.decay ** sum(epoch >= m for m in self.milestones)]
        steps = -(-samples // self.batch_size)
        every = range(epoch * steps, (epoch + 1) * steps)
        return [self.learning_rate * self.cosine(step, steps * self.epochs) for step in every]

    def cosine(self, step: int, steps: int) -> float:
        """The share of the learning rate that a step has under ``"cosine"``.

        Args:
            step: which, the first being 0.
            steps: of the whole training.

        >>> Training(warmup=0.5).cosine(0, 2), Training().cosine(1, 2)
        (0.5, 0.5)
        """
        rising = self.warmup * steps
        if step < rising:
            return (step + 1) / (rising + 1)
        return (1 + math.cos(math.pi * (step - rising) / (steps - rising))) / 2


def find_out_of_bounds(settings: object) -> Iterator[str]:
    """Yield a sentence for each field of a dataclass outside the bounds that its type declares."""
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        value: Any = getattr(settings, name)
        if get_origin(hint) is Literal and value not in get_args(hint):
            yield f"`{name}` is one of {', '.join(get_args(hint))}, found `{value}`"
        if get_origin(hint) is not Annotated:
            continue
        bounds = hint.__metadata__[0]
        at_least, above, below, at_most = (
            getattr(bounds, key, None) for key in ("ge", "gt", "lt", "le")
        )
        if not math.isfinite(value):
            yield f"`{name}` must be finite, found {value}"
        elif at_least is not None and value < at_least:
            yield f"`{name}` must be at least {at_least}, found {value}"
        elif above is not None and value <= above:
            yield f"`{name}` must be above {above}, found {value}"
        elif below is not None and value >= below:
            yield f"`{name}` must be below {below}, found {value}"
        elif at_most is not None and value > at_most:
            yield f"`{name}` must be at most {at_most:,}, found {value}"
