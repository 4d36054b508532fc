"""The explorer: one HTML file that shows runs and their fronts, offline, without Python.

`evaluate_page` evaluates runs for a page, with classes read and counted by `predictions`;
`page_model` is what it shows, which `serialize` writes as one file; `pages` shows that file in a
browser or a notebook. `live` is the page of a training that is under way.
"""

from paretocosmos.explorer.evaluate_page import look_at
from paretocosmos.explorer.page_model import (
    Answers,
    Cell,
    Head,
    Look,
    Outcome,
    Samples,
    View,
    Words,
    build_words,
)
from paretocosmos.explorer.pages import HEIGHT, Page, explore, write_page
from paretocosmos.explorer.serialize import write_report

__all__ = [
    "HEIGHT",
    "Answers",
    "Cell",
    "Head",
    "Look",
    "Outcome",
    "Page",
    "Samples",
    "View",
    "Words",
    "build_words",
    "explore",
    "look_at",
    "write_page",
    "write_report",
]
