"""One linear layer for all heads, its output cut by name: their number costs nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Outputs


@dataclass(frozen=True)
class Cut:
    """Which numbers of a layer's output are which head's.

    Attributes:
        names: the heads; `None` for one output without a name.
        widths: numbers per head.
    """

    names: tuple[str, ...] | None
    widths: tuple[int, ...]

    @classmethod
    def of(cls, outputs: int | Mapping[str, int]) -> "Cut":
        """The cut for as many numbers per sample, or per head.

        >>> Cut.of({"left": 10, "right": 2}).total
        12
        """
        widths = outputs if isinstance(outputs, Mapping) else {"outputs": outputs}
        if not widths or min(widths.values()) < 1:
            raise ConfigurationError(f"`outputs` takes widths >= 1, found {outputs}")
        names = tuple(outputs) if isinstance(outputs, Mapping) else None
        return cls(names, tuple(widths.values()))

    @property
    def total(self) -> int:
        """How many numbers the layer gives."""
        return sum(self.widths)

    def heads(self, layer: str) -> tuple[str, ...]:
        """What a backbone says of the layer: it is heads if they have names."""
        return () if self.names is None else (layer,)

    def __call__(self, out: Tensor) -> Outputs:
        """``[B, ..., total]`` to one tensor per head."""
        if self.names is None:
            return out
        return dict(zip(self.names, out.split(self.widths, dim=-1), strict=True))
