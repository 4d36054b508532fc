"""Conditioning: how a ray enters a network, one file each."""

from paretocosmos.conditioning._base import (
    Conditioning,
    TrainingTask,
    heads_of,
    inside,
    training_task,
)
from paretocosmos.conditioning._condition import conditioned
from paretocosmos.conditioning._emission import Emission
from paretocosmos.conditioning._per_ray import PerRayEnsemble, networks_of

__all__ = [
    "REGISTRY",
    "Conditioning",
    "Emission",
    "PerRayEnsemble",
    "TrainingTask",
    "conditioned",
    "heads_of",
    "inside",
    "networks_of",
    "training_task",
]

REGISTRY = {
    "concat": "paretocosmos.conditioning.concat:Concat",
    "fairness_adjustment": "paretocosmos.fairness.network:AdjustedNetwork",
    "film": "paretocosmos.conditioning.film:Film",
    "hypernet": "paretocosmos.conditioning.hypernet:Hypernet",
    "lora": "paretocosmos.conditioning.lora:Lora",
    "none": "paretocosmos.conditioning.none:Unconditioned",
    "token": "paretocosmos.conditioning.token:Token",
    "transposed_conv": "paretocosmos.conditioning.transposed_conv:TransposedConv",
}
"""Every conditioning by its name: the module and the class in it."""
