"""An objective of one's own in one file, as fast as this package's: the gap in false alarms.

Derived from `GroupObjective` it is a fairness objective: tables and estimators take it as
`fairness`, and the model card tells its meaning.
"""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from paretocosmos import TabularProblem, fit
from paretocosmos.objectives import GroupObjective, gap, group_sums, mean_gap
from paretocosmos.types import Targets


class FprGap(GroupObjective):
    """Predictive equality: the gap between groups in the share of negatives taken for positive."""

    traceable = True  # tensor operations only: engines may record and stack it
    meaning = "of those in the negative class, the share taken for positive, largest minus smallest"

    def relax(self, probability: Tensor) -> Tensor:
        # nearly the decision: a gap of probabilities can be closed while that of decisions is not
        return torch.sigmoid(torch.logit(probability, eps=1e-6) / 0.15)

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        return mean_gap(*self._sums(positive, targets))

    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        alarms, there = self._sums(positive, targets)
        return gap(alarms / there)  # NaN where a group has no negatives

    def _sums(self, positive: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
        negative = 1 - self.label(targets, positive)
        alarms = group_sums(positive * negative, targets, self.sensitive, self.groups)
        return alarms, group_sums(negative, targets, self.sensitive, self.groups)


def people(rows: int = 10_000) -> pd.DataFrame:
    """Loans that depend on age and, for no good reason, on sex."""
    generator = np.random.default_rng(1)
    made = pd.DataFrame({"age": generator.integers(18, 70, rows)})
    made["sex"] = generator.choice(["female", "male"], rows)
    made["hours"] = 30 + 8 * (made["sex"] == "male") + generator.normal(0, 4, rows)
    pull = 0.08 * (made["age"] - 44) + 2.5 * (made["sex"] == "male") - 1.25
    granted = generator.random(rows) < 1 / (1 + np.exp(-pull))
    return made.assign(loan=np.where(granted, "granted", "refused"))


if __name__ == "__main__":
    torch.set_num_threads(1)  # a small network: more would wait for each other
    problem = TabularProblem.from_frame(
        people(), target="loan", sensitive="sex", positive="granted", fairness=FprGap
    )
    run = fit(problem)
    print(f"engine {run.record['engine']}")
    for weight in (0.9, 0.5, 0.1):
        nearest = abs(run.front.rays[:, 0] - weight).argmin()
        accuracy, alarms = run.front.metrics["accuracy"][nearest], run.front.values[nearest, 1]
        print(f"weight {weight} on accuracy: accuracy {accuracy:.2f}, gap {alarms:.2f}")
