"""`python -m benchmarks.extending --out FILE`: what code from outside costs beside the same inside.

The method, the objective and the problem of `examples/` three times in one run on a CPU: as this
package's own, from outside with `traceable = True`, and from outside without. The step times are
given as ratios to the first. Times are the process's own on the CPU, the three take turns, and the
fastest epoch of each counts: a busy machine must not decide.
"""

import argparse
import dataclasses
import importlib.util
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from examples.own_method import SmoothTchebycheff
from examples.own_objective import CostGap, people
from examples.own_problem import Stock, stock

from paretocosmos import Problem, TabularProblem, fit
from paretocosmos.runs.provenance import get_provenance

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
KINDS = ("inside", "declared", "silent")
EPOCHS = 12
TURNS = 4
COLUMNS: dict[str, Any] = {"target": "loan", "sensitive": "sex", "positive": "granted"}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {"epochs": EPOCHS, "turns": TURNS, "steps": {}}
    results |= get_provenance(torch.device("cpu"))
    cases = {"method": _methods(), "objective": _objectives(), "problem": _problems()}
    for name, kinds in cases.items():
        results["steps"][name] = found = compared(kinds)
        print(name, json.dumps(found), flush=True)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def compared(kinds: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Seconds of a step of each kind, its engine, and its ratio to the one inside."""
    found: dict[str, dict[str, Any]] = {kind: {"step": float("inf")} for kind in kinds}
    for _ in range(TURNS):
        for kind, given in kinds.items():
            step, engine = _timed(**given)
            found[kind] = {"step": min(step, found[kind]["step"]), "engine": engine}
    for own in found.values():
        own["ratio"] = own["step"] / found["inside"]["step"]
    return found


def _timed(problem: str | Problem, **given: Any) -> tuple[float, str]:
    """Seconds of a step in the fastest epoch, and the engine."""
    seen: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = fit(
            problem,
            preset="paper",
            epochs=EPOCHS,
            device="cpu",
            out=Path(folder) / "run",
            progress=lambda _: seen.append(time.process_time()),
            **{"settings": {"evaluate_every": EPOCHS, "batch_size": 100}, **given},
        )
    samples = len(run.problem().split("train"))
    steps = -(-samples // run.record["training"]["batch_size"])
    fastest = min(after - before for before, after in pairwise(seen))
    return fastest / steps, str(run.record["engine"]).partition(":")[0]


def _methods() -> dict[str, dict[str, Any]]:
    made, inside = stock(), _inside("methods", "own_method").SmoothTchebycheff
    kinds: tuple[Callable[[], Any], ...] = (inside, SmoothTchebycheff, _silent(SmoothTchebycheff))
    return {
        kind: {"problem": made, "method": make()} for kind, make in zip(KINDS, kinds, strict=True)
    }


def _objectives() -> dict[str, dict[str, Any]]:
    inside = _inside("objectives", "own_objective").CostGap
    frame = people(4000)
    return {
        kind: {"problem": TabularProblem.from_frame(frame, fairness=make, **COLUMNS)}
        for kind, make in zip(KINDS, (inside, CostGap, _silent(CostGap)), strict=True)
    }


def _problems() -> dict[str, dict[str, Any]]:
    made = stock()
    fields = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
    inside = _inside("problems", "own_problem").Stock
    return {
        kind: {"problem": make(**fields)}
        for kind, make in zip(KINDS, (inside, Stock, _silent(Stock)), strict=True)
    }


def _inside(package: str, name: str) -> Any:
    """An example's module as if its file lay in a package of this package."""
    place = f"paretocosmos.{package}.{name}"
    spec = importlib.util.spec_from_file_location(place, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _silent(kind: type) -> Any:
    """The same class without the promise, which no subclass inherits."""
    return type("Silent", (kind,), {"__module__": __name__})


if __name__ == "__main__":
    main()
