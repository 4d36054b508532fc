"""What the command line shows: tables and JSON on stdout, notes and the bar on stderr."""

from paretocosmos.cli.output._bars import bar, bars
from paretocosmos.cli.output._choice import print_choice
from paretocosmos.cli.output._comparison import print_comparison
from paretocosmos.cli.output._console import error, note, notes, plain, print_json
from paretocosmos.cli.output._exported import print_exported
from paretocosmos.cli.output._front import print_front
from paretocosmos.cli.output._report import print_report
from paretocosmos.cli.output._reproduction import cells, print_reproduction
from paretocosmos.cli.output._run import numbers_of_run, print_run, print_runs

__all__ = [
    "bar",
    "bars",
    "cells",
    "error",
    "note",
    "notes",
    "numbers_of_run",
    "plain",
    "print_choice",
    "print_comparison",
    "print_exported",
    "print_front",
    "print_json",
    "print_report",
    "print_reproduction",
    "print_run",
    "print_runs",
]
