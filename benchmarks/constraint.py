"""`python -m benchmarks.constraint --out results/constraint.json`: accuracy under a constraint.

Adult, protocol `clean`, a true-positive-rate gap of at most 2 %: one run of ours and `choose`,
beside fairlearn's `ExponentiatedGradient` and `ThresholdOptimizer`, on the same rows and features.
We and `ThresholdOptimizer` choose on the validation rows, `ExponentiatedGradient` has no use for
them and keeps the constraint on the training rows. Judged on test.
Times are seconds of one core (processor time, one thread), which a busy machine does not change.
"""

import argparse
import json
import shlex
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairlearn
import numpy as np
import sklearn
import torch
from fairlearn.metrics import equal_opportunity_difference
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import ExponentiatedGradient, TruePositiveRateParity
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from paretocosmos import TabularProblem, fit, load_problem
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.runs.provenance import provenance

BOUND = 0.02
SETTINGS = {"fairness": "tpr_gap"}
# What fairlearn wraps: the usual choice, the network we train, and another kind of model.
LEARNERS: dict[str, Callable[[int], Any]] = {
    "logistic regression": lambda seed: LogisticRegression(max_iter=1000, random_state=seed),
    "the same network": lambda seed: MLPClassifier(
        (60, 25), batch_size=256, max_iter=50, random_state=seed
    ),
    "gradient boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--learners", default=",".join(LEARNERS))
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    torch.set_num_threads(1)
    with warnings.catch_warnings(action="ignore", category=BenchmarkWarning):
        problem = load_problem("adult", settings=SETTINGS)
    assert isinstance(problem, TabularProblem)
    with threadpool_limits(1):
        rows = measured(problem, seeds, arguments.learners.split(","))
    results = {
        "bound": BOUND,
        "problem": "adult",
        "protocol": problem.protocol,
        "settings": SETTINGS,
        "seeds": seeds,
        "rows": rows,
        "command": f"python -m benchmarks.constraint {shlex.join(sys.argv[1:])}",
        "fairlearn": fairlearn.__version__,
        "scikit_learn": sklearn.__version__,
        **provenance(torch.device("cpu")),
    }
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def measured(
    problem: TabularProblem, seeds: list[int], learners: list[str]
) -> list[dict[str, Any]]:
    """A row for us and for every method of theirs with every learner."""
    rows = [_row("paretocosmos", "one network, `choose`", [ours(seed) for seed in seeds])]
    for learner in learners:
        for name, make in (("ThresholdOptimizer", threshold), ("ExponentiatedGradient", gradient)):
            found = [judged(problem, make, LEARNERS[learner](seed), seed) for seed in seeds]
            rows.append(_row(name, learner, found))
    return rows


def ours(seed: int) -> dict[str, float]:
    """Train, choose, and what the choice is worth."""
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(action="ignore", category=BenchmarkWarning),
    ):
        started = time.process_time()
        run = fit(
            "adult", preset="paper", settings=SETTINGS, seed=seed, device="cpu", out=f"{folder}/run"
        )
        trained = time.process_time()
        choice = run.choose(max={"tpr_gap": BOUND}, maximize="accuracy")
        ended = time.process_time()
    return {
        "accuracy": choice.test["accuracy"],
        "tpr_gap": choice.test["tpr_gap"],
        "tpr_gap_val": choice.val["tpr_gap"],
        "evaluations": choice.evaluations,
        "seconds": ended - started,
        "seconds_choosing": ended - trained,
    }


def gradient(problem: TabularProblem, learner: Any) -> Any:
    """Agarwal et al. 2018, on the training rows.

    Its bound is on the distance of every group's rate from the rate of all. The smaller a group,
    the further it may be from the other: with two, the gap is that distance divided by the share
    of the other's positives.
    """
    inputs, label, group = arrays(problem, "train")
    smallest = np.bincount(group[label == 1]).min() / (label == 1).sum()
    parity = TruePositiveRateParity(difference_bound=BOUND * (1 - smallest))
    return ExponentiatedGradient(learner, parity).fit(inputs, label, sensitive_features=group)


def threshold(problem: TabularProblem, learner: Any) -> Any:
    """Hardt et al. 2016: thresholds found on the validation rows, as our choice is.

    It must be told the group to predict.
    """
    inputs, label, _ = arrays(problem, "train")
    optimizer = ThresholdOptimizer(
        estimator=learner.fit(inputs, label),
        constraints="true_positive_rate_parity",
        objective="accuracy_score",
        predict_method="predict_proba",
        prefit=True,
        tol=BOUND,
    )
    inputs, label, group = arrays(problem, "val")
    return optimizer.fit(inputs, label, sensitive_features=group)


def judged(
    problem: TabularProblem, make: Callable[..., Any], learner: Any, seed: int
) -> dict[str, float]:
    """Fit one of theirs, and what it is worth."""
    started = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        model = make(problem, learner)
    seconds = time.process_time() - started
    found: dict[str, float] = {"seconds": seconds}
    for split in ("val", "test"):
        inputs, label, group = arrays(problem, split)
        told = {"sensitive_features": group} if isinstance(model, ThresholdOptimizer) else {}
        guess = model.predict(inputs, random_state=seed, **told)
        gap = float(equal_opportunity_difference(label, guess, sensitive_features=group))
        found |= {"tpr_gap" if split == "test" else "tpr_gap_val": gap}
        if split == "test":
            found["accuracy"] = float(np.mean(guess == label))
    return found


def arrays(problem: TabularProblem, split: Any) -> tuple[Any, Any, Any]:
    """Features, labels and groups."""
    batch = problem.split(split)
    assert isinstance(batch.inputs, torch.Tensor)
    label, group = batch.targets["label"].numpy().astype(int), batch.targets["sensitive"].numpy()
    # in double: fairlearn writes doubles into its learner's probabilities
    return batch.inputs.double().numpy(), label, group


def _row(method: str, learner: str, found: list[dict[str, float]]) -> dict[str, Any]:
    mean = {key: statistics.fmean(one[key] for one in found) for key in found[0]}
    print(
        f"{method:22} {learner:22} accuracy {mean['accuracy']:.4f}, gap {mean['tpr_gap']:.4f} on "
        f"test, {mean['tpr_gap_val']:.4f} on val, {mean['seconds']:.1f} s",
        flush=True,
    )
    return {"method": method, "learner": learner, "each": found, "mean": mean}


if __name__ == "__main__":
    main()
