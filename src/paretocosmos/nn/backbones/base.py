"""The contract of a backbone."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar

from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Batch, Inputs, Outputs

WIDEST = 65_536
"""Most units of a layer: millions would take all memory as soon as a few rays are evaluated."""
MOST_WEIGHTS = 2**28
"""Weights between hidden layers: in training they take 4 GB with the optimizer's averages."""


def check_widths(name: str, widths: Sequence[int]) -> None:
    """Raise if a layer has no units or too many, or all have too many weights.

    Args:
        name: the setting.
        widths: units of the hidden layers, one after the other.
    """
    wrong = [width for width in widths if not 1 <= width <= WIDEST]
    if wrong:
        raise ConfigurationError(
            f"`{name}` must be at least 1 and at most {WIDEST:,}, found {wrong[0]:,}"
        )
    weights = sum(before * after for before, after in pairwise(widths))
    if weights > MOST_WEIGHTS:
        raise ConfigurationError(
            f"`{name}` may have at most {MOST_WEIGHTS:,} weights between its layers, found "
            f"{weights:,}: make them narrower, or give a network of your own as `backbone`"
        )


class Backbone(nn.Module, ABC):
    """A network that knows no rays, ``forward(inputs) -> outputs``, and names two of its parts.

    A conditioning changes the layer that the input enters; some methods leave the layers of single
    objectives out when they compare gradients. A plain `nn.Module` works too: the first layer is
    looked for, and all layers count as shared.

    >>> class TwoHeads(Backbone):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.body, self.head = nn.Linear(4, 8), nn.ModuleDict({"a": nn.Linear(8, 1)})
    ...         self.first_layer, self.heads = "body", ("head.a",)
    ...
    ...     def forward(self, inputs):
    ...         return self.head["a"](self.body(inputs).relu())
    >>> from paretocosmos import condition
    >>> condition(TwoHeads(), objectives=2, how="concat").places
    ('body',)
    """

    first_layer: str
    """The module the input enters, by its dotted name."""

    heads: tuple[str, ...]
    """The modules that serve single objectives, by their dotted names; none if all share them.

    A layer that gives several named outputs is one: each objective reads rows of its own. The layer
    of a single output is not, since every objective reads it.
    """

    foreign: ClassVar[tuple[str, ...]] = ()
    """Packages besides torch whose modules it is made of, which must be installed to build it."""

    traceable: ClassVar[bool] = False
    """`True` promises that its code, and that of all modules inside, decides nothing in Python from
    values of tensors and keeps no Python state between steps, so that fast engines and stacks of
    seeds may run it; a subclass declares it anew. Any `nn.Module` may declare it."""

    samples_first: ClassVar[bool] = True
    """`True` promises that the first axis counts samples in the inputs, in the outputs and inside,
    and that no sample influences another: then conditionings need not probe for it."""

    blank: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Settings to build it with if weights are loaded afterwards, so that none are fetched."""

    resolved: Mapping[str, Any] = MappingProxyType({})
    """The values that settings left open were resolved to, by name; recorded in run folders."""

    widest: int = 0
    """Numbers per sample in the widest layer, if far more than in the input: evaluation then takes
    smaller batches."""

    @classmethod
    def fitted(cls, train: Batch, outputs: int | Mapping[str, int]) -> Mapping[str, Any]:
        """Return values for settings left at `None`, found in the training rows; none by default.

        Args:
            train: the rows that train.
            outputs: numbers per sample, or numbers per head.
        """
        del train, outputs  # for subclasses
        return {}

    @abstractmethod
    def forward(self, inputs: Inputs) -> Outputs:
        """Inputs ``[B, ...]`` to outputs ``[B, ...]``."""


@dataclass(frozen=True)
class Cut:
    """Splits the output of one linear layer among the heads: their number costs nothing.

    Attributes:
        names: the heads; `None` for one output without a name.
        widths: numbers per head.
    """

    names: tuple[str, ...] | None
    widths: tuple[int, ...]

    @classmethod
    def of(cls, outputs: int | Mapping[str, int]) -> "Cut":
        """Build the cut for a number of outputs per sample, or per head.

        >>> Cut.of({"left": 10, "right": 2}).total
        12
        """
        widths = outputs if isinstance(outputs, Mapping) else {"outputs": outputs}
        # refused here, since `nn.Linear` accepts a width of 0 and trains nothing
        if not widths or min(widths.values()) < 1:
            raise ConfigurationError(f"`outputs` takes widths >= 1, found {outputs}")
        names = tuple(outputs) if isinstance(outputs, Mapping) else None
        return cls(names, tuple(widths.values()))

    @property
    def total(self) -> int:
        """Width of the layer."""
        return sum(self.widths)

    def heads(self, layer: str) -> tuple[str, ...]:
        """Return the layer's name for `Backbone.heads`: only named outputs are heads."""
        return () if self.names is None else (layer,)

    def __call__(self, out: Tensor) -> Outputs:
        """``[B, ..., total]`` to one tensor per head."""
        if self.names is None:  # a tensor, not a mapping of one: objectives read it without a name
            return out
        return dict(zip(self.names, out.split(self.widths, dim=-1), strict=True))
