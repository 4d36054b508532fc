"""A problem made of a table: predict a class, and treat sensitive groups alike."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from torch import Tensor

from paretocosmos.objectives import (
    BinaryCrossEntropy,
    DemographicParity,
    GroupObjective,
    Objective,
    TprGap,
    accuracy,
    calibration_error,
    deciding,
    fairness_objective,
    logits_of,
    misclassification,
    weighted_mean,
)
from paretocosmos.problems._base import (
    Protocol,
    check_protocol,
)
from paretocosmos.problems.tables.base import TableProblem, prepared
from paretocosmos.problems.tables.groups import Grouping
from paretocosmos.problems.tables.rows import (
    check_groups,
    labels_of,
)
from paretocosmos.problems.tables.small_groups import SmallGroups
from paretocosmos.types import Metric, Outputs, Targets

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TabularProblem", "class_metrics", "positive_rate", "public_fairness", "selection_rate"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TabularProblem(TableProblem):
    """A two-class problem on a table: the loss against a gap between groups of people.

    Inputs are float32 ``[B, features]``; targets are `label`, float32 0 or 1, and `sensitive`,
    int64 from 0 to K - 1. A network gives one logit per row.

    Attributes:
        target: the column that is predicted.
        positive: the class that a positive logit means.
        negative: the other class, or what stands for all the others.
        sensitive: the columns whose groups of people are compared; no features.
        groups: the names of the K sensitive groups, in the order of their numbers.
        grouping: which group a row belongs to.

    >>> import numpy as np
    >>> import pandas as pd
    >>> draw = np.random.default_rng(1)
    >>> frame = pd.DataFrame({"age": draw.integers(18, 70, 400)})
    >>> frame["sex"] = draw.choice(["female", "male"], 400)
    >>> frame["loan"] = np.where(draw.random(400) * 70 < frame["age"], "yes", "no")
    >>> problem = TabularProblem.from_frame(frame, target="loan", sensitive="sex")
    >>> problem.names, problem.groups, problem.positive
    (('binary_cross_entropy', 'tpr_gap'), ('female', 'male'), 'yes')
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
            fairness: what is compared between groups: ``"tpr_gap"``, ``"demographic_parity"``,
                ``"equalized_odds"``, ``"fpr_gap"``, ``"accuracy_gap"``, ``"worst_group"``; or the
                paper's difference of counts, ``"deo"``; or a class of one's own, derived from
                `RateObjective` or `GroupObjective`.
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
        target, clean = str(target), protocol == "clean"
        several = [sensitive] if isinstance(sensitive, str | int) else sensitive
        asked = [str(one) for one in several]
        compared = fairness_objective(fairness, "classes", what="fairness objective")
        check_protocol(protocol)
        made = prepared(
            {"train": frame, "val": val, "test": test},
            target=target,
            sensitive=asked,
            categorical=categorical,
            drop=drop,
            keep=keep,
            seed=seed,
            read=clean,
        )
        chosen, other, label = labels_of(made.frame[target], positive)
        how, positives = small_groups if clean else None, "positives" in compared.over
        grouping, people = made.grouped(asked, label, how=how, positives=positives)
        gap = compared(groups=len(grouping.names))
        check_groups(made.rows, label, people["sensitive"], grouping.names, gap)
        targets: dict[str, npt.NDArray[Any]] = {"label": label, **people}
        table, splits = made.encoded(targets, categorical=categorical, on_all=not clean)
        objectives = (BinaryCrossEntropy(), gap)
        return cls(
            name=name,
            objectives=objectives,
            reference=reference,
            input_shape=(len(table.features),),
            outputs=1,
            metrics=class_metrics(objectives, compared, grouping),
            protocol=protocol,
            splits=splits,
            table=table,
            target=target,
            positive=chosen,
            negative=other,
            sensitive=grouping.called,
            groups=grouping.names,
            grouping=grouping,
        )


def public_fairness(fairness: str | None, protocol: Protocol) -> str:
    """What the public tables compare between groups where nothing is asked for.

    >>> public_fairness(None, "clean"), public_fairness(None, "paper")
    ('demographic_parity', 'deo')
    """
    return fairness or ("deo" if protocol == "paper" else "demographic_parity")


def class_metrics(
    objectives: Sequence[Objective], compared: type[GroupObjective], grouping: Grouping
) -> dict[str, Metric]:
    """The further numbers of a front; of several sensitive columns, the gap by each alone."""
    groups = len(grouping.names)
    metrics: dict[str, Metric] = {
        "accuracy": accuracy,
        "misclassification": misclassification,
        "tpr_gap": TprGap(groups=groups).score,
        "demographic_parity": DemographicParity(groups=groups).score,
        "positive_rate": positive_rate,
    }
    for code, group in enumerate(grouping.names):
        metrics[f"selection_rate_{group}"] = partial(selection_rate, group=code)
    metrics["calibration_error"] = calibration_error
    if len(grouping.attributes) > 1:
        for one in grouping.attributes:
            alone = compared(groups=len(one.labels), sensitive=f"sensitive_{one.name}")
            metrics[f"{alone.name}_{one.name}"] = alone.score
    names = [objective.name for objective in objectives]
    return {key: metric for key, metric in metrics.items() if key not in names}


@deciding
def positive_rate(outputs: Outputs, targets: Targets) -> Tensor:
    """The share of samples predicted positive: 0 or 1 means a constant classifier.

    >>> import torch
    >>> positive_rate(torch.tensor([1.0, -1.0, 2.0, 3.0]), {})
    tensor(0.7500, dtype=torch.float64)
    """
    return weighted_mean((logits_of(outputs, None) > 0).double(), targets)


@deciding
def selection_rate(outputs: Outputs, targets: Targets, *, group: int) -> Tensor:
    """The share of a group that is predicted positive; NaN where nobody is of that group.

    >>> import torch
    >>> targets = {"sensitive": torch.tensor([0, 0, 1, 1])}
    >>> selection_rate(torch.tensor([1.0, -1.0, 2.0, 3.0]), targets, group=0)
    tensor(0.5000, dtype=torch.float64)
    """
    chosen = (logits_of(outputs, None) > 0).double()
    member = (targets["sensitive"].reshape(chosen.shape) == group).double()
    if "weight" in targets:
        member = member * targets["weight"].reshape(chosen.shape)
    return (chosen * member).sum() / member.sum()
