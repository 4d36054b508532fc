"""The explorer: one HTML file that shows runs and their fronts, offline, without Python."""

from paretocosmos.explorer._look import look_at
from paretocosmos.explorer._view import Answers, Cell, Head, Look, Outcome, Samples, View, Words
from paretocosmos.explorer._words import words_of
from paretocosmos.explorer._write import write_report
from paretocosmos.explorer.inline import Page, explore

__all__ = [
    "Answers",
    "Cell",
    "Head",
    "Look",
    "Outcome",
    "Page",
    "Samples",
    "View",
    "Words",
    "explore",
    "look_at",
    "words_of",
    "write_report",
]
