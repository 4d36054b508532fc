"""Backbones: plain networks without rays, one file each.

A backbone takes ``input_shape`` and ``outputs`` (one number, or one per head) and names its first
layer, where a ray can enter, and its heads, which methods with shared gradients leave out.
"""

from paretocosmos.nn.backbones.base import Backbone
from paretocosmos.nn.backbones.efficientnet import EfficientNet
from paretocosmos.nn.backbones.lenet import LeNet
from paretocosmos.nn.backbones.mlp import Mlp
from paretocosmos.nn.backbones.tabular import Tabular

REGISTRY = {
    "efficientnet": "paretocosmos.nn.backbones.efficientnet:EfficientNet",
    "lenet": "paretocosmos.nn.backbones.lenet:LeNet",
    "mlp": "paretocosmos.nn.backbones.mlp:Mlp",
    "tabular": "paretocosmos.nn.backbones.tabular:Tabular",
}
"""Every backbone by its name: the module and the class in it."""
