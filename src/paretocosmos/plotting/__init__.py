"""Figures of fronts and of methods.

`front` draws fronts of one run, two objectives in one panel and more in a grid of pairs;
`comparison` draws several methods; `panels` has the sheets of the paper's reproduction. `style`
holds what all of them share, and `dark` writes a picture once more for dark pages.
"""

from paretocosmos.plotting.comparison import comparison_figure, save_comparison
from paretocosmos.plotting.dark import save_dark
from paretocosmos.plotting.front import front_figure, save_front, select_limits
from paretocosmos.plotting.intuition import Known, intuition_figure
from paretocosmos.plotting.panels import (
    ablation_figure,
    convergence_figure,
    fronts_figure,
    three_figure,
)
from paretocosmos.plotting.style import Picture, save_figure

__all__ = [
    "Known",
    "Picture",
    "ablation_figure",
    "comparison_figure",
    "convergence_figure",
    "front_figure",
    "fronts_figure",
    "intuition_figure",
    "save_comparison",
    "save_dark",
    "save_figure",
    "save_front",
    "select_limits",
    "three_figure",
]
