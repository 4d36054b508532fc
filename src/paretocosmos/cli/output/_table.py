"""Tables that narrow terminals can show, too."""

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from paretocosmos.cli.output._console import say

# As wide as no table is.
WIDEST = 10_000


def print_table(console: Console, table: Table) -> None:
    """A table; where the terminal is narrower than its words, a block for each row instead.

    The first column names the rows.
    """
    for column in table.columns:
        if column.no_wrap:
            texts = (Text.from_markup(str(cell)) for cell in (column.header, *column.cells))
            column.min_width = max(text.cell_len for text in texts)
    options = console.options.update(max_width=WIDEST)
    if Measurement.get(console, options, table).minimum <= console.width:
        console.print(table)
        return
    heads = [str(column.header) for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        title, *cells = map(str, row)
        say(console, f"[bold]{heads[0]} {title}[/]".replace("[bold] ", "[bold]"))
        block = Table(show_header=False, box=None, padding=(0, 2, 0, 2), pad_edge=True)
        for head, cell in zip(heads[1:], cells, strict=True):
            if cell:
                block.add_row(head, cell)
        console.print(block)
