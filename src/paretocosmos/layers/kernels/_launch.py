"""How the kernels are launched: shapes, grids, and the table of tile sizes.

Everything here takes stacked tensors, seeds first, and gives new ones. Launches only: no value is
read back, and no memory but torch's is taken, so all of it can be captured in a CUDA graph.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from paretocosmos.layers.kernels import _direct, _triton, _triton_back

__all__ = [
    "MOST_DIRECT",
    "TILES",
    "Sizes",
    "Tile",
    "forward",
    "input_gradient",
    "term_gradient",
    "tile_of",
    "weight_gradients",
]

MOST_DIRECT = 5  # side of the kernel up to which one input channel is convolved directly


class Tile(NamedTuple):
    """What one program of a kernel does at a time."""

    positions: int
    chunk: int  # of the other axis: weights, window pixels or samples; 0: a direct kernel
    warps: int
    stages: int
    programs: int = 0  # over which a sum over positions is split, all seeds together


# (kernel, one input channel?) to tile; chosen with `python3 -m benchmarks.kernels` on an H200
TILES = {
    ("forward", True): Tile(256, 0, 4, 1),
    ("forward", False): Tile(32, 32, 2, 1),
    ("weights", True): Tile(32, 0, 1, 1, 2112),
    ("weights", False): Tile(32, 32, 2, 1, 528),
    ("windows", True): Tile(64, 128, 4, 1),
    ("windows", False): Tile(64, 128, 4, 1),
    ("fold", True): Tile(512, 0, 4, 1),
    ("fold", False): Tile(512, 0, 4, 1),
    ("term", True): Tile(32, 32, 4, 1),
    ("term", False): Tile(32, 32, 4, 1),
    ("reduce", True): Tile(32, 64, 4, 1),
    ("reduce", False): Tile(32, 64, 4, 1),
}


class Sizes(NamedTuple):
    """The numbers of one call, from the shapes of x [S,B,C,H,W] and weight [S,O,C,K,K]."""

    seeds: int
    batch: int
    c: int
    h: int
    w: int
    o: int
    k: int

    @classmethod
    def of(cls, x: Tensor, weight: Tensor) -> "Sizes":
        seeds, batch, c, h, w = x.shape
        return cls(seeds, batch, c, h, w, weight.shape[1], weight.shape[-1])

    @property
    def conv(self) -> tuple[int, int]:
        """Height and width of the convolution's output."""
        return self.h - self.k + 1, self.w - self.k + 1

    @property
    def pooled(self) -> tuple[int, int]:
        """Height and width after the pool."""
        return self.conv[0] // 2, self.conv[1] // 2

    @property
    def positions(self) -> int:
        """Pooled positions per seed."""
        return self.batch * self.pooled[0] * self.pooled[1]

    @property
    def fan_in(self) -> int:
        """Weights per output channel."""
        return self.c * self.k * self.k

    @property
    def channels(self) -> int:
        """Output channels, padded to what the matrix unit takes."""
        return max(16, _power(self.o))


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _ceil(n: int, d: int) -> int:
    return -(-n // d)


def tile_of(kernel: str, sizes: Sizes) -> Tile:
    """The tile that the table gives a kernel for these sizes."""
    return TILES[kernel, sizes.c == 1 and sizes.k <= MOST_DIRECT]


def _seed_stride(x: Tensor) -> tuple[Tensor, int]:
    """Give x, inner axes contiguous, and how far its seeds lie apart (0 where they share)."""
    shared = x.shape[0] > 1 and x.stride(0) == 0
    if shared:
        return x[0].contiguous(), 0
    x = x.contiguous()
    return x, x[0].numel()


def forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    term: Tensor | None,
    precision: str,
    tile: Tile | None = None,
) -> tuple[Tensor, Tensor]:
    """Give h [S,B,O,PH,PW] and its code."""
    sizes = Sizes.of(x, weight)
    tile = tile or tile_of("forward", sizes)
    h = x.new_empty((sizes.seeds, sizes.batch, sizes.o, *sizes.pooled))
    code = torch.empty_like(h, dtype=torch.int8)
    x, stride = _seed_stride(x)
    groups = 1 if term is None else term.shape[1]
    grid = _ceil(sizes.positions, tile.positions), sizes.seeds
    given = (
        x,
        weight.contiguous(),
        bias.contiguous(),
        bias if term is None else term.contiguous(),
        h,
        code,
        stride,
        sizes.batch,
        sizes.batch // groups,
    )
    shape = sizes.o, sizes.h, sizes.w, sizes.k, term is not None
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    if tile.chunk:
        inner = sizes.channels, tile.chunk, tile.positions, precision
        _triton.forward_kernel[grid](*given, sizes.c, *shape, *inner, **options)
    else:
        _direct.direct_forward_kernel[grid](*given, *shape, tile.positions, **options)
    return h, code


def weight_gradients(
    x: Tensor,
    weight: Tensor,
    grad: Tensor,
    code: Tensor,
    precision: str,
    tile: Tile | None = None,
    sums: Tile | None = None,
) -> tuple[Tensor, Tensor]:
    """Give dW and db: parts by one kernel, their sum by another; the same bits every time."""
    sizes = Sizes.of(x, weight)
    tile = tile or tile_of("weights", sizes)
    sums = sums or tile_of("reduce", sizes)
    x, stride = _seed_stride(x)
    # a direct kernel has a program per channel where the other has one per chunk of weights
    chunks = _ceil(sizes.fan_in + 1, tile.chunk) if tile.chunk else sizes.o
    every = _ceil(sizes.positions, tile.positions)
    tiles = _ceil(every, max(1, tile.programs // (chunks * sizes.seeds)))
    splits = _ceil(every, tiles)
    partial = x.new_empty((sizes.seeds, splits, sizes.o, sizes.fan_in + 1))
    grid = splits, chunks, sizes.seeds
    given = x, grad.contiguous(), code, partial, stride, sizes.batch, tiles
    shape = sizes.o, sizes.h, sizes.w, sizes.k
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    if tile.chunk:
        inner = sizes.channels, tile.chunk, tile.positions, precision
        _triton_back.weights_kernel[grid](*given, sizes.c, *shape, *inner, **options)
    else:
        _direct.direct_weights_kernel[grid](*given, *shape, tile.positions, **options)
    dweight = torch.empty_like(weight, memory_format=torch.contiguous_format)
    dbias = x.new_empty((sizes.seeds, sizes.o))
    _triton_back.reduce_kernel[_ceil(sizes.o * (sizes.fan_in + 1), sums.positions), sizes.seeds](
        partial,
        dweight,
        dbias,
        splits,
        sizes.o,
        sizes.fan_in,
        sums.chunk,
        sums.positions,
        num_warps=sums.warps,
        num_stages=sums.stages,
    )
    return dweight, dbias


def input_gradient(
    x: Tensor,
    weight: Tensor,
    grad: Tensor,
    code: Tensor,
    precision: str,
    tile: Tile | None = None,
    fold: Tile | None = None,
) -> Tensor:
    """Give dx: each position's gift to its window, then each pixel's sum over windows."""
    sizes = Sizes.of(x, weight)
    tile = tile or tile_of("windows", sizes)
    fold = fold or tile_of("fold", sizes)
    pixels = sizes.c * (sizes.k + 1) ** 2
    windows = x.new_empty((sizes.seeds, pixels, sizes.positions))
    tiles = _ceil(sizes.positions, tile.positions)
    _triton_back.windows_kernel[tiles, _ceil(pixels, tile.chunk), sizes.seeds](
        weight.contiguous(),
        grad.contiguous(),
        code,
        windows,
        sizes.batch,
        sizes.c,
        sizes.o,
        sizes.pooled[0] * sizes.pooled[1],
        sizes.k,
        sizes.channels,
        tile.chunk,
        tile.positions,
        precision,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    dx = x.new_empty(x.shape)
    _triton_back.fold_kernel[_ceil(x[0].numel(), fold.positions), sizes.seeds](
        windows,
        dx,
        sizes.batch,
        *(sizes.c, sizes.h, sizes.w, sizes.k),
        fold.positions,
        num_warps=fold.warps,
        num_stages=fold.stages,
    )
    return dx


def term_gradient(
    x: Tensor, weight: Tensor, grad: Tensor, code: Tensor, groups: int, tile: Tile | None = None
) -> Tensor:
    """Give dterm [S,G,O,CH,CW]."""
    sizes = Sizes.of(x, weight)
    tile = tile or tile_of("term", sizes)
    shape = (sizes.seeds, groups, sizes.o, *sizes.conv)
    odd = sizes.conv[0] % 2 or sizes.conv[1] % 2  # the pool drops a row or column: no gradient
    out = x.new_zeros(shape) if odd else x.new_empty(shape)
    length = sizes.o * sizes.pooled[0] * sizes.pooled[1]
    _triton_back.term_kernel[_ceil(length, tile.positions), groups, sizes.seeds](
        grad.contiguous(),
        code,
        out,
        sizes.batch,
        sizes.batch // groups,
        sizes.o,
        *sizes.conv,
        tile.chunk,
        tile.positions,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return out
