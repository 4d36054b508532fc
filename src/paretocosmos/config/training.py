"""How a run optimises and how it evaluates."""

import math
from dataclasses import dataclass

from paretocosmos.errors import ConfigurationError
from paretocosmos.io.schema import MOST

__all__ = ["Training"]

OPTIMIZERS = ("adam", "adamw", "sgd")
SCHEDULES = ("steps", "cosine")


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

    epochs: int = 50
    batch_size: int = 256
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: str = "steps"
    warmup: float = 0.0
    milestones: tuple[int, ...] = ()
    decay: float = 0.1
    average: float = 0.0
    clip: float = 0.0
    scale_losses: bool = False
    calibrate: bool = False
    patience: int = 0
    groups: int = 1
    accumulate: int = 1
    evaluate_every: int = 5
    rays: int = 25
    reference: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        wrong = [
            f"`{name}` must be at least 1, found {getattr(self, name)}"
            for name in ("epochs", "batch_size", "groups", "accumulate", "evaluate_every", "rays")
            if getattr(self, name) < 1
        ]
        wrong += [
            f"`{name}` must be at most {MOST:,}, found {getattr(self, name)}"
            for name in ("epochs", "rays")
            if getattr(self, name) > MOST
        ]
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            wrong.append(f"`learning_rate` must be positive, found {self.learning_rate}")
        wrong += [
            f"`{name}` must be at least 0, found {getattr(self, name)}"
            for name in ("weight_decay", "clip", "patience")
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0)
        ]
        wrong += [
            f"`{name}` is a share of the steps, at least 0 and below 1, found {getattr(self, name)}"
            for name in ("warmup", "average")
            if not 0 <= getattr(self, name) < 1
        ]
        wrong += [
            f"`{name}` is one of {', '.join(known)}, found `{getattr(self, name)}`"
            for name, known in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES))
            if getattr(self, name) not in known
        ]
        if self.milestones and self.schedule != "steps":
            wrong.append("`milestones` go with schedule `steps`: leave one of them out")
        if not (math.isfinite(self.decay) and self.decay > 0):
            wrong.append(f"`decay` must be positive, found {self.decay}")
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
