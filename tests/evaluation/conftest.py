"""A table of people and fronts as arrays, for several files."""

import numpy as np
import pandas as pd

from paretocosmos.pareto import Front
from paretocosmos.problems import Protocol
from paretocosmos.problems.tables import TabularProblem

ROWS = 3000


def make_problem(fairness: str = "deo", protocol: Protocol = "clean") -> TabularProblem:
    """Chance and some signal; groups of different size, so that counts depend on the batch."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({name: draw.normal(size=ROWS) for name in "abc"})
    frame["sex"] = np.where(draw.random(ROWS) < 0.3, "f", "m")
    frame["paid"] = frame["a"] + draw.normal(size=ROWS) + (frame["sex"] == "m") > 0
    return TabularProblem.from_frame(
        frame, target="paid", sensitive="sex", fairness=fairness, protocol=protocol
    )


def tabulate(front: Front) -> np.ndarray:
    """Return all numbers of a front, a row for each ray."""
    return np.column_stack([front.values, *front.metrics.values()])
