"""The two operators registered with torch: forward and backward, with shapes and a vmap rule.

`torch.library.custom_op` rather than `autograd.Function`: an operator is opaque, so `make_fx` and
`torch.compile` record one node instead of trying to look into a kernel launch, and autograd below
vmap sees the stacked call, so several seeds are one launch forward and one set of launches back.

The launching functions below take stacked tensors, seeds first, and give new ones. Launches only:
no value is read back, and no memory but torch's is taken, so all of it can be captured in a CUDA
graph.
"""

# ruff: noqa: ARG001 (a fake version takes what its operator takes)

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from paretocosmos.nn.kernels import conv_pool_direct, conv_pool_triton


@torch.library.custom_op("paretocosmos::conv_pool", mutates_args=())
def forward_op(
    x: Tensor, weight: Tensor, bias: Tensor, term: Tensor | None, precision: str
) -> tuple[Tensor, Tensor]:
    """Return h [S,B,O,PH,PW] and, as int8, which output of each pool it came from."""
    return launch_forward(x, weight, bias, term, precision)


@torch.library.custom_op("paretocosmos::conv_pool_backward", mutates_args=())
def backward_op(
    grad: Tensor,
    code: Tensor,
    x: Tensor,
    weight: Tensor,
    groups: int,
    needs_x: bool,
    needs_weight: bool,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return dx, dW, db, dterm; an empty tensor for what is not asked for (`groups` 0: no term)."""
    # an operator may not return the same tensor twice, hence the copies
    none = _make_empty(grad)
    dweight, dbias = none, none[:, :0].clone()
    dx, dterm = none[:, :0].clone(), none[:, :0].clone()
    if needs_weight:
        dweight, dbias = launch_weight_gradients(x, weight, grad, code, precision)
    if needs_x:
        dx = launch_input_gradient(x, weight, grad, code, precision)
    if groups:
        dterm = launch_term_gradient(x, weight, grad, code, groups)
    return dx, dweight, dbias, dterm


def _make_empty(grad: Tensor) -> Tensor:
    """Make an empty tensor in place of a gradient, because an operator must return tensors."""
    return grad.new_empty((grad.shape[0], 0))


@forward_op.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor, term: Tensor | None, precision: str
) -> tuple[Tensor, Tensor]:
    sizes = Sizes.of(x, weight)
    h = x.new_empty((sizes.seeds, sizes.batch, sizes.o, *sizes.pooled))
    return h, torch.empty_like(h, dtype=torch.int8)


@backward_op.register_fake
def _(
    grad: Tensor,
    code: Tensor,
    x: Tensor,
    weight: Tensor,
    groups: int,
    needs_x: bool,
    needs_weight: bool,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    sizes = Sizes.of(x, weight)
    return (
        x.new_empty(x.shape) if needs_x else _make_empty(grad),
        weight.new_empty(weight.shape) if needs_weight else _make_empty(grad),
        weight.new_empty(weight.shape[:2]) if needs_weight else _make_empty(grad),
        x.new_empty((sizes.seeds, groups, sizes.o, *sizes.conv)) if groups else _make_empty(grad),
    )


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, weight, _, term, ctx.precision = inputs
    ctx.groups = 0 if term is None else term.shape[1]
    # not the outputs themselves: the code says where the gradient goes
    ctx.save_for_backward(output[1], x, weight)
    ctx.set_materialize_grads(False)  # or a tensor of zeros is made for the code


def _compute_gradients(
    ctx: Any, grad: Tensor | None, _: Tensor | None
) -> tuple[Tensor | None, ...]:
    if grad is None:  # only the code was used, which has no gradient
        return (None,) * 5
    code, x, weight = ctx.saved_tensors
    wants_x, wants_weight, wants_bias, wants_term, _ = ctx.needs_input_grad
    dx, dweight, dbias, dterm = backward_op(
        grad,
        code,
        x,
        weight,
        ctx.groups if wants_term else 0,
        wants_x,
        wants_weight or wants_bias,  # one kernel gives both
        ctx.precision,
    )
    return (
        dx if wants_x else None,
        dweight if wants_weight else None,
        dbias if wants_bias else None,
        dterm if wants_term else None,
        None,
    )


forward_op.register_autograd(_compute_gradients, setup_context=_save_inputs)


def _make_vmap_rule(op: Callable[..., Any]) -> Callable[..., Any]:
    """Make the vmap rule: the mapped axis joins the seeds, arguments without it are shared."""

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        size = info.batch_size

        def stack_seeds(arg: Any, dim: int | None) -> Any:
            if not isinstance(arg, Tensor):
                return arg
            # `expand` copies nothing: a stride of 0 tells the kernels that all seeds share it
            arg = arg.unsqueeze(0).expand(size, *arg.shape) if dim is None else arg.movedim(dim, 0)
            return arg.flatten(0, 1)

        outputs = op(*map(stack_seeds, args, in_dims))
        # seeds and the mapped axis apart again
        if isinstance(outputs, Tensor):
            return outputs.unflatten(0, (size, -1)), 0
        return tuple(out.unflatten(0, (size, -1)) for out in outputs), (0,) * len(outputs)

    return rule


forward_op.register_vmap(_make_vmap_rule(forward_op))
backward_op.register_vmap(_make_vmap_rule(backward_op))


MOST_DIRECT = 5  # side of the kernel up to which one input channel is convolved directly


class Tile(NamedTuple):
    """The share of one program of a kernel, and its launch options."""

    positions: int
    chunk: int  # of the other axis: weights, window pixels or samples; 0: a direct kernel
    warps: int
    stages: int
    # with more programs the GPU is full, with fewer there is less to sum in the end
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
        # `tl.dot` takes powers of 2 from 16
        return max(16, _round_to_power_of_2(self.o))


def _round_to_power_of_2(n: int) -> int:
    """Return the smallest power of 2 that is at least n."""
    return 1 << (n - 1).bit_length()


def _divide_up(n: int, d: int) -> int:
    """Return n / d, rounded up."""
    return -(-n // d)


def find_tile(kernel: str, sizes: Sizes) -> Tile:
    """Return the tile that the table gives a kernel for these sizes."""
    return TILES[kernel, sizes.c == 1 and sizes.k <= MOST_DIRECT]


def _split_seed_stride(x: Tensor) -> tuple[Tensor, int]:
    """Return x, inner axes contiguous, and how far its seeds lie apart (0 where they share)."""
    shared = x.shape[0] > 1 and x.stride(0) == 0
    if shared:
        return x[0].contiguous(), 0
    x = x.contiguous()
    return x, x[0].numel()


def launch_forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    term: Tensor | None,
    precision: str,
    tile: Tile | None = None,
) -> tuple[Tensor, Tensor]:
    """Launch the forward kernel; return h [S,B,O,PH,PW] and its code."""
    sizes = Sizes.of(x, weight)
    tile = tile or find_tile("forward", sizes)
    h = x.new_empty((sizes.seeds, sizes.batch, sizes.o, *sizes.pooled))
    code = torch.empty_like(h, dtype=torch.int8)
    x, stride = _split_seed_stride(x)
    groups = 1 if term is None else term.shape[1]  # 1: the size of a group must not be 0
    grid = _divide_up(sizes.positions, tile.positions), sizes.seeds
    arguments = (
        x,
        weight.contiguous(),
        bias.contiguous(),
        bias if term is None else term.contiguous(),  # any pointer where there is no term
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
        conv_pool_triton.forward_kernel[grid](*arguments, sizes.c, *shape, *inner, **options)
    else:
        conv_pool_direct.direct_forward_kernel[grid](*arguments, *shape, tile.positions, **options)
    return h, code


def launch_weight_gradients(
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
    tile = tile or find_tile("weights", sizes)
    sums = sums or find_tile("reduce", sizes)
    x, stride = _split_seed_stride(x)
    # a direct kernel has a program per channel where the other has one per chunk of weights
    chunks = _divide_up(sizes.fan_in + 1, tile.chunk) if tile.chunk else sizes.o
    position_tiles = _divide_up(sizes.positions, tile.positions)
    tiles = _divide_up(position_tiles, max(1, tile.programs // (chunks * sizes.seeds)))
    splits = _divide_up(position_tiles, tiles)
    # one sum per program, added up by a second kernel: atomics would add in any order, so the bits
    # of a gradient would differ from run to run
    partial = x.new_empty((sizes.seeds, splits, sizes.o, sizes.fan_in + 1))
    grid = splits, chunks, sizes.seeds
    arguments = x, grad.contiguous(), code, partial, stride, sizes.batch, tiles
    shape = sizes.o, sizes.h, sizes.w, sizes.k
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    if tile.chunk:
        inner = sizes.channels, tile.chunk, tile.positions, precision
        conv_pool_triton.weights_kernel[grid](*arguments, sizes.c, *shape, *inner, **options)
    else:
        conv_pool_direct.direct_weights_kernel[grid](*arguments, *shape, tile.positions, **options)
    dweight = torch.empty_like(weight, memory_format=torch.contiguous_format)
    dbias = x.new_empty((sizes.seeds, sizes.o))
    conv_pool_triton.reduce_kernel[
        _divide_up(sizes.o * (sizes.fan_in + 1), sums.positions), sizes.seeds
    ](
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


def launch_input_gradient(
    x: Tensor,
    weight: Tensor,
    grad: Tensor,
    code: Tensor,
    precision: str,
    tile: Tile | None = None,
    fold: Tile | None = None,
) -> Tensor:
    """Launch the kernels for dx: each position's share of its window, then sums over windows."""
    sizes = Sizes.of(x, weight)
    tile = tile or find_tile("windows", sizes)
    fold = fold or find_tile("fold", sizes)
    # a pooled position reads K + 1 pixels a side: the windows of its four outputs overlap
    pixels = sizes.c * (sizes.k + 1) ** 2
    windows = x.new_empty((sizes.seeds, pixels, sizes.positions))
    tiles = _divide_up(sizes.positions, tile.positions)
    conv_pool_triton.windows_kernel[tiles, _divide_up(pixels, tile.chunk), sizes.seeds](
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
    conv_pool_triton.fold_kernel[_divide_up(x[0].numel(), fold.positions), sizes.seeds](
        windows,
        dx,
        sizes.batch,
        *(sizes.c, sizes.h, sizes.w, sizes.k),
        fold.positions,
        num_warps=fold.warps,
        num_stages=fold.stages,
    )
    return dx


def launch_term_gradient(
    x: Tensor, weight: Tensor, grad: Tensor, code: Tensor, groups: int, tile: Tile | None = None
) -> Tensor:
    """Launch the kernel for dterm [S,G,O,CH,CW]."""
    sizes = Sizes.of(x, weight)
    tile = tile or find_tile("term", sizes)
    shape = (sizes.seeds, groups, sizes.o, *sizes.conv)
    odd = sizes.conv[0] % 2 or sizes.conv[1] % 2  # the pool drops a row or column: no gradient
    out = x.new_zeros(shape) if odd else x.new_empty(shape)
    length = sizes.o * sizes.pooled[0] * sizes.pooled[1]
    conv_pool_triton.term_kernel[_divide_up(length, tile.positions), groups, sizes.seeds](
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
