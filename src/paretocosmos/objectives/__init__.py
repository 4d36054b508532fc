"""Objectives: what a model is trained for, one file each, and the metrics reported beside them."""

from paretocosmos.objectives._base import Objective
from paretocosmos.objectives._scores import accuracy, misclassification, roc_auc

__all__ = ["Objective", "accuracy", "misclassification", "roc_auc"]
