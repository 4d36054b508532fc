"""Your own objective in one file, as fast as a built-in one: the gap in what mistakes cost.

Derived from `RateObjective` it is a fairness objective: tables and estimators take it as
`fairness`, and the model card tells its meaning.
"""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from paretocosmos import TabularProblem, fit
from paretocosmos.objectives import RateObjective
from paretocosmos.types import Targets

MISSED = 8.0  # what it costs to refuse somebody a loan that was due; the other mistake costs 1


class CostGap(RateObjective):
    """The gap between groups in what mistakes cost a person on average."""

    traceable = True  # tensor operations only: engines may record and stack it
    meaning = "what wrong decisions cost a person on average, largest minus smallest"

    def counted(self, positive: Tensor, targets: Targets) -> Tensor:
        label = self.label(targets, positive)
        return MISSED * label * (1 - positive) + (1 - label) * positive


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
        people(), target="loan", sensitive="sex", positive="granted", fairness=CostGap
    )
    run = fit(problem)
    print(f"engine {run.record['engine']}")
    for weight in (0.9, 0.5, 0.1):
        nearest = abs(run.front.rays[:, 0] - weight).argmin()
        accuracy, gap = run.front.metrics["accuracy"][nearest], run.front.values[nearest, 1]
        print(f"weight {weight} on accuracy: accuracy {accuracy:.2f}, gap {gap:.2f}")
