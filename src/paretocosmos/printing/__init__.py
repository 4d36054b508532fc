"""What the command line shows: tables and JSON on stdout, notes and the bar on stderr."""

from paretocosmos.printing._bars import bar, bars
from paretocosmos.printing._choice import print_choice
from paretocosmos.printing._comparison import print_comparison
from paretocosmos.printing._console import error, note, notes, plain, print_json
from paretocosmos.printing._exported import print_exported
from paretocosmos.printing._front import print_front
from paretocosmos.printing._report import print_report
from paretocosmos.printing._reproduction import cells, print_reproduction
from paretocosmos.printing._run import numbers_of_run, print_run, print_runs

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
