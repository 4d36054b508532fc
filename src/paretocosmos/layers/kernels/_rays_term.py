# mypy: ignore-errors
# ruff: noqa: E741, N803, N806, RUF005
"""The kernels of what maps add to a convolution, in Triton; see `_rays_maps.py` for what counts.

The way back rests on this: an enlarged map is constant on the pixels of a cell, so both gradients
need the output's gradient only as sums over a cell, one for each tap of the filter. Those sums
(`cells_kernel`) do not depend on the number of maps, and what is left is two small products.
"""

from __future__ import annotations  # the annotations name `tl`, which may be missing

from paretocosmos.layers.kernels._triton import jit, tl

__all__ = ["cells_kernel", "contract_kernel", "term_kernel"]


@jit
def _source(pixel, scale, SIZE: tl.constexpr):
    """The cell of an enlarged pixel: one product in float32, as ATen has it, so bit for bit."""
    return tl.minimum((pixel.to(tl.float32) * scale).to(tl.int32), SIZE - 1)


@jit
def _begin(cell, scale, SIZE: tl.constexpr, ENLARGED: tl.constexpr):
    """The first pixel of a cell: as it would be without rounding, then moved where that differs."""
    pixel = (cell * ENLARGED + (SIZE - 1)) // SIZE
    pixel += (_source(pixel, scale, SIZE) < cell).to(tl.int32)
    return pixel - ((pixel > 0) & (_source(pixel - 1, scale, SIZE) >= cell)).to(tl.int32)


@jit
def term_kernel(
    maps,  # [S, B, J, MH, MW], seeds x_seed apart
    weight,  # [S, O, J, K, K]
    term,  # [S, B, O, H - K + 1, W - K + 1]
    x_seed,
    batch,
    down,  # MH / H
    across,  # MW / W
    J: tl.constexpr,
    O: tl.constexpr,
    K: tl.constexpr,
    MH: tl.constexpr,
    MW: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    JP: tl.constexpr,
    P: tl.constexpr,
):
    """P positions of one channel; a lane takes one map, so that all loads go out at once."""
    plane = tl.program_id(0).to(tl.int64)
    seed = plane // batch
    o = tl.program_id(2)
    CW: tl.constexpr = W - K + 1
    CC: tl.constexpr = (H - K + 1) * CW
    m = tl.program_id(1) * P + tl.arange(0, P)
    safe = tl.minimum(m, CC - 1)
    y = safe // CW
    x = safe % CW
    j = tl.arange(0, JP)[:, None]
    real = j < J
    maps += seed * x_seed + plane % batch * (J * MH * MW)
    weight += seed * (O * J * K * K) + o * (J * K * K)
    columns = ()
    for kx in tl.static_range(K):
        columns = columns + (_source(x + kx, across, MW),)
    total = tl.zeros([JP, P], tl.float32)
    for ky in tl.static_range(K):
        row = _source(y + ky, down, MH) * MW
        for kx in tl.static_range(K):
            at = maps + (j * (MH * MW) + (row + columns[kx])[None, :])
            w = tl.load(weight + (j * (K * K) + (ky * K + kx)), mask=real, other=0.0)
            total += w * tl.load(at, mask=real, other=0.0)
    tl.store(term + (plane * O + o) * CC + m, tl.sum(total, 0), mask=m < CC)


@jit
def cells_kernel(
    grad,  # [S, B, O, H - K + 1, W - K + 1]
    cells,  # [S, B, O, K, K, MH, MW]
    down,
    across,
    K: tl.constexpr,
    MH: tl.constexpr,
    MW: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    MOST_Y: tl.constexpr,  # pixels of a cell, at most
    MOST_X: tl.constexpr,
    P: tl.constexpr,
):
    """The output's gradient, summed over the pixels that see a cell through a tap."""
    plane = tl.program_id(0).to(tl.int64)
    CH: tl.constexpr = H - K + 1
    CW: tl.constexpr = W - K + 1
    SIZE: tl.constexpr = K * K * MH * MW
    q = tl.program_id(1) * P + tl.arange(0, P)
    ky = q // (MH * MW) // K
    kx = q // (MH * MW) % K
    cy = q % (MH * MW) // MW
    cx = q % MW
    y = _begin(cy, down, MH, H)
    x = _begin(cx, across, MW, W)
    columns = ()
    for i in tl.static_range(MOST_X):
        seen = (_source(x + i, across, MW) == cx) & (x + i < W)
        columns = columns + (seen & (x + i >= kx) & (x + i - kx < CW),)
    at = grad + plane * (CH * CW) + ((y - ky) * CW + x - kx)
    total = tl.zeros([P], tl.float32)
    for i in tl.static_range(MOST_Y):
        seen = (_source(y + i, down, MH) == cy) & (y + i < H) & (q < SIZE)
        seen = seen & (y + i >= ky) & (y + i - ky < CH)
        for j in tl.static_range(MOST_X):
            total += tl.load(at + (i * CW + j), mask=seen & columns[j], other=0.0)
    tl.store(cells + plane * SIZE + q, total, mask=q < SIZE)


@jit
def _maps_part(
    part,
    cells,
    weight,
    dmaps,
    batch,
    J: tl.constexpr,
    O: tl.constexpr,
    KK: tl.constexpr,
    SIZE: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
):
    """P cells of one map's gradient: a sum over channels and taps, R at a time."""
    BLOCKS: tl.constexpr = (SIZE + P - 1) // P
    plane = (part // (BLOCKS * J)).to(tl.int64)
    j = part // BLOCKS % J
    c = part % BLOCKS * P + tl.arange(0, P)
    weight += plane // batch * (O * J * KK) + j * KK
    cells += plane * (O * KK * SIZE)
    total = tl.zeros([R, P], tl.float32)
    for start in range(0, O * KK, R):
        n = start + tl.arange(0, R)
        w = tl.load(weight + (n // KK * (J * KK) + n % KK), mask=n < O * KK, other=0.0)
        some = (n < O * KK)[:, None] & (c < SIZE)[None, :]
        value = tl.load(cells + (n[:, None] * SIZE + c[None, :]), mask=some, other=0.0)
        total += w[:, None] * value
    tl.store(dmaps + (plane * J + j) * SIZE + c, tl.sum(total, 0), mask=c < SIZE)


@jit
def _weights_part(
    part,
    cells,
    maps,
    dweight,
    x_seed,
    batch,
    J: tl.constexpr,
    O: tl.constexpr,
    KK: tl.constexpr,
    SIZE: tl.constexpr,
    N: tl.constexpr,
    C: tl.constexpr,
):
    """N weights that read one map: a sum over rays and cells, C at a time."""
    BLOCKS: tl.constexpr = (O * KK + N - 1) // N
    seed = (part // (BLOCKS * J)).to(tl.int64)
    j = part // BLOCKS % J
    n = part % BLOCKS * N + tl.arange(0, N)
    maps += seed * x_seed + j * SIZE
    cells += seed * batch * (O * KK * SIZE)
    total = tl.zeros([N, C], tl.float32)
    for _ in range(batch):
        for start in range(0, SIZE, C):
            c = start + tl.arange(0, C)
            v = tl.load(maps + c, mask=c < SIZE, other=0.0)
            some = (n < O * KK)[:, None] & (c < SIZE)[None, :]
            at = cells + (n[:, None] * SIZE + c[None, :])
            total += tl.load(at, mask=some, other=0.0) * v[None, :]
        maps += J * SIZE
        cells += O * KK * SIZE
    at = dweight + seed * (O * J * KK) + (n // KK * (J * KK) + j * KK + n % KK)
    tl.store(at, tl.sum(total, 1), mask=n < O * KK)


@jit
def contract_kernel(
    cells,  # [S, B, O, K, K, MH, MW]
    maps,  # [S, B, J, MH, MW], seeds x_seed apart
    weight,  # [S, O, J, K, K]
    dmaps,
    dweight,
    x_seed,
    batch,
    tiles,  # programs that do dmaps; the others do dweight
    J: tl.constexpr,
    O: tl.constexpr,
    KK: tl.constexpr,
    SIZE: tl.constexpr,  # MH * MW
    R: tl.constexpr,
    P: tl.constexpr,
    N: tl.constexpr,
    C: tl.constexpr,
):
    """Both gradients of the term from the sums over cells, in one launch."""
    part = tl.program_id(0)
    if part < tiles:
        _maps_part(part, cells, weight, dmaps, batch, J, O, KK, SIZE, R, P)
    else:
        _weights_part(part - tiles, cells, maps, dweight, x_seed, batch, J, O, KK, SIZE, N, C)
