"""Backbones: plain networks that know nothing of rays, one file each.

A backbone takes ``input_shape`` and ``outputs`` (one number, or one per head) and names its first
layer, where a ray can enter, and its heads, which methods with shared gradients leave out.
"""

from paretocosmos.backbones.base import Backbone

__all__ = ["REGISTRY", "Backbone"]

REGISTRY = {
    "efficientnet": "paretocosmos.backbones.efficientnet:EfficientNet",
    "lenet": "paretocosmos.backbones.lenet:LeNet",
    "mlp": "paretocosmos.backbones.mlp:Mlp",
    "tabular": "paretocosmos.backbones.tabular:Tabular",
}
"""Every backbone by its name: the module and the class in it."""
