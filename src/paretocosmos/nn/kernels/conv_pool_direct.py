# mypy: ignore-errors
# ruff: noqa: E741, N803, N806, RUF005
"""Kernels for one input channel: no matrix unit, one pooled position per lane.

With C = 1 a product of matrices has an inner length of 25, and gathering its operand takes as many
instructions as multiplying directly. A lane holds the 6x6 window of its position in registers and
runs over the channels; on the way back it reads only the 5x5 patch that won the pool, a quarter of
what a matrix product would multiply. Counted at batch 256: 29,000 instructions of a warp per
multiprocessor forward, 18,000 back (132 of them, sm_90), with no barrier, in plain float32.
"""

from __future__ import annotations  # the annotations name `tl`, which may be missing

from paretocosmos.nn.kernels.conv_pool_triton import jit, tl, update_maximum


@jit
def direct_forward_kernel(
    x,  # [S, B, 1, H, W], seeds x_seed apart (0: one batch for all)
    weight,  # [S, O, 1, K, K]
    bias,  # [S, O]
    term,  # [S, G, O, H - K + 1, W - K + 1], or anything where HAS_TERM is false
    h,  # [S, B, O, PH, PW]
    code,  # int8, as h
    x_seed,
    batch,
    group,  # samples per ray group
    O: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    K: tl.constexpr,
    HAS_TERM: tl.constexpr,
    P: tl.constexpr,
):
    """A tile of P pooled positions of one seed, one channel after the other."""
    seed = tl.program_id(1).to(tl.int64)
    CW: tl.constexpr = W - K + 1
    CC: tl.constexpr = (H - K + 1) * CW
    PW: tl.constexpr = CW // 2
    PP: tl.constexpr = (H - K + 1) // 2 * PW
    E: tl.constexpr = K + 1
    m = tl.program_id(0) * P + tl.arange(0, P)
    inside = m < batch * PP
    m = tl.minimum(m, batch * PP - 1)  # so that reading needs no mask
    n = m // PP
    py = m % PP // PW
    px = m % PW
    address = x + seed * x_seed + (n * (H * W) + py * (2 * W) + px * 2).to(tl.int64)
    v = ()
    for i in tl.static_range(E * E):
        v = v + (tl.load(address + (i // E * W + i % E)),)
    weight += seed * (O * K * K)
    bias += seed * O
    if HAS_TERM:
        term += seed * (batch // group) * (O * CC)
        term += (n // group * (O * CC) + py * (2 * CW) + px * 2).to(tl.int64)
    out = seed * batch * (O * PP) + (n * (O * PP) + m % PP)
    for o in range(O):
        y00 = tl.zeros([P], tl.float32) + tl.load(bias + o)
        y01 = y00
        y10 = y00
        y11 = y00
        for i in tl.static_range(K * K):
            w = tl.load(weight + o * (K * K) + i)
            y00 += w * v[i // K * E + i % K]
            y01 += w * v[i // K * E + i % K + 1]
            y10 += w * v[i // K * E + i % K + E]
            y11 += w * v[i // K * E + i % K + E + 1]
        if HAS_TERM:
            y00 += tl.load(term + o * CC)
            y01 += tl.load(term + o * CC + 1)
            y10 += tl.load(term + o * CC + CW)
            y11 += tl.load(term + o * CC + CW + 1)
        best, winner = update_maximum(y01, y00, tl.zeros([P], tl.int32), 1)
        best, winner = update_maximum(y10, best, winner, 2)
        best, winner = update_maximum(y11, best, winner, 3)
        cut = best <= 0.0
        tl.store(h + out + o * PP, tl.where(cut, 0.0, best), mask=inside)
        tl.store(code + out + o * PP, tl.where(cut, 4, winner).to(tl.int8), mask=inside)


@jit
def direct_weights_kernel(
    x,
    grad,  # [S, B, O, PH, PW]
    code,
    partial,  # [S, splits, O, K*K + 1]: the last column is the bias
    x_seed,
    batch,
    tiles,  # of P positions, per program
    O: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    K: tl.constexpr,
    P: tl.constexpr,
):
    """The part of one channel's dW and db that comes from some tiles of positions."""
    split = tl.program_id(0)
    o = tl.program_id(1)
    seed = tl.program_id(2).to(tl.int64)
    PW: tl.constexpr = (W - K + 1) // 2
    PP: tl.constexpr = (H - K + 1) // 2 * PW
    x += seed * x_seed
    grad += seed * batch * (O * PP) + o * PP
    code += seed * batch * (O * PP) + o * PP
    zero = tl.zeros([P], tl.float32)
    total = ()
    for _ in tl.static_range(K * K + 1):
        total = total + (zero,)
    for tile in range(split * tiles, split * tiles + tiles):
        m = tile * P + tl.arange(0, P)
        inside = m < batch * PP
        m = tl.minimum(m, batch * PP - 1)
        n = m // PP
        p = m % PP
        offset = n * (O * PP) + p
        winner = tl.load(code + offset).to(tl.int32)
        g = tl.where(inside & (winner < 4), tl.load(grad + offset), 0.0)
        winner = tl.minimum(winner, 3)  # any patch will do where g is zero
        row = n * (H * W) + (p // PW * 2 + (winner >> 1)) * W + (p % PW * 2 + (winner & 1))
        address = x + row.to(tl.int64)
        new = ()
        for i in tl.static_range(K * K):
            new = new + (total[i] + g * tl.load(address + (i // K * W + i % K)),)
        total = new + (total[K * K] + g,)
    out = partial + ((seed * tl.num_programs(0) + split) * O + o) * (K * K + 1)
    for i in tl.static_range(K * K + 1):
        tl.store(out + i, tl.sum(total[i], 0))
