"""Fused CUDA kernels for the blocks of a small convolutional network.

A LeNet block through a library is some ten kernels forward and back, each bound by its launch or by
memory traffic that fusing removes. Here it is one forward and two to five back. Triton compiles
them at first use; it comes with the CUDA builds of torch and is no dependency of this package, so
nothing here imports it until a kernel is asked for.
"""

from paretocosmos.layers.kernels._blocks import Precision, conv_pool, usable
from paretocosmos.layers.kernels._rays import map_term, ray_maps, usable_maps, usable_term
from paretocosmos.layers.kernels._where import taken

__all__ = [
    "Precision",
    "conv_pool",
    "map_term",
    "ray_maps",
    "taken",
    "usable",
    "usable_maps",
    "usable_term",
]
