# mypy: ignore-errors
# ruff: noqa: E741, N803, N806, RUF005
"""The kernels of the ray net, in Triton: rays to maps, maps to what they add, and back.

All of it is below half a million multiplications a seed, so what counts is the number of launches
and how many loads wait for one another, not the arithmetic, which is plain float32. A program loads
its operands as one tile and sums once; loops run only where a size is beyond the usual.

The way back from what the maps add to a convolution rests on this: an enlarged map is constant on
the pixels of a cell, so both gradients need the output's gradient only as sums over a cell, one for
each tap of the filter. Those sums (`cells_kernel`) do not depend on the number of maps, and what is
left is two small products.
"""

from __future__ import annotations  # the annotations name `tl`, which may be missing

from paretocosmos.nn.kernels.conv_pool_triton import jit, tl


@jit
def _apply_relu(value):
    """ReLU that lets NaN through, as torch's does."""
    return tl.where(value <= 0.0, 0.0, value)


@jit
def rays_kernel(
    rays,  # [S, B, J], seeds x_seed apart (0: the same for all)
    first,  # [S, J, J, 4, 4]
    second,  # [S, J, J, 6, 6]
    maps,  # [S, B, J, 10, 10]
    pixels,  # [S, B, J, 4, 4]: between the two layers, kept for the way back
    x_seed,
    batch,  # of rays
    J: tl.constexpr,
    JP: tl.constexpr,  # J, padded
    R: tl.constexpr,
    P: tl.constexpr,
):
    """P pixels of one map; the layer before is computed in every program, cheaper than to wait."""
    plane = tl.program_id(0).to(tl.int64)
    seed = plane // batch
    o = tl.program_id(1)
    m = tl.program_id(2) * P + tl.arange(0, P)
    y = m // 10
    x = m % 10
    r = tl.arange(0, JP)
    address = rays + seed * x_seed + plane % batch * J + r
    entries = tl.load(address, mask=r < J, other=0.0)[:, None]
    first += seed * (J * J * 16)
    second += seed * (J * J * 36) + o * 36
    limit = tl.where(o + tl.program_id(2) == 0, J * 16, 0)  # by one program
    total = tl.zeros([R, P], tl.float32)
    for start in range(0, J * 16, R):
        n = start + tl.arange(0, R)  # a channel and a pixel of the 4 x 4
        real = n < J * 16
        mask = (r < J)[:, None] & real[None, :]
        w = tl.load(first + (r[:, None] * (J * 16) + n[None, :]), mask=mask, other=0.0)
        pixel = _apply_relu(tl.sum(entries * w, 0))
        tl.store(pixels + plane * (J * 16) + n, pixel, mask=n < limit)
        ky = y[None, :] + 1 - 2 * (n % 16 // 4)[:, None]  # stride 2, padding 1
        kx = x[None, :] + 1 - 2 * (n % 4)[:, None]
        visible = real[:, None] & (ky >= 0) & (ky < 6) & (kx >= 0) & (kx < 6)
        offset = (n // 16 * (J * 36))[:, None] + ky * 6 + kx
        total += pixel[:, None] * tl.load(second + offset, mask=visible, other=0.0)
    value = _apply_relu(tl.sum(total, 0))
    tl.store(maps + (plane * J + o) * 100 + m, value, mask=m < 100)


@jit
def _load_gradient(grad, maps, offset, mask):
    """Load the gradient before the ReLU that gave the maps."""
    d = tl.load(grad + offset, mask=mask, other=0.0)
    return tl.where(tl.load(maps + offset, mask=mask, other=0.0) <= 0.0, 0.0, d)


@jit
def _compute_first_gradient(
    program,
    rays,
    second,
    pixels,
    maps,
    grad,
    dfirst,
    x_seed,
    batch,
    J: tl.constexpr,
    JP: tl.constexpr,
    GB: tl.constexpr,
    NC: tl.constexpr,
):
    """Compute the gradient of the weights of one pixel of the 4 x 4, GB rays at a time."""
    pixel = program % (J * 16)
    seed = (program // (J * 16)).to(tl.int64)
    r = tl.arange(0, JP)
    second += seed * (J * J * 36) + pixel // 16 * (J * 36)
    rays += seed * x_seed
    total = tl.zeros([JP], tl.float32)
    for start in range(0, batch, GB):
        g = start + tl.arange(0, GB)
        ray = g < batch
        plane = seed * batch + g
        sums = tl.zeros([GB, NC], tl.float32)
        for column in range(0, J * 36, NC):
            n = column + tl.arange(0, NC)  # a map and a tap
            y = pixel % 16 // 4 * 2 + n % 36 // 6 - 1
            x = pixel % 4 * 2 + n % 6 - 1
            visible = (n < J * 36) & (y >= 0) & (y < 10) & (x >= 0) & (x < 10)
            w = tl.load(second + n, mask=visible, other=0.0)
            offset = (plane * (J * 100))[:, None] + (n // 36 * 100 + y * 10 + x)[None, :]
            sums += _load_gradient(grad, maps, offset, ray[:, None] & visible[None, :]) * w[None, :]
        value = tl.load(pixels + plane * (J * 16) + pixel, mask=ray, other=0.0)
        d = tl.where(value <= 0.0, 0.0, tl.sum(sums, 1))
        mask = (r < J)[:, None] & ray[None, :]
        entries = tl.load(rays + (g[None, :] * J + r[:, None]), mask=mask, other=0.0)
        total += tl.sum(entries * d[None, :], 1)
    tl.store(dfirst + seed * (J * J * 16) + r * (J * 16) + pixel, total, mask=r < J)


@jit
def _compute_second_gradient(
    program, pixels, maps, grad, dsecond, batch, J: tl.constexpr, GB: tl.constexpr
):
    """One filter of the second layer: all taps by the pixels of GB rays at a time."""
    i = program // J % J
    o = program % J
    seed = (program // (J * J)).to(tl.int64)
    t = tl.arange(0, 64)
    n = tl.arange(0, GB * 16)
    y = (n % 16 // 4 * 2)[None, :] + (t // 6)[:, None] - 1
    x = (n % 4 * 2)[None, :] + (t % 6)[:, None] - 1
    visible = (t < 36)[:, None] & (y >= 0) & (y < 10) & (x >= 0) & (x < 10)
    total = tl.zeros([64, GB * 16], tl.float32)
    for start in range(0, batch, GB):
        g = start + n // 16
        plane = seed * batch + g
        address = pixels + (plane * J + i) * 16 + n % 16
        value = tl.load(address, mask=g < batch, other=0.0)
        offset = ((plane * J + o) * 100)[None, :] + y * 10 + x
        total += _load_gradient(grad, maps, offset, visible & (g < batch)[None, :]) * value[None, :]
    address = dsecond + seed * (J * J * 36) + (i * J + o) * 36 + t
    tl.store(address, tl.sum(total, 1), mask=t < 36)


@jit
def rays_back_kernel(
    rays,  # as in the forward pass
    second,
    pixels,
    maps,
    grad,  # as maps
    dfirst,  # as first
    dsecond,
    x_seed,
    batch,
    tiles,  # programs that do dfirst; the others do dsecond
    J: tl.constexpr,
    JP: tl.constexpr,
    GB: tl.constexpr,
    NC: tl.constexpr,
):
    """Both gradients in one launch, since neither needs the other."""
    program = tl.program_id(0)
    if program < tiles:
        _compute_first_gradient(
            program, rays, second, pixels, maps, grad, dfirst, x_seed, batch, J, JP, GB, NC
        )
    else:
        _compute_second_gradient(program - tiles, pixels, maps, grad, dsecond, batch, J, GB)


@jit
def _find_cell(pixel, scale, SIZE: tl.constexpr):
    """Find the cell of the small map that a pixel of the enlarged one copies (nearest neighbour).

    One product in float32, as in ATen, so that the result is the same bit for bit.
    """
    return tl.minimum((pixel.to(tl.float32) * scale).to(tl.int32), SIZE - 1)


@jit
def _find_first_pixel(cell, scale, SIZE: tl.constexpr, ENLARGED: tl.constexpr):
    """Find the first pixel of a cell: without rounding, then moved by one where that differs."""
    pixel = (cell * ENLARGED + (SIZE - 1)) // SIZE
    pixel += (_find_cell(pixel, scale, SIZE) < cell).to(tl.int32)
    return pixel - ((pixel > 0) & (_find_cell(pixel - 1, scale, SIZE) >= cell)).to(tl.int32)


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
        columns = columns + (_find_cell(x + kx, across, MW),)
    total = tl.zeros([JP, P], tl.float32)
    for ky in tl.static_range(K):
        row = _find_cell(y + ky, down, MH) * MW
        for kx in tl.static_range(K):
            address = maps + (j * (MH * MW) + (row + columns[kx])[None, :])
            w = tl.load(weight + (j * (K * K) + (ky * K + kx)), mask=real, other=0.0)
            total += w * tl.load(address, mask=real, other=0.0)
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
    y = _find_first_pixel(cy, down, MH, H)
    x = _find_first_pixel(cx, across, MW, W)
    columns = ()
    for i in tl.static_range(MOST_X):
        visible = (_find_cell(x + i, across, MW) == cx) & (x + i < W)
        columns = columns + (visible & (x + i >= kx) & (x + i - kx < CW),)
    address = grad + plane * (CH * CW) + ((y - ky) * CW + x - kx)
    total = tl.zeros([P], tl.float32)
    for i in tl.static_range(MOST_Y):
        visible = (_find_cell(y + i, down, MH) == cy) & (y + i < H) & (q < SIZE)
        visible = visible & (y + i >= ky) & (y + i - ky < CH)
        for j in tl.static_range(MOST_X):
            total += tl.load(address + (i * CW + j), mask=visible & columns[j], other=0.0)
    tl.store(cells + plane * SIZE + q, total, mask=q < SIZE)


@jit
def _compute_maps_gradient(
    program,
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
    plane = (program // (BLOCKS * J)).to(tl.int64)
    j = program // BLOCKS % J
    c = program % BLOCKS * P + tl.arange(0, P)
    weight += plane // batch * (O * J * KK) + j * KK
    cells += plane * (O * KK * SIZE)
    total = tl.zeros([R, P], tl.float32)
    for start in range(0, O * KK, R):
        n = start + tl.arange(0, R)
        w = tl.load(weight + (n // KK * (J * KK) + n % KK), mask=n < O * KK, other=0.0)
        mask = (n < O * KK)[:, None] & (c < SIZE)[None, :]
        value = tl.load(cells + (n[:, None] * SIZE + c[None, :]), mask=mask, other=0.0)
        total += w[:, None] * value
    tl.store(dmaps + (plane * J + j) * SIZE + c, tl.sum(total, 0), mask=c < SIZE)


@jit
def _compute_weights_gradient(
    program,
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
    seed = (program // (BLOCKS * J)).to(tl.int64)
    j = program // BLOCKS % J
    n = program % BLOCKS * N + tl.arange(0, N)
    maps += seed * x_seed + j * SIZE
    cells += seed * batch * (O * KK * SIZE)
    total = tl.zeros([N, C], tl.float32)
    for _ in range(batch):
        for start in range(0, SIZE, C):
            c = start + tl.arange(0, C)
            v = tl.load(maps + c, mask=c < SIZE, other=0.0)
            mask = (n < O * KK)[:, None] & (c < SIZE)[None, :]
            address = cells + (n[:, None] * SIZE + c[None, :])
            total += tl.load(address, mask=mask, other=0.0) * v[None, :]
        maps += J * SIZE
        cells += O * KK * SIZE
    address = dweight + seed * (O * J * KK) + (n // KK * (J * KK) + j * KK + n % KK)
    tl.store(address, tl.sum(total, 1), mask=n < O * KK)


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
    program = tl.program_id(0)
    if program < tiles:
        _compute_maps_gradient(program, cells, weight, dmaps, batch, J, O, KK, SIZE, R, P)
    else:
        _compute_weights_gradient(
            program - tiles, cells, maps, dweight, x_seed, batch, J, O, KK, SIZE, N, C
        )
