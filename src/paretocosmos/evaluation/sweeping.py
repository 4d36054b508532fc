"""A network under all rays: in chunks that a cache holds, in blocks that memory holds."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.backbones import Backbone
from paretocosmos.conditioning import Conditioning
from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation.kept import kept_or
from paretocosmos.types import Inputs, Outputs, first, map_tensors

__all__ = ["blocks", "check_rows", "numbers_per_sample", "sweep", "there"]

Prepare = Callable[[Inputs, torch.dtype], Inputs]

# Numbers in one pass: samples times rays times the size of an input. Larger chunks fall out of a
# CPU's cache, smaller ones pay for more calls. An image grows in its first convolution, a row of a
# table does not.
CHUNK, CHUNK_IMAGES = 2_200_000, 550_000
# A GPU has no such cache, and asking for an operation costs it more than running it.
CHUNK_CUDA = 8_800_000
# So few samples times rays are not worth a question beforehand.
FEW = 64


def sweep(
    model: nn.Module, inputs: Inputs, rays: Tensor, prepare: Prepare | None = None
) -> Outputs:
    """Outputs of all samples under all rays, ``[N, B, ...]``, in chunks of samples.

    Inputs may lie elsewhere than the model: a chunk is moved when its turn comes. Within a block of
    `keeping`, the same question is computed once.
    """

    def swept() -> Outputs:
        (whole,) = (outputs for _, outputs in blocks(model, inputs, rays, prepare))
        return whole

    return kept_or(model, inputs, rays, swept)


def blocks(
    model: nn.Module,
    inputs: Inputs,
    rays: Tensor,
    prepare: Prepare | None = None,
    *,
    room: int | None = None,
) -> Iterator[tuple[slice, Outputs]]:
    """Outputs under all rays, ``[N, b, ...]``, for one block of samples after another.

    Args:
        model: ``forward(inputs, ray) -> outputs``.
        inputs: of all samples.
        rays: ``[N, J]``.
        prepare: a problem's.
        room: how many numbers a block has at most, though one sample at least; `None`: all samples
            are one block.

    Yields:
        Which samples they are, and their outputs.
    """
    some = first(inputs)
    parameter = next(model.parameters(), torch.zeros((), device=some.device))
    device, dtype = parameter.device, parameter.dtype
    numbers = CHUNK_CUDA if device.type == "cuda" else CHUNK_IMAGES if some.ndim > 2 else CHUNK
    size = _chunk(model, inputs, rays, prepare, min(numbers, room or numbers))
    rays = rays.to(device, dtype)
    every: Any = None
    begin, end = 0, 0
    for start in range(0, len(some), size):
        chunk = map_tensors(lambda part, at=start: part[at : at + size], inputs)
        chunk = map_tensors(partial(there, device=device, dtype=dtype), chunk)
        outputs = _each_ray(model, chunk, rays, prepare)
        stop = min(start + size, len(some))
        if every is None:
            begin, end = start, len(some)
            if room is not None:
                chunks = max(1, room // max(1, _numbers(outputs) // (stop - start)) // size)
                end = min(start + chunks * size, end)
            # room for all at once: small results kept between large ones would fragment memory
            every = map_tensors(
                lambda out, n=end - begin: out.new_empty(len(rays), n, *out.shape[2:]), outputs
            )
        map_tensors(
            lambda held, out, at=start - begin: held[:, at : at + size].copy_(out), every, outputs
        )
        if stop == end:
            yield slice(begin, end), every
            every = None


def numbers_per_sample(
    model: nn.Module, inputs: Inputs, rays: Tensor, prepare: Prepare | None = None
) -> int:
    """How many numbers a network gives for a sample at a ray: it is asked for two of them."""
    some = first(inputs)
    parameter = next(model.parameters(), torch.zeros((), device=some.device))
    there_is = partial(there, device=parameter.device, dtype=parameter.dtype)
    few = map_tensors(lambda part: there_is(part[:2]), inputs)
    outputs = _each_ray(model, few, rays[:1].to(parameter.device, parameter.dtype), prepare)
    return max(1, _numbers(outputs) // min(2, len(some)))


def _chunk(
    model: nn.Module, inputs: Inputs, rays: Tensor, prepare: Prepare | None, numbers: int
) -> int:
    """How many samples go through a network at once, so that about so many numbers do."""
    some = first(inputs)
    inside = [part.widest for part in model.modules() if isinstance(part, Backbone)]
    if not inside and len(some) * len(rays) > FEW:
        # a network from elsewhere may make a vocabulary of every number it is given
        inside = [numbers_per_sample(model, inputs, rays, prepare)]
    widest = max(math.prod(some.shape[1:]), *inside, 1)
    return max(1, numbers // (len(rays) * widest))


def _numbers(outputs: Outputs) -> int:
    total = 0

    def count(part: Tensor) -> Tensor:
        nonlocal total
        total += part.numel()
        return part

    map_tensors(count, outputs)
    return total


def there(part: Tensor, *, device: torch.device, dtype: torch.dtype | None) -> Tensor:
    """A tensor on a device, as that type if it holds floats."""
    return part.to(device, dtype if part.is_floating_point() else None)


def _each_ray(model: nn.Module, chunk: Inputs, rays: Tensor, prepare: Prepare | None) -> Outputs:
    inputs = chunk if prepare is None else prepare(chunk, rays.dtype)
    if isinstance(model, Conditioning) and model.postprocesses:
        before_rays = kept_or(model, chunk, rays[:0], partial(model.call, inputs))
        return model.at_rays(before_rays, rays)
    if isinstance(model, Conditioning):
        outputs = model.each_ray(inputs, rays)
    else:
        outputs = map_tensors(lambda *parts: torch.stack(parts), *(model(inputs, r) for r in rays))
    map_tensors(partial(check_rows, samples=len(first(chunk))), outputs)
    return outputs


def check_rows(out: Tensor, samples: int) -> Tensor:
    """Outputs ``[N, B, ...]``, which are cut by samples; refused where rows are something else."""
    if out.ndim < 2 or out.shape[1] != samples:
        found = f"{out.shape[1]} rows" if out.ndim > 1 else "one number"
        raise ConfigurationError(
            f"a network must give a row of outputs for each sample, found {found} for {samples} "
            "samples: where a sample has several, such as the nodes of a graph, pad them to one "
            "number and let the network give [samples, nodes, ...]"
        )
    return out
