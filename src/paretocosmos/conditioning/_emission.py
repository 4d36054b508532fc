"""What a hypernetwork emits, and what it emits it from."""

from typing import NamedTuple

from torch import Tensor

__all__ = ["Emission"]


class Emission(NamedTuple):
    """What a hypernetwork makes of rays ``[G, J]``.

    Attributes:
        features: ``[G, width]``, what its last layer reads; ``[G, chunks, width]`` in chunks.
        emitted: what that layer gives, ``[G, P]``, or ``[G, chunks, P / chunks]``.
    """

    features: Tensor
    emitted: Tensor
