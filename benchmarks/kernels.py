"""The fused kernels: right against float64, and how long each takes for a handful of tiles.

    python3 -m benchmarks.kernels --out kernels.json

Needs a CUDA device. Every kernel is checked on fresh inputs with poisoned outputs, then timed by
replaying a captured graph of many calls, for the tiles listed below; the winners belong in
`paretocosmos.nn.kernels.conv_pool_ops.TILES`. A tile that fails is reported and passed over.
`--rays` does the kernels of the ray net alone, some twenty seconds.
"""

import argparse
import functools
import itertools
import json
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import grad as nn_grad

from paretocosmos.nn import kernels
from paretocosmos.nn.kernels import conv_pool_ops, ray_maps_ops
from paretocosmos.nn.kernels.conv_pool_ops import Sizes, Tile
from paretocosmos.runs.provenance import get_provenance

BATCH = 256
BANDWIDTH, RATE = 4.8e12, 250e12  # bytes/s by the datasheet; tf32 flop/s one may hope for
DEADLINE = 150.0  # seconds after which no further tile is tried
CALLS, REPLAYS = 20, 15
SHAPES = {1: (1, 10, 36, 5, True), 2: (10, 20, 16, 5, False)}  # block: C, O, side, K, term?
Thing = Callable[[], object]
START = time.perf_counter()

FORWARD = [
    *itertools.product((64, 128), (32,), (4,), (1,)),
    *((32, 32, 1, 1), (64, 32, 2, 1), (32, 32, 2, 1)),
]
WEIGHTS = [
    *((64, 32, 4, 1), (64, 32, 2, 1), (32, 32, 1, 1), (32, 32, 2, 1), (64, 32, 4, 2)),
]
CANDIDATES: dict[tuple[str, int], list[Tile]] = {
    ("forward", 1): [
        *(Tile(128, 0, 4, 1), Tile(256, 0, 4, 1), Tile(64, 0, 2, 1), Tile(512, 0, 8, 1)),
        *(Tile(64, 32, 4, 1), Tile(32, 32, 1, 1)),
    ],
    ("forward", 2): [
        *(Tile(*t) for t in FORWARD),
        *(Tile(64, 32, 4, 3), Tile(32, 32, 4, 2), Tile(64, 64, 8, 1), Tile(32, 64, 4, 1)),
    ],
    ("weights", 1): [
        *(Tile(32, 0, 1, 1, n) for n in (528, 1056, 2112)),
        *(Tile(64, 0, 2, 1, 1056), Tile(128, 0, 4, 1, 528), Tile(64, 0, 1, 1, 1056)),
        *(Tile(32, 32, 1, 1, 1056), Tile(64, 32, 2, 1, 528), Tile(64, 32, 4, 1, 264)),
    ],
    ("weights", 2): [
        *(Tile(*t, 264) for t in WEIGHTS),
        *(Tile(32, 32, 2, 1, 528), Tile(64, 32, 2, 1, 528), Tile(32, 64, 2, 1, 528)),
        *(Tile(32, 64, 4, 1, 264), Tile(32, 128, 4, 1, 264), Tile(32, 64, 4, 2, 264)),
    ],
    ("windows", 2): [
        *(Tile(128, 64, 4, 1), Tile(64, 64, 4, 1), Tile(128, 128, 8, 1), Tile(64, 128, 4, 1)),
        *(Tile(128, 32, 4, 1), Tile(256, 64, 8, 1)),
    ],
    ("fold", 2): [Tile(256, 0, 4, 1), Tile(512, 0, 4, 1), Tile(1024, 0, 4, 1)],
    ("term", 1): [Tile(32, 32, 4, 1), Tile(32, 64, 4, 1), Tile(16, 64, 4, 1), Tile(16, 128, 8, 1)],
    ("reduce", 2): [Tile(32, 64, 4, 1), Tile(32, 128, 4, 1), Tile(64, 32, 4, 1)],
}


def draw(block: int, seeds: int) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Fresh inputs of a block, stacked; a part of each image is black, as in the data."""
    c, o, side, k, has_term = SHAPES[block]
    x = torch.rand(seeds, BATCH, c, side, side, device="cuda")
    x[..., : side // 4, :] = 0
    weight = torch.randn(seeds, o, c, k, k, device="cuda") / (c * k * k) ** 0.5
    conv = side - k + 1
    term = torch.randn(seeds, 1, o, conv, conv, device="cuda") if has_term else None
    return x, weight, torch.randn(seeds, o, device="cuda") / 4, term


@contextmanager
def poisoned() -> Iterator[None]:
    """Memory handed out is filled with NaN, so that what a kernel leaves out shows."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def convolved(x: Tensor, weight: Tensor, bias: Tensor, term: Tensor | None) -> Tensor:
    """What the pool sees, [S, B, O, CH, CW], for stacked tensors of any type."""
    y = torch.stack([torch.conv2d(*each) for each in zip(x, weight, bias, strict=True)])
    if term is None:
        return y
    grouped: Tensor = y.unflatten(1, (term.shape[1], -1)) + term.unsqueeze(2)
    return grouped.flatten(1, 2)


def four(y: Tensor) -> Tensor:
    """The four outputs of each pool, last, from [..., CH, CW]."""
    return torch.stack([y[..., i::2, j::2] for i in (0, 1) for j in (0, 1)], -1)


def apart(mine: Tensor, reference: Tensor) -> float:
    """The relative error; NaN where anything is."""
    return float((mine.double() - reference).norm() / reference.norm())


def errors(block: int, seeds: int, precision: str, tiles: dict[str, Tile]) -> dict[str, float]:
    """The error of each result against float64; gradients for the pool's choices as made."""
    x, weight, bias, term = draw(block, seeds)
    with poisoned():
        h, code = conv_pool_ops.launch_forward(
            x, weight, bias, term, precision, tiles.get("forward")
        )
    exact = [None if t is None else t.double() for t in (x, weight, bias, term)]
    outputs = four(convolved(*exact))  # type: ignore[arg-type]
    best = outputs.amax(-1)
    found = {"h": apart(h, best.relu())}
    chosen = outputs.gather(-1, code.long().clamp_max(3).unsqueeze(-1)).squeeze(-1)
    missed = torch.where(code == 4, best.clamp_min(0), best - chosen)
    found["choice"] = (missed.norm() / best.norm()).item()
    grad = torch.randn_like(h)
    given = (x, weight, grad, code, precision)
    with poisoned():
        got = dict(
            zip(
                "Wb",
                conv_pool_ops.launch_weight_gradients(*given, tiles.get("weights")),
                strict=True,
            )
        )
        if block == 2:
            got["x"] = conv_pool_ops.launch_input_gradient(
                *given, tiles.get("windows"), tiles.get("fold")
            )
        if term is not None:
            got["t"] = conv_pool_ops.launch_term_gradient(
                x, weight, grad, code, 1, tiles.get("term")
            )
    dy = torch.zeros_like(outputs).sum(-1).repeat_interleave(2, -1).repeat_interleave(2, -2)
    for at, (i, j) in enumerate(itertools.product((0, 1), (0, 1))):
        dy[..., i::2, j::2] = torch.where(code == at, grad.double(), 0.0)
    convolution = functools.partial(nn_grad.conv2d_weight, weight_size=tuple(weight.shape[1:]))
    xs, ws = x.double(), weight.double()
    wanted = {
        "W": torch.stack([convolution(a, grad_output=d) for a, d in zip(xs, dy, strict=True)]),
        "b": dy.sum((1, 3, 4)),
        "t": dy.sum(1, keepdim=True),
    }
    if block == 2:
        size = tuple(x.shape[1:])
        pairs = zip(ws, dy, strict=True)
        wanted["x"] = torch.stack([nn_grad.conv2d_input(size, w, d) for w, d in pairs])
    return found | {f"d{name}": apart(value, wanted[name]) for name, value in got.items()}


def microseconds(thing: Thing, calls: int = CALLS) -> float:
    """One call of many in a captured graph: the median over replays."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            thing()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            thing()
    times = []
    for _ in range(REPLAYS + 3):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        graph.replay()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) * 1e3 / calls)
    return float(statistics.median(times[3:]))


def counted(kernel: str, sizes: Sizes, *, has_term: bool) -> tuple[float, float]:
    """Floating-point operations, and bytes that must move, of a kernel."""
    s, m, o = sizes.seeds, sizes.positions, sizes.o
    x, h = sizes.batch * sizes.c * sizes.h * sizes.w * 4, m * o * 5  # the value and its code
    windows = m * sizes.c * (sizes.k + 1) ** 2
    product = 2.0 * 4 * m * o * sizes.fan_in
    term = o * sizes.conv[0] * sizes.conv[1] * 4 * has_term
    flops, moved = {
        "forward": (product, x + h + term),
        "weights": (product, x + h),
        "windows": (2.0 * 4 * windows * o, h + windows * 4),
        "fold": (windows, windows * 4 + x),
        "term": (m * o, h + term),
        "reduce": (0.0, 264 * o * sizes.fan_in),
    }[kernel]
    return s * flops, float(s * moved)


def calls(block: int, seeds: int, precision: str) -> dict[str, Callable[[Tile], object]]:
    """Each kernel of a block as a function of its tile."""
    x, weight, bias, term = draw(block, seeds)
    h, code = conv_pool_ops.launch_forward(x, weight, bias, term, precision)
    grad = torch.randn_like(h)
    given = (x, weight, grad, code, precision)
    return {
        "forward": lambda t: conv_pool_ops.launch_forward(x, weight, bias, term, precision, t),
        "weights": lambda t: conv_pool_ops.launch_weight_gradients(*given, t),
        "reduce": lambda t: conv_pool_ops.launch_weight_gradients(*given, None, t),
        "windows": lambda t: conv_pool_ops.launch_input_gradient(*given, t),
        "fold": lambda t: conv_pool_ops.launch_input_gradient(*given, None, t),
        "term": lambda t: conv_pool_ops.launch_term_gradient(x, weight, grad, code, 1, t),
    }


def attempt(what: str, thing: Callable[[], Any]) -> Any:
    """The result, or None and a line: one failure must not cost the rest of the lease."""
    try:
        return thing()
    except Exception as error:
        print(f"FAILED {what}: {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
        if not isinstance(error, (RuntimeError, ValueError)):
            traceback.print_exc(limit=3)
        return None


def sweep(precision: str) -> list[dict[str, Any]]:
    """Every candidate at one seed and at five, checked at one."""
    rows: list[dict[str, Any]] = []
    every = {
        (block, seeds): attempt("setup", functools.partial(calls, block, seeds, precision))
        for block, seeds in itertools.product((1, 2), (1, 5))
    }
    for (kernel, block), tiles in CANDIDATES.items():
        for tile in tiles:
            if time.perf_counter() - START > DEADLINE:
                print(f"late: {kernel} {block} {tuple(tile)} passed over", flush=True)
                continue
            name = f"{kernel} {block} {tuple(tile)}"
            wrong = attempt(name, functools.partial(errors, block, 1, precision, {kernel: tile}))
            if wrong is None:
                continue
            row = {"kernel": kernel, "block": block, "tile": list(tile), "errors": wrong}
            for seeds in (1, 5):
                run = (every[block, seeds] or {}).get(kernel)
                if run is not None:
                    again = functools.partial(run, tile)
                    us = attempt(name, functools.partial(microseconds, again))
                    row[f"us_{seeds}"] = us
            worst = max(wrong.values(), key=lambda e: e if e == e else float("inf"))
            row["right"] = worst < 3e-3
            print(f"{name:44s} {row.get('us_1')} {row.get('us_5')} error {worst:.1e}", flush=True)
            rows.append(row)
    return rows


def lenet(seeds: int, block_of: Callable[..., Tensor]) -> dict[str, Thing]:
    """Forward, and forward and backward, of both blocks by one implementation."""
    x, w1, b1, term = draw(1, seeds)
    _, w2, b2, _ = draw(2, seeds)
    assert term is not None
    leaves = [t.requires_grad_() for t in (w1, b1, term, w2, b2)]
    grad = torch.randn(seeds, BATCH, 20, 6, 6, device="cuda")

    def one(x: Tensor, w1: Tensor, b1: Tensor, term: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        return block_of(block_of(x, w1, b1, term), w2, b2, None)

    def forward() -> Tensor:
        if seeds == 1:
            return one(x[0], *(t[0] for t in leaves)).unsqueeze(0)
        result: Tensor = torch.vmap(one)(x, *leaves)
        return result

    def both() -> object:
        return torch.autograd.grad(forward(), leaves, grad)

    return {"forward": torch.no_grad()(forward), "forward and backward": both}


def whole(precision: kernels.Precision) -> list[dict[str, Any]]:
    """Both blocks, fused and by the library, as `engine` would capture them."""
    by_kernel = functools.partial(kernels.conv_pool, precision=precision)
    rows = []
    for seeds in (1, 5):
        for name, block_of in (("fused", by_kernel), ("library", kernels._compute_with_torch)):
            for what, thing in lenet(seeds, block_of).items():
                us = attempt(f"{name} {what}", functools.partial(microseconds, thing, 5))
                rows.append({"how": name, "what": what, "seeds": seeds, "us": us})
    return rows


def ray_net(rays: Tensor, first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    """From rays to what they add to LeNet's first convolution, by the kernels."""
    return kernels.map_term(kernels.ray_maps(rays, first, second), weight, (36, 36))


def ray_net_compute_with_torch(
    rays: Tensor, first: Tensor, second: Tensor, weight: Tensor
) -> Tensor:
    """The same by torch's operators."""
    pixels = F.relu(rays @ first.flatten(1)).unflatten(1, first.shape[1:])
    maps = F.relu(F.conv_transpose2d(pixels, second, stride=2, padding=1))
    return F.conv2d(F.interpolate(maps, size=(36, 36), mode="nearest"), weight)


def draw_rays(seeds: int, j: int, groups: int) -> list[Tensor]:
    """Rays and the three weights, stacked."""
    rays = torch.rand(seeds, groups, j, device="cuda") + 0.1
    shapes = (j, j, 4, 4), (j, j, 6, 6), (10, j, 5, 5)
    weights = (torch.randn(seeds, *shape, device="cuda") / j for shape in shapes)
    return [rays, *(weight.requires_grad_() for weight in weights)]


def ray_errors(seeds: int, j: int, groups: int) -> dict[str, float]:
    """Term and gradients of the ray net against float64."""
    inputs = draw_rays(seeds, j, groups)
    exact = [t.detach().double().requires_grad_(t.requires_grad) for t in inputs]
    grad = torch.randn(seeds, groups, 10, 32, 32, device="cuda")
    with poisoned():
        term = torch.vmap(ray_net)(*inputs)
        got = torch.autograd.grad(term, inputs[1:], grad)
    each = zip(*exact, strict=True)
    wanted = torch.stack([ray_net_compute_with_torch(*one) for one in each])
    right = torch.autograd.grad(wanted, exact[1:], grad.double())
    found = {"term": apart(term.detach(), wanted.detach())}
    names = "first", "second", "weight"
    return found | {f"d{n}": apart(*pair) for n, *pair in zip(names, got, right, strict=True)}


def ray_calls(seeds: int, j: int, groups: int) -> dict[str, Thing]:
    """The ray net, fused and by the library, and each operator alone."""
    inputs = draw_rays(seeds, j, groups)
    grad = torch.randn(seeds, groups, 10, 32, 32, device="cuda")
    things: dict[str, Thing] = {}
    for name, net in (("fused", ray_net), ("library", ray_net_compute_with_torch)):

        def forward(net: Callable[..., Tensor] = net) -> Tensor:
            if seeds == 1:
                return net(*(t[0] for t in inputs)).unsqueeze(0)
            result: Tensor = torch.vmap(net)(*inputs)
            return result

        def both(forward: Callable[[], Tensor] = forward) -> object:
            return torch.autograd.grad(forward(), inputs[1:], grad)

        things[f"{name} forward"] = torch.no_grad()(forward)
        things[f"{name} forward and backward"] = both
    rays, first, second, weight = (t.detach() for t in inputs)
    maps, pixels = ray_maps_ops.ray_maps_op(rays, first, second)
    dmaps = torch.randn_like(maps)
    given = dmaps, maps, pixels, rays, second
    return things | {
        "ray_maps": lambda: ray_maps_ops.ray_maps_op(rays, first, second),
        "map_term": lambda: ray_maps_ops.map_term_op(maps, weight, 36, 36),
        "map_term back": lambda: ray_maps_ops.map_term_backward_op(
            grad, maps, weight, 36, 36, True, True
        ),
        "ray_maps back": lambda: ray_maps_ops.ray_maps_backward_op(*given, True, True),
    }


def rays_report() -> dict[str, Any]:
    """Errors and times of the ray net, for one seed and five, two objectives and ten."""
    report: dict[str, Any] = {"errors": {}, "us": {}}
    for seeds, j, groups in itertools.product((1, 5), (2, 10), (1, 4)):
        name = f"{seeds} seed(s), J {j}, G {groups}"
        wrong = attempt(f"rays {name}", functools.partial(ray_errors, seeds, j, groups))
        report["errors"][name] = wrong
        if groups == 1:
            things = attempt(f"rays {name}", functools.partial(ray_calls, seeds, j, groups)) or {}
            for what, thing in things.items():
                us = attempt(f"{what} {name}", functools.partial(microseconds, thing))
                report["us"].setdefault(what, {})[name] = us
    return report


def print_rays(report: dict[str, Any]) -> None:
    """The worst error, then a line for each call."""
    for name, wrong in report["errors"].items():
        worst = max((wrong or {"": float("nan")}).values(), key=lambda e: e if e == e else 1e9)
        print(f"rays {name}: error {worst:.1e} {'right' if worst < 1e-5 else 'WRONG'}")
    for what, times in report["us"].items():
        row = "  ".join(f"{name}: {us or 0:6.1f}" for name, us in times.items())
        print(f"{what:29s} us  {row}")


def best(rows: list[dict[str, Any]], seeds: int) -> Iterator[tuple[dict[str, Any], float]]:
    """The fastest right tile of each kernel."""
    key = f"us_{seeds}"
    for kernel, block in CANDIDATES:
        mine = [r for r in rows if (r["kernel"], r["block"]) == (kernel, block)]
        mine = [r for r in mine if r["right"] and r.get(key)]
        if mine:
            row = min(mine, key=lambda r: r[key])
            yield row, row[key]


def main() -> None:
    """Check, time, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--precision", default="tf32", choices=("tf32", "tf32x3", "ieee"))
    parser.add_argument("--rays", action="store_true", help="the ray net alone")
    parser.add_argument("--no-tiles", action="store_true", help="only the tiles in use")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    report: dict[str, Any] = get_provenance(torch.device("cuda"))
    report["rays"] = rays_report()
    if options.rays:
        if options.out:
            options.out.write_text(json.dumps(report, indent=1))
        print_rays(report["rays"])
        return
    checks = report["errors"] = {}
    for block, seeds, precision in itertools.product((1, 2), (1, 5), ("ieee", "tf32x3", "tf32")):
        if precision == "tf32x3" and seeds > 1:
            continue
        name = f"block {block}, {seeds} seeds, {precision}"
        what = functools.partial(errors, block, seeds, precision, {})
        checks[name] = attempt(name, what)
        if checks[name]:
            print(name, {k: f"{v:.1e}" for k, v in checks[name].items()}, flush=True)
    report["whole"] = whole(options.precision)
    report["tiles"] = rows = [] if options.no_tiles else sweep(options.precision)
    report["seconds"] = time.perf_counter() - START
    if options.out:
        options.out.write_text(json.dumps(report, indent=1))
    device, seconds = report["machine"]["device"], report["seconds"]
    print(f"\n{device}, batch {BATCH}, {options.precision}, {seconds:.0f} s")
    for seeds in (1, 5):
        print(
            f"-- {seeds} seed(s): best tile (positions, chunk, warps, stages, programs), us, floor"
        )
        for row, us in best(rows, seeds):
            shape = SHAPES[row["block"]]
            sizes = Sizes(seeds, BATCH, shape[0], shape[2], shape[2], shape[1], shape[3])
            flops, moved = counted(row["kernel"], sizes, has_term=shape[4])
            floor = max(flops / RATE, moved / BANDWIDTH) * 1e6
            name = f"{row['kernel']} {row['block']}"
            print(f"{name:10s} {row['tile']!s:26s} {us:7.1f} us  floor {floor:5.1f}")
    print("(weights include their reduce, windows and fold are one call of both)")
    for row in report["whole"]:
        print(f"{row['how']:8s} {row['what']:21s} {row['seeds']} seed(s) {row['us'] or 0:8.1f} us")
    print_rays(report["rays"])


if __name__ == "__main__":
    main()
