"""scikit-learn estimators that predict at any preference, and have a front to choose one by."""

from paretocosmos.problems.tables.frames import need

need("sklearn", "an estimator")
need("pandas", "an estimator")

from paretocosmos.estimators.classifier import ParetoClassifier  # noqa: E402
from paretocosmos.estimators.regressor import ParetoRegressor  # noqa: E402

__all__ = ["ParetoClassifier", "ParetoRegressor"]
