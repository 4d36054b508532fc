"""What a table's network predicts: one class or not, one of several classes, or a number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError, unknown
from paretocosmos.objectives import logits_of
from paretocosmos.problems.tables.cells import encode_labels, format_label, to_numbers
from paretocosmos.types import Outputs

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["binary", "classes", "number"]
TASKS: tuple[Task, ...] = ("binary", "classes", "number")
DECISION = "decision"
"""What a file calls the class that follows from probabilities, by its place among all."""

# More classes than this are names, or numbers.
MAX_CLASSES = 100
# Classes that are listed where another one is asked for.
LISTED = 50
# Classes that need no explanation: the negative one, the positive one.
PAIRS = (
    *(("0", "1"), ("-1", "1"), ("false", "true"), ("f", "t"), ("no", "yes"), ("n", "y")),
    *(("negative", "positive"), ("neg", "pos")),
)


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
    def fit_binary(cls, series: "pd.Series[Any]", positive: object) -> "Answer":
        """Return the answer for one class, or not: all others are negative."""
        _, classes = encode_labels(series, own_order=True)
        if len(classes) < 2:
            raise DataError(
                f"the target `{series.name}` must have two classes, found only `{classes[0]}`: "
                "there is nothing to learn"
            )
        if positive is None:
            if len(classes) > 2:
                more = ", ..." * (len(classes) > 4)
                few = ", ".join(f"`{label}`" for label in classes[:4]) + more
                raise DataError(
                    f"the target `{series.name}` must have two classes, found {len(classes):,} "
                    f"values ({few}): name the positive class with `positive`, or say with `task` "
                    "that it is several classes or a number"
                )
            positive = _find_positive(series, classes)
        chosen = format_label(positive)
        if chosen not in classes:
            raise unknown(f"class of `{series.name}`", chosen, classes[:LISTED])
        others = [label for label in classes if label != chosen]
        return cls("binary", (others[0] if len(others) == 1 else f"not {chosen}", chosen))

    @classmethod
    def fit_classes(cls, series: "pd.Series[Any]") -> "Answer":
        """Return the answer for one of several classes."""
        codes, labels = encode_labels(series, own_order=True)
        if not 2 <= len(labels) <= MAX_CLASSES or (codes < 0).any():
            raise DataError(
                f"the target `{series.name}` must have 2 to {MAX_CLASSES} classes, found "
                f"{len(labels):,}: merge some, or predict a number"
            )
        return cls("classes", tuple(labels))

    @classmethod
    def fit_number(cls, series: "pd.Series[Any]") -> "Answer":
        """Return the answer for a number, standardised for the network."""
        values = _read_finite(series)
        mean, scale = compute_moments(values)
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
        """Return the answer that a run's record describes; by default, one class or not."""
        record = about.get("answer")
        if record is None:
            return cls()
        try:
            classes = tuple(str(label) for label in record["classes"])
            answer = cls(record["task"], classes, float(record["mean"]), float(record["scale"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the run's record of its target is damaged ({error!r})") from error
        if answer.task not in TASKS or (answer.task == "classes") > (len(classes) > 1):
            raise DataError(f"the run's record of its target is damaged ({answer})")
        return answer

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON."""
        return vars(self) | {"classes": list(self.classes)}

    @property
    def outputs(self) -> int:
        """Numbers a network gives for a row."""
        return len(self.classes) if self.task == "classes" else 1

    @property
    def called(self) -> str:
        """The name of what `read` returns."""
        return "prediction" if self.task == "number" else "probability"

    def labels(self, series: "pd.Series[Any]") -> npt.NDArray[Any]:
        """Return a column as a network's targets: standardised numbers, or numbered classes."""
        if self.task == "number":
            return ((_read_finite(series) - self.mean) / self.scale).astype(np.float32)
        codes, labels = encode_labels(series)
        # "not X" stands for every other class
        other = self.task == "binary" and self.classes[0] == f"not {self.classes[1]}"
        strange = [label for label in labels if not other and label not in self.classes]
        if strange or (codes < 0).any():
            found = f"`{strange[0]}`" if strange else f"{int((codes < 0).sum()):,} missing"
            raise DataError(
                f"the target `{series.name}` must be one of {', '.join(self.classes[:5])} in every "
                f"row, found {found}: leave such rows out"
            )
        index = {label: place for place, label in enumerate(self.classes)}
        places = np.array([index.get(label, 0) for label in labels], dtype=np.int64)
        return places[codes].astype(np.float32 if self.task == "binary" else np.int64)

    def read(self, outputs: Outputs) -> Tensor:
        """Turn a network's outputs into probabilities or numbers.

        Returns:
            The probability of the positive class ``[N]``, of every class ``[N, K]``, or the number
            ``[N]``.
        """
        logits = logits_of(outputs, None)
        if self.task == "number":
            return logits * self.scale + self.mean
        return logits.softmax(dim=-1) if self.task == "classes" else torch.sigmoid(logits)


def compute_moments(
    values: npt.NDArray[np.float64], weight: npt.NDArray[np.float64] | None = None
) -> tuple[float, float]:
    """Return the mean and the deviation of a target; infinite if the numbers are too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.average(values, weights=weight))
        return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))


def _read_finite(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    """Return a target's numbers; refuse it if some are missing or infinite."""
    values = to_numbers(series)
    rows = np.flatnonzero(np.isnan(values))
    if len(rows):
        raise DataError(
            f"the target `{series.name}` must be a finite number in every row, found "
            f"{len(rows):,} missing or infinite, such as `{series.iloc[rows[0]]}`: leave those "
            "rows out"
        )
    return values


def _find_positive(series: "pd.Series[Any]", classes: list[str]) -> str:
    """Return the positive one of two classes, by their names or their order; else refuse."""
    import pandas as pd

    by_name = {label.strip().lower(): label for label in classes}
    for negative, positive in PAIRS:
        if by_name.keys() == {negative, positive}:
            return by_name[positive]
    if isinstance(series.dtype, pd.CategoricalDtype) and series.cat.ordered:
        return classes[1]
    raise ConfigurationError(
        f"the target `{series.name}` has the classes `{classes[0]}` and `{classes[1]}`, but it is "
        "not clear which one is positive: name it with `positive`"
    ).with_hint({"positive": None})
