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
    "REGISTRY",
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

REGISTRY = {
    "accuracy_gap": "paretocosmos.objectives.accuracy_gap:AccuracyGap",
    "binary_cross_entropy": "paretocosmos.objectives.binary_cross_entropy:BinaryCrossEntropy",
    "class_loss": "paretocosmos.objectives.class_loss:ClassLoss",
    "cross_entropy": "paretocosmos.objectives.cross_entropy:CrossEntropy",
    "demographic_parity": "paretocosmos.objectives.demographic_parity:DemographicParity",
    "deo": "paretocosmos.objectives.deo:Deo",
    "equalized_odds": "paretocosmos.objectives.equalized_odds:EqualizedOdds",
    "error_gap": "paretocosmos.objectives.error_gap:ErrorGap",
    "fpr_gap": "paretocosmos.objectives.fpr_gap:FprGap",
    "gaussian_well": "paretocosmos.objectives.gaussian_well:GaussianWell",
    "mean_absolute_error": "paretocosmos.objectives.mean_absolute_error:MeanAbsoluteError",
    "mean_squared_error": "paretocosmos.objectives.mean_squared_error:MeanSquaredError",
    "one_sided_error": "paretocosmos.objectives.one_sided_error:OneSidedError",
    "prediction_gap": "paretocosmos.objectives.prediction_gap:PredictionGap",
    "tpr_gap": "paretocosmos.objectives.tpr_gap:TprGap",
    "worst_group": "paretocosmos.objectives.worst_group:WorstGroup",
}
"""Every objective by its name: the module and the class in it."""
