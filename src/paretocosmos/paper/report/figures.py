"""The figures of a recipe, from what was collected of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from paretocosmos import plotting
from paretocosmos.paper.claims import GRID, compute_exact_front, get_front, iterate_grid
from paretocosmos.paper.published import method_title
from paretocosmos.paper.report.tables import label_experiments
from paretocosmos.paper.results import ExperimentResult, RecipeResult
from paretocosmos.pareto.front import Front

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper's methods look the same in all pictures.
LOOKS = ("COSMOS", "PHN-LS", "PHN-EPO", "ParetoMTL", "Single Task")

Draw = Callable[..., "Figure"]
Drawn = tuple[str, Callable[[], "Figure"]]
Drawable = Iterator[tuple[str, Draw]]
"""Captions, and what draws a figure when it is given a title."""


def list_figures(result: RecipeResult) -> Iterator[Drawn]:
    """Yield the caption of every figure of a recipe, which is its title too, and how to draw it."""
    kinds: dict[str, Callable[[Sequence[ExperimentResult]], Drawable]] = {
        "table": _front_figures,
        "fronts": _front_figures,
        "convergence": _convergence_figure,
        "ablation": _ablation_figure,
        "celeba": _face_figures,
        "intuition": _intuition_figure,
        "study": _front_figures,
    }
    epochs = result.rehearsal
    mark = "" if epochs is None else f"REHEARSAL, {epochs} epoch{'s' * (epochs > 1)}: "
    for text, draw in kinds[result.shows](result.done):
        caption = mark + text
        yield caption, partial(draw, title=caption[:1].upper() + caption[1:])


def _front_figures(experiments: Sequence[ExperimentResult]) -> Drawable:
    """Draw a panel per benchmark, those with the same objectives and protocol in a row."""
    planar = sort_by_kind(
        [experiment for experiment in experiments if len(experiment.objectives) == 2]
    )
    several = len({experiment.protocol for experiment in planar}) > 1
    labels = label_experiments(planar)
    titles = {
        experiment.name: experiment.benchmark_title(protocol=several) for experiment in planar
    }
    panels: dict[str, dict[str, Front]] = {}
    for experiment in planar:
        panels.setdefault(titles[experiment.name], {})[labels[experiment.name]] = get_front(
            experiment
        )
    if panels:
        ideal = {
            labels[experiment.name]
            for experiment in planar
            if experiment.volume_of == "ideal point"
        }
        rows = panel_rows(planar, titles)
        draw = partial(plotting.fronts_figure, panels, ideal=ideal, order=LOOKS, rows=rows)
        yield f"fronts on the test split, {_describe_seeds(planar)}", draw


def _convergence_figure(experiments: Sequence[ExperimentResult]) -> Drawable:
    """Draw a panel per benchmark and method."""
    drawn = sort_by_kind([experiment for experiment in experiments if experiment.course])
    titles = panel_titles(drawn, label_experiments(drawn))
    panels = {
        titles[experiment.name]: [
            (stage.epoch, get_front(experiment, stage)) for stage in experiment.course
        ]
        for experiment in drawn
    }
    if panels:
        names = ", ".join(dict.fromkeys(method_title(experiment.method) for experiment in drawn))
        draw = partial(plotting.convergence_figure, panels, rows=panel_rows(drawn, titles))
        yield f"validation fronts of {names} over epochs, {_describe_seeds(drawn)}", draw


def _ablation_figure(experiments: Sequence[ExperimentResult]) -> Drawable:
    """Draw a row per benchmark, a panel per alpha."""
    varied = list(iterate_grid(experiments))
    drawn = [experiment for _, experiment in varied]
    titles = panel_titles(drawn, label_experiments(drawn, aside=GRID))
    panels: dict[str, dict[tuple[float, float], Front]] = {}
    for point, experiment in varied:
        panels.setdefault(titles[experiment.name], {})[point] = get_front(experiment)
    if panels:
        caption = (
            f"the effect of the penalty λ and the Dirichlet parameter α, {_describe_seeds(drawn)}"
        )
        yield caption, partial(plotting.ablation_figure, panels)


def _face_figures(experiments: Sequence[ExperimentResult]) -> Drawable:
    """Draw fronts of two tasks in one figure, each front of COSMOS on three in its own."""
    labels = label_experiments(experiments)
    yield from _front_figures(experiments)
    for experiment in experiments:
        if len(experiment.objectives) == 3 and experiment.volume_of == "front":
            benchmark = experiment.benchmark_title(protocol=False)
            name = f"{labels[experiment.name]} on {benchmark}"
            caption = f"front of {name}, {_describe_seeds([experiment])}"
            yield caption, partial(plotting.three_figure, get_front(experiment))


def _intuition_figure(experiments: Sequence[ExperimentResult]) -> Drawable:
    """Draw a row per toy problem, a panel per method and penalty."""
    toys = [
        experiment
        for experiment in experiments
        if compute_exact_front(experiment.problem) is not None
    ]
    benchmarks = panel_titles(toys, dict.fromkeys((experiment.name for experiment in toys), ""))
    labels = label_experiments(toys, aside=["penalty"])
    several = (
        len({labels[experiment.name] for experiment in toys if "penalty" in experiment.varied}) > 1
    )
    order = list(dict.fromkeys(benchmarks.values()))
    panels, rows = {}, {}
    for experiment in sorted(toys, key=lambda e: order.index(benchmarks[e.name])):
        penalty, exact = experiment.varied.get("penalty"), compute_exact_front(experiment.problem)
        assert exact is not None
        parts = [labels[experiment.name] if penalty is None or several else ""]
        parts += [] if penalty is None else [f"λ {penalty:g}"]
        title = f"{benchmarks[experiment.name]}: {', '.join(filter(None, parts))}"
        panels[title] = plotting.Known(get_front(experiment), exact.values)
        rows[title] = benchmarks[experiment.name]
    if panels:
        caption = "what a weighted sum finds, and what the penalty λ of COSMOS does"
        yield caption, partial(plotting.intuition_figure, panels, rows=rows)


def _describe_seeds(experiments: Sequence[ExperimentResult]) -> str:
    counts = sorted({len(experiment.seeds) for experiment in experiments})
    if counts == [1]:
        return "one seed"
    return f"mean of {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'} seeds"


def panel_titles(
    experiments: Sequence[ExperimentResult], labels: Mapping[str, str]
) -> dict[str, str]:
    """Return the panel title of each experiment: its benchmark, and more if panels need it.

    Args:
        experiments: those that are drawn.
        labels: their labels.
    """
    benchmarks = {e.benchmark for e in experiments}
    methods = {(experiment.benchmark, labels[experiment.name]) for experiment in experiments}
    several = len(benchmarks) > len({key[:2] for key in benchmarks})
    return {
        experiment.name: experiment.benchmark_title(protocol=several)
        + (f", {labels[experiment.name]}" if len(methods) > len(benchmarks) else "")
        for experiment in experiments
    }


def sort_by_kind(experiments: Sequence[ExperimentResult]) -> list[ExperimentResult]:
    """Put experiments with the same objectives side by side, and of those the same protocol."""
    kinds = list(dict.fromkeys(tuple(experiment.objectives) for experiment in experiments))
    protocols = list(dict.fromkeys(experiment.protocol for experiment in experiments))
    return sorted(
        experiments, key=lambda c: (kinds.index(tuple(c.objectives)), protocols.index(c.protocol))
    )


def panel_rows(
    experiments: Sequence[ExperimentResult], titles: Mapping[str, str]
) -> dict[str, str]:
    """Return by a panel's title what it shares a row with: its objectives, maybe its protocol.

    A protocol has a row if several benchmarks share it. Panels that all have different objectives
    are in one row.

    Args:
        experiments: those that are drawn.
        titles: of their panels, by their names.
    """
    panels = {titles[experiment.name]: experiment for experiment in experiments}
    kinds = {title: ", ".join(experiment.objectives) for title, experiment in panels.items()}
    if len(set(kinds.values())) == len(panels):
        return dict.fromkeys(panels, "")
    rows = {}
    for title, kind in kinds.items():
        protocols = [
            experiment.protocol for other, experiment in panels.items() if kinds[other] == kind
        ]
        shared = len(set(protocols)) < len(protocols)
        rows[title] = f"{kind}, {panels[title].protocol}" if shared else kind
    return rows
