"""The study's table: every front beside separate networks, by what a user reads first."""

from collections.abc import Sequence
from dataclasses import replace

from paretocosmos.io.schema.collected import CellResult
from paretocosmos.paper._fronts import front_of
from paretocosmos.paper.names import SetKey, set_key, set_title, variation
from paretocosmos.paper.report._labels import labels
from paretocosmos.paper.report._parts import NONE, Columns, Table, table_of
from paretocosmos.paper.report._texts import duration, in_order, mean
from paretocosmos.pareto.metrics import front_report

__all__ = ["table_of_study"]

MEANING = (
    "Order is the rank correlation between a goal's weight and minus its loss, for the worst goal: "
    "1 means that more weight always lowers the loss. Dominated is the share of rays that another "
    "beats in everything. Utility is the expected weighted sum of the losses over all weights, so "
    "less is better. Range and box compare with separate networks under the default preset, a "
    "network for each ray: what share of their range the front covers, and its hypervolume within "
    "the box around their front, both of mean fronts; a front that lies wholly below theirs may "
    "be short and still better everywhere. Networks for single objectives form no front."
)


def table_of_study(cells: Sequence[CellResult]) -> list[Table]:
    """Order, range and height of every front, a row per cell."""
    done, called = [cell for cell in cells if cell.seeds], labels(cells)
    separate = {
        set_key(cell): cell for cell in done if cell.method == "separate" and not variation(cell)
    }
    beside = {cell.name: _beside(cell, separate) for cell in done}
    columns: Columns = [
        ("set", set_title),
        ("trained", lambda c: called[c.name]),
        ("order", lambda c: mean(c.metrics.get("monotonicity"), 2)),
        ("dominated", lambda c: _percent(c, "dominated_share")),
        ("utility", lambda c: mean(c.metrics.get("expected_utility"))),
        ("hypervolume", lambda c: mean(c.volume)),
        ("range", lambda c: beside[c.name].get("range_covered", NONE)),
        ("box", lambda c: beside[c.name].get("hypervolume_in_separate_box", NONE)),
        ("a seed takes", lambda c: duration(c.seconds.training.mean)),
        ("seeds", lambda c: str(len(c.seeds))),
    ]
    table = table_of("Order, range and height", in_order(done), columns)
    return [replace(table, notes={"*": MEANING})]


def _beside(cell: CellResult, separate: dict[SetKey, CellResult]) -> dict[str, str]:
    """The front's numbers beside separate networks on the same set, where there are some."""
    other = separate.get(set_key(cell))
    if other is None or other is cell or cell.volume_of != "front":
        return {}
    numbers = front_report(front_of(cell), front_of(other)).numbers
    return {
        "range_covered": f"{numbers['range_covered']:.0%}",
        "hypervolume_in_separate_box": f"{numbers['hypervolume_in_separate_box']:.3f}",
    }


def _percent(cell: CellResult, name: str) -> str:
    found = cell.metrics.get(name)
    return NONE if found is None else f"{found.mean:.0%}"
