"""The explorer: one HTML file that shows runs and their fronts, offline, without Python.

`evaluate_page` evaluates runs, `predictions` reads and counts predicted classes, `page_model`
holds the result, `serialize` writes it as one file, and `pages` shows that file in a browser or a
notebook.
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
from paretocosmos.explorer.pages import HEIGHT, Page, explore, write_page
from paretocosmos.explorer.serialize import write_report
