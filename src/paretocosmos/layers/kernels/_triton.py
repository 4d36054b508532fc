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
(block 1 has kernels of its own, `_direct.py`), 2,200 per multiprocessor for 32 lanes, and the
arithmetic of their addresses. So an address is one sum of a row and a column offset, in 64 bits so
that the four offsets of the pool become immediates, tiles of x have positions as their first axis
(where nothing is contiguous Triton lays lanes along it, and a lane then has few positions to divide
out), and positions beyond the end are moved onto the last one instead of being masked.

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

__all__ = ["columns", "forward_kernel", "jit", "take", "tl"]


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
def columns(k, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, K: tl.constexpr):
    """Where weight k = (c, ky, kx) reads, from the first pixel of a convolution position."""
    k = tl.minimum(k, C * K * K - 1)
    return k // (K * K) * (H * W) + k % (K * K) // K * W + k % K


@jit
def take(value, best, which, offset: tl.constexpr):
    """One step of the maximum: the first of equals wins and NaN spreads, as in max_pool2d."""
    better = (value > best) | (value != value)
    return tl.where(better, value, best), tl.where(better, offset, which)


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
    real = o < O

    row = n * (C * H * W) + py * (2 * W) + px * 2
    x += seed * x_seed
    weight += seed * (O * CKK)
    y00 = tl.zeros([OP, P], tl.float32)
    y01 = tl.zeros([OP, P], tl.float32)
    y10 = tl.zeros([OP, P], tl.float32)
    y11 = tl.zeros([OP, P], tl.float32)
    for start in range(0, CKK, BK):
        k = start + tl.arange(0, BK)
        some = real[:, None] & (k < CKK)[None, :]
        w = tl.load(weight + o[:, None] * CKK + k[None, :], mask=some, other=0.0)
        at = x + (row[:, None] + columns(k, C, H, W, K)[None, :]).to(tl.int64)
        y00 = tl.dot(w, tl.trans(tl.load(at)), y00, input_precision=PRECISION)
        y01 = tl.dot(w, tl.trans(tl.load(at + 1)), y01, input_precision=PRECISION)
        y10 = tl.dot(w, tl.trans(tl.load(at + W)), y10, input_precision=PRECISION)
        y11 = tl.dot(w, tl.trans(tl.load(at + (W + 1))), y11, input_precision=PRECISION)

    b = tl.load(bias + seed * O + o, mask=real, other=0.0)[:, None]
    y00 += b
    y01 += b
    y10 += b
    y11 += b
    if HAS_TERM:
        groups = batch // group
        place = (n // group * O)[None, :] * CC + o[:, None] * CC
        at = term + seed * groups * (O * CC) + (place + (py * (2 * CW) + px * 2)[None, :])
        y00 += tl.load(at, mask=real[:, None], other=0.0)
        y01 += tl.load(at + 1, mask=real[:, None], other=0.0)
        y10 += tl.load(at + CW, mask=real[:, None], other=0.0)
        y11 += tl.load(at + (CW + 1), mask=real[:, None], other=0.0)
    best, which = take(y01, y00, tl.zeros([OP, P], tl.int32), 1)
    best, which = take(y10, best, which, 2)
    best, which = take(y11, best, which, 3)
    cut = best <= 0.0
    out = seed * batch * (O * PP) + ((m // PP * (O * PP) + m % PP)[None, :] + o[:, None] * PP)
    some = real[:, None] & (m < batch * PP)[None, :]
    tl.store(h + out, tl.where(cut, 0.0, best), mask=some)
    tl.store(code + out, tl.where(cut, 4, which).to(tl.int8), mask=some)
