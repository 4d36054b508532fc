"""Problems made of a table: predict a column, and treat sensitive groups alike."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError, DataWarning
from paretocosmos.objectives import GroupObjective, Objective, fairness_objective
from paretocosmos.problems.base import InMemoryProblem, Protocol, Wording
from paretocosmos.problems.tables.columns import to_frame
from paretocosmos.problems.tables.groups import (
    Grouping,
    GroupUse,
    SmallGroups,
    check_group_use,
    pool_small_groups,
)
from paretocosmos.problems.tables.rows import (
    PreparedTable,
    add_group,
    check_columns,
    check_compared_rows,
    encode_rows,
    group_targets,
    prepare_table,
)
from paretocosmos.problems.tables.table import BASE_SCORE, Table
from paretocosmos.problems.tables.targets import (
    COMPARED,
    Answer,
    Task,
    build_gap,
    build_metrics,
    build_objectives,
    build_wording,
    compute_shares,
    get_reference,
)
from paretocosmos.types import Batch

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class TabularProblem(InMemoryProblem):
    """A problem on a table: predict a column, and treat groups of people alike.

    Inputs are float32 ``[B, features]``. Targets are `label`: float32 0 or 1 for two classes, the
    class of several, or a number; and `sensitive`, int64 from 0 to K - 1, where groups are
    compared. A network gives one logit per row, one per class, or the number.

    Attributes:
        table: the fitted preprocessing, for new rows.
        target: the column that is predicted.
        answer: the kind of prediction: one class or not, one of several, or a number.
        grouping: which group a row belongs to; `None` where none are compared.
        group_use: how answers may depend on a person's group.

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

    tabular: ClassVar[bool] = True

    table: Table = field(repr=False)
    target: str
    answer: Answer = field(default=Answer(), repr=False)
    grouping: Grouping | None = field(default=None, repr=False)
    group_use: GroupUse = "estimate"

    def inputs_for(self, frame: "pd.DataFrame") -> Tensor:
        """Return a network's inputs for new rows: ``[rows, features]``."""
        rows = add_group(frame, self.table, self.grouping)
        return torch.from_numpy(self.table.transform(rows))

    @property
    def adjustment_settings(self) -> dict[str, object]:
        """What the fairness adjustment reads of the features, in place of learning it."""
        settings: dict[str, object] = {}
        places = {name: place for place, name in enumerate(self.table.features)}
        if self.grouping is not None and self.group_use == "input":
            members = [f"{self.grouping.title}={name}" for name in self.grouping.names]
            settings["group_features"] = tuple(places[name] for name in members)
        if (place := places.get(BASE_SCORE)) is not None:
            settings["base_score"] = (place, self.table.mean[place], self.table.scale[place])
        return settings

    @property
    def positive(self) -> str:
        """The class that a positive logit means; the last of several."""
        return self.answer.classes[-1]

    @property
    def negative(self) -> str:
        """The other class, or the name for all the others together."""
        return self.answer.classes[0]

    @property
    def sensitive(self) -> str:
        """The columns whose groups of people are compared; no features."""
        return "" if self.grouping is None else self.grouping.title

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the K sensitive groups, in the order of their numbers."""
        return () if self.grouping is None else self.grouping.names

    @property
    def compares_rates(self) -> bool:
        """`True` for decisions between two classes whose rates are compared between groups."""
        return self.answer.task == "binary" and self.grouping is not None

    @property
    def about(self) -> Mapping[str, object]:
        about: dict[str, object] = {"target": self.target}
        # with two classes and groups, `positive` and `negative` say it all, and `label_rows` knows
        # such runs by the absence
        if not self.compares_rates:
            about["answer"] = self.answer.to_dict()
        if self.answer.task == "binary":
            # readers of a run look the two classes up by these names
            negative, positive = self.answer.classes
            about |= {"positive": positive, "negative": negative}
        if self.grouping is not None:
            about |= {
                "sensitive": self.grouping.title,
                "groups": list(self.grouping.names),
                # all of it, so that `label_rows` finds the groups of new rows
                "grouping": self.grouping.to_dict(),
                "group_use": self.group_use,
            }
        return about

    @classmethod
    def from_frame(
        cls,
        frame: "pd.DataFrame",
        *,
        target: str,
        task: Task = "binary",
        sensitive: str | Sequence[str] = (),
        small_groups: SmallGroups = "keep",
        group: GroupUse = "estimate",
        positive: object = None,
        fairness: str | type[GroupObjective] | None = None,
        categorical: Collection[str] = (),
        drop: Collection[str] = (),
        keep: Collection[str] = (),
        class_weight: Literal["balanced"] | None = None,
        name: str = "table",
        seed: int = 1,
        val: "pd.DataFrame | None" = None,
        test: "pd.DataFrame | None" = None,
        reference: tuple[float, ...] | None = None,
        protocol: Protocol = "clean",
    ) -> "TabularProblem":
        """Split a frame 70/10/20, encode it, and choose the objectives.

        With groups, the loss and the gap between them; without, for classes the loss of each, for a
        number too high against too low predictions. Losses of numbers are in units of the target's
        deviation; the metrics `rmse` and `mae` are in its own.

        Args:
            frame: one row per person; never modified.
            target: the column to predict.
            task: one class or not (``"binary"``), one of several ``"classes"``, or a ``"number"``.
            sensitive: the column whose groups are compared; two groups or more, in sorted order or
                in that of its pandas categories. It is not a feature. Of several columns the
                groups are their combinations, and the gaps by each column alone are metrics.
                Numbers may be cut: ``"age:5"`` makes five groups of about equal size,
                ``"age:30/60"`` cuts at these values.
            small_groups: groups with fewer than 30 rows to train on, or without positive rows
                where the objective needs some: ``"keep"`` them and warn, ``"pool"`` them into one,
                or ``"refuse"``.
            group: how answers may depend on a person's group. ``"estimate"``: by how likely each
                group is, given the other columns. ``"input"``: by the group itself, which must
                then be known of everybody; whether that is allowed is a legal question.
                ``"none"``: neither; the network is trained to have a small gap.
            positive: the class that counts as positive; every other class is negative. It may be
                left out where two classes say it themselves (`True`, 1, ``"yes"``), or are pandas
                categories in order, of which the second is positive.
            fairness: what is compared between groups: for classes ``"tpr_gap"`` (by default),
                ``"demographic_parity"``,
                ``"equalized_odds"``, ``"fpr_gap"``, ``"accuracy_gap"``, ``"worst_group"``; or the
                paper's difference of counts, ``"deo"``; or a class of one's own, derived from
                `RateObjective` or `GroupObjective`. For numbers ``"error_gap"`` (by default) or
                ``"prediction_gap"``.
            categorical: columns to read as categories although they hold numbers.
            drop: columns to leave out.
            keep: columns to learn from although they seem to be identifiers (a number of its own
                in every row, text that differs in most), which are left out with a warning.
            class_weight: ``"balanced"`` gives all classes the same weight in training.
            name: how runs call the problem.
            seed: decides which rows are train, val and test.
            val: rows to validate on; a share of `frame` if `None`.
            test: rows to test on; a share of `frame` if `None`.
            reference: the point hypervolume is measured from; at least 2 for every objective if
                `None`.
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
        columns = [sensitive] if isinstance(sensitive, str | int) else sensitive
        target, people = str(target), [str(column) for column in columns]
        clean, by_rates = protocol == "clean", task == "binary" and len(people) > 0
        if not (clean or by_rates):
            raise ConfigurationError("`protocol` must be clean without two classes and groups")
        kind = fairness_objective(fairness, COMPARED[task]) if people else None
        data = prepare_table(
            {"train": frame, "val": val, "test": test},
            target=target,
            sensitive=people,
            categorical=categorical,
            drop=drop,
            keep=keep,
            seed=seed,
            read=clean,
        )
        answer, label = _fit_answer(data, target, task, positive)
        how = small_groups if clean else None  # the published code neither pools nor refuses any
        data, targets, grouping, gap = _compare(data, label, people, kind, how, by_rates, group)
        objectives = _choose_objectives(answer, gap, label[data.rows["train"]])
        table, splits = data.encode(targets, categorical=categorical, on_all=not clean)
        splits["train"] = weigh_classes(splits["train"], answer, class_weight)
        return cls(
            name=name,
            objectives=objectives,
            reference=reference or tuple(get_reference(goal, answer) for goal in objectives),
            input_shape=(len(table.features),),
            outputs=answer.outputs,
            metrics=build_metrics(answer, grouping, objectives),
            protocol=protocol,
            splits=splits,
            table=table,
            target=target,
            answer=answer,
            grouping=grouping,
            group_use=group,
            wording=Wording() if by_rates else build_wording(answer, objectives),
        )


def _compare(
    data: PreparedTable,
    label: npt.NDArray[Any],
    sensitive: Sequence[str],
    kind: type[GroupObjective] | None,
    how: SmallGroups | None,
    compares_rates: bool,
    group: GroupUse,
) -> tuple[PreparedTable, dict[str, npt.NDArray[Any]], Grouping | None, GroupObjective | None]:
    """Return the rows, with the group where it is an input, their targets, the groups and a gap."""
    if kind is None:
        return data, {"label": label}, None, None
    # a group without positives has no rate over them
    positives = compares_rates and "positives" in kind.over
    grouping = Grouping.fit(data.frame, sensitive)
    codes = grouping.codes(data.frame)
    # not of several classes, whose numbers were fitted to the rows that train
    if how == "keep" and compares_rates and data.seed is not None and label.dtype.kind == "f":
        classes = label.astype(np.int64)
        try:
            check_compared_rows(
                data.rows, classes, codes, grouping.names, build_gap(kind, len(grouping.names))
            )
        except (
            DataError
        ):  # few rows, which a draw by class and group gives to every split if it can
            data = data.split_by(classes * len(grouping.names) + codes)
    if how is not None:
        grouping, codes = pool_small_groups(
            grouping, codes, label, data.rows, how=how, positives=positives
        )
    gap = build_gap(kind, len(grouping.names))
    if compares_rates:
        # labels for one logit are floats, which index nothing
        classes = label.astype(np.int64)
        # before the training: such a group would make the score of a whole split NaN
        check_compared_rows(data.rows, classes, codes, grouping.names, gap)
    if check_group_use(group) == "input":
        data = data._replace(features=grouping.add_to(data.features, codes))
    targets = {"sensitive": codes, **grouping.codes_by_attribute(data.frame)}
    return data, {"label": label, **targets}, grouping, gap


def _fit_answer(
    data: PreparedTable, target: str, task: Task, positive: object
) -> tuple[Answer, npt.NDArray[Any]]:
    """Return the kind of prediction, and every row's label."""
    column = data.frame[target]
    # mean, deviation and classes must not depend on the rows held out
    train = column.iloc[data.rows["train"]]
    if task == "binary":
        # from all rows: only the names of two classes are taken, nothing is estimated
        answer = Answer.fit_binary(column, positive)
    else:
        answer = Answer.fit_number(train) if task == "number" else Answer.fit_classes(train)
    return answer, answer.labels(column)


def _choose_objectives(
    answer: Answer, gap: GroupObjective | None, label: npt.NDArray[Any]
) -> tuple[Objective, ...]:
    """Return what is traded, given the labels to train on; warn if no groups are compared."""
    shares: tuple[float, ...] = ()
    if gap is None and answer.task != "number":
        shares = compute_shares(label, len(answer.classes))
        # the loss of an absent class would be divided by 0
        if not all(shares):
            absent = answer.classes[shares.index(0)]
            raise DataError(f"no training row has the class `{absent}`: add some")
    objectives = build_objectives(answer, gap, classes=answer.classes, shares=shares)
    if gap is None:
        # a warning, since the sensitive column may just have been forgotten
        against = " against ".join(f"`{objective.name}`" for objective in objectives)
        warnings.warn(
            "no `sensitive` column is named, so no groups are compared; the objectives are "
            f"{against}",
            DataWarning,
            stacklevel=5,
        )
    return objectives


def weigh_classes(batch: Batch, answer: Answer, class_weight: Literal["balanced"] | None) -> Batch:
    """Weight rows to train on so that every class weighs the same, and a row 1 on average."""
    if class_weight is None:
        return batch
    if answer.task == "number":
        raise ConfigurationError(
            '`class_weight="balanced"` is for classes, found a number to predict: leave it out'
        )
    codes = batch.targets["label"].long()
    counts = torch.bincount(codes, minlength=len(answer.classes))
    # n / (K n_k), scikit-learn's "balanced" weights; absent classes do not count in K
    weight = (len(codes) / (counts > 0).sum() / counts)[codes]
    return Batch(batch.inputs, {**batch.targets, "weight": weight.float()})


def label_rows(
    frame: "pd.DataFrame",
    *,
    table: Table,
    about: Mapping[str, Any],
    objectives: tuple[Objective, ...],
    reference: tuple[float, ...],
    name: str,
) -> TabularProblem:
    """Return the problem of a finished training on new rows, all of which are `test`.

    Args:
        frame: has the columns of the table, the target and the sensitive columns.
        table: the fitted preprocessing.
        about: the training's record of its problem.
        objectives: those of the training, the gap between groups last.
        reference: the point hypervolume is measured from.
        name: of the new problem.
    """
    frame, target, answer = to_frame(frame), str(about["target"]), Answer.from_about(about)
    if about.get("answer") is None:  # two classes and groups: the record names only the classes
        answer = Answer("binary", (about["negative"], about["positive"]))
    stored = about.get("grouping")
    grouping = None if stored is None else Grouping.from_dict(stored)
    people = [] if grouping is None else [attribute.name for attribute in grouping.attributes]
    check_columns(frame, {"target column": (target,), "sensitive column": people})
    inputs = add_group(frame, table, grouping)
    targets = {"label": answer.labels(frame[target]), **group_targets(frame, grouping)}
    return TabularProblem(
        name=name,
        objectives=objectives,
        reference=reference,
        input_shape=(len(table.features),),
        outputs=answer.outputs,
        metrics=build_metrics(answer, grouping, objectives),
        # only `test`: a finished training neither learns from these rows nor chooses on them; with
        # the table as fitted, since the network knows the means and categories of its training
        splits=encode_rows(table, inputs, targets, {"test": np.arange(len(frame))}),
        table=table,
        target=target,
        answer=answer,
        grouping=grouping,
        group_use=about.get("group_use", "estimate"),
    )
