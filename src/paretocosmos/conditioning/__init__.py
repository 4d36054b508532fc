"""Conditioning: how a ray enters a network, one file each."""

from paretocosmos.conditioning._base import Conditioning, heads_of, inside
from paretocosmos.conditioning._condition import conditioned
from paretocosmos.conditioning._emission import Emission
from paretocosmos.conditioning._per_ray import PerRayEnsemble, networks_of
from paretocosmos.conditioning._tilted import ANSWER, OF_NO, OF_YES, PLACES, likely, tilted

__all__ = [
    "ANSWER",
    "OF_NO",
    "OF_YES",
    "PLACES",
    "REGISTRY",
    "Conditioning",
    "Emission",
    "PerRayEnsemble",
    "conditioned",
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
    "lora": "paretocosmos.conditioning.lora:Lora",
    "none": "paretocosmos.conditioning.none:Unconditioned",
    "tilt": "paretocosmos.conditioning.tilt:Tilt",
    "token": "paretocosmos.conditioning.token:Token",
    "transposed_conv": "paretocosmos.conditioning.transposed_conv:TransposedConv",
}
"""Every conditioning by its name: the module and the class in it."""
