"""`python -m benchmarks.constraint --packages FOLDER --out FILE`: accuracy under a bound on a gap.

Nine tables, two gaps, five splits (70 % of the rows train), fixed before any result was looked at.
Methods are compared on one base: what boosted trees say of each row, out of fold for those that
train, or our network's own probabilities. Each method's accuracy and gap on test rows are kept for
every tolerance, so that methods can be compared at equal gaps, as Cruz and Hardt (ICLR 2024) ask;
and whether bounds of .02, .05 and .1 hold there. Rivals that draw lots are judged by their mean.

`benchmarks/_tables.py` says what FOLDER holds. LightGBM and OxonFair are not among our
dependencies: without LightGBM the base is scikit-learn's boosting, without OxonFair it is left out.
A run that is cut off goes on where it was.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._rivals import (
    Floats,
    Known,
    StoredScores,
    fit_oxonfair,
    fit_reduction,
    fit_thresholds,
    measure,
    search_grid,
    solve_programme,
)
from benchmarks._tables import NAMES, ROWS, Rows, read_rows
from paretocosmos.errors import InfeasibleError
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.pareto import even_rays
from paretocosmos.runs.provenance import get_provenance

GAPS = ("demographic_parity", "tpr_gap")
BOUNDS = (0.02, 0.05, 0.1)
# The bounds, tolerances around them for the curves, and none.
TOLERANCES = (0.005, *BOUNDS, 0.2, 1.0)
CONFIDENCE = 0.9
RAYS = 13
TEST_SHARE = 0.3
FOLDS = 5


class Part(NamedTuple):
    """Some rows: features as given and encoded for a linear model, and what is known of them."""

    features: pd.DataFrame
    encoded: Floats
    known: Known

    def with_scores(self, scores: Floats) -> Known:
        """Return what is known with the scores of another base."""
        return self.known._replace(scores=pd.Series(scores, self.features.index))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True, help="where the packages lie")
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--tables", default=",".join(NAMES))
    parser.add_argument("--splits", default="1,2,3,4,5")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    curves: list[dict[str, Any]] = []
    if arguments.out.exists():
        curves = json.loads(arguments.out.read_text())["curves"]
    for split in map(int, arguments.splits.split(",")):
        for table in arguments.tables.split(","):
            if any((c["table"], c["split"]) == (table, split) for c in curves):
                continue
            started = time.process_time()
            with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
                curves += measure_table(table, split, arguments.packages)
            print(f"{table} {split}: {time.process_time() - started:.0f} s", flush=True)
            arguments.out.write_text(write_results(curves))


def write_results(curves: list[dict[str, Any]]) -> str:
    """Return the JSON, a line for each curve."""
    content = get_provenance(torch.device("cpu")) | {
        "command": "python -m benchmarks.constraint --packages FOLDER --out FILE",
        "rows": ROWS,
        "test_share": TEST_SHARE,
        "packages": {
            name: metadata.version(name)
            for name in ("fairlearn", "scikit-learn", "lightgbm", "oxonfair")
            if _is_installed(name)
        },
    }
    curves = sorted(curves, key=lambda curve: (NAMES.index(curve["table"]), curve["split"]))
    lines = ",\n".join(json.dumps(curve, separators=(",", ":")) for curve in curves)
    return f'{json.dumps(content, indent=1)[:-2]},\n "curves": [\n{lines}\n]}}\n'


def _is_installed(name: str) -> bool:
    return any(distribution.name == name for distribution in metadata.distributions())


def measure_table(table: str, split: int, packages: Path) -> Iterator[dict[str, Any]]:
    """Yield every method's curve on one split of a table."""
    rows = read_rows(table, packages)
    everyone = np.arange(len(rows.label))
    strata = 2 * rows.label + rows.group
    parts = train_test_split(everyone, test_size=TEST_SHARE, stratify=strata, random_state=split)
    train, test = _prepare(rows, parts[0], parts[1], split)
    majority = max(test.known.label.mean(), 1 - test.known.label.mean())
    for gap in GAPS:
        shared = {"table": table, "split": split, "gap": gap, "rows": len(everyone)}
        shared["majority"] = round(float(majority), 5)
        plain = (test.known.scores.to_numpy() > 0.5).astype(np.float64)
        shared["trees"] = _score(gap, plain, test.known)
        for curve in (*_run_ours(gap, train, test, split), *_run_rivals(gap, train, test)):
            yield shared | curve


def _prepare(rows: Rows, train: Any, test: Any, seed: int) -> tuple[Part, Part]:
    """Return both parts, with the scores of a base that is fitted to the first."""
    features = rows.features.copy()
    words = features.select_dtypes(exclude="number").columns
    features[words] = features[words].astype("category")
    base = _make_base(seed)
    cut = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    fitted_on = features.iloc[train]

    def score(answers: Any) -> Floats:
        chances = np.empty(len(features))
        folds = cross_val_predict(base, fitted_on, answers[train], cv=cut, method="predict_proba")
        chances[train] = folds[:, 1]
        fitted = base.fit(fitted_on, answers[train])
        chances[test] = fitted.predict_proba(features.iloc[test])[:, 1]
        return chances

    scores, chances = score(rows.label), score(rows.group)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore", min_frequency=20, sparse_output=False)
    encoder = ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include="number")),
            ("words", one_hot, words),
        ]
    ).fit(fitted_on)

    def make_part(places: Any) -> Part:
        here = features.iloc[places]
        known = Known(
            pd.Series(scores[places], here.index),
            rows.label[places],
            rows.group[places],
            chances[places],
        )
        return Part(here, np.asarray(encoder.transform(here)), known)

    return make_part(train), make_part(test)


def _make_base(seed: int) -> Any:
    if not _is_installed("lightgbm"):
        return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed)
    return import_module("lightgbm").LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1)


def _run_ours(gap: str, train: Part, test: Part, seed: int) -> Iterator[dict[str, Any]]:
    """Yield our curves in all modes, and those of post-processors of the same network."""
    for base, group in (
        ("trees", "input"),
        ("trees", "estimate"),
        ("network", "input"),
        ("network", "estimate"),
        ("network", "none"),
    ):
        started = time.process_time()
        model = ParetoClassifier(
            fairness=gap,
            group=group,  # type: ignore[arg-type]
            base=StoredScores(pd.concat([train.known.scores, test.known.scores]))
            if base == "trees"
            else None,
            random_state=seed,
            device="cpu",
            progress=False,
        ).fit(train.features, train.known.label, sensitive=train.known.group)
        trained = time.process_time() - started
        curve = {"method": "ours", "base": base, "group": group}
        yield curve | _trace(gap, model, test) | {"seconds": round(trained, 1)}
        if (base, group) == ("network", "input"):
            yield from _post_process("network", gap, *_score_by(model, train, test))


def _trace(gap: str, model: ParetoClassifier, test: Part) -> dict[str, Any]:
    """Return accuracies and gaps on test rows at even rays, and those of choices."""
    known = {"sensitive": test.known.group} if model.group == "input" else {}

    def judge(chosen: ParetoClassifier, preference: Any = None) -> list[float]:
        decisions = chosen.predict(test.features, preference=preference, **known)
        return _score(gap, decisions.astype(np.float64), test.known)

    ends = getattr(model.model_, "includes_ends", False)
    points = [[float(ray[1]), *judge(model, ray.tolist())] for ray in even_rays(RAYS, 2, ends=ends)]
    choices: dict[str, list[float] | None] = {}
    warned = []
    for confidence in (None, CONFIDENCE):
        for bound in BOUNDS:
            name = f"{bound:g}{' sure' if confidence else ''}"
            try:
                with warnings.catch_warnings(record=True, action="always") as caught:
                    chosen = model.choose(
                        max={gap: bound}, maximize="accuracy", confidence=confidence
                    )
            except InfeasibleError:
                choices[name] = None
            else:
                if any("constant classifier" in str(warning.message) for warning in caught):
                    warned.append(name)
                # and what was seen when it was chosen
                seen = (chosen.choice_["accuracy"], chosen.choice_[gap])
                choices[name] = [*judge(chosen), *(round(float(number), 5) for number in seen)]
    return {"points": points, "choices": choices, "warned": warned}


def _score_by(model: ParetoClassifier, train: Part, test: Part) -> tuple[Known, Known]:
    """Return both parts with the probabilities of our network without an adjustment."""

    def score(part: Part) -> Known:
        accurate, group = [1.0, 0.0], part.known.group
        chances = model.predict_proba(part.features, preference=accurate, sensitive=group)
        return part.with_scores(chances[:, 1])

    return score(train), score(test)


def _run_rivals(gap: str, train: Part, test: Part) -> Iterator[dict[str, Any]]:
    """Yield the curves of other methods."""
    yield from _post_process("trees", gap, train.known, test.known)
    if _is_installed("oxonfair"):
        for is_group_known in (True, False):
            group = "input" if is_group_known else "estimate"
            curve = {"method": "OxonFair", "base": "trees", "group": group}
            found = fit_oxonfair(gap, train.known, TOLERANCES, is_group_known=is_group_known)
            yield curve | _judge(gap, found, test.known, test.known)
    reductions = {"ExponentiatedGradient": fit_reduction, "GridSearch": search_grid}
    for method, fit in reductions.items():
        curve = {"method": method, "base": "logistic", "group": "none"}
        fits = fit(gap, train.encoded, train.known, TOLERANCES)
        yield curve | _judge(gap, fits, test.encoded, test.known)


def _post_process(base: str, gap: str, train: Known, test: Known) -> Iterator[dict[str, Any]]:
    for method, fit in (("ThresholdOptimizer", fit_thresholds), ("programme", solve_programme)):
        curve = {"method": method, "base": base, "group": "input"}
        yield curve | _judge(gap, fit(gap, train, TOLERANCES), test, test)


def _score(gap: str, chances: Floats, known: Known) -> list[float]:
    """Return the accuracy and the gap, rounded."""
    return [round(number, 5) for number in measure(gap, chances, known.label, known.group)]


def _judge(
    gap: str, predictors: Iterator[Callable[[Any], Floats]], rows: Any, known: Known
) -> dict[str, Any]:
    """Return accuracies and gaps on test rows for every tolerance, and those of the bounds."""
    points = []
    started = time.process_time()
    for tolerance, predict in zip(TOLERANCES, predictors, strict=True):
        points.append([tolerance, *_score(gap, predict(rows), known)])
    choices = {f"{point[0]:g}": point[1:] for point in points if point[0] in BOUNDS}
    seconds = round(time.process_time() - started, 1)
    return {"points": points, "choices": choices, "seconds": seconds}


if __name__ == "__main__":
    main()
