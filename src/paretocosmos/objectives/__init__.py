"""Objectives, what a model is trained for, and the metrics reported beside them."""

from paretocosmos.objectives.base import (
    Objective,
    logits_of,
    pick,
    weighted_mean,
    weighted_sums,
)
from paretocosmos.objectives.fairness import (
    AccuracyGap,
    DemographicParity,
    Deo,
    EqualizedOdds,
    ErrorGap,
    FprGap,
    PredictionGap,
    SelectionAndTprGap,
    TprGap,
    WorstGroup,
    fairness_objective,
    fairness_objectives,
)
from paretocosmos.objectives.groups import (
    GroupObjective,
    LowestTpr,
    RateObjective,
)
from paretocosmos.objectives.losses import (
    BinaryCrossEntropy,
    ClassLoss,
    CrossEntropy,
    GaussianWell,
    MeanAbsoluteError,
    MeanSquaredError,
    OneSidedError,
)
from paretocosmos.objectives.metrics import (
    accuracy,
    balanced_accuracy,
    calibration_error,
    decides,
    deciding,
    largest_share,
    measure_of,
    misclassification,
    mistakes,
    named_label,
    positive_rate,
    recall,
    roc_auc,
    selection_rate,
    sentence,
    streamed,
    streaming,
)
from paretocosmos.types import Measure, Unit

REGISTRY = {
    "accuracy_gap": "paretocosmos.objectives.fairness:AccuracyGap",
    "binary_cross_entropy": "paretocosmos.objectives.losses:BinaryCrossEntropy",
    "class_loss": "paretocosmos.objectives.losses:ClassLoss",
    "cross_entropy": "paretocosmos.objectives.losses:CrossEntropy",
    "demographic_parity": "paretocosmos.objectives.fairness:DemographicParity",
    "deo": "paretocosmos.objectives.fairness:Deo",
    "equalized_odds": "paretocosmos.objectives.fairness:EqualizedOdds",
    "error_gap": "paretocosmos.objectives.fairness:ErrorGap",
    "fpr_gap": "paretocosmos.objectives.fairness:FprGap",
    "gaussian_well": "paretocosmos.objectives.losses:GaussianWell",
    "mean_absolute_error": "paretocosmos.objectives.losses:MeanAbsoluteError",
    "mean_squared_error": "paretocosmos.objectives.losses:MeanSquaredError",
    "one_sided_error": "paretocosmos.objectives.losses:OneSidedError",
    "prediction_gap": "paretocosmos.objectives.fairness:PredictionGap",
    "selection_and_tpr_gap": "paretocosmos.objectives.fairness:SelectionAndTprGap",
    "tpr_gap": "paretocosmos.objectives.fairness:TprGap",
    "worst_group": "paretocosmos.objectives.fairness:WorstGroup",
}
"""Every objective by its name: the module and the class in it."""
