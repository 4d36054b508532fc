"""What the files of this package may say: a model of every kind of file, and the limits.

A file is checked against its model before anything in it is used: `record` has `run.json`, `front`,
`table` and `checkpoint` what lies beside it, `recipe` the TOML of recipes, `cell` and `collected`
what `reproduce` and `report` leave. These modules draw in pydantic, so they are imported where a
file is read; what is here draws in nothing.
"""

FILES = ("model.safetensors", "front.json", "front_val.json", "table.json")
"""What a finished run has beside its record."""

CELL = "cell.json"
"""What a reproduction keeps of a cell beside its runs."""

MOST = 1_000_000
"""Of anything that is counted: epochs, rays, outputs."""

VALUES = 2**26
"""Numbers of one sample: an image of 4,000 by 4,000 pixels in colour."""

SETTINGS = 10_000
"""Entries of a list among a thing's settings; cells of a recipe's grid."""

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
