"""A network for tables: BatchEnsemble members over a piecewise-linear encoding (PLE).

Members share their matrices and differ in the vectors that scale and shift around them (Wen et al.
2020, Gorishniy et al. 2024). The bins of the encoding meet at knots, found from the training rows.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError, require_extra
from paretocosmos.nn.backbones.base import Backbone, Cut, check_widths
from paretocosmos.types import Batch, Inputs, Outputs, Targets, first, map_tensors

Knots = tuple[tuple[float, ...], ...]
Average = Literal["outputs", "probabilities"]
Numbers = npt.NDArray[np.float64]

HIDDEN, MEMBERS = (64, 64), 8
# Standard deviations of the members' initial scales: after the embedding, and before the outputs.
SPREAD, SPREAD_LAST = 0.5, 0.5
# Prefixes of targets that the network does not predict.
NOT_PREDICTED = ("sensitive", "weight")

# The most knots of a column and of all columns together, and the fewest rows per knot.
MOST_KNOTS, MOST_KNOTS_IN_ALL, ROWS_PER_KNOT = 128, 1536, 40
# Rows that a tree is grown on: more would move its thresholds by little.
MOST_ROWS = 50_000
# A split must explain this many times what a split explains of noise, and leave this many rows.
LEAST_GAIN, LEAF_ROWS = 10.0, 16
# A value of at least this share of the rows is set apart from its neighbours.
FREQUENT = 0.01
QUANTILES = 8
# The least distance of knots, in standard deviations: closer ones would magnify the rounding of
# float32, 1e-7, too much.
LEAST_DISTANCE = 1e-3
# Whole numbers with more values than this are treated as numbers, not as classes.
MOST_CLASSES = 50


class Tabular(Backbone):
    """Piecewise-linear encoding of numbers and an ensemble that shares its weights: for tables.

    A number x becomes one input for each piece between two knots, from 0 to 1 while x passes it
    (piecewise-linear encoding, Gorishniy et al. 2022). A linear layer embeds these and all other
    columns. Then come `members` networks that share their matrices: each scales the inputs and
    shifts the outputs of a layer by numbers of its own (Gorishniy et al. 2024, after Wen et al.
    2020).

    With `linear`, a linear function of the columns is added to the outputs of all members: from few
    rows not much more can be learned, and the weight decay that such a table needs hardly slows it
    down.

    In training mode each row of a batch goes to one member, in turns; in evaluation mode the
    predictions of all members are averaged.

    Settings that are `None` follow from the training rows, where there are any: `fitted`.

    Args:
        input_shape: the shape of one sample.
        outputs: numbers per sample, or numbers per head.
        hidden: widths of the hidden layers; 64 and 64 if `None`.
        embedding: width of what the encoded columns are brought to first.
        members: how many; 8 if `None`.
        knots: of every column, increasing; a column without any enters as it is, as do those after
            the last that is named.
        averages: what of the members is averaged: ``"outputs"``, or the ``"probabilities"`` that
            logits mean; outputs if `None`.
        linear: whether outputs have a linear part. Leave it out where a ray enters the network: it
            hardly reaches that part.

    >>> network = Tabular((2,), 1, knots=((0.0, 1.0, 4.0),)).eval()
    >>> network.encode(torch.tensor([[2.5, 7.0]]))
    tensor([[1.0000, 0.5000, 7.0000]])
    """

    traceable: ClassVar[bool] = True

    starts: Tensor
    widths: Tensor
    read: Tensor
    rest: Tensor

    def __init__(
        self,
        input_shape: Sequence[int],
        outputs: int | Mapping[str, int],
        *,
        hidden: tuple[int, ...] | None = None,
        embedding: int = 32,
        members: int | None = None,
        knots: Knots | None = None,
        averages: Average | None = None,
        linear: bool = False,
    ) -> None:
        super().__init__()
        self.resolved = {
            "hidden": HIDDEN if hidden is None else hidden,
            "members": MEMBERS if members is None else members,
            "knots": knots or (),
            "averages": averages or "outputs",
        }
        hidden, self.members = self.resolved["hidden"], self.resolved["members"]
        self.averages: Average = self.resolved["averages"]
        check_widths("hidden", hidden)
        check_widths("embedding", (embedding,))
        check_widths("members", (self.members,))
        self.cut = Cut.of(outputs)
        self.linear: nn.Linear | None = None
        if linear:  # before the others: the last layer written is taken for what gives the outputs
            self.linear = nn.Linear(math.prod(input_shape), self.cut.total, bias=False)
            nn.init.zeros_(self.linear.weight)
        encoded = self._set_up_encoding(math.prod(input_shape), self.resolved["knots"])
        self.embed = nn.Linear(encoded, embedding)
        widths = [embedding, *hidden, self.cut.total]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.scales, self.shifts = nn.ModuleList(), nn.ModuleList()
        for index, (before, after) in enumerate(pairwise(widths) if self.members > 1 else ()):
            spread = SPREAD if index == 0 else SPREAD_LAST if index == len(hidden) else 0.0
            self.scales.append(Scale(self.members, before, spread=spread))
            self.shifts.append(Shift(self.members, after))
        self.widest = max(encoded, self.members * max(widths))
        self.first_layer = "embed"
        self.heads = self.cut.heads(f"layers.{len(hidden)}")
        if self.heads and linear:
            self.heads = (*self.heads, "linear")

    @classmethod
    def fitted(cls, train: Batch, outputs: int | Mapping[str, int]) -> Mapping[str, Any]:
        widths = outputs.values() if isinstance(outputs, Mapping) else (outputs,)
        labels = [t for name, t in train.targets.items() if not name.startswith(NOT_PREDICTED)]
        # probabilities are averaged if all targets are classes: bits for outputs of width 1
        classes = len(labels) == len(widths) and (
            all(bool(((label == 0) | (label == 1)).all()) for label in labels)
            if set(widths) == {1}
            else all(not label.is_floating_point() for label in labels) and min(widths) > 1
        )
        return {
            "knots": compute_ple_bins(first(train.inputs), train.targets),
            "averages": "probabilities" if classes else "outputs",
        }

    def forward(self, inputs: Inputs) -> Outputs:
        assert isinstance(inputs, Tensor)
        features: Tensor = self.embed(self.encode(inputs.flatten(1)))
        # in training each row is seen by one member, so that members differ by what they see
        all_members = self.members > 1 and not self.training
        if all_members:
            features = features.unsqueeze(1)
        for index, layer in enumerate(self.layers):
            features = F.relu(features) if index > 0 else features
            if self.members > 1:
                features = self.shifts[index](layer(self.scales[index](features)))
            else:
                features = layer(features)
        if self.linear is not None:
            straight = self.linear(inputs.flatten(1))
            features = features + (straight.unsqueeze(1) if all_members else straight)
        outputs = self.cut(features)
        if not all_members:
            return outputs
        average: Outputs = map_tensors(lambda out: average_members(out, self.averages), outputs)
        return average

    def encode(self, inputs: Tensor) -> Tensor:
        """Columns ``[B, columns]`` to what the first layer reads, ``[B, pieces + others]``."""
        others = inputs.index_select(1, self.rest)
        if not len(self.read):
            return others
        passed = (inputs.index_select(1, self.read) - self.starts) / self.widths
        return torch.cat([passed.clamp(0.0, 1.0), others], dim=1)

    def _set_up_encoding(self, columns: int, knots: Knots) -> int:
        """Register the bins of each column as buffers; return the number of encoded inputs."""
        if len(knots) > columns:
            raise ConfigurationError(
                f"`knots` must have one list per column, found {len(knots)} lists for {columns} "
                "columns"
            )
        for column, points in enumerate(knots):
            if any(after <= before for before, after in pairwise(points)) or len(points) == 1:
                raise ConfigurationError(
                    f"`knots` of a column are two or more and increase, found {points} for column "
                    f"{column}"
                )
        # one input per piece: its column, its start and its end
        pieces = [(c, *piece) for c, points in enumerate(knots) for piece in pairwise(points)]
        plain = [c for c, points in enumerate(knots) if not points]
        # the columns after those are plain too; a file may say that there are billions of them, and
        # is refused only once it is known (without memory, on the device `meta`) what that takes
        rest = torch.arange(len(knots) - len(plain), columns)
        rest[: len(plain)] = torch.tensor(plain, dtype=torch.int64)
        read, starts, ends = zip(*pieces, strict=True) if pieces else ((), (), ())
        # they follow from the settings, so that a state dict need not have them
        self.register_buffer("read", torch.tensor(read, dtype=torch.int64), persistent=False)
        self.register_buffer("rest", rest, persistent=False)
        # subtracted here: on the device `meta`, torch imports its compiler for arithmetic
        widths = [end - start for start, end in zip(starts, ends, strict=True)]
        for name, values in {"starts": starts, "widths": widths}.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.float32), persistent=False)
        return len(pieces) + len(rest)


class _MemberVectors(nn.Module):
    """A vector per member, ``[members, width]``, stored flat, so that weight decay leaves it out.

    Features are of all members, ``[B, members, width]`` or ``[B, 1, width]``; or each row belongs
    to one member, in turns, ``[B, width]``.
    """

    def __init__(self, members: int, width: int) -> None:
        super().__init__()
        self.members, self.width = members, width
        self.numbers = nn.Parameter(torch.empty(members * width))

    def _expand_rows(self, features: Tensor) -> Tensor:
        """Return the vectors in a shape that broadcasts with the features."""
        vectors = self.numbers.view(self.members, self.width)
        if features.ndim > 2:
            return vectors
        # row i belongs to member i modulo their number
        rows = features.shape[0]
        return vectors.repeat(math.ceil(rows / self.members), 1)[:rows]

    def extra_repr(self) -> str:
        return f"members={self.members}, width={self.width}"


class Scale(_MemberVectors):
    """Multiply features by numbers drawn from N(1, spread²)."""

    def __init__(self, members: int, width: int, *, spread: float) -> None:
        super().__init__(members, width)
        if not self.numbers.is_meta:  # there torch imports its compiler to draw nothing
            nn.init.normal_(self.numbers, 1.0, spread)

    def forward(self, features: Tensor) -> Tensor:
        return features * self._expand_rows(features)


class Shift(_MemberVectors):
    """Add numbers to features; they start at 0."""

    def __init__(self, members: int, width: int) -> None:
        super().__init__(members, width)
        nn.init.zeros_(self.numbers)

    def forward(self, features: Tensor) -> Tensor:
        return features + self._expand_rows(features)


def average_members(outputs: Tensor, average: Average) -> Tensor:
    """Average the members: ``[B, members, width]`` to ``[B, width]``.

    Args:
        outputs: of each.
        average: ``"outputs"``: their mean; ``"probabilities"``: the logits of the mean of the
            probabilities that the members' logits mean, one for yes or no, several for classes.

    >>> sure = torch.tensor([[[0.0], [20.0]]])
    >>> average_members(sure, "probabilities").sigmoid()
    tensor([[0.7500]])
    """
    if average == "outputs":
        return outputs.mean(dim=1)
    # in the log domain: probabilities of 0 and 1 would have infinite logits
    if outputs.shape[-1] == 1:
        yes, no = (F.logsigmoid(sign * outputs).logsumexp(dim=1) for sign in (1, -1))
        return yes - no
    return outputs.log_softmax(dim=-1).logsumexp(dim=1) - math.log(outputs.shape[1])


def compute_ple_bins(inputs: Tensor, targets: Targets) -> Knots:
    """Compute the knots of every column ``[B, columns]``; none for two values, such as 0 and 1.

    A column of few values has a knot at each, so that the network can treat every value apart. Else
    a decision tree of the targets says where the column matters, and there is a knot on either side
    of its splits, so that the encoding can jump there; values that many rows have are set apart
    from their neighbours; and quantiles fill what is left.

    Args:
        inputs: the rows that train.
        targets: theirs; groups of people and weights are left out.

    Returns:
        Increasing numbers for each column, those of the last columns left out where empty.

    >>> import torch
    >>> compute_ple_bins(torch.arange(400.0)[:, None] // 100, {})
    ((0.0, 1.0, 2.0, 3.0),)
    """
    table = inputs.flatten(1).numpy()
    period = _find_period(table)  # small tables may be repeated in what counts as an epoch
    # evenly spaced rows, and none twice: repeated rows would pass for evidence
    sample = slice(0, period, -(-period // MOST_ROWS))
    rows = table[sample].astype(np.float64)
    predicted = _build_target_matrix(
        {name: target[sample] for name, target in targets.items()}, len(rows)
    )
    # columns of more than two values; without sorting, as `np.unique` would
    others = (column[column != column[0]] for column in rows.T)
    varied = [bool((rest != rest[:1]).any()) for rest in others]
    most = min(MOST_KNOTS, MOST_KNOTS_IN_ALL // max(1, sum(varied)), len(rows) // ROWS_PER_KNOT)
    knots = [
        _compute_column_knots(column, predicted, most) if varies and most > 2 else ()
        for column, varies in zip(rows.T, varied, strict=True)
    ]
    while knots and not knots[-1]:  # a run folder need not list a thousand empty columns
        knots.pop()
    return tuple(knots)


def _find_period(rows: npt.NDArray[Any]) -> int:
    """Return after how many rows a table repeats itself; the number of rows if it does not."""
    count = len(rows)
    for period in range(1, count // 2 + 1):
        # comparing one row first makes nearly all other periods cheap to reject
        if count % period or (rows[period] != rows[0]).any():
            continue
        if (rows[period:] == rows[:-period]).all():
            return period
    return count


def _compute_column_knots(column: Numbers, predicted: Numbers, most: int) -> tuple[float, ...]:
    """Compute the knots of one column, at most so many; none if it has a single value."""
    finite = np.isfinite(column)
    column, predicted = column[finite], predicted[finite]
    values, counts = np.unique(column, return_counts=True)
    if len(values) < 2:
        return ()
    if len(values) > most:
        values = _select_values(column, predicted, values, counts, most)
    distance, last = LEAST_DISTANCE * column.std(), -np.inf
    spaced = []
    for knot in values.tolist():
        if knot - last > distance:
            spaced.append(knot)
            last = knot
    return tuple(spaced) if len(spaced) > 1 else ()


def _select_values(
    column: Numbers, predicted: Numbers, values: Numbers, counts: npt.NDArray[np.int64], most: int
) -> Numbers:
    """Select values for knots: ends, frequent values, tree splits, then quantiles, up to `most`."""
    last = len(values) - 1
    frequent = np.flatnonzero(counts >= FREQUENT * len(column))
    frequent = frequent[np.argsort(-counts[frequent], kind="stable")]
    # each threshold lies between two values: a knot at both lets the encoding jump there
    above = np.searchsorted(values, _compute_tree_thresholds(column, predicted, most // 2))
    quantiles = np.quantile(column, np.linspace(0, 1, QUANTILES + 1), method="nearest")
    # in the order of their importance: only the first `most` are kept
    indices = [
        np.array([0, last]),
        *(np.array([index - 1, index, index + 1]) for index in frequent),
        *(np.array([index - 1, index]) for index in above),
        np.searchsorted(values, quantiles),
    ]
    unique = dict.fromkeys(np.clip(np.concatenate(indices), 0, last).tolist())
    return values[sorted(list(unique)[:most])]


def _compute_tree_thresholds(column: Numbers, predicted: Numbers, leaves: int) -> Numbers:
    """Return the thresholds of a decision tree that predicts the targets, first split first."""
    if not predicted.shape[1] or leaves < 2:
        return np.empty(0)
    require_extra("sklearn", "tabular", "fitting `tabular` to rows")
    from sklearn.tree import DecisionTreeRegressor

    # a split of pure noise explains about this variance over the number of rows
    variance = predicted.var(axis=0).mean()
    tree = DecisionTreeRegressor(
        max_leaf_nodes=leaves,
        min_samples_leaf=LEAF_ROWS,
        min_impurity_decrease=LEAST_GAIN * variance / len(column),
        random_state=0,
    )
    nodes = tree.fit(column[:, None], predicted).tree_
    thresholds: Numbers = nodes.threshold[nodes.feature >= 0]  # leaves have no feature
    return thresholds


def _build_target_matrix(targets: Mapping[str, Tensor], rows: int) -> Numbers:
    """Return what the trees predict: standardised numbers, and one column per class."""
    columns = [np.empty((rows, 0))]
    for name, target in targets.items():
        if name in NOT_PREDICTED or target.shape[:1] != (rows,):
            continue
        values = target.reshape(rows, -1).double().numpy()
        if not target.is_floating_point() and values.shape[1] == 1:
            classes = np.unique(values)
            if 2 < len(classes) <= MOST_CLASSES:  # two classes are one column already
                values = (values == classes).astype(np.float64)
        spread = values.std(axis=0)
        # so that targets in large units do not outvote the others in the sum over outputs
        columns.append((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    return np.concatenate(columns, axis=1)
