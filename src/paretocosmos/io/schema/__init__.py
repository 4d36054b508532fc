"""Names and limits of the files of this package; `models` has what their parts have in common.

The models import pydantic, so they are imported where a file is read; this module imports nothing.
"""

FILES = ("model.safetensors", "front.json", "front_val.json", "table.json")
"""What a finished run has beside its record."""

CELL = "cell.json"
"""What a reproduction keeps of an experiment beside its runs."""

MOST = 1_000_000
"""Of anything that is counted: epochs, rays, outputs."""

VALUES = 2**26
"""Numbers of one sample: an image of 4,000 by 4,000 pixels in colour."""

SETTINGS = 10_000
"""Entries of a list among a thing's settings; experiments of a recipe's grid."""

MOST_WORKERS = 256
"""Processes that one command may start."""

NETWORKS = 10_000
"""Networks of one run."""

SHOWS = ("table", "fronts", "convergence", "ablation", "celeba", "intuition")
"""What is drawn from a recipe."""

PRESETS = ("default", "paper")
"""Whole configurations by name."""

PROTOCOLS = ("paper", "clean")
"""How the data of a recipe is split and scored."""
