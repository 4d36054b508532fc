"""`python -m benchmarks.image_rules --data DIR`: what is left of the difference to the paper.

Trains on pairs of images with one thing changed at a time: whether classes may be the same, where
the images are put, the penalty, the precision, how the first layer is drawn, and Single Task's
second network from the first one's weights, as the published code has it. Needs a GPU: a trial of
three seeds takes some twenty seconds. `--workers` trains several at a time, `--only WORDS` some.
`--out FILE` writes the numbers as JSON, after every trial.
"""

import argparse
import dataclasses
import json
import multiprocessing
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from paretocosmos import fit
from paretocosmos.problems import Problem
from paretocosmos.problems.images.pairs import FASHION_MNIST, MNIST, RULES, Rule, compose_pairs
from paretocosmos.problems.images.problem import (
    PARTS,
    build_pair_problem,
    find_source_files,
    read_part,
)
from paretocosmos.registry import Spec
from paretocosmos.runs.provenance import get_provenance

SEEDS = (1, 2, 3)
SOURCES = {
    "multi_mnist": (MNIST, MNIST),
    "multi_fashion": (FASHION_MNIST, FASHION_MNIST),
    "fashion_and_mnist": (MNIST, FASHION_MNIST),
}


@dataclass(frozen=True)
class Trial:
    """One thing changed.

    Attributes:
        change: what, in words.
        problem: a pair of images.
        rule: where the images are put.
        different: whether two images of one source are of different classes.
        settings: of the training.
        precision: as for `fit`.
    """

    change: str
    problem: str
    rule: Rule = RULES["published"]
    different: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "tf32"


WARM = Trial("second task from the first's weights", "fashion_and_mnist")
TRIALS = (
    WARM,
    Trial("first layer drawn for the image alone", "multi_mnist", settings={"joined": False}),
    Trial("first layer drawn for the image alone", "multi_fashion", settings={"joined": False}),
    Trial("classes free", "multi_fashion", different=False),
    Trial("e in 5..8", "multi_fashion", rule=Rule(range(5), range(5, 9), diagonal=True)),
    Trial("d in 1..4", "multi_fashion", rule=Rule(range(1, 5), range(5, 8), diagonal=True)),
    Trial("fp32 instead of tf32", "multi_fashion", precision="fp32"),
    Trial("penalty 8, as printed", "multi_mnist", settings={"penalty": 8.0}),
)


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="where mnist/ and fashion_mnist/ lie")
    parser.add_argument("--only", default="", help="trials whose change has these words in it")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    trials = [trial for trial in TRIALS if arguments.only in trial.change]
    asked = [(trial.change, trial.problem) for trial in trials]
    found: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        for told in pool.imap_unordered(partial(tried, data=arguments.data), trials):
            found.append(told)
            found.sort(key=lambda one: asked.index((one["change"], one["problem"])))
            print(f"{told['problem']:18} {told['change']:40} {fmean(told['test']):.4f}", flush=True)
            if arguments.out is not None:
                content = {"trials": found} | get_provenance(torch.device("cuda"))
                arguments.out.write_text(json.dumps(content, indent=1) + "\n")


def tried(trial: Trial, *, data: str) -> dict[str, Any]:
    """Hypervolumes of a trial's seeds, on both splits; of Single Task that of its ideal point."""
    problem = composed(trial, data)
    how: dict[str, Any] = {"settings": trial.settings, "precision": trial.precision}
    with tempfile.TemporaryDirectory() as folder:
        if trial == WARM:
            volumes = {"test": warmed(problem, Path(folder))}
        else:
            runs = fit(
                problem,
                preset="paper",
                seeds=SEEDS,
                device="cuda",
                out=Path(folder) / "runs",
                **how,
            )
            volumes = {
                split: [run.record["metrics"][split]["hypervolume"] for run in runs]
                for split in ("val", "test")
            }
    return {
        "change": trial.change,
        "problem": trial.problem,
        "method": "single_task" if trial == WARM else "cosmos",
        "seeds": SEEDS,
        **volumes,
    }


def composed(trial: Trial, data: str) -> Problem:
    """The problem of a trial, with the paper's settings."""
    sources = SOURCES[trial.problem]
    files = find_source_files(sources, data)
    train, test = ([read_part(one, part) for one in files] for part in PARTS)
    made = compose_pairs(
        (train[0], train[1]),
        (test[0], test[1]),
        rule=trial.rule,
        different=trial.different and sources[0] == sources[1],
        seed=1,
    )
    problem = build_pair_problem(
        trial.problem,
        made,
        images=trial.change,
        protocol="paper",
        pixels="0..255",
    )
    return dataclasses.replace(problem, spec=Spec(trial.problem, {"protocol": "paper"}))


def warmed(problem: Problem, folder: Path) -> list[float]:
    """The ideal points' hypervolumes where the second task starts from the first's last weights."""
    how: dict[str, Any] = {"method": "single_task", "device": "cuda"}
    usual = fit(problem, preset="paper", seeds=SEEDS, out=folder / "usual", **how)
    only_last = {"evaluate_every": 100}
    last = fit(problem, preset="paper", seeds=SEEDS, out=folder / "last", settings=only_last, **how)
    volumes = []
    for seed, fresh, first in zip(SEEDS, usual, last, strict=True):
        networks: Any = first.model.backbone
        again = how | {"backbone": networks[0].backbone, "out": folder / f"second-{seed}"}
        second = fit(problem, preset="paper", seed=seed, **again)
        best = fresh.front.values[0][0], second.front.values[1][1]
        volumes.append(float((2 - best[0]) * (2 - best[1])))
    return volumes


if __name__ == "__main__":
    main()
