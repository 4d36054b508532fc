"""Sixty networks that conditioning was not written for, five of each kind."""

from collections.abc import Mapping

from tests.networks._entry import Made
from tests.networks.adapted import LORA, PARAMETRISED, QUANTISED
from tests.networks.convolutions import IMAGES, SIGNALS_AND_VOLUMES, U_NETS
from tests.networks.foreign import TRANSFORMERS
from tests.networks.mappings import EMBEDDINGS, GRAPHS, ONE_MAPPING
from tests.networks.sequences import RECURRENT, TIME_FIRST

__all__ = ["KINDS", "NEEDS_EXTRAS", "NETWORKS"]

NEEDS_EXTRAS = "transformers"
"""The kind whose package is an extra."""

KINDS: Mapping[str, Mapping[str, Made]] = {
    "time-first sequences": TIME_FIRST,
    "LSTM and GRU": RECURRENT,
    "1d and 3d convolutions": SIGNALS_AND_VOLUMES,
    "U-Nets, segmentation": U_NETS,
    "images": IMAGES,
    "one mapping as argument": ONE_MAPPING,
    "graphs": GRAPHS,
    "embeddings": EMBEDDINGS,
    "normalised weights": PARAMETRISED,
    "LoRA": LORA,
    "quantised": QUANTISED,
    NEEDS_EXTRAS: TRANSFORMERS,
}
NETWORKS: Mapping[str, Made] = {
    name: made for kind in KINDS.values() for name, made in kind.items()
}
