"""Figures of fronts and of methods.

`front` draws fronts of one run, two objectives in one panel and more in a grid of pairs;
`comparison` draws several methods; `panels` has the sheets of the paper's reproduction. `style`
holds what all of them share.
"""

from paretocosmos.plotting.comparison import comparison_figure, save_comparison
from paretocosmos.plotting.front import front_figure, save_front, select_limits
from paretocosmos.plotting.panels import Known, fronts_figure, intuition_figure
from paretocosmos.plotting.style import Picture, save_figure
