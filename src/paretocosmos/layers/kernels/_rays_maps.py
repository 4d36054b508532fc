# mypy: ignore-errors
# ruff: noqa: N803
"""The kernels of the ray net, in Triton: rays to maps and back.

All of it is below half a million multiplications a seed, so what counts is the number of launches
and how many loads wait for one another, not the arithmetic, which is plain float32. A program loads
its operands as one tile and sums once; loops run only where a size is beyond the usual.
"""

from __future__ import annotations  # the annotations name `tl`, which may be missing

from paretocosmos.layers.kernels._triton import jit, tl

__all__ = ["rays_back_kernel", "rays_kernel"]


@jit
def _rectified(value):
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
    at = rays + seed * x_seed + plane % batch * J + r
    given = tl.load(at, mask=r < J, other=0.0)[:, None]
    first += seed * (J * J * 16)
    second += seed * (J * J * 36) + o * 36
    kept = tl.where(o + tl.program_id(2) == 0, J * 16, 0)  # by one program
    total = tl.zeros([R, P], tl.float32)
    for start in range(0, J * 16, R):
        n = start + tl.arange(0, R)  # a channel and a pixel of the 4 x 4
        real = n < J * 16
        some = (r < J)[:, None] & real[None, :]
        w = tl.load(first + (r[:, None] * (J * 16) + n[None, :]), mask=some, other=0.0)
        pixel = _rectified(tl.sum(given * w, 0))
        tl.store(pixels + plane * (J * 16) + n, pixel, mask=n < kept)
        ky = y[None, :] + 1 - 2 * (n % 16 // 4)[:, None]  # stride 2, padding 1
        kx = x[None, :] + 1 - 2 * (n % 4)[:, None]
        seen = real[:, None] & (ky >= 0) & (ky < 6) & (kx >= 0) & (kx < 6)
        place = (n // 16 * (J * 36))[:, None] + ky * 6 + kx
        total += pixel[:, None] * tl.load(second + place, mask=seen, other=0.0)
    value = _rectified(tl.sum(total, 0))
    tl.store(maps + (plane * J + o) * 100 + m, value, mask=m < 100)


@jit
def _cut(grad, maps, place, some):
    """The gradient before the ReLU that gave the maps."""
    d = tl.load(grad + place, mask=some, other=0.0)
    return tl.where(tl.load(maps + place, mask=some, other=0.0) <= 0.0, 0.0, d)


@jit
def _first_part(
    part,
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
    """What one pixel of the 4 x 4 gives to its weights, GB rays at a time."""
    pixel = part % (J * 16)
    seed = (part // (J * 16)).to(tl.int64)
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
            seen = (n < J * 36) & (y >= 0) & (y < 10) & (x >= 0) & (x < 10)
            w = tl.load(second + n, mask=seen, other=0.0)
            place = (plane * (J * 100))[:, None] + (n // 36 * 100 + y * 10 + x)[None, :]
            sums += _cut(grad, maps, place, ray[:, None] & seen[None, :]) * w[None, :]
        value = tl.load(pixels + plane * (J * 16) + pixel, mask=ray, other=0.0)
        d = tl.where(value <= 0.0, 0.0, tl.sum(sums, 1))
        some = (r < J)[:, None] & ray[None, :]
        given = tl.load(rays + (g[None, :] * J + r[:, None]), mask=some, other=0.0)
        total += tl.sum(given * d[None, :], 1)
    tl.store(dfirst + seed * (J * J * 16) + r * (J * 16) + pixel, total, mask=r < J)


@jit
def _second_part(part, pixels, maps, grad, dsecond, batch, J: tl.constexpr, GB: tl.constexpr):
    """One filter of the second layer: all taps by the pixels of GB rays at a time."""
    i = part // J % J
    o = part % J
    seed = (part // (J * J)).to(tl.int64)
    t = tl.arange(0, 64)
    n = tl.arange(0, GB * 16)
    y = (n % 16 // 4 * 2)[None, :] + (t // 6)[:, None] - 1
    x = (n % 4 * 2)[None, :] + (t % 6)[:, None] - 1
    seen = (t < 36)[:, None] & (y >= 0) & (y < 10) & (x >= 0) & (x < 10)
    total = tl.zeros([64, GB * 16], tl.float32)
    for start in range(0, batch, GB):
        g = start + n // 16
        plane = seed * batch + g
        at = pixels + (plane * J + i) * 16 + n % 16
        value = tl.load(at, mask=g < batch, other=0.0)
        place = ((plane * J + o) * 100)[None, :] + y * 10 + x
        total += _cut(grad, maps, place, seen & (g < batch)[None, :]) * value[None, :]
    at = dsecond + seed * (J * J * 36) + (i * J + o) * 36 + t
    tl.store(at, tl.sum(total, 1), mask=t < 36)


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
    part = tl.program_id(0)
    if part < tiles:
        _first_part(part, rays, second, pixels, maps, grad, dfirst, x_seed, batch, J, JP, GB, NC)
    else:
        _second_part(part - tiles, pixels, maps, grad, dsecond, batch, J, GB)
