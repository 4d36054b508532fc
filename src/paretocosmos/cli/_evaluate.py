"""`paretocosmos evaluate`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from paretocosmos.cli._options import (
    AsJson,
    MovedData,
    RunDevice,
    RunFolder,
    Trust,
    Verify,
    numbers_of,
)
from paretocosmos.cli.output._console import notes, print_json, safe, wide
from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation.evaluate import evaluate as evaluate_model
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import front_report
from paretocosmos.runs.load import load_run


def evaluate(
    folder: RunFolder,
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    rays: Annotated[int | None, typer.Option(help="How many even rays; the run's own.")] = None,
    ray: Annotated[list[str] | None, typer.Option(help="One ray, as 0.3,0.7; repeatable.")] = None,
    data: MovedData = None,
    device: RunDevice = "cpu",
    trust: Trust = None,
    verify: Verify = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a RUN again: reproduces its front, or gives other rays and splits."""
    if ray and rays is not None:
        raise ConfigurationError("--ray and --rays exclude each other: give one of them")
    run = load_run(folder, trust=trust or (), verify=verify, device=device)
    with notes():
        problem = run.problem(data=data)
        own = run.front.rays.tolist() if rays is None else rays
        wanted = [numbers_of(text) for text in ray] if ray else own
        origin = {key: run.front.provenance.get(key) for key in ("method", "seed", "networks")}
        front = evaluate_model(run.model, problem, split=split, rays=wanted, provenance=origin)
        report = front_report(front)
    if as_json:
        print_json(front.to_dict())
        return
    print_front(front)
    order = zip(front.names, report.by_objective["monotonicity"], strict=True)
    shape = (
        f"order {', '.join(f'{safe(name)} {value:.2f}' for name, value in order)}; "
        f"dominated {report.numbers['dominated_share']:.0%}; span {report.numbers['span']:.4f}; "
    )
    console = Console(highlight=False)
    console.print(
        f"{shape if len(front) > 1 else ''}"  # one point is no front
        f"hypervolume {report.numbers['hypervolume']:.4f} at {front.reference.tolist()} on "
        f"{split}; scores: {safe(front.provenance['scores'])}"
    )


def print_front(front: Front) -> None:
    """One row per ray; 80 columns hold two objectives with their metrics."""
    metrics_shown = [name for name in front.metrics if name != "misclassification"]  # 1 - accuracy
    weights = front.names[:1] if front.objectives == 2 else front.names
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in (*(f"weight on {name}" for name in weights), *front.names, *metrics_shown):
        table.add_column(safe(name.replace("_", " ")), justify="right", overflow="fold")
    table.add_column("", no_wrap=True)
    keep = front.non_dominated
    for index in range(len(front)):
        row = [*front.rays[index][: len(weights)], *front.values[index]]
        row += [front.metrics[name][index] for name in metrics_shown]
        table.add_row(*(f"{value:.3f}" for value in row), "" if keep[index] else "dominated")
    wide().print(table)
