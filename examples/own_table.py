"""A front from your own DataFrame, and predictions at any trade-off afterwards."""

import numpy as np
import pandas as pd

from paretocosmos import TabularProblem, fit

generator = np.random.default_rng(1)
rows = 10_000
people = pd.DataFrame(
    {
        "age": generator.integers(18, 70, rows),
        "city": generator.choice(["Berlin", "Lagos", "Lima"], rows),
        "sex": generator.choice(["female", "male"], rows),
    }
)
chance = 1 / (1 + np.exp(-(0.08 * (people["age"] - 44) + 2.5 * (people["sex"] == "male") - 1.25)))
people["hours"] = 30 + 8 * (people["sex"] == "male") + generator.normal(0, 4, rows)
people["loan"] = np.where(generator.random(rows) < chance, "granted", "refused")

problem = TabularProblem.from_frame(people, target="loan", sensitive="sex", positive="granted")
run = fit(problem)
print(f"a front of {len(run.front)} trade-offs in {run.folder}, hypervolume {run.hypervolume:.2f}")
for weight in (0.9, 0.5, 0.1):
    nearest = abs(run.front.rays[:, 0] - weight).argmin()
    accuracy = run.front.metrics["accuracy"][nearest]
    gap = run.front.values[nearest, 1]
    print(f"weight {weight} on accuracy: accuracy {accuracy:.2f}, true-positive-rate gap {gap:.2f}")
print(run.predict(people.head(3), ray=[0.5, 0.5]))
