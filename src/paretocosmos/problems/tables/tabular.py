"""A problem made of a table: predict a class, and treat sensitive groups alike."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.objectives import (
    GroupObjective,
    Objective,
    accuracy,
    fairness_objective,
    logits_of,
    misclassification,
    weighted_mean,
)
from paretocosmos.objectives.binary_cross_entropy import BinaryCrossEntropy
from paretocosmos.objectives.deo import Deo
from paretocosmos.objectives.tpr_gap import TprGap
from paretocosmos.problems._base import (
    SPLITS,
    Problem,
    Protocol,
    Split,
    check_protocol,
    check_split,
)
from paretocosmos.problems.tables.columns import read_columns, without_identifiers
from paretocosmos.problems.tables.frames import named
from paretocosmos.problems.tables.groups import Grouping, column_of
from paretocosmos.problems.tables.rows import (
    Codes,
    check,
    check_positives,
    known_targets,
    labels_of,
    split_rows,
    together,
)
from paretocosmos.problems.tables.small_groups import SmallGroups, pooled
from paretocosmos.problems.tables.table import Table
from paretocosmos.types import Batch, Metric, Outputs, Targets

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "TableProblem",
    "TabularProblem",
    "batch_of",
    "features_in",
    "labelled_rows",
    "positive_rate",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class TableProblem(Problem):
    """A problem whose inputs are the columns of a table, float32 ``[B, features]``.

    Attributes:
        splits: train, val and test.
        table: the preprocessing, for rows to come.
    """

    splits: Mapping[Split, Batch] = field(repr=False)
    table: Table = field(repr=False)

    def split(self, name: Split) -> Batch:
        check_split(name)
        return self.splits[name]

    def inputs_for(self, frame: "pd.DataFrame") -> Tensor:
        """A network's inputs for new rows: ``[rows, features]``."""
        return torch.from_numpy(self.table.transform(frame))


@dataclass(frozen=True, kw_only=True, eq=False)
class TabularProblem(TableProblem):
    """A two-class problem on a table, traded against the gap between groups of people.

    Inputs are float32 ``[B, features]``; targets are `label`, float32 0 or 1, and `sensitive`,
    int64 from 0 to K - 1. A network gives one logit per row.

    Attributes:
        target: the column that is predicted.
        positive: the class that a positive logit means.
        negative: the other class, or what stands for all the others.
        sensitive: the columns whose groups of people are compared; no features.
        groups: the names of the K sensitive groups, in the order of their numbers.
        grouping: which group a row belongs to.
    """

    target: str
    positive: str
    negative: str
    sensitive: str
    groups: tuple[str, ...]
    grouping: Grouping = field(repr=False)

    @property
    def about(self) -> Mapping[str, object]:
        return {
            "target": self.target,
            "positive": self.positive,
            "negative": self.negative,
            "sensitive": self.sensitive,
            "groups": list(self.groups),
            "grouping": self.grouping.to_dict(),
        }

    @classmethod
    def from_frame(
        cls,
        frame: "pd.DataFrame",
        *,
        target: str,
        sensitive: str | Sequence[str],
        small_groups: SmallGroups = "keep",
        positive: object = None,
        fairness: str | type[GroupObjective] = "tpr_gap",
        categorical: Collection[str] = (),
        drop: Collection[str] = (),
        keep: Collection[str] = (),
        name: str = "table",
        seed: int = 1,
        val: "pd.DataFrame | None" = None,
        test: "pd.DataFrame | None" = None,
        reference: tuple[float, float] = (2.0, 2.0),
        protocol: Protocol = "clean",
    ) -> "TabularProblem":
        """Split a frame 70/10/20, encode it, and pair cross-entropy with a fairness objective.

        Args:
            frame: one row per person; never modified.
            target: the column to predict.
            sensitive: the column whose groups are compared; two groups or more, in sorted order or
                in that of its pandas categories. It is not a feature. Of several columns the
                groups are their combinations, and the gaps by each column alone are metrics.
                Numbers may be cut: ``"age:5"`` makes five groups of about equal size,
                ``"age:30/60"`` cuts at these values.
            small_groups: groups with fewer than 30 rows to train on, or without positive rows
                where the objective needs some: ``"keep"`` them and warn, ``"pool"`` them into one,
                or ``"refuse"``.
            positive: the class that counts as positive; every other class is negative. It may be
                left out where two classes say it themselves (`True`, 1, ``"yes"``), or are pandas
                categories in order, of which the second is positive.
            fairness: ``"tpr_gap"``, ``"deo"`` (the paper's) or ``"demographic_parity"``; or a class
                of one's own derived from `GroupObjective`.
            categorical: columns to read as categories although they hold numbers.
            drop: columns to leave out.
            keep: columns to learn from although they seem to be identifiers (a number of its own
                in every row, text that differs in most), which are left out with a warning.
            name: how runs call the problem.
            seed: decides which rows are train, val and test.
            val: rows to validate on; a share of `frame` if `None`.
            test: rows to test on; a share of `frame` if `None`.
            reference: the point hypervolume is measured from.
            protocol: ``"clean"`` fits the preprocessing on the train rows, ``"paper"`` on all.

        Returns:
            The problem.

        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [20, 30, 40, 50] * 50, "sex": ["f", "m", "m", "f"] * 50})
        >>> people["rich"] = people["age"] > 30
        >>> problem = TabularProblem.from_frame(people, target="rich", sensitive="sex")
        >>> problem.names, problem.groups, len(problem.split("train"))
        (('binary_cross_entropy', 'tpr_gap'), ('f', 'm'), 140)
        """
        frame, sizes = together({"train": frame, "val": val, "test": test})
        target = str(target)
        several = [sensitive] if isinstance(sensitive, str | int) else list(sensitive)
        asked = [str(one) for one in several]
        people = [column_of(one, list(frame.columns))[0] for one in asked]
        compared = fairness_objective(fairness, "classes", what="fairness objective")
        check_protocol(protocol)
        check(frame, target, people, categorical, drop, keep, seed)
        chosen, other, label = labels_of(frame[target], positive)
        grouping = Grouping.fit(frame, asked)
        codes = grouping.codes(frame)
        features = features_in(
            frame,
            leave=(target, *people, *drop),
            categorical=categorical,
            keep=keep,
            read=protocol == "clean",
        )
        rows = split_rows(sizes, seed)
        if protocol == "clean":
            grouping, codes = pooled(
                grouping, codes, label, rows, how=small_groups, positives=compared.needs_positives
            )
        groups = grouping.names
        gap = compared(groups=len(groups))
        check_positives(rows, label, codes, groups, gap)
        table = Table.fit(
            features if protocol == "paper" else features.iloc[rows["train"]],
            categorical=[column for column in categorical if column in features.columns],
        )
        inputs = table.transform(features)
        objectives = (BinaryCrossEntropy(), gap)
        targets: dict[str, npt.NDArray[Any]] = {"label": label, "sensitive": codes}
        targets |= {f"sensitive_{one.name}": alone for one, alone in grouping.alone(frame)}
        return cls(
            name=name,
            objectives=objectives,
            reference=reference,
            input_shape=(inputs.shape[1],),
            outputs=1,
            metrics=_metrics(objectives, compared, grouping),
            protocol=protocol,
            splits={key: batch_of(inputs, targets, rows[key]) for key in SPLITS},
            table=table,
            target=target,
            positive=chosen,
            negative=other,
            sensitive=grouping.called,
            groups=groups,
            grouping=grouping,
        )


def features_in(
    frame: "pd.DataFrame",
    *,
    leave: Collection[str],
    categorical: Collection[str],
    keep: Collection[str],
    read: bool = True,
) -> "pd.DataFrame":
    """The columns of a table to learn from.

    Args:
        frame: the table.
        leave: columns that are no features.
        categorical: columns to read as categories.
        keep: columns to keep although they seem to be identifiers.
        read: whether text may be numbers, and identifiers are left out.
    """
    features = frame.drop(columns=[*{*leave}])
    if read:
        features = read_columns(features, as_they_are=categorical)
        features = without_identifiers(features, keep=(*keep, *categorical))
    if features.shape[1] == 0:
        raise DataError(
            f"a table needs a feature beside {', '.join(f'`{name}`' for name in leave)}, found "
            "none left: drop fewer columns"
        )
    return features


def labelled_rows(
    frame: "pd.DataFrame",
    *,
    table: Table,
    about: Mapping[str, Any],
    objectives: tuple[Objective, ...],
    reference: tuple[float, ...],
    name: str,
) -> TabularProblem:
    """The problem of a finished training on other rows, whose answers and groups are known.

    All of the rows are `test`.

    Args:
        frame: has the columns of the table, the target and the sensitive columns.
        table: the fitted preprocessing.
        about: what the training's problem said of itself.
        objectives: what was traded, the gap between groups last.
        reference: the point hypervolume is measured from.
        name: what to call it.
    """
    grouping = Grouping.from_dict(about["grouping"])
    target, positive, negative = (str(about[key]) for key in ("target", "positive", "negative"))
    frame, compared = named(frame), type(objectives[-1])
    assert issubclass(compared, GroupObjective)
    targets = known_targets(frame, target, (positive, negative), grouping)
    inputs = table.transform(frame)
    return TabularProblem(
        name=name,
        objectives=objectives,
        reference=reference,
        input_shape=(inputs.shape[1],),
        outputs=1,
        metrics=_metrics(objectives, compared, grouping),
        splits={"test": batch_of(inputs, targets, np.arange(len(frame)))},
        table=table,
        target=target,
        positive=positive,
        negative=negative,
        sensitive=grouping.called,
        groups=grouping.names,
        grouping=grouping,
    )


def _metrics(
    objectives: Sequence[Objective], compared: type[GroupObjective], grouping: Grouping
) -> dict[str, Metric]:
    """The further numbers of a front; of several sensitive columns, the gap by each alone."""
    groups = len(grouping.names)
    metrics: dict[str, Metric] = {
        "accuracy": accuracy,
        "misclassification": misclassification,
        "tpr_gap": TprGap(groups=groups).score,
        "deo": Deo(groups=groups).score,
        "positive_rate": positive_rate,
    }
    if len(grouping.attributes) > 1:
        for one in grouping.attributes:
            alone = compared(groups=len(one.labels), sensitive=f"sensitive_{one.name}")
            metrics[f"{alone.name}_{one.name}"] = alone.score
    names = [objective.name for objective in objectives]
    return {key: metric for key, metric in metrics.items() if key not in names}


def positive_rate(outputs: Outputs, targets: Targets) -> Tensor:
    """The share of samples predicted positive: 0 or 1 means a constant classifier.

    >>> positive_rate(torch.tensor([1.0, -1.0, 2.0, 3.0]), {})
    tensor(0.7500, dtype=torch.float64)
    """
    return weighted_mean((logits_of(outputs, None) > 0).double(), targets)


def batch_of(
    inputs: npt.NDArray[np.float32], targets: Mapping[str, npt.NDArray[Any]], rows: Codes
) -> Batch:
    """Some of the rows, as tensors."""
    some = {name: torch.from_numpy(column[rows]) for name, column in targets.items()}
    return Batch(torch.from_numpy(inputs[rows]), some)
