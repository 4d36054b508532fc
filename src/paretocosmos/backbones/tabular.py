"""A network for tables."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.backbones._base import Backbone, check_widths
from paretocosmos.backbones._heads import Cut
from paretocosmos.backbones._knots import Knots, find_knots
from paretocosmos.backbones._members import Average, Scale, Shift, averaged
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Batch, Inputs, Outputs, first, map_tensors

__all__ = ["Tabular"]

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
