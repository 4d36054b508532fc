"""The figures of a recipe, from what was collected of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from paretocosmos import plotting
from paretocosmos.paper.claims import GRID, compute_exact_front, get_front, iterate_grid
from paretocosmos.paper.published import method_title
from paretocosmos.paper.report.tables import (
    Experiments,
    format_epochs,
    label_experiments,
    list_benchmarks,
    title_benchmarks,
    title_experiments,
)
from paretocosmos.paper.results import ExperimentResult, RecipeResult, title_benchmark
from paretocosmos.pareto.front import Front

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper's methods look the same in all pictures.
LOOKS = ("COSMOS", "PHN-LS", "PHN-EPO", "ParetoMTL", "Single Task")

Drawable = Iterator[tuple[str, Callable[..., "Figure"]]]
"""Captions, and what draws a figure when it is given a title."""


@dataclass(frozen=True)
class Picture:
    """A figure of a report: the stem of its files, its caption, and how to draw it."""

    name: str
    caption: str
    draw: Callable[[], "Figure"]


def list_pictures(result: RecipeResult) -> list[Picture]:
    """Return the pictures of a recipe; a caption is the title of its figure, too."""
    mark = f"REHEARSAL, {format_epochs(result)}: " if result.rehearsal else ""
    pictures = []
    for number, (text, draw) in enumerate(FIGURES[result.shows](result.done), start=1):
        # the first keeps the recipe's name, so that links to it survive when figures are added
        name = result.recipe if number == 1 else f"{result.recipe}-{number}"
        caption = mark + text
        title = caption[:1].upper() + caption[1:]
        # `partial` postpones drawing: listing the pictures must not need matplotlib
        pictures.append(Picture(name, caption, partial(draw, title=title)))
    return pictures


def _list_front_figures(experiments: Experiments) -> Drawable:
    """Draw a panel per benchmark, those with the same objectives and protocol in a row."""
    # three objectives do not fit into one panel
    planar = _sort_by_row([e for e in experiments if len(e.objectives) == 2])
    if not planar:
        return
    labels = label_experiments(planar)
    # a protocol that all panels share is not repeated in each title
    several = len({experiment.protocol for experiment in planar}) > 1
    titles = {e.name: title_benchmark(e.benchmark, protocol=several) for e in planar}
    panels: dict[str, dict[str, Front]] = {}
    for e in planar:
        panels.setdefault(titles[e.name], {})[labels[e.name]] = get_front(e)
    # their networks are drawn, but no line joins them
    ideal = {labels[e.name] for e in planar if e.ideal}
    rows = _name_rows(planar, titles)
    draw = partial(plotting.fronts_figure, panels, ideal=ideal, order=LOOKS, rows=rows)
    yield f"fronts on the test split, {_describe_seeds(planar)}", draw


def _list_convergence_figures(experiments: Experiments) -> Drawable:
    """Draw a panel per benchmark and method."""
    # runs that kept no validation fronts have no course
    drawn = _sort_by_row([experiment for experiment in experiments if experiment.course])
    titles = title_experiments(drawn)
    panels = {
        titles[e.name]: {f"epoch {stage.epoch}": get_front(e, stage) for stage in e.course}
        for e in drawn
    }
    if panels:
        names = ", ".join(dict.fromkeys(method_title(experiment.method) for experiment in drawn))
        epochs = sorted({stage.epoch for e in drawn for stage in e.course})
        order = [f"epoch {epoch}" for epoch in epochs]
        rows = _name_rows(drawn, titles)
        draw = partial(plotting.fronts_figure, panels, order=order, rows=rows, graded=True)
        yield f"validation fronts of {names} over epochs, {_describe_seeds(drawn)}", draw


def _list_ablation_figures(experiments: Experiments) -> Drawable:
    """Draw a row per benchmark, a panel per alpha."""
    grid = list(iterate_grid(experiments))
    titles = title_experiments([experiment for _, experiment in grid], aside=GRID)
    order = list(dict.fromkeys(titles.values()))
    panels: dict[str, dict[str, Front]] = {}
    rows = {}
    for (penalty, alpha), e in sorted(
        grid, key=lambda entry: (order.index(titles[entry[1].name]), entry[0][1], entry[0][0])
    ):
        title = f"{titles[e.name]}, α {alpha:g}"
        panels.setdefault(title, {})[f"λ {penalty:g}"] = get_front(e)
        rows[title] = titles[e.name]
    if panels:
        penalties = [f"λ {penalty:g}" for penalty in sorted({point[0] for point, _ in grid})]
        draw = partial(
            plotting.fronts_figure, panels, order=penalties, rows=rows, share_limits=True
        )
        seeds = _describe_seeds([experiment for _, experiment in grid])
        yield f"the effect of the penalty λ and the Dirichlet parameter α, {seeds}", draw


def _list_face_figures(experiments: Experiments) -> Drawable:
    """Draw fronts of two tasks in one figure, each front of COSMOS on three in its own."""
    yield from _list_front_figures(experiments)
    labels = label_experiments(experiments)
    for e in experiments:
        # a front of three objectives needs three projections, so it has a figure of its own
        if len(e.objectives) == 3 and not e.ideal:
            name = f"{labels[e.name]} on {title_benchmark(e.benchmark)}"
            caption = f"front of {name}, {_describe_seeds([e])}"
            yield caption, partial(plotting.front_figure, [get_front(e)])


def _list_intuition_figures(experiments: Experiments) -> Drawable:
    """Draw a row per toy problem, a panel per method and its settings."""
    exact = {e.name: compute_exact_front(e.problem) for e in experiments}
    order = list_benchmarks(experiments)
    labels = label_experiments(experiments)
    titles = title_benchmarks(order)
    panels, rows = {}, {}
    for e in sorted(experiments, key=lambda e: order.index(e.benchmark)):
        front = exact[e.name]
        if front is not None:
            title = f"{titles[e.benchmark]}: {labels[e.name]}"
            panels[title] = plotting.Known(get_front(e), front.values)
            rows[title] = titles[e.benchmark]
    if panels:
        caption = "what a weighted sum finds, and what the penalty λ of COSMOS does"
        yield caption, partial(plotting.intuition_figure, panels, rows=rows)


FIGURES: dict[str, Callable[[Experiments], Drawable]] = {
    "table": _list_front_figures,
    "fronts": _list_front_figures,
    "convergence": _list_convergence_figures,
    "ablation": _list_ablation_figures,
    "celeba": _list_face_figures,
    "intuition": _list_intuition_figures,
}
"""By what a recipe shows, the function that lists its figures."""


def _describe_seeds(experiments: Experiments) -> str:
    counts = sorted({len(experiment.seeds) for experiment in experiments})
    if counts == [1]:
        return "one seed"
    return f"mean of {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'} seeds"


def _name_row(experiment: ExperimentResult) -> str:
    """Return what panels of one row share: their objectives and protocol."""
    return f"{', '.join(experiment.objectives)}, {experiment.protocol}"


def _sort_by_row(experiments: Experiments) -> list[ExperimentResult]:
    rows = list(dict.fromkeys(map(_name_row, experiments)))
    return sorted(experiments, key=lambda e: rows.index(_name_row(e)))


def _name_rows(experiments: Experiments, titles: Mapping[str, str]) -> dict[str, str]:
    """Return the row of each panel by its title; panels that share no row are all in one."""
    rows = {titles[e.name]: _name_row(e) for e in experiments}
    return rows if len({*rows.values()}) < len(rows) else dict.fromkeys(rows, "")
