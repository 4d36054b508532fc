"""`python -m benchmarks.celeba --data DIR --out FILE`: one network on faces against single tasks.

Every problem of the paper's CelebA section through the same `fit` as everybody's, by the paper's
settings or, with `--preset default --methods linear`, by this package's. One network is judged
at its 25 rays and at the centre of the simplex, where the paper compares; a single task's network
on its own task; and both beside a constant that only knows how often an attribute occurs. The JSON
is written after every cell; `--resume-from FILE` takes over the cells that file has. Run folders
hold checkpoints of some hundred megabytes: `--runs` may be a folder in memory. They lie there as
`paretocosmos reproduce` lays them, so that `paretocosmos report celeba_small` reads them too.
"""

import argparse
import json
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from paretocosmos import Run, fit, load_problem
from paretocosmos.paper.recipe import Experiment
from paretocosmos.problems import SPLITS, Problem
from paretocosmos.runs.checkpoint import find_newest_checkpoint
from paretocosmos.runs.provenance import get_provenance

PROBLEMS = ("easy", "hard", "three", "four", "ten")
METHODS = ("cosmos", "single_task")
KEY = ("problem", "method", "seed", "epochs", "batch_size", "precision", "settings", "sha256")
# Asked for, beside what the record says was used; a cell of before they were written had these.
ASKED = {"asked_backbone": None, "asked_engine": "auto", "preset": "paper"}


def main() -> None:
    """Run, print, write."""
    arguments = parsed()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    results: dict[str, Any] = {"protocol": "clean", "cells": [], "left_out": []}
    results |= get_provenance(device)
    kept: list[dict[str, Any]] = []
    if arguments.resume_from is not None and arguments.resume_from.exists():
        kept = json.loads(arguments.resume_from.read_text())["cells"]
    started = time.perf_counter()
    for name in arguments.only:
        problem = load_problem(
            name if ":" in name else f"celeba_{name}", protocol="clean", data=arguments.data
        )
        for method in arguments.methods:
            wanted = asked(problem, method, arguments)
            found = next((c for c in kept if same(c, wanted)), None)
            if found is None and time.perf_counter() - started > arguments.deadline:
                results["left_out"].append(f"{problem.name}, {method}: past the deadline")
                print(results["left_out"][-1], flush=True)
            else:
                results["cells"].append(found or cell(problem, wanted, arguments))
                show(results["cells"][-1])
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="where CelebA lies; else the usual places")
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--runs", type=Path, help="where run folders go, and stay; else nowhere")
    parser.add_argument("--resume-from", type=Path, help="a JSON whose cells need not be run again")
    parser.add_argument("--only", type=listed, default=list(PROBLEMS), help="easy,hard, ...")
    parser.add_argument("--methods", type=listed, default=list(METHODS), help="not all of them")
    parser.add_argument("--preset", default="paper", help="as `fit` takes it")
    parser.add_argument("--epochs", type=int, help="else the preset's")
    parser.add_argument("--batch-size", type=int, default=256, help="the paper's is 32")
    parser.add_argument("--precision", default="tf32", help="as `fit` takes it")
    parser.add_argument("--engine", default="auto", help="as `fit` takes it")
    parser.add_argument("--backbone", help="as `fit` takes it; else the paper's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="a setting, KEY=VALUE")
    parser.add_argument("--deadline", type=float, default=math.inf, help="seconds to begin one in")
    return parser.parse_args()


def listed(text: str) -> list[str]:
    """What commas part."""
    return text.split(",")


def plain(text: str) -> Any:
    """What a text says: a number where it is one."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def asked(problem: Problem, method: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """What tells one cell from another."""
    return {
        "problem": problem.name,
        "method": method,
        "seed": arguments.seed,
        "epochs": arguments.epochs,
        "batch_size": arguments.batch_size,
        "precision": arguments.precision,
        "settings": dict(change.split("=", 1) for change in arguments.set),
        "sha256": problem.about.get("sha256"),
        "asked_backbone": arguments.backbone,
        "asked_engine": arguments.engine,
        "preset": arguments.preset,
    }


def same(kept: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a cell is the one that is wanted."""
    kept = ASKED | kept
    return all(kept[key] == wanted[key] for key in (*KEY, *ASKED))


def cell(problem: Problem, wanted: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """One method on one problem."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        settings = {key: plain(text) for key, text in wanted["settings"].items()}
        settings |= {"batch_size": wanted["batch_size"]}
        if wanted["epochs"] is not None:
            settings["epochs"] = wanted["epochs"]
        place = Experiment(
            problem.name, wanted["method"], settings=settings, seeds=(wanted["seed"],)
        )
        out = place.runs(arguments.runs or Path(folder))[wanted["seed"]]
        run = fit(
            problem,
            preset=wanted["preset"],
            method=wanted["method"],
            backbone=wanted["asked_backbone"],
            seed=wanted["seed"],
            precision=wanted["precision"],
            engine=wanted["asked_engine"],
            settings=settings,
            out=out,
            resume=out.exists(),
        )
        shutil.rmtree(find_newest_checkpoint(out).parent, ignore_errors=True)
    record, samples = run.record, len(problem.split("train"))
    networks = len(record["networks"])
    seconds = {
        part: record[f"seconds_{part}"] for part in ("training", "preparing", "evaluating")
    } | {"all": time.perf_counter() - started}
    seen = samples * networks * record["training"]["epochs"]
    return wanted | {
        "images": problem.about.get("images"),
        "caveats": list(problem.caveats),
        "samples": {split: len(problem.split(split)) for split in SPLITS},
        "backbone": record["backbone"],
        "conditioning": record["conditioning"],
        "training": record["training"],
        "method_settings": record["method"]["settings"],
        "networks": networks,
        "parameters": record["parameters"],
        "engine": record["engine"],
        "epoch_selected": record["epoch_selected"],
        "seconds": seconds,
        "share_of_time": {part: value / seconds["all"] for part, value in seconds.items()},
        "images_per_second": seen / seconds["training"],
        "metrics": record["metrics"],
        "tasks": tasks(problem, run),
        "front": run.front.to_dict(),
        "front_val": run.front_val.to_dict(),
        "evaluations": record["evaluations"],
        "origin": {key: record[key] for key in ("source", "versions", "machine", "written")},
    }


def tasks(problem: Problem, run: Run) -> dict[str, Any]:
    """Every task's numbers on test: at the centre ray, or each by the network that is its own."""
    centre, front = run.record["centre"], run.front
    alone = centre is None
    found = {}
    for at, name in enumerate(problem.names):
        values = (
            dict(zip(front.names, front.values[at], strict=True)) if alone else centre["values"]
        )
        metrics = {k: v[at] for k, v in front.metrics.items()} if alone else centre["metrics"]
        found[name] = numbers(values, metrics, name)
    return {
        "judged": "each task by its own network" if alone else "all tasks at the centre ray",
        "each": found,
        "mean": {
            key: statistics.fmean(task[key] for task in found.values())
            for key in found[problem.names[0]]
        },
        "constant": {name: constant(problem, name) for name in problem.names},
    }


def numbers(
    values: Mapping[str, float], metrics: Mapping[str, float], name: str
) -> dict[str, float]:
    """A task's loss, and what the problem reports of it, at one ray."""
    found = {"binary_cross_entropy": float(values[name])}
    if f"accuracy_{name}" in metrics:
        found["misclassification"] = 1 - float(metrics[f"accuracy_{name}"])
    if f"roc_auc_{name}" in metrics:
        found["roc_auc"] = float(metrics[f"roc_auc_{name}"])
    return found


def constant(problem: Problem, name: str) -> dict[str, float]:
    """What the rate of an attribute among the training samples reaches on test, the same for all.

    Its area under the ROC curve is a half.
    """
    rate, truth = (
        float(batch.targets[name].double().mean())
        for batch in (problem.split("train"), problem.split("test"))
    )
    return {
        "rate_train": rate,
        "rate_test": truth,
        "binary_cross_entropy": -truth * math.log(rate) - (1 - truth) * math.log(1 - rate),
        "misclassification": truth if rate <= 0.5 else 1 - truth,
    }


def show(found: dict[str, Any]) -> None:
    """One line for a cell, and one for each of its tasks."""
    reached, seconds = found["metrics"], found["seconds"]
    weights = found["backbone"]["settings"].get("weights", "random")
    print(
        f"{found['problem']:13} {found['method']:12} HV {reached['test']['hypervolume']:.4f} (val "
        f"{reached['val']['hypervolume']:.4f}), {seconds['training']:.1f} of {seconds['all']:.1f} "
        f"s, {found['images_per_second']:.0f} images/s, {found['engine']}, {weights} weights"
    )
    told = found["tasks"]
    for name, task in [*told["each"].items(), ("mean", told["mean"])]:
        numbers = ", ".join(f"{key} {value:.4f}" for key, value in task.items())
        plain = told["constant"].get(name, {}).get("binary_cross_entropy")
        print(f"    {name:20} {numbers}" + ("" if plain is None else f", constant {plain:.4f}"))


if __name__ == "__main__":
    main()
