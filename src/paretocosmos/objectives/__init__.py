"""Objectives: what a model is trained for, one file each, and the metrics reported beside them."""

from paretocosmos.objectives._base import Objective, logits_of, pick, weighted_mean
from paretocosmos.objectives._groups import (
    GroupObjective,
    fairness_objective,
    fairness_objectives,
    gap,
    group_sums,
    mean_gap,
)
from paretocosmos.objectives._scores import accuracy, calibration_error, misclassification, roc_auc

__all__ = [
    "GroupObjective",
    "Objective",
    "accuracy",
    "calibration_error",
    "fairness_objective",
    "fairness_objectives",
    "gap",
    "group_sums",
    "logits_of",
    "mean_gap",
    "misclassification",
    "pick",
    "roc_auc",
    "weighted_mean",
]
