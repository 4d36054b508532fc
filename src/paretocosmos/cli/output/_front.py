"""What `evaluate` prints."""

from rich.table import Table

from paretocosmos.cli.output._console import wide
from paretocosmos.pareto.front import Front

__all__ = ["print_front"]


def print_front(front: Front) -> None:
    """One row per ray; 80 columns hold two objectives with their metrics."""
    metrics_shown = [name for name in front.metrics if name != "misclassification"]  # 1 - accuracy
    weights = front.names[:1] if front.objectives == 2 else front.names
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in (*(f"weight on {name}" for name in weights), *front.names, *metrics_shown):
        table.add_column(name.replace("_", " "), justify="right", overflow="fold")
    table.add_column("", no_wrap=True)
    keep = front.non_dominated
    for index in range(len(front)):
        row = [*front.rays[index][: len(weights)], *front.values[index]]
        row += [front.metrics[name][index] for name in metrics_shown]
        table.add_row(*(f"{value:.3f}" for value in row), "" if keep[index] else "dominated")
    wide().print(table)
