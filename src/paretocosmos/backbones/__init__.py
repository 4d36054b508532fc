"""Backbones: plain networks that know nothing of rays, one file each.

A backbone takes ``input_shape`` and ``outputs`` (one number, or one per head) and names its first
layer, where a ray can enter, and its heads, which methods with shared gradients leave out.
"""

from paretocosmos.backbones.base import Backbone

__all__ = ["Backbone"]
