"""What a table's network predicts: one class or not, one of several classes, or a number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.objectives import logits_of
from paretocosmos.problems.tables.frames import labelled, numbers_of
from paretocosmos.types import Outputs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DECISION", "TASKS", "Answer", "Task"]

Task = Literal["binary", "classes", "number"]
TASKS: tuple[Task, ...] = ("binary", "classes", "number")
DECISION = "decision"
"""What a file calls the class that follows from probabilities, by its place among all."""

# More classes than this are names, or numbers.
MAX_CLASSES = 100


@final
@dataclass(frozen=True)
class Answer:
    """What is predicted, and how it is read from a network.

    Attributes:
        task: one class or not (`binary`), one of several `classes`, or a `number`.
        classes: their names; of two, the positive one comes second.
        mean: of a number in the rows to train on.
        scale: its deviation there, never 0.
    """

    task: Task = "binary"
    classes: tuple[str, ...] = ()
    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def classes_of(cls, series: "pd.Series[Any]") -> "Answer":
        """One of several classes."""
        codes, labels = labelled(series, own_order=True)
        if not 2 <= len(labels) <= MAX_CLASSES or (codes < 0).any():
            raise DataError(
                f"the target `{series.name}` must have 2 to {MAX_CLASSES} classes, found "
                f"{len(labels):,}: merge some, or predict a number"
            )
        return cls("classes", tuple(labels))

    @classmethod
    def number_of(cls, series: "pd.Series[Any]") -> "Answer":
        """A number, standardised for the network."""
        values = _read_finite(series)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, scale = float(values.mean()), float(values.std())
        if not np.isfinite([mean, scale]).all():
            raise DataError(
                f"the target `{series.name}` must have numbers that can be averaged, found up to "
                f"{np.abs(values).max():g}: divide it, or take its logarithm"
            )
        if scale == 0:
            raise DataError(
                f"the target `{series.name}` is {mean:g} in every row: there is nothing to learn"
            )
        return cls("number", mean=mean, scale=scale)

    @classmethod
    def from_about(cls, about: Mapping[str, Any]) -> "Answer":
        """What the record of a run says of it; a class or not, where it says nothing."""
        said = about.get("answer")
        if said is None:
            return cls()
        try:
            classes = tuple(str(one) for one in said["classes"])
            found = cls(said["task"], classes, float(said["mean"]), float(said["scale"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the run's record of its target is damaged ({error!r})") from error
        if found.task not in TASKS or (found.task == "classes") > (len(classes) > 1):
            raise DataError(f"the run's record of its target is damaged ({found})")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON."""
        return vars(self) | {"classes": list(self.classes)}

    @property
    def outputs(self) -> int:
        """Numbers a network gives for a row."""
        return len(self.classes) if self.task == "classes" else 1

    @property
    def called(self) -> str:
        """What `read` gives."""
        return "prediction" if self.task == "number" else "probability"

    def labels(self, series: "pd.Series[Any]") -> npt.NDArray[Any]:
        """A column as a network's targets: standardised numbers, 0 and 1, or classes by number."""
        if self.task == "number":
            return ((_read_finite(series) - self.mean) / self.scale).astype(np.float32)
        codes, labels = labelled(series)
        strange = [label for label in labels if label not in self.classes]
        if strange or (codes < 0).any():
            found = f"`{strange[0]}`" if strange else f"{int((codes < 0).sum()):,} missing"
            raise DataError(
                f"the target `{series.name}` must be one of {', '.join(self.classes[:5])} in every "
                f"row, found {found}: leave such rows out"
            )
        places = np.array([self.classes.index(label) for label in labels], dtype=np.int64)
        return places[codes].astype(np.float32 if self.task == "binary" else np.int64)

    def read(self, outputs: Outputs) -> Tensor:
        """What a network's outputs mean.

        Returns:
            The probability of the positive class ``[N]``, of every class ``[N, K]``, or the number
            ``[N]``.
        """
        logits = logits_of(outputs, None)
        if self.task == "number":
            return logits * self.scale + self.mean
        return logits.softmax(dim=-1) if self.task == "classes" else torch.sigmoid(logits)


def _read_finite(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    """Return a target's numbers; refuse it if some are missing or infinite."""
    values = numbers_of(series)
    rows = np.flatnonzero(np.isnan(values))
    if len(rows):
        raise DataError(
            f"the target `{series.name}` must be a finite number in every row, found "
            f"{len(rows):,} missing or infinite, such as `{series.iloc[rows[0]]}`: leave those "
            "rows out"
        )
    return values
