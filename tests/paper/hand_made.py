"""Run folders made by hand: what `reproduce` leaves of a cell, without any training."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

import paretocosmos
from paretocosmos import registry
from paretocosmos.config.settings import Training, get_pairs, get_paper_network, split_settings
from paretocosmos.io.files import write_json
from paretocosmos.paper.recipe import Experiment, Recipe
from paretocosmos.paper.results import ExperimentResult, Spread
from paretocosmos.pareto import Array, Front, even_rays
from paretocosmos.pareto.metrics import front_report
from paretocosmos.runs import FORMAT

FAIR, PAIR = ("binary_cross_entropy", "deo"), ("top_left", "bottom_right")
TASKS = {
    "celeba_easy": ("Goatee", "Mustache"),
    "celeba_hard": ("Oval_Face", "Pointy_Nose"),
    "celeba_three": ("Goatee", "Mustache", "No_Beard"),
    "celeba_four": ("Goatee", "Mustache", "No_Beard", "Pale_Skin"),
    "celeba_ten": tuple(f"Task_{n}" for n in range(1, 11)),
}


def names_of(problem: str) -> tuple[str, ...]:
    if problem in TASKS:
        return TASKS[problem]
    if problem.startswith("toy"):
        return "first", "second"
    return FAIR if problem in ("adult", "compas", "default_credit") else PAIR


def rays_of(method: str, objectives: int) -> Array:
    fixed = {"single_task": np.eye(objectives)}
    count = 5 if method == "pareto_mtl" else 25
    return fixed.get(method, even_rays(count, objectives).double().numpy())


def front_of(cell: Experiment, seed: int, *, better: float = 0.0) -> Front:
    """A front that depends on the seed, with a point for every ray; some dominated."""
    names = names_of(cell.problem)
    rays = rays_of(cell.method, len(names))
    values = 0.2 + 0.5 * (1 - rays) ** 2 + 0.01 * seed / 42 - better
    width = float(cell.settings.get("penalty", 1.0))
    values = values.mean(axis=0) + (values - values.mean(axis=0)) * (0.5 + 0.1 * width)
    accuracies = {
        f"accuracy_{name}": 0.9 - 0.05 * at + 0.02 * rays[:, at] for at, name in enumerate(names)
    }
    given = accuracies if cell.problem in TASKS else {}
    return Front(rays, values, names, np.full(len(names), 2.0), given)


def parts_of(cell: Experiment) -> dict[str, str]:
    """What a run of it is made of, by name."""
    method, conditioning = get_pairs().get(cell.method) or (cell.method, "concat")
    network = get_paper_network(cell.problem).get("backbone", "mlp")
    parts = {"problem": cell.problem, "method": method, "conditioning": conditioning}
    return parts | {"backbone": network}


def record_of(cell: Experiment, seed: int, front: Front, *, together: int = 5) -> dict[str, Any]:
    """What `run.json` has of it, as far as anything here reads it."""
    fixed = cell.method in ("single_task", "pareto_mtl")
    networks = len(front) if fixed else 1
    names = parts_of(cell)
    kinds = {"method": "methods", "backbone": "backbones", "problem": "problems"}
    owners = {role: registry.find(kinds.get(role, role), name) for role, name in names.items()}
    own = split_settings(cell.asked, owners | {"training": Training}, lenient=True)
    every = registry.parameters(owners["problem"]).values()
    own["problem"] = {one.name: one.default for one in every} | own["problem"]
    centre = {k: float(np.interp(0.5, front.rays[:, 0], v)) for k, v in front.metrics.items()}
    return {
        "format": FORMAT,
        "status": "finished",
        "name": cell.problem,
        "label": cell.method,
        "preset": cell.preset,
        "protocol": cell.protocol or "clean",
        **{role: {"name": name, "settings": own[role]} for role, name in names.items()},
        "training": asdict(Training(**own["training"])),
        "seed": seed,
        "precision": "tf32",
        "device": "cuda:0",
        "deterministic": False,
        "objectives": len(front.names),
        "objective_specs": [{"name": name, "settings": {}} for name in front.names],
        "names": list(front.names),
        "input_shape": [4],
        "outputs": 1,
        "samples_per_second": None,
        "share_waiting": 0.0,
        "peak_memory": None,
        "processes": 1,
        "data": "on the device",
        "files": {},
        "fixed_rays": front.rays.tolist() if fixed else None,
        "networks": [{"epoch_selected": 10}] * networks,
        "parameters": 7011 * networks,
        "about": {},
        "caveats": [f"`{cell.problem}` is a benchmark."],
        "version": paretocosmos.__version__,
        "source": "abcdef012345",
        "versions": {"torch": "2.13.0"},
        "machine": {"device": "NVIDIA H200", "threads": 16},
        "engine": "captured",
        "metrics": dict.fromkeys(("test", "val"), front_report(front).to_dict()["numbers"]),
        "epoch_selected": 10,
        "centre": None if fixed else {"values": {}, "metrics": centre},
        "seconds_training": 50.0 + seed,
        "seconds_to_selected": 10.0 + seed,
        "seconds_preparing": 5.0,
        "seconds_evaluating": 1.0,
        "seeds_together": together,
        "evaluations": [
            {
                "epoch": epoch,
                "hypervolume_val": 2 - 1 / epoch,
                "values": (front.values + 1 / epoch).tolist(),
            }
            for epoch in range(5, 51, 5)
        ],
    }


def write_run(
    cell: Experiment, out: Path, seed: int, *, better: float = 0.0, **changes: Any
) -> tuple[Front, Mapping[str, Any]]:
    """One finished run; changes are for its record."""
    front = front_of(cell, seed, better=better)
    record = record_of(cell, seed, front) | changes
    folder = cell.runs(out).get(seed, cell.folder(out) / f"seed-{seed}")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "run.json", record)
    write_json(folder / "front.json", front.to_dict())
    write_json(folder / "front_val.json", front.to_dict() | {"split": "val"})
    return front, record


def write_recipe(recipe: Recipe, out: Path, seeds: Sequence[int] | None = None) -> None:
    """Every cell of a recipe; COSMOS is the best."""
    for cell in recipe.experiments:
        for seed in cell.seeds if seeds is None else seeds:
            write_run(cell, out, seed, better=0.05 if cell.method == "cosmos" else 0.0)
    write_json(recipe.root(out) / f"{recipe.name}.json", {"recipe": recipe.name})


def make_spread(mean: float, std: float | None = None, seeds: int = 2) -> Spread:
    return Spread(mean, std, [mean] * seeds)


def make_result(
    problem: str, method: str, each: Sequence[float] = (), **more: Any
) -> ExperimentResult:
    """Return the result of an experiment whose seeds have these hypervolumes."""
    result = ExperimentResult(f"{problem}/{method}", problem, method, "paper")
    if each:
        volume = Spread.of(each)
        answers = "device threads version source torch precision engine images weights caveats"
        result = replace(
            result,
            seeds=list(range(1, len(each) + 1)),
            volume=volume,
            metrics=dict.fromkeys(("hypervolume", "hypervolume_ideal", "span"), volume),
            seconds=dict.fromkeys(("to_selected", "training"), volume),
            total_seconds=dict.fromkeys(("training", "preparing", "evaluating"), 1.0),
            networks=1,
            separate=False,
            parameters=1,
            objectives=["a", "b"],
            reference=[2.0, 2.0],
            rays=[[0.5, 0.5]],
            front=[[0.2, 0.2]],
            made={key: [] for key in answers.split()}
            | {"seeds_together": [1], "side_by_side": [1]},
        )
    return replace(result, **more)
