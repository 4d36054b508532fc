"""Backbones: plain networks without rays, one file each.

A backbone takes ``input_shape`` and ``outputs`` (one number, or one per head) and names its first
layer, where a ray can enter, and its heads, which methods with shared gradients leave out.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from paretocosmos.nn.backbones.base import Backbone

if TYPE_CHECKING:
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

_MODULES = {name: module for module, _, name in (a.partition(":") for a in REGISTRY.values())}


def __getattr__(name: str) -> object:
    """Import a class of `REGISTRY` when it is first asked for: listing them stays cheap."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
