"""Conditioning: how a ray enters a network.

`base.py` has the contract, `injection.py` explains how a ray reaches layers of somebody else's
network, and `REGISTRY` lists the conditionings.
"""

from paretocosmos.nn.conditioning.base import (
    Conditioning,
    PerRayEnsemble,
    TrainingTask,
    Unconditioned,
    find_heads,
    is_inside,
    list_networks,
    training_task,
)
from paretocosmos.nn.conditioning.concat import Concat, TransposedConv
from paretocosmos.nn.conditioning.film import Film
from paretocosmos.nn.conditioning.hypernet import Hypernet, HypernetOutput
from paretocosmos.nn.conditioning.injection import ConditionedLayer, InjectedConditioning
from paretocosmos.nn.conditioning.low_rank import Lora, LowRank
from paretocosmos.nn.conditioning.token import Token

REGISTRY = {
    "concat": "paretocosmos.nn.conditioning.concat:Concat",
    "fairness_adjustment": "paretocosmos.fairness.network:AdjustedNetwork",
    "film": "paretocosmos.nn.conditioning.film:Film",
    "hypernet": "paretocosmos.nn.conditioning.hypernet:Hypernet",
    "lora": "paretocosmos.nn.conditioning.low_rank:Lora",
    "none": "paretocosmos.nn.conditioning.base:Unconditioned",
    "token": "paretocosmos.nn.conditioning.token:Token",
    "transposed_conv": "paretocosmos.nn.conditioning.concat:TransposedConv",
}
"""Every conditioning by its name: the module and the class in it."""
