"""Conditioning: how a ray enters a network.

`base.py` has the contract, `injection.py` explains how a ray reaches layers of somebody else's
network, and `REGISTRY` lists the conditionings.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from paretocosmos.conditioning._tilted import ANSWER, OF_NO, OF_YES, PLACES, likely, tilted
from paretocosmos.conditioning.base import Conditioning, heads_of, inside
from paretocosmos.conditioning.unconditioned import PerRayEnsemble, Unconditioned, networks_of

if TYPE_CHECKING:
    from paretocosmos.conditioning.concat import Concat
    from paretocosmos.conditioning.film import Film
    from paretocosmos.conditioning.hypernet import Hypernet, HypernetOutput
    from paretocosmos.conditioning.low_rank import Lora
    from paretocosmos.conditioning.token import Token
    from paretocosmos.conditioning.transposed_conv import TransposedConv

__all__ = [
    "ANSWER",
    "OF_NO",
    "OF_YES",
    "PLACES",
    "REGISTRY",
    "Concat",
    "Conditioning",
    "Film",
    "Hypernet",
    "HypernetOutput",
    "Lora",
    "PerRayEnsemble",
    "Token",
    "TransposedConv",
    "Unconditioned",
    "heads_of",
    "inside",
    "likely",
    "networks_of",
    "tilted",
]

REGISTRY = {
    "concat": "paretocosmos.conditioning.concat:Concat",
    "film": "paretocosmos.conditioning.film:Film",
    "hypernet": "paretocosmos.conditioning.hypernet:Hypernet",
    "lora": "paretocosmos.conditioning.low_rank:Lora",
    "none": "paretocosmos.conditioning.unconditioned:Unconditioned",
    "tilt": "paretocosmos.conditioning.tilt:Tilt",
    "token": "paretocosmos.conditioning.token:Token",
    "transposed_conv": "paretocosmos.conditioning.transposed_conv:TransposedConv",
}
"""Every conditioning by its name: the module and the class in it."""

_MODULES = {address.partition(":")[2]: address.partition(":")[0] for address in REGISTRY.values()}
_MODULES["HypernetOutput"] = _MODULES["Hypernet"]


def __getattr__(name: str) -> object:
    """Import a class of `REGISTRY` when it is first asked for: listing them stays cheap."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
