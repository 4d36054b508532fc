"""`paretocosmos evaluate`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from paretocosmos.cli._options import AsJson, Trust, Verify, numbers_of
from paretocosmos.cli.output import notes, print_front, print_json
from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation.evaluate import evaluate as evaluate_model
from paretocosmos.pareto.metrics import front_report
from paretocosmos.runs.load import load_run

__all__ = ["evaluate"]


def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    rays: Annotated[int | None, typer.Option(help="How many even rays; the run's own.")] = None,
    ray: Annotated[list[str] | None, typer.Option(help="One ray, as 0.3,0.7; repeatable.")] = None,
    data: Annotated[str | None, typer.Option(help="Where the data lies now, if moved.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1.")] = "cpu",
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
    console = Console(highlight=False)
    console.print(
        f"order {', '.join(f'{name} {value:.2f}' for name, value in order)}; "
        f"dominated {report.numbers['dominated_share']:.0%}; span {report.numbers['span']:.4f}; "
        f"hypervolume {report.numbers['hypervolume']:.4f} at {front.reference.tolist()} on "
        f"{split}; scores: {front.provenance['scores']}"
    )
