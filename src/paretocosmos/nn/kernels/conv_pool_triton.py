# mypy: ignore-errors
# ruff: noqa: E741, N803, N806
"""The kernels themselves, in Triton: `relu(max_pool2d(conv2d(x, W, b) + term, 2))` and back.

Every product is laid out as [channels, pooled positions], the positions of all samples of a seed in
one row, because NCHW memory runs along positions. A pooled position has four convolution outputs;
each offset of the pool is its own product, so the maximum is taken in registers and the
convolution's output never exists in memory. What is kept for the way back is one byte per pooled
value: which offset won (0 to 3), or 4 where the ReLU cut it off.

Counted floors, batch 256, one seed, LeNet's blocks (1: 1x36x36 to 10x16x16; 2: 10x16x16 to
20x6x6), at 4.8 TB/s and, for tf32 through `mma.sync`, some 250 TFLOP/s:

    forward 1    131 MFLOP   4.6 MB   1.0 us        forward 2     369 MFLOP   3.6 MB   1.5 us
    weights 1    131 MFLOP   4.6 MB   1.0 us        weights 2     369 MFLOP   3.6 MB   1.5 us
    term 1                   3.3 MB   0.7 us        windows 2   1,062 MFLOP  14.2 MB   4.2 us
                                                    fold 2                   15.9 MB   3.3 us

What costs in practice is the gathering of x: 9.4 million loads of one float in each pass of block 2
(block 1 has kernels of its own, `conv_pool_direct.py`), 2,200 per multiprocessor for 32 lanes, and
the arithmetic of their addresses. So an address is one sum of a row and a column offset, in 64 bits
so that the four offsets of the pool become immediates, tiles of x have positions as their first
axis (where nothing is contiguous Triton lays lanes along it, and a lane then has few positions to
divide out), and positions beyond the end are moved onto the last one instead of being masked.

The modules import without Triton (`jit` then does nothing); launching needs it.
"""

from __future__ import annotations  # the annotations name `tl`, which may be missing

from typing import Any

triton: Any
tl: Any
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None


def jit(function):
    """`triton.jit` with the sizes of the batch left out of specialisation.

    Otherwise the short last batch of an epoch, or a batch of one, would compile everything again.
    """
    if triton is None:
        return function
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    general = [name for name in names if name in ("batch", "group", "tiles", "splits", "x_seed")]
    return triton.jit(function, do_not_specialize=general)


@jit
def compute_offsets(k, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, K: tl.constexpr):
    """Return where weight k = (c, ky, kx) reads, from the first pixel of a convolution position."""
    k = tl.minimum(k, C * K * K - 1)
    return k // (K * K) * (H * W) + k % (K * K) // K * W + k % K


@jit
def update_maximum(value, best, winner, offset: tl.constexpr):
    """Take one step of the maximum: the first of equals wins, NaN spreads, as in max_pool2d."""
    better = (value > best) | (value != value)
    return tl.where(better, value, best), tl.where(better, offset, winner)


@jit
def forward_kernel(
    x,  # [S, B, C, H, W], seeds x_seed apart (0: one batch for all)
    weight,  # [S, O, C, K, K]
    bias,  # [S, O]
    term,  # [S, G, O, H - K + 1, W - K + 1], or anything where HAS_TERM is false
    h,  # [S, B, O, PH, PW]
    code,  # int8, as h
    x_seed,
    batch,
    group,  # samples per ray group
    C: tl.constexpr,
    O: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    K: tl.constexpr,
    HAS_TERM: tl.constexpr,
    OP: tl.constexpr,  # O, padded
    BK: tl.constexpr,
    P: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """A tile of P pooled positions of one seed, all channels."""
    seed = tl.program_id(1).to(tl.int64)
    CW: tl.constexpr = W - K + 1
    CC: tl.constexpr = (H - K + 1) * CW
    PW: tl.constexpr = CW // 2
    PP: tl.constexpr = (H - K + 1) // 2 * PW
    CKK: tl.constexpr = C * K * K
    m = tl.program_id(0) * P + tl.arange(0, P)
    safe = tl.minimum(m, batch * PP - 1)
    n = safe // PP
    py = safe % PP // PW
    px = safe % PW
    o = tl.arange(0, OP)
    is_channel = o < O

    row = n * (C * H * W) + py * (2 * W) + px * 2
    x += seed * x_seed
    weight += seed * (O * CKK)
    y00 = tl.zeros([OP, P], tl.float32)
    y01 = tl.zeros([OP, P], tl.float32)
    y10 = tl.zeros([OP, P], tl.float32)
    y11 = tl.zeros([OP, P], tl.float32)
    for start in range(0, CKK, BK):  # the inner axis of the products
        k = start + tl.arange(0, BK)
        mask = is_channel[:, None] & (k < CKK)[None, :]
        w = tl.load(weight + o[:, None] * CKK + k[None, :], mask=mask, other=0.0)
        address = x + (row[:, None] + compute_offsets(k, C, H, W, K)[None, :]).to(tl.int64)
        y00 = tl.dot(w, tl.trans(tl.load(address)), y00, input_precision=PRECISION)
        y01 = tl.dot(w, tl.trans(tl.load(address + 1)), y01, input_precision=PRECISION)
        y10 = tl.dot(w, tl.trans(tl.load(address + W)), y10, input_precision=PRECISION)
        y11 = tl.dot(w, tl.trans(tl.load(address + (W + 1))), y11, input_precision=PRECISION)

    b = tl.load(bias + seed * O + o, mask=is_channel, other=0.0)[:, None]
    y00 += b
    y01 += b
    y10 += b
    y11 += b
    if HAS_TERM:
        groups = batch // group
        offset = (n // group * O)[None, :] * CC + o[:, None] * CC
        address = term + seed * groups * (O * CC) + (offset + (py * (2 * CW) + px * 2)[None, :])
        y00 += tl.load(address, mask=is_channel[:, None], other=0.0)
        y01 += tl.load(address + 1, mask=is_channel[:, None], other=0.0)
        y10 += tl.load(address + CW, mask=is_channel[:, None], other=0.0)
        y11 += tl.load(address + (CW + 1), mask=is_channel[:, None], other=0.0)
    # the pool, in registers
    best, winner = update_maximum(y01, y00, tl.zeros([OP, P], tl.int32), 1)
    best, winner = update_maximum(y10, best, winner, 2)
    best, winner = update_maximum(y11, best, winner, 3)
    cut = best <= 0.0  # by the ReLU; false for NaN, which stays
    out = seed * batch * (O * PP) + ((m // PP * (O * PP) + m % PP)[None, :] + o[:, None] * PP)
    mask = is_channel[:, None] & (m < batch * PP)[None, :]
    tl.store(h + out, tl.where(cut, 0.0, best), mask=mask)
    tl.store(code + out, tl.where(cut, 4, winner).to(tl.int8), mask=mask)


@jit
def weights_kernel(
    x,  # as in the forward pass
    grad,  # [S, B, O, PH, PW]
    code,
    partial,  # [S, splits, O, C*K*K + 1]: the last column is the bias
    x_seed,
    batch,
    tiles,  # of P positions, per program
    C: tl.constexpr,
    O: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    K: tl.constexpr,
    OP: tl.constexpr,
    BK: tl.constexpr,
    P: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Compute the part of dW and db from some tiles of positions, for BK weights a channel."""
    split = tl.program_id(0)
    seed = tl.program_id(2).to(tl.int64)
    PW: tl.constexpr = (W - K + 1) // 2
    PP: tl.constexpr = (H - K + 1) // 2 * PW
    CKK: tl.constexpr = C * K * K
    o = tl.arange(0, OP)
    is_channel = o < O
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    column = compute_offsets(k, C, H, W, K)
    ones = (k < CKK)[None, :]  # where false, x is replaced by 1: the bias
    x += seed * x_seed
    grad += seed * batch * (O * PP)
    code += seed * batch * (O * PP)
    total = tl.zeros([OP, BK], tl.float32)
    for tile in range(split * tiles, split * tiles + tiles):
        m = tile * P + tl.arange(0, P)
        mask = is_channel[:, None] & (m < batch * PP)[None, :]
        offset = (m // PP * (O * PP) + m % PP)[None, :] + o[:, None] * PP
        g = tl.load(grad + offset, mask=mask, other=0.0)
        winner = tl.load(code + offset, mask=mask, other=4)  # 4: no gradient
        m = tl.minimum(m, batch * PP - 1)
        row = m // PP * (C * H * W) + m % PP // PW * (2 * W) + m % PW * 2
        address = x + (row[:, None] + column[None, :]).to(tl.int64)
        v = tl.load(address, mask=ones, other=1.0)
        total = tl.dot(tl.where(winner == 0, g, 0.0), v, total, input_precision=PRECISION)
        v = tl.load(address + 1, mask=ones, other=1.0)
        total = tl.dot(tl.where(winner == 1, g, 0.0), v, total, input_precision=PRECISION)
        v = tl.load(address + W, mask=ones, other=1.0)
        total = tl.dot(tl.where(winner == 2, g, 0.0), v, total, input_precision=PRECISION)
        v = tl.load(address + (W + 1), mask=ones, other=1.0)
        total = tl.dot(tl.where(winner == 3, g, 0.0), v, total, input_precision=PRECISION)
    out = (seed * tl.num_programs(0) + split) * (O * (CKK + 1))
    offset = o[:, None] * (CKK + 1) + k[None, :]
    tl.store(partial + out + offset, total, mask=is_channel[:, None] & (k <= CKK)[None, :])


@jit
def reduce_kernel(
    partial,  # [S, splits, O, CKK + 1]
    weight,  # dW: [S, O, CKK]
    bias,  # db: [S, O]
    splits,
    O: tl.constexpr,
    CKK: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
):
    """Sum the parts, always in the same order."""
    seed = tl.program_id(1).to(tl.int64)
    SIZE: tl.constexpr = O * (CKK + 1)
    q = tl.program_id(0) * P + tl.arange(0, P)
    total = tl.zeros([R, P], tl.float32)
    for start in range(0, splits, R):
        r = start + tl.arange(0, R)
        mask = (r < splits)[:, None] & (q < SIZE)[None, :]
        address = partial + seed * splits * SIZE + (r[:, None] * SIZE + q[None, :])
        total += tl.load(address, mask=mask, other=0.0)
    value = tl.sum(total, 0)
    o = q // (CKK + 1)
    k = q % (CKK + 1)
    tl.store(weight + seed * (O * CKK) + o * CKK + k, value, mask=(q < SIZE) & (k < CKK))
    tl.store(bias + seed * O + o, value, mask=(q < SIZE) & (k == CKK))


@jit
def term_kernel(
    grad,  # [S, B, O, PH, PW]
    code,
    out,  # dterm: [S, G, O, CH, CW]
    batch,
    group,
    O: tl.constexpr,
    CH: tl.constexpr,
    CW: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
):
    """The gradient of the ray's map: a sum over the samples of a group, R at a time."""
    g = tl.program_id(1)
    seed = tl.program_id(2).to(tl.int64)
    PW: tl.constexpr = CW // 2
    PP: tl.constexpr = CH // 2 * PW
    q = tl.program_id(0) * P + tl.arange(0, P)
    s00 = tl.zeros([R, P], tl.float32)
    s01 = tl.zeros([R, P], tl.float32)
    s10 = tl.zeros([R, P], tl.float32)
    s11 = tl.zeros([R, P], tl.float32)
    first = (seed * batch + g * group) * (O * PP)
    for start in range(0, group, R):
        n = start + tl.arange(0, R)
        mask = (n < group)[:, None] & (q < O * PP)[None, :]
        offset = first + (n[:, None] * (O * PP) + q[None, :])
        value = tl.load(grad + offset, mask=mask, other=0.0)
        winner = tl.load(code + offset, mask=mask, other=4)
        s00 += tl.where(winner == 0, value, 0.0)
        s01 += tl.where(winner == 1, value, 0.0)
        s10 += tl.where(winner == 2, value, 0.0)
        s11 += tl.where(winner == 3, value, 0.0)
    p = q % PP
    offset = (seed * tl.num_programs(1) + g) * (O * CH * CW)
    address = out + offset + (q // PP * (CH * CW) + p // PW * (2 * CW) + p % PW * 2)
    tl.store(address, tl.sum(s00, 0), mask=q < O * PP)
    tl.store(address + 1, tl.sum(s01, 0), mask=q < O * PP)
    tl.store(address + CW, tl.sum(s10, 0), mask=q < O * PP)
    tl.store(address + (CW + 1), tl.sum(s11, 0), mask=q < O * PP)


@jit
def _load_window_weights(
    weight, j, o, is_channel, dy: tl.constexpr, dx: tl.constexpr, C: tl.constexpr, K: tl.constexpr
):
    """Load weights [window pixel j, channel o] by which output (dy, dx) of a pool sees them."""
    E: tl.constexpr = K + 1
    ky = j % (E * E) // E - dy
    kx = j % E - dx
    visible = (j < C * E * E) & (ky >= 0) & (ky < K) & (kx >= 0) & (kx < K)
    address = j // (E * E) * (K * K) + ky * K + kx
    offset = address[:, None] + o[None, :] * (C * K * K)
    return tl.load(weight + offset, mask=visible[:, None] & is_channel[None, :], other=0.0)


@jit
def windows_kernel(
    weight,
    grad,
    code,
    windows,  # [S, C*(K+1)*(K+1), B*PH*PW]: what each pooled position gives its window of x
    batch,
    C: tl.constexpr,
    O: tl.constexpr,
    PP: tl.constexpr,
    K: tl.constexpr,
    OP: tl.constexpr,
    BK: tl.constexpr,
    P: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """First half of dx: a tile of positions by BK pixels of their windows."""
    seed = tl.program_id(2).to(tl.int64)
    E: tl.constexpr = K + 1
    m = tl.program_id(0) * P + tl.arange(0, P)
    o = tl.arange(0, OP)
    is_channel = o < O
    j = tl.program_id(1) * BK + tl.arange(0, BK)
    mask = is_channel[:, None] & (m < batch * PP)[None, :]
    offset = (m // PP * (O * PP) + m % PP)[None, :] + o[:, None] * PP
    g = tl.load(grad + seed * batch * (O * PP) + offset, mask=mask, other=0.0)
    winner = tl.load(code + seed * batch * (O * PP) + offset, mask=mask, other=4)
    weight += seed * (O * C * K * K)
    w = _load_window_weights(weight, j, o, is_channel, 0, 0, C, K)
    out = tl.dot(w, tl.where(winner == 0, g, 0.0), input_precision=PRECISION)
    w = _load_window_weights(weight, j, o, is_channel, 0, 1, C, K)
    out = tl.dot(w, tl.where(winner == 1, g, 0.0), out, input_precision=PRECISION)
    w = _load_window_weights(weight, j, o, is_channel, 1, 0, C, K)
    out = tl.dot(w, tl.where(winner == 2, g, 0.0), out, input_precision=PRECISION)
    w = _load_window_weights(weight, j, o, is_channel, 1, 1, C, K)
    out = tl.dot(w, tl.where(winner == 3, g, 0.0), out, input_precision=PRECISION)
    length = batch * PP
    address = windows + seed * (C * E * E) * length + (j[:, None] * length + m[None, :])
    tl.store(address, out, mask=(j < C * E * E)[:, None] & (m < length)[None, :])


@jit
def fold_kernel(
    windows,
    out,  # dx: [S, B, C, H, W]
    batch,
    C: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    K: tl.constexpr,
    P: tl.constexpr,
):
    """Second half of dx: every pixel sums the windows it lies in, three by three for K = 5."""
    seed = tl.program_id(1).to(tl.int64)
    PH: tl.constexpr = (H - K + 1) // 2
    PW: tl.constexpr = (W - K + 1) // 2
    E: tl.constexpr = K + 1
    q = tl.program_id(0) * P + tl.arange(0, P)
    inside = q < batch * (C * H * W)
    n = q // (C * H * W)
    y = q % (H * W) // W
    x = q % W
    length = batch * (PH * PW)
    plane = q % (C * H * W) // (H * W) * (E * E)
    windows += seed * (C * E * E) * length
    total = tl.zeros([P], tl.float32)
    for i in tl.static_range((E + 1) // 2):
        py = y // 2 - i
        wy = y % 2 + 2 * i
        down = inside & (py >= 0) & (py < PH) & (wy < E)
        for j in tl.static_range((E + 1) // 2):
            px = x // 2 - j
            wx = x % 2 + 2 * j
            mask = down & (px >= 0) & (px < PW) & (wx < E)
            address = (plane + wy * E + wx) * length + n * (PH * PW) + py * PW + px
            total += tl.load(windows + address, mask=mask, other=0.0)
    tl.store(out + seed * batch * (C * H * W) + q, total, mask=inside)
