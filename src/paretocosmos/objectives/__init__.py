"""Objectives: what a model is trained for, one file each, and the metrics reported beside them."""

from paretocosmos.objectives._averages import weighted_mean, weighted_sums
from paretocosmos.objectives._base import Objective, logits_of, pick
from paretocosmos.objectives._deciding import decides, deciding
from paretocosmos.objectives._groups import (
    GroupObjective,
    fairness_objective,
    fairness_objectives,
    gap,
    group_means,
    group_sums,
)
from paretocosmos.objectives._rates import RateObjective
from paretocosmos.objectives._scores import accuracy, calibration_error, misclassification, roc_auc
from paretocosmos.objectives._streaming import Streamed, streamed, streaming
from paretocosmos.objectives._words import measure_of, named_label, sentence
from paretocosmos.types import Measure, Unit

__all__ = [
    "GroupObjective",
    "Measure",
    "Objective",
    "RateObjective",
    "Streamed",
    "Unit",
    "accuracy",
    "calibration_error",
    "decides",
    "deciding",
    "fairness_objective",
    "fairness_objectives",
    "gap",
    "group_means",
    "group_sums",
    "logits_of",
    "measure_of",
    "misclassification",
    "named_label",
    "pick",
    "roc_auc",
    "sentence",
    "streamed",
    "streaming",
    "weighted_mean",
    "weighted_sums",
]
