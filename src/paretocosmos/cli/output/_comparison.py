"""What `compare` prints."""

import sys
from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from paretocosmos.cli.output._console import wide
from paretocosmos.pareto.metrics import MEANINGS
from paretocosmos.training.compare import Comparison

__all__ = ["print_comparison"]

# Columns a terminal needs for the names of all that dominate a method; else it sees the first.
ROOM = 130


def print_comparison(done: Comparison) -> None:
    """What `compare` ends with: a row per method, how good it is before what it costs."""
    console = wide()
    all_names = not sys.stdout.isatty() or console.width >= ROOM
    beside = "separate" in done.runs
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("method", overflow="fold")
    rows = [_cells(row, beside=beside, roomy=all_names or not beside) for row in done.rows]
    for name in rows[0]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("dominated by")
    for row, cells in zip(done.rows, rows, strict=True):
        betters = _betters(row["dominated_by"], all_names=all_names)
        table.add_row(f"[bold]{escape(row['method'])}[/]", *cells.values(), escape(betters))
    console.print(table)
    reference = ", ".join(
        f"{value:g}" for value in next(iter(done.runs.values()))[0].front.reference
    )
    lines = [f"order: {MEANINGS['monotonicity']}"]
    if beside:
        lines += [f"range: {MEANINGS['range_covered']}", f"behind: {MEANINGS['igd_plus']}"]
    lines += [f"hypervolume: on test, at ({reference}); larger is better"]
    for row in done.rows:
        if row["method"] in done.alone:
            lines.append(
                f"{row['method']}: its ideal point, the best of every objective, has "
                f"{row['hypervolume_ideal']:.4f}"
            )
    lines.append("dominated by: the share of a method's points that a point of another dominates")
    if not all_names and any(len(row["dominated_by"]) > 1 for row in done.rows):
        lines.append("+2: two others dominate some of its points too; compare.json has them")
    for line in lines:
        console.print(escape(line), soft_wrap=True)
    for name, place in (("table", "compare.json"), ("picture", "compare.png")):
        if (done.folder / place).exists():
            console.print(f"[bold]{name}[/] {escape(str(done.folder / place))}", soft_wrap=True)


def _cells(row: Mapping[str, Any], *, beside: bool, roomy: bool) -> dict[str, str]:
    """The columns between a method's name and what dominates it."""

    def measure(name: str, form: str) -> str:
        # one point has no order and no range
        return "-" if row["points"] == 1 or row.get(name) is None else format(row[name], form)

    cells = {"order": measure("monotonicity", ".2f")}
    if beside:
        cells |= {"range": measure("range_covered", ".0%"), "behind": measure("igd_plus", ".3f")}
    cells["hypervolume"] = _mean(row)
    if roomy:
        cells |= {"points": str(row["points"]), "parameters": _size(row)}
    return cells | {"time": f"{row['seconds']:.1f} s"}


def _mean(row: Mapping[str, Any]) -> str:
    spread = "" if row["hypervolume_std"] is None else f" ± {row['hypervolume_std']:.4f}"
    return f"{row['hypervolume']:.4f}{spread}"


def _size(row: Mapping[str, Any]) -> str:
    each, count = row["parameters"] // row["networks"], row["networks"]
    return f"{count} x {each:,}" if count > 1 else f"{each:,}"


def _betters(shares: Mapping[str, float], *, all_names: bool) -> str:
    said = [f"{name} {_percent(share)}" for name, share in shares.items()]
    shown = said if all_names else said[:1]
    more = f" +{len(said) - len(shown)}" if len(said) > len(shown) else ""
    return ", ".join(shown) + more or "-"


def _percent(share: float) -> str:
    """Neither 0 for what is a little nor 100 for what is not all."""
    return "<1%" if share < 0.005 else ">99%" if 0.995 <= share < 1 else f"{share:.0%}"
