"""Fused CUDA kernels for the blocks of a small convolutional network.

A LeNet block through a library is some ten kernels forward and back, each bound by its launch or by
memory traffic that fusing removes. Here it is one forward and two to five back. Triton compiles
them at first use; it comes with the CUDA builds of torch and is no dependency of this package, so
nothing here imports it until a kernel is asked for.

`fused.py` has the functions that networks call, and decides between kernel and library;
`conv_pool_ops.py` and `ray_maps_ops.py` make them operators of torch and launch the kernels in
`*_triton.py` and `conv_pool_direct.py`.
"""

from paretocosmos.nn.kernels.fused import (
    Precision,
    can_fuse_conv_pool,
    can_fuse_map_term,
    can_fuse_ray_maps,
    conv_pool,
    map_term,
    ray_maps,
    supports_tensors,
)
