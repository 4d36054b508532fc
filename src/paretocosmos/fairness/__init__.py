"""Closed-form fairness adjustment: decisions with a smaller gap between groups, by a formula.

`adjustment` is arithmetic on probabilities, wherever they come from. `network` applies it to a
network with a label head and a group head.
"""

from paretocosmos.fairness.adjustment import (
    FairnessAdjustment,
    adjusted_logits,
    fit_multipliers,
    joint_probabilities,
)
from paretocosmos.fairness.network import AdjustedNetwork, GroupCrossEntropy
