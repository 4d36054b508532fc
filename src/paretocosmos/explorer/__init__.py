"""The explorer: one HTML file that shows runs and their fronts, offline, without Python.

`evaluate_page` evaluates runs, `predictions` reads and counts predicted classes, `page_model`
holds the result, and `serialize` writes it as one file, which a browser or a notebook shows.
"""

from paretocosmos.explorer.evaluate_page import build_page_model
from paretocosmos.explorer.page_model import (
    Answers,
    Cell,
    Head,
    Outcome,
    PageModel,
    RunView,
    Samples,
    Words,
    build_words,
)
from paretocosmos.explorer.serialize import HEIGHT, Page, explore, write_page, write_report
