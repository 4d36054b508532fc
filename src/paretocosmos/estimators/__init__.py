"""scikit-learn estimators that predict at any preference, and have a front to choose one by."""

from paretocosmos.errors import require_extra

require_extra("sklearn", "tabular", "an estimator")
require_extra("pandas", "tabular", "an estimator")

from paretocosmos.estimators.predictors import ParetoClassifier, ParetoRegressor  # noqa: E402
from paretocosmos.estimators.searching import (  # noqa: E402
    best_within,
    choose_in,
    front_hypervolume,
)
