"""Conditioning: how a ray enters a network, one file each."""

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.conditioning.concat import Concat

__all__ = ["Concat", "Conditioning"]
