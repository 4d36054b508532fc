"""A network for tables."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.backbones.base import Backbone, Cut, check_widths
from paretocosmos.errors import ConfigurationError, need
from paretocosmos.types import Batch, Inputs, Outputs, Targets, first, map_tensors

HIDDEN, MEMBERS = (64, 64), 8
# How differently members see what they share at first: in the embedding, and before the outputs.
SPREAD, SPREAD_LAST = 0.5, 0.5
# Targets that nothing predicts begin so.
BESIDE = ("sensitive", "weight")


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
        encoded = self._lay_out(math.prod(input_shape), self.resolved["knots"])
        self.embed = nn.Linear(encoded, embedding)
        widths = [embedding, *hidden, self.cut.total]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.scales, self.shifts = nn.ModuleList(), nn.ModuleList()
        for at, (before, after) in enumerate(pairwise(widths) if self.members > 1 else ()):
            spread = SPREAD if at == 0 else SPREAD_LAST if at == len(hidden) else 0.0
            self.scales.append(Scale(self.members, before, spread=spread))
            self.shifts.append(Shift(self.members, after))
        self.widest = max(encoded, self.members * max(widths))
        self.first_layer = "embed"
        self.heads = self.cut.heads(f"layers.{len(hidden)}")
        if self.heads and linear:
            self.heads = (*self.heads, "linear")

    @classmethod
    def fitted(cls, train: Batch, outputs: int | Mapping[str, int]) -> Mapping[str, Any]:
        return {
            "knots": find_knots(first(train.inputs), train.targets),
            "averages": _averages(train, outputs),
        }

    def forward(self, inputs: Inputs) -> Outputs:
        assert isinstance(inputs, Tensor)
        features: Tensor = self.embed(self.encode(inputs.flatten(1)))
        together = self.members > 1 and not self.training
        if together:
            features = features.unsqueeze(1)
        for at, layer in enumerate(self.layers):
            features = F.relu(features) if at > 0 else features
            if self.members > 1:
                features = self.shifts[at](layer(self.scales[at](features)))
            else:
                features = layer(features)
        if self.linear is not None:
            straight = self.linear(inputs.flatten(1))
            features = features + (straight.unsqueeze(1) if together else straight)
        found = self.cut(features)
        if not together:
            return found
        said: Outputs = map_tensors(lambda out: averaged(out, self.averages), found)
        return said

    def encode(self, inputs: Tensor) -> Tensor:
        """Columns ``[B, columns]`` to what the first layer reads, ``[B, pieces + others]``."""
        others = inputs.index_select(1, self.rest)
        if not len(self.read):
            return others
        passed = (inputs.index_select(1, self.read) - self.starts) / self.widths
        return torch.cat([passed.clamp(0.0, 1.0), others], dim=1)

    def _lay_out(self, columns: int, knots: Knots) -> int:
        """Note where the pieces lie and which columns have none; how many inputs that gives."""
        if len(knots) > columns:
            raise ConfigurationError(
                f"`knots` must have one list per column, found {len(knots)} lists for {columns} "
                "columns"
            )
        for column, own in enumerate(knots):
            if any(after <= before for before, after in pairwise(own)) or len(own) == 1:
                raise ConfigurationError(
                    f"`knots` of a column are two or more and increase, found {own} for column "
                    f"{column}"
                )
        pieces = [(at, *piece) for at, own in enumerate(knots) for piece in pairwise(own)]
        plain = [at for at, own in enumerate(knots) if not own]
        # the columns after those are plain too; a file may say that there are billions of them, and
        # is refused only once it is known (without memory, on the device `meta`) what that takes
        rest = torch.arange(len(knots) - len(plain), columns)
        rest[: len(plain)] = torch.tensor(plain, dtype=torch.int64)
        read, starts, ends = zip(*pieces, strict=True) if pieces else ((), (), ())
        # they follow from the settings, so that a state dict need not have them
        self.register_buffer("read", torch.tensor(read, dtype=torch.int64), persistent=False)
        self.register_buffer("rest", rest, persistent=False)
        starts_, ends_ = (torch.tensor(some, dtype=torch.float64) for some in (starts, ends))
        for name, some in {"starts": starts_, "widths": ends_ - starts_}.items():
            self.register_buffer(name, some.float(), persistent=False)
        return len(pieces) + len(rest)


def _averages(train: Batch, outputs: int | Mapping[str, int]) -> Average:
    """What to average for these targets: probabilities, where all of them are classes."""
    widths = outputs.values() if isinstance(outputs, Mapping) else (outputs,)
    labels = [t for name, t in train.targets.items() if not name.startswith(BESIDE)]
    if len(labels) != len(widths):
        return "outputs"
    if set(widths) == {1}:
        bits = all(bool(((label == 0) | (label == 1)).all()) for label in labels)
        return "probabilities" if bits else "outputs"
    classes = all(not label.is_floating_point() for label in labels) and min(widths) > 1
    return "probabilities" if classes else "outputs"


Average = Literal["outputs", "probabilities"]


class PerMember(nn.Module):
    """Numbers of each member's own, ``[members, width]``, kept as one vector: they do not decay.

    Rows come for all members, ``[B, members, width]`` or ``[B, 1, width]``, or with one member
    each, in turns, ``[B, width]``.
    """

    def __init__(self, members: int, width: int) -> None:
        super().__init__()
        self.members, self.width = members, width
        self.numbers = nn.Parameter(torch.empty(members * width))

    def _own(self, features: Tensor) -> Tensor:
        """The numbers as they meet the features."""
        own = self.numbers.view(self.members, self.width)
        if features.ndim > 2:
            return own
        rows = features.shape[0]
        return own.repeat(math.ceil(rows / self.members), 1)[:rows]

    def extra_repr(self) -> str:
        return f"members={self.members}, width={self.width}"


class Scale(PerMember):
    """Features times numbers that are drawn around 1, `spread` apart."""

    def __init__(self, members: int, width: int, *, spread: float) -> None:
        super().__init__(members, width)
        nn.init.normal_(self.numbers, 1.0, spread)

    def forward(self, features: Tensor) -> Tensor:
        return features * self._own(features)


class Shift(PerMember):
    """Features plus numbers that start at 0."""

    def __init__(self, members: int, width: int) -> None:
        super().__init__(members, width)
        nn.init.zeros_(self.numbers)

    def forward(self, features: Tensor) -> Tensor:
        return features + self._own(features)


def averaged(outputs: Tensor, average: Average) -> Tensor:
    """What members say together: ``[B, members, width]`` to ``[B, width]``.

    Args:
        outputs: of each.
        average: ``"outputs"``: their mean; ``"probabilities"``: the logits of the mean of the
            probabilities that the members' logits mean, one for yes or no, several for classes.

    >>> sure = torch.tensor([[[0.0], [20.0]]])
    >>> averaged(sure, "probabilities").sigmoid()
    tensor([[0.7500]])
    """
    if average == "outputs":
        return outputs.mean(dim=1)
    if outputs.shape[-1] == 1:
        yes, no = (F.logsigmoid(sign * outputs).logsumexp(dim=1) for sign in (1, -1))
        return yes - no
    return outputs.log_softmax(dim=-1).logsumexp(dim=1) - math.log(outputs.shape[1])


Knots = tuple[tuple[float, ...], ...]
Numbers = npt.NDArray[np.float64]

# Knots of a column at most, those of all columns together, and rows for each.
MOST, TOGETHER, ROWS = 128, 1536, 40
# Rows a tree is grown on: more would move its thresholds by little.
SEEN = 50_000
# A split of the tree must explain this many times what it would of noise, and leave so many rows.
EXPLAINS, LEAF = 10.0, 16
# A value that this share of the rows has is told apart from its neighbours.
HEAVY = 0.01
QUANTILES = 8
# Knots are so many standard deviations apart at least: closer ones would magnify the rounding of
# float32, of which there are 1e-7.
APART = 1e-3
# Whole numbers with more values than this are no classes.
CLASSES = 50


def find_knots(inputs: Tensor, targets: Targets) -> Knots:
    """The knots of every column ``[B, columns]``; none for one of two values, such as 0 and 1.

    A column of few values has a knot at each: so every value may mean something of its own. Else
    a decision tree of the targets says where the column matters, and there is a knot on either side
    of its splits, so that the encoding can jump there; values that many rows have are set apart
    from their neighbours; and quantiles fill what is left.

    Args:
        inputs: the rows that train.
        targets: theirs; groups of people and weights are left out.

    Returns:
        Increasing numbers for each column, those of the last columns left out where empty.

    >>> import torch
    >>> find_knots(torch.arange(400.0)[:, None] // 100, {})
    ((0.0, 1.0, 2.0, 3.0),)
    """
    whole = inputs.flatten(1).numpy()
    period = _period(whole)  # small tables may be repeated in what counts as an epoch
    some = slice(0, period, -(-period // SEEN))
    rows = whole[some].astype(np.float64)
    wanted = _matrix({name: target[some] for name, target in targets.items()}, len(rows))
    varied = [_varies(column) for column in rows.T]
    most = min(MOST, TOGETHER // max(1, sum(varied)), len(rows) // ROWS)
    found = [
        _column(column, wanted, most) if more and most > 2 else ()
        for column, more in zip(rows.T, varied, strict=True)
    ]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _period(rows: npt.NDArray[Any]) -> int:
    """After how many rows a table begins again: as many as there are, if it is not repeated."""
    count = len(rows)
    for period in range(1, count // 2 + 1):
        if count % period or (rows[period] != rows[0]).any():
            continue
        if (rows[period:] == rows[:-period]).all():
            return period
    return count


def _varies(column: Numbers) -> bool:
    """Whether a column has more than two values."""
    other = column[column != column[0]]
    return bool((other != other[:1]).any())


def _column(column: Numbers, wanted: Numbers, most: int) -> tuple[float, ...]:
    kept = np.isfinite(column)
    column, wanted = column[kept], wanted[kept]
    values, counts = np.unique(column, return_counts=True)
    if len(values) < 2:
        return ()
    chosen = values if len(values) <= most else _chosen(column, wanted, values, counts, most)
    apart, last = APART * column.std(), -np.inf
    spaced = []
    for knot in chosen.tolist():
        if knot - last > apart:
            spaced.append(knot)
            last = knot
    return tuple(spaced) if len(spaced) > 1 else ()


def _chosen(
    column: Numbers, wanted: Numbers, values: Numbers, counts: npt.NDArray[np.int64], most: int
) -> Numbers:
    """Some of a column's values, what matters most first until there are enough."""
    last = len(values) - 1
    heavy = np.flatnonzero(counts >= HEAVY * len(column))
    heavy = heavy[np.argsort(-counts[heavy], kind="stable")]
    above = np.searchsorted(values, _splits(column, wanted, most // 2))
    quantiles = np.quantile(column, np.linspace(0, 1, QUANTILES + 1), method="nearest")
    places = [
        np.array([0, last]),
        *(np.array([at - 1, at, at + 1]) for at in heavy),
        *(np.array([at - 1, at]) for at in above),
        np.searchsorted(values, quantiles),
    ]
    every = dict.fromkeys(np.clip(np.concatenate(places), 0, last).tolist())
    return values[sorted(list(every)[:most])]


def _splits(column: Numbers, wanted: Numbers, leaves: int) -> Numbers:
    """The thresholds of a decision tree of the targets, the first split first."""
    if not wanted.shape[1] or leaves < 2:
        return np.empty(0)
    need("sklearn", "tabular", "fitting `tabular` to rows")
    from sklearn.tree import DecisionTreeRegressor

    spread = wanted.var(axis=0).mean()
    tree = DecisionTreeRegressor(
        max_leaf_nodes=leaves,
        min_samples_leaf=LEAF,
        min_impurity_decrease=EXPLAINS * spread / len(column),
        random_state=0,
    )
    grown = tree.fit(column[:, None], wanted).tree_
    thresholds: Numbers = grown.threshold[grown.feature >= 0]
    return thresholds


def _matrix(targets: Mapping[str, Tensor], rows: int) -> Numbers:
    """What the trees predict: numbers standardised, classes one column each."""
    parts = [np.empty((rows, 0))]
    for name, target in targets.items():
        if name in ("sensitive", "weight") or target.shape[:1] != (rows,):
            continue
        values = target.reshape(rows, -1).double().numpy()
        if not target.is_floating_point() and values.shape[1] == 1:
            classes = np.unique(values)
            if 2 < len(classes) <= CLASSES:
                values = (values == classes).astype(np.float64)
        spread = values.std(axis=0)
        parts.append((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    return np.concatenate(parts, axis=1)
