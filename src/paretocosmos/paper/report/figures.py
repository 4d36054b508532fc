"""The figures of a recipe, from what was collected of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from paretocosmos import plotting
from paretocosmos.paper.claims import GRID, compute_exact_front, get_front, iterate_grid
from paretocosmos.paper.published import method_title
from paretocosmos.paper.report.tables import Experiments, label_experiments
from paretocosmos.paper.results import ExperimentResult, RecipeResult
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
    epochs = result.rehearsal
    mark = "" if epochs is None else f"REHEARSAL, {epochs} epoch{'s' * (epochs > 1)}: "
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
    planar = _sort_by_kind([e for e in experiments if len(e.objectives) == 2])
    if not planar:
        return
    # a protocol that all panels share is not repeated in each title
    several = len({experiment.protocol for experiment in planar}) > 1
    labels = label_experiments(planar)
    titles = {e.name: e.benchmark_title(protocol=several) for e in planar}
    panels: dict[str, dict[str, Front]] = {}
    for e in planar:
        panels.setdefault(titles[e.name], {})[labels[e.name]] = get_front(e)
    # their networks are drawn, but no line joins them
    ideal = {labels[e.name] for e in planar if e.volume_of == "ideal point"}
    rows = _group_panels(planar, titles)
    draw = partial(plotting.fronts_figure, panels, ideal=ideal, order=LOOKS, rows=rows)
    yield f"fronts on the test split, {_describe_seeds(planar)}", draw


def _list_convergence_figures(experiments: Experiments) -> Drawable:
    """Draw a panel per benchmark and method."""
    # runs that kept no validation fronts have no course
    drawn = _sort_by_kind([experiment for experiment in experiments if experiment.course])
    titles = _title_panels(drawn, label_experiments(drawn))
    panels = {
        titles[e.name]: {f"epoch {stage.epoch}": get_front(e, stage) for stage in e.course}
        for e in drawn
    }
    if panels:
        names = ", ".join(dict.fromkeys(method_title(experiment.method) for experiment in drawn))
        epochs = sorted({stage.epoch for e in drawn for stage in e.course})
        draw = partial(
            plotting.fronts_figure,
            panels,
            order=[f"epoch {epoch}" for epoch in epochs],
            rows=_group_panels(drawn, titles),
            graded=True,
        )
        yield f"validation fronts of {names} over epochs, {_describe_seeds(drawn)}", draw


def _list_ablation_figures(experiments: Experiments) -> Drawable:
    """Draw a row per benchmark, a panel per alpha."""
    grid = list(iterate_grid(experiments))
    drawn = [experiment for _, experiment in grid]
    titles = _title_panels(drawn, label_experiments(drawn, aside=GRID))
    panels: dict[str, dict[str, Front]] = {}
    rows = {}
    for (penalty, alpha), experiment in sorted(grid, key=lambda entry: entry[0]):
        title = f"{titles[experiment.name]}, α {alpha:g}"
        panels.setdefault(title, {})[f"λ {penalty:g}"] = get_front(experiment)
        rows[title] = titles[experiment.name]
    if panels:
        seeds = _describe_seeds(drawn)
        caption = f"the effect of the penalty λ and the Dirichlet parameter α, {seeds}"
        order = [f"λ {penalty:g}" for penalty in sorted({point[0] for point, _ in grid})]
        # panel by panel as the recipe has the benchmarks
        panels = {
            k: panels[k] for k in sorted(panels, key=lambda k: list(titles.values()).index(rows[k]))
        }
        yield (
            caption,
            partial(plotting.fronts_figure, panels, order=order, rows=rows, share_limits=True),
        )


def _list_face_figures(experiments: Experiments) -> Drawable:
    """Draw fronts of two tasks in one figure, each front of COSMOS on three in its own."""
    yield from _list_front_figures(experiments)
    labels = label_experiments(experiments)
    for e in experiments:
        # a front of three objectives needs three projections, so it has a figure of its own
        if len(e.objectives) == 3 and e.volume_of == "front":
            name = f"{labels[e.name]} on {e.benchmark_title(protocol=False)}"
            caption = f"front of {name}, {_describe_seeds([e])}"
            yield caption, partial(plotting.front_figure, [get_front(e)])


def _list_intuition_figures(experiments: Experiments) -> Drawable:
    """Draw a row per toy problem, a panel per method and penalty."""
    # computed once: each is needed to filter and to draw
    fronts = {e.name: compute_exact_front(e.problem) for e in experiments}
    toys = [e for e in experiments if fronts[e.name] is not None]
    # empty labels: the penalty is added to the title below
    benchmarks = _title_panels(toys, dict.fromkeys((e.name for e in toys), ""))
    labels = label_experiments(toys, aside=["penalty"])
    several = len({labels[e.name] for e in toys if "penalty" in e.varied}) > 1
    # sorting by first appearance puts the panels of one problem in one row
    order = list(dict.fromkeys(benchmarks.values()))
    panels, rows = {}, {}
    for e in sorted(toys, key=lambda e: order.index(benchmarks[e.name])):
        penalty, exact = e.varied.get("penalty"), fronts[e.name]
        # for the type checker: `toys` has only these
        assert exact is not None
        # the penalty tells panels of COSMOS apart, unless other settings differ as well
        parts = [labels[e.name] if penalty is None or several else ""]
        parts += [] if penalty is None else [f"λ {penalty:g}"]
        title = f"{benchmarks[e.name]}: {', '.join(filter(None, parts))}"
        panels[title] = plotting.Known(get_front(e), exact.values)
        rows[title] = benchmarks[e.name]
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
    "study": _list_front_figures,
}
"""By what a recipe shows, the function that lists its figures."""


def _describe_seeds(experiments: Experiments) -> str:
    counts = sorted({len(experiment.seeds) for experiment in experiments})
    if counts == [1]:
        return "one seed"
    return f"mean of {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'} seeds"


def _title_panels(experiments: Experiments, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the panel title of each experiment: its benchmark, and more if panels need it."""
    benchmarks = {e.benchmark for e in experiments}
    methods = {(e.benchmark, labels[e.name]) for e in experiments}
    several = len(benchmarks) > len({key[:2] for key in benchmarks})
    return {
        e.name: e.benchmark_title(protocol=several)
        + (f", {labels[e.name]}" if len(methods) > len(benchmarks) else "")
        for e in experiments
    }


def _sort_by_kind(experiments: Sequence[ExperimentResult]) -> list[ExperimentResult]:
    """Put experiments with the same objectives side by side, and of those the same protocol."""
    kinds = list(dict.fromkeys(tuple(e.objectives) for e in experiments))
    protocols = list(dict.fromkeys(e.protocol for e in experiments))
    return sorted(
        experiments, key=lambda e: (kinds.index(tuple(e.objectives)), protocols.index(e.protocol))
    )


def _group_panels(experiments: Experiments, titles: Mapping[str, str]) -> dict[str, str]:
    """Return by a panel's title what it shares a row with: its objectives, maybe its protocol.

    A protocol has a row if several benchmarks share it. Panels that all have different objectives
    are in one row.
    """
    panels = {titles[experiment.name]: experiment for experiment in experiments}
    kinds = {title: ", ".join(experiment.objectives) for title, experiment in panels.items()}
    # no axis is shared, so separate rows would gain nothing
    if len(set(kinds.values())) == len(panels):
        return dict.fromkeys(panels, "")
    rows = {}
    for title, kind in kinds.items():
        # `shared` if two panels of this kind have one protocol, so that a row has more than one
        # panel
        protocols = [e.protocol for other_title, e in panels.items() if kinds[other_title] == kind]
        shared = len(set(protocols)) < len(protocols)
        rows[title] = f"{kind}, {panels[title].protocol}" if shared else kind
    return rows
